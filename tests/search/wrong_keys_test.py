# SPDX-License-Identifier: Apache-2.0
# Every key and every table of search files mistyped once: each time one line that names it and where
# it stands, exit code 2, and nothing was made. In a command that does not search as well, since a key
# that nobody reads is a mistake everywhere.
import os
import re
import shutil
import subprocess
import tempfile

QUANTISATION = """
model = "jsc-tiny"
dataset = "jsc-sim"
task = "cls"
max_epochs = 1
batch_size = 512
learning_rate = 1e-2
project = "wrong"
seed = 42

[passes.quantize]
by = "type"
[passes.quantize.default.config]
name = "NA"
[passes.quantize.linear.config]
name = "integer"
data_in_width = 8
data_in_frac_width = 4
weight_width = 8
weight_frac_width = 4
bias_width = 8
bias_frac_width = 4

[search.search_space]
name = "graph/quantize/mixed_precision_ptq"
[search.search_space.setup]
by = "name"
[search.search_space.seed.default.config]
name = ["NA"]
[search.search_space.seed.linear.config]
name = ["integer"]
data_in_width = [4, 8]
data_in_frac_width = ["NA"]
weight_width = [2, 4, 8]
weight_frac_width = ["NA"]
bias_width = [2, 4, 8]
bias_frac_width = ["NA"]
[search.search_space.seed.seq_blocks_2.config]
name = ["integer"]
data_in_width = [4, 8]
data_in_frac_width = ["NA"]
weight_width = [2, 4, 8]
weight_frac_width = ["NA"]
bias_width = [2, 4, 8]
bias_frac_width = ["NA"]

[search.strategy]
name = "optuna"
eval_mode = true
[search.strategy.sw_runner.basic_evaluation]
data_loader = "val_dataloader"
num_samples = 512
[search.strategy.hw_runner.average_bitwidth]
compare_to = 32
[search.strategy.setup]
n_jobs = 1
n_trials = 20
timeout = 20000
sampler = "tpe"
n_startup_trials = 5
sum_scaled_metrics = true
direction = "maximize"
racing = false
[search.strategy.metrics.accuracy]
scale = 1.0
direction = "maximize"
[search.strategy.metrics.average_bitwidth]
scale = 0.2
direction = "minimize"
upper_bound = 32
"""

TRAINING = """
model = "jsc-tiny"
dataset = "jsc-sim"
[search.search_space]
[search.search_space.train]
learning_rate = {low = 1e-4, high = 1e-1, log = true}
batch_size = [32, 64, 128]
[search.strategy.sw_runner.basic_train]
data_loader = "train_dataloader"
num_samples = 512
max_epochs = 1
optimizer = "adam"
learning_rate = 1e-3
num_warmup_steps = 0
[search.strategy.setup]
n_trials = 4
sampler = "random"
[search.strategy.setup.pruner]
name = "median"
n_startup_trials = 5
[search.strategy.metrics.loss]
direction = "minimize"
"""

# Names of layers and of operations: those of other networks are allowed, and told.
OPEN = {"linear", "seq_blocks_2", "default"}
# What is measured and what measures it: for a search to judge, not for other commands.
FIGURES = {"accuracy", "average_bitwidth", "loss", "basic_evaluation", "basic_train"}


def mistyped(word):
    return word[:-1] + ("x" if word[-1] != "x" else "y") + word[-1]


def variants(text):
    """The text with one word changed: (text, the word, its line, whether only a search judges it)."""
    lines = text.strip("\n").split("\n")
    inside = ""
    for number, line in enumerate(lines):
        table = re.fullmatch(r"\[([\w.]+)\]", line)
        inside = line if table else inside
        words = table.group(1).split(".") if table else re.findall(r"(\w+) =", line)
        for at, word in enumerate(words):
            if table and word in OPEN:
                continue
            if table:
                changed = "[" + ".".join(words[:at] + [mistyped(word)] + words[at + 1:]) + "]"
            else:
                changed = re.sub(rf"\b{word} =", mistyped(word) + " =", line, count=1)
            whole = "\n".join(lines[:number] + [changed] + lines[number + 1:]) + "\n"
            alone = not inside.startswith("[search") or (bool(table) and word in FIGURES)
            told = mistyped(word)
            yield whole, told, number + 1, alone


def main():
    ch = os.environ["MASE_CH"]
    count, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, MASE_DATA=folder + "/data")

        def run(command, text):
            with open(folder + "/x.toml", "w") as out:
                out.write(text)
            return subprocess.run([ch, command, "--config", "x.toml", "--sim-rows", "500"], cwd=folder, text=True,
                                  capture_output=True, env=environment)

        for text in (QUANTISATION, TRAINING):
            done = run("search", text)
            assert done.returncode == 0, done.stderr + done.stdout
            shutil.rmtree(folder + "/mase_output")
            for variant, word, line, of_search in variants(text):
                for command in ("search",) if of_search else ("search", "train"):
                    count += 1
                    done = run(command, variant)
                    told = [one for one in done.stderr.split("\n") if one and not one.startswith("WARNING")]
                    if (done.returncode, len(told)) == (2, 1) and told[0].startswith("ch: x.toml:") and word in told[0] \
                            and not os.path.exists(folder + "/mase_output"):
                        continue
                    wrong.append(f"{command}, line {line}, {word}: exit code {done.returncode}\n{done.stderr}")
                    shutil.rmtree(folder + "/mase_output", ignore_errors=True)
    print("\n".join(wrong))
    assert not wrong, f"{len(wrong)} of {count}"
    print(f"{count} mistyped keys and tables")


if __name__ == "__main__":
    main()
