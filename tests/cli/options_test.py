# SPDX-License-Identifier: Apache-2.0
# Commands of one mind: which command has which option (tests/golden/cli/options.txt), the same option meaning the
# same thing everywhere, words that may be options too, and the nearest name being the nearest.
import collections
import os
import re
import subprocess
import sys
import tempfile

CH, SOURCE = os.environ["MASE_CH"], os.environ["MASE_SOURCE"]
GOLDEN = os.path.join(SOURCE, "tests", "golden", "cli", "options.txt")
failures = []


def ch(*words, folder="."):
    done = subprocess.run([CH, *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def check(condition, what, text=""):
    if not condition:
        failures.append(f"{what}\n{text[-1500:]}")


# What every command takes, from the reference that the program prints.
text = ch("reference")[1].split("\n## Commands\n")[1].split("\n## ")[0]
commands = {}  # name: {option: (type, default, help)}
words = collections.defaultdict(dict)  # name: {positional: also an option}
for block in text.split("\n### `ch ")[1:]:
    name = block.split("`")[0].split()[0]
    commands[name] = {}
    for line in block.split("\n"):
        option = re.match(r"\| `--([a-z0-9-]+)` *\| ([^|]*?) *\| ([^|]*?) *\| ((?:[^|\\]|\\.)*?) *\|$", line)
        if option:
            commands[name][option[1]] = option.groups()[1:]
        positional = re.match(r"- `(\w+)`( or `--\w+`)?: ", line)
        if positional:
            words[name][positional[1]] = positional[2] is not None
check(len(commands) > 25, "commands of the reference")

# The table of command and option: a change of it is meant, or a slip.
shared = collections.Counter(option for options in commands.values() for option in options)
table = []
for option in sorted(shared):
    if shared[option] > 1:
        table.append(f"{option}: {' '.join(sorted(c for c in commands if option in commands[c]))}")
table = "\n".join(table) + "\n"
if os.environ.get("MASE_REWRITE_GOLDEN") == "1":
    os.makedirs(os.path.dirname(GOLDEN), exist_ok=True)
    open(GOLDEN, "w").write(table)
golden = open(GOLDEN).read()
check(table == golden, "tests/golden/cli/options.txt is another table of command and option "
      "(MASE_REWRITE_GOLDEN=1 rewrites it):\n" +
      "\n".join(sorted(set(table.split("\n")) ^ set(golden.split("\n")))))

# One name, one type. Those that differ say why.
reasons = ["json",   # a file where there are figures to keep, else the terminal
           "input"]  # several files where rows of one may follow those of another
for option in shared:
    types = {commands[c][option][0] for c in commands if option in commands[c]}
    check(len(types) == 1 or option in reasons, f"--{option} is {types}")
for option, default in {"seed": "`0`", "project-dir": "`'mase_output'`", "batch-size": None, "log-level": "`'info'`"}.items():
    defaults = {commands[c][option][1] for c in commands if option in commands[c]}
    check(default is None or defaults == {default}, f"--{option} defaults to {defaults}")

# A network and a data set are words and options, wherever a command takes them.
for name, places in words.items():
    for place in ("model", "dataset"):
        check(places.get(place, True), f"ch {name}: {place} cannot be given as --{place}")
        check(place not in commands[name], f"ch {name}: --{place} is no word")
    if "load" in commands[name]:
        check("model" in places or name == "format", f"ch {name} takes --load and no network as a word")

# Both ways mean the same.
with tempfile.TemporaryDirectory() as folder:
    train = ["--max-epochs", "1", "--sim-rows", "2000"]
    for words_of_it in (["jsc-tiny", "jsc-sim"], ["jsc-tiny", "--dataset", "jsc-sim"], ["--model", "jsc-tiny", "jsc-sim"],
                        ["--dataset=jsc-sim", "--model=jsc-tiny"]):
        code, said = ch("train", *words_of_it, *train, "--project", "run", folder=folder)
        check(code == 0, f"ch train {words_of_it}", said)
    best = f"{folder}/mase_output/run/software/training_ckpts/best.mz"
    config = os.path.join(SOURCE, "configs", "examples", "hardware_8bit.toml")
    said = [ch("emit", *words_of_it, "--config", config, "--no-prove", "--quiet", "--output", "d", folder=folder)
            for words_of_it in ([best, "jsc-sim"], ["--load", best, "jsc-sim"], ["--load", best, "--dataset", "jsc-sim"])]
    check(len(set(said)) == 1 and said[0][0] == 0, "ch emit takes a data set as a word and as an option", str(said))
    check("test rows of jsc" in said[0][1], "the rows that were named", said[0][1])
    code, said = ch("train", "jsc-tiny", "jsc-sim", "--dataset", "jsc-sim", folder=folder)
    check(code == 2, "a data set given twice", said)

    # --json alone is the terminal; a file is a file.
    code, said = ch("summary", "jsc-tiny", "--json", folder=folder)
    check(code == 0 and said.lstrip().startswith("["), "ch summary --json", said)
    code, said = ch("summary", "jsc-tiny", "--json", "s.json", folder=folder)
    check(code == 0 and not said and os.path.exists(f"{folder}/s.json"), "ch summary --json FILE", said)
    code, said = ch("summary", "jsc-tiny", "jsc-sim", folder=folder)
    check(code == 0 and "[1, 16]" in said, "ch summary of a network for its data", said)
    code, said = ch("transform", best, "--config", config, "--no-output", "--project", "none", folder=folder)
    check(code == 0 and not os.path.exists(f"{folder}/mase_output/none"), "ch transform --no-output", said)
    code, said = ch("sweep", "jsc-toy", "jsc-sim", "--vary", "seed=1,2", folder=folder)
    check(code == 2 and "ch sweep train jsc-toy" in said, "ch sweep says what to type", said)


# The nearest option is the nearest: of every command and option, a letter left out, doubled or changed.
def distance(a, b):
    row = list(range(len(b) + 1))
    before = row
    for i, x in enumerate(a, 1):
        last, row = row, [i] + [0] * len(b)
        for j, y in enumerate(b, 1):
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before[j - 2] + 1)
        before = last
    return row[-1]


for name in ("train", "emit", "quantize"):
    flags = ["--" + option for option in commands[name]]
    flags += ["--" + place for place, too in words[name].items() if too] + ["--help"]
    flags += ["--no-" + o for o, (kind, default, _) in commands[name].items() if kind == "true or false" and default == "`True`"]
    for flag in sorted(flags)[::3]:
        wrong = flag[:-2] + flag[-1] if len(flag) > 6 else flag + "q"
        if wrong in flags:
            continue
        code, said = ch(name, wrong)
        named = re.findall(r"did you mean '(--[a-z0-9-]+)'", said)
        check(code == 2 and named, f"ch {name} {wrong}", said)
        if named:
            best_of = min(distance(wrong, other) for other in flags)
            check(distance(wrong, named[0]) == best_of, f"{wrong}: {named[0]} is not the nearest")

print("\n\n".join(failures))
sys.exit(1 if failures else 0)
