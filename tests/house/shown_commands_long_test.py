# SPDX-License-Identifier: Apache-2.0
"""Every command that README.md and the documentation show (but the reference, which is printed) is run, page by page
from top to bottom, in a folder that has what they name; what a page shows as output is compared, numbers by tolerance.
Blocks of ```console are docs_test.py's."""
import glob
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

CH, SOURCE = os.environ["MASE_CH"], os.environ["MASE_SOURCE"]
failures, counts = [], {"run": 0, "compared": 0, "left": 0}

# What cannot be run here, and why. A line that no page shows any more fails.
LEFT = {
    r"--place\b": "nextpnr is downloaded by the user",
    r"^python\b|^notebook\b": "tests/python/launcher_test.py",
    r"--plugin count\.py": "tests/python/plugin_test.py",
    r"postgresql://": "tests/search/together_test.sh has a server",
    r"^view$": "a server that waits; tests/report has it",
    r"all-MiniLM": "downloaded by the user; tests/models/minilm_long_test.py",
    r"^train (lenet fashion-mnist|toy_convnet cifar10)": "downloaded by the user; tests/train/cifar_long_test.py",
    r"detector\.onnx|sentences\.onnx": "tests/io/onnx_command_test.py has files of open sizes",
    r"mnist --batch-size 64 --max-epochs 8|q8\.toml|lenet8|--load lenet\.ckpt":
        "MNIST is downloaded by the user; tests/hardware/stream_planes_test.cpp, tests/run/compress_test.cpp have small ones",
    r"SmolLM2|model\.gguf": "downloaded by the user; tests/models/smollm2_long_test.py",
    r"\bFOLDER\b": "tests/text and tests/models have folders of language models",
    r"^synth ": "minutes for these designs; tests/hardware has smaller ones",
}
# Shorter than shown: the words are what is tried, not the hours.
SHORTER = [(r"--max-epochs (\d{2,}|[2-9])", "--max-epochs 2"), (r"--bits-retrain-epochs 60", "--bits-retrain-epochs 2"),
           (r"--bits-points 32", "--bits-points 3"), (r"--seeds 10", "--seeds 2"), (r"--n-trials 40", "--n-trials 6"),
           (r"^search --config (\S+)$", r"search --config \1 --n-trials 6")]
MORE = [(r"^search jsc-10x", " --n-trials 6"), (r"^emit ", " --no-prove"), (r"^format sweep", " --rows 500"),
        (r"^shrink ", " --rounds 1 --retrain-epochs 1"), (r"^train lenet", " --max-epochs 1"), (r"^train net.toml jets", " --max-epochs 4")]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(text, bytes) else "w") as out:
        out.write(text)


def png(pixels, size):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes(pixels[size * r:size * r + size]) for r in range(size))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def npy(shape, kind, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    head += b" " * (118 - len(head) - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def ch(words, folder):
    return subprocess.run(["bash", "-c", f'"$MASE_CH" {words}'], cwd=folder, capture_output=True, text=True, env=environment)


# What the pages' commands find.
root = tempfile.mkdtemp()
home, place = f"{root}/home", f"{root}/place"
os.makedirs(home)
environment = dict(os.environ, HOME=home, XDG_CACHE_HOME=f"{root}/cache", COLUMNS="120")
environment.pop("MASE_DATA", None)


def page_folder():
    """A folder in which a page's commands run."""
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    for name in ("configs", "examples", "docs"):
        shutil.copytree(f"{SOURCE}/{name}", f"{place}/{name}")
    os.makedirs(f"{place}/tests")
    os.symlink(f"{SOURCE}/tests/golden", f"{place}/tests/golden")
    shutil.copytree(f"{root}/made", place, dirs_exist_ok=True)


def make_files():
    made, draw = f"{root}/made", random.Random(1)
    os.makedirs(made)
    said = ch("train jsc-10x jsc --max-epochs 1 --sim-rows 3000 --project base", made)
    assert said.returncode == 0, said.stdout + said.stderr
    for end in ("mz", "ckpt"):
        shutil.copy(f"{made}/mase_output/base/software/training_ckpts/best.{end}", f"{made}/best.{end}")
    for run in ("jsc-tiny_classification_jsc_2024-01-31", "batch_64", "batch_256"):
        shutil.copytree(f"{made}/mase_output/base", f"{made}/mase_output/{run}")
    said = ch("train jsc-tiny jsc --max-epochs 1 --sim-rows 3000 --project jsc-tiny_classification_jsc_2024-02-10", made)
    assert said.returncode == 0, said.stdout + said.stderr
    eight = os.path.join(SOURCE, "configs/examples/hardware_8bit.toml")
    said = ch(f"transform best.mz --config {eight} --project t", made)
    assert said.returncode == 0, said.stdout + said.stderr
    shutil.copy(f"{made}/mase_output/t/software/transform/transformed.mz", f"{made}/transformed.mz")
    assert ch("export --load best.mz --to model.onnx", made).returncode == 0
    write(f"{made}/quantize.toml", open(eight).read())
    write(f"{made}/passes.toml", "[passes.calculate_flops]\n")
    write(f"{made}/net.toml", 'name = "net"\nseq_blocks = [{type = "Linear", out_features = 8}, {type = "ReLU"}, {type = "Linear"}]\n')
    write(f"{made}/space.toml", open(f"{SOURCE}/configs/examples/search_jsc_tiny.toml").read())
    rows = []
    for i in range(600):
        label = draw.randrange(5)
        rows.append([draw.gauss(label * (k % 3), 1) for k in range(16)] + [label])
    write(f"{made}/rows.csv", "".join(",".join(f"{v:.4f}" for v in row[:16]) + "\n" for row in rows[:50]))
    names = ",".join(f"f{k}" for k in range(16))
    write(f"{made}/jets.csv", f"{names},class\n" + "".join(",".join(f"{v:.4f}" for v in row[:16]) + f",k{row[16]}\n" for row in rows))
    write(f"{made}/jets.toml", 'file = "jets.csv"\ntarget = "class"\n')
    said = ch("train net.toml jets.toml --max-epochs 2 --project net", made)
    assert said.returncode == 0, said.stdout + said.stderr
    said = ch(f"transform mase_output/net/software/training_ckpts/best.mz --config {eight} --project p", made)
    assert said.returncode == 0, said.stdout + said.stderr
    shutil.copy(f"{made}/mase_output/p/software/transform/transformed.mz", f"{made}/point.mz")
    flat = b"".join(struct.pack("<16f", *row[:16]) for row in rows)
    write(f"{made}/in.npy", npy((600, 16), "<f4", flat))
    labels = struct.pack("<600q", *(row[16] for row in rows))
    import zipfile
    with zipfile.ZipFile(f"{made}/jets.npz", "w") as archive:
        archive.writestr("x.npy", npy((600, 16), "<f4", flat))
        archive.writestr("y.npy", npy((600,), "<i8", labels))
    images = bytes(draw.randrange(256) for _ in range(60 * 784))
    with zipfile.ZipFile(f"{made}/digits.npz", "w") as archive:
        archive.writestr("x.npy", npy((60, 28, 28), "|u1", images))
        archive.writestr("y.npy", npy((60,), "<i8", struct.pack("<60q", *(i % 10 for i in range(60)))))
    for i in range(60):
        write(f"{made}/photos/{'cats' if i % 2 else 'dogs'}/{i}.png", png(images[784 * i:784 * i + 784], 28))
    for name, count in (("train", 60), ("t10k", 30)):
        write(f"{home}/mnist/{name}-images-idx3-ubyte", struct.pack(">IIII", 2051, count, 28, 28) + images[:784 * count])
        write(f"{home}/mnist/{name}-labels-idx1-ubyte", struct.pack(">II", 2049, count) + bytes(i % 10 for i in range(count)))
    words = ["good", "bad", "film", "plot", "very"]
    said = ch("data info jsc-sim --sim-rows 200", made).stdout
    features = [line.split()[0] for line in said.split("\nFeature")[1].split("\n")[2:] if line.strip()]
    write(f"{made}/data/jsc.csv", ",".join(features) + ",class\n" + "".join(
        ",".join(f"{v:.4f}" for v in row[:16]) + "," + "gqwzt"[row[16]] + "\n" for row in rows))
    write(f"{made}/iris.csv", "a,b,c,d,species\n" + "".join(
        ",".join(f"{draw.gauss(i % 3 * (k + 1), 1):.3f}" for k in range(4)) + f",s{i % 3}\n" for i in range(150)))
    shutil.copy(f"{made}/transformed.mz", f"{made}/quantised.mz")
    said = ch("train jsc-10x jsc --load best.ckpt --config " + os.path.join(SOURCE, "configs/examples/jsc_lsq4.toml") +
              " --max-epochs 1 --sim-rows 3000 --project learned", made)
    assert said.returncode == 0, said.stdout + said.stderr
    shutil.copy(f"{made}/mase_output/learned/software/training_ckpts/best.mz", f"{made}/learned.mz")
    write(f"{made}/vocab.txt", "[PAD]\n[UNK]\n" + "\n".join(words) + "\n")
    write(f"{made}/reviews.txt", "".join(" ".join(draw.choices(words, k=5)) + "\n" for _ in range(200)))
    write(f"{made}/classes.txt", "".join(f"{i % 2}\n" for i in range(200)))
    write(f"{made}/bag.toml", 'name = "bag"\nseq_blocks = [{type = "Embedding", num_embeddings = 8, embedding_dim = 4}, '
          '{type = "Flatten"}, {type = "Linear"}]\n')
    write(f"{made}/patients.csv", "id,a,b,outcome\n" + "".join(f"n{i},{draw.gauss(0, 1):.3f},{'-999' if i % 7 == 0 else 1},k{i % 2}\n" for i in range(200)))
    write(f"{made}/text.txt", open(f"{SOURCE}/README.md").read())
    write(f"{made}/lines.txt", "To be\nor not to be\n")
    shutil.copy(f"{SOURCE}/tests/fuzz/corpus/tokenizer/byte_level", f"{made}/tokenizer.json")
    shutil.copy(f"{SOURCE}/tests/golden/torch/jsc-tiny.expected.safetensors", f"{made}/weights.safetensors")


def commands(page):
    """(line, command, shown output or None) of the indented and fenced blocks; not of ```console."""
    lines = open(page, encoding="utf-8").read().split("\n")
    found, fence = [], ""
    for at, line in enumerate(lines):
        if line.startswith("```"):
            fence = "" if fence else line[3:] or "text"
        if fence == "console":
            continue
        match = re.match(r"(?: {4})?(\$ )?(?:\./)?ch (.+)$", line)
        if not match or not (line.startswith("    ") or fence):
            continue
        shown = None
        if match[1]:
            shown = []
            for after in lines[at + 1:]:
                if not after.startswith("    ") or re.match(r" {4}\$ ", after):
                    break
                shown.append(after[4:])
        found.append((at + 1, re.sub(r"\s+#.*$", "", match[2]).strip(), shown))
    return found


NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")


def alike(want, got):
    """The same words; numbers within a fiftieth, but for speeds and times."""
    if re.search(r"it/s|seconds|\d s\b|compiled in", want):
        return (NUMBER.sub("", want)[:20].strip() == NUMBER.sub("", got)[:20].strip() and
                NUMBER.findall(want)[0] == (NUMBER.findall(got) or [""])[0])
    if NUMBER.sub("0", want).split() != NUMBER.sub("0", got).split():
        return False
    for a, b in zip(NUMBER.findall(want), NUMBER.findall(got)):
        x, y = (float(v.rstrip(".,").replace(",", "")) for v in (a, b))
        if abs(x - y) > 0.02 * max(abs(x), abs(y)) + 1e-9 and not (abs(x - y) < 0.02 and abs(x) < 1):
            return False
    return True


def as_shown(want, got):
    """The lines that are shown, in order; "..." stands for any."""
    at = 0
    free = False
    for line in want:
        if line.strip() == "...":
            free = True
            continue
        while at < len(got) and not alike(line, got[at]):
            if not free:
                return line
            at += 1
        if at == len(got):
            return line
        at += 1
        free = False
    return None


used = set()
try:
    make_files()
    wanted = os.environ.get("MASE_PAGES", "").split()
    for page in [f"{SOURCE}/README.md", *sorted(glob.glob(f"{SOURCE}/docs/**/*.md", recursive=True))]:
        name = os.path.relpath(page, SOURCE)
        shown_here = commands(page)
        if not shown_here or (wanted and name not in wanted) or "/reference/" in page or "/rationale/" in page:
            continue
        page_folder()
        print(name, flush=True)
        for line, command, shown in shown_here:
            reason = next((key for key in LEFT if re.search(key, command) or (shown and any(re.search(key, s) for s in shown))), None)
            if reason:
                used.add(reason)
                counts["left"] += 1
                continue
            tried = command
            if shown is None:
                for pattern, short in SHORTER:
                    tried = re.sub(pattern, short, tried)
                for pattern, more in MORE:
                    tried += more if re.search(pattern, tried) and more.split()[0] not in tried else ""
            done = ch(tried, place)
            counts["run"] += 1
            code = 2 if shown and any(s.startswith("ch: ") for s in shown) else 0
            if done.returncode != code:
                failures.append(f"{name}:{line}: ch {tried}\nexit code {done.returncode}\n{(done.stdout + done.stderr)[-600:]}")
            elif shown:
                counts["compared"] += 1
                got = [part.split("\r")[-1].rstrip() for part in (done.stdout + done.stderr).split("\n")]
                got = [part for part in got if not part or part.strip("\u2500")]  # rules of Lightning's box
                missing = as_shown([s.rstrip() for s in shown], got)
                if missing is not None:
                    failures.append(f"{name}:{line}: ch {tried}\ndoes not print: {missing}\nbut\n" + "\n".join(got[-40:]))
    if not wanted:
        failures += [f"no page shows what is left out as '{key}'" for key in LEFT if key not in used]
finally:
    shutil.rmtree(root, ignore_errors=True)
print(f"{counts['run']} commands run, the output of {counts['compared']} compared, {counts['left']} left out")
print("\n\n".join(failures))
sys.exit(1 if failures or counts["run"] < 1 else 0)
