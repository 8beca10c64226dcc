# SPDX-License-Identifier: Apache-2.0
# Runs every example that help texts (ch reference) show (README.md and docs/ are tests/house/shown_commands_long_test.py's), in a folder that
# holds the files they speak of. Jets are a small table here, so that all of it takes seconds.
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

source, ch = os.environ["MASE_SOURCE"], os.environ["MASE_CH"]
with open(os.path.join(os.environ["MASE_BUILD"], "CMakeCache.txt")) as cache:
    sanitized = "MASE_SANITIZE:STRING=\n" not in cache.read()
# What cannot be run in a test, and why.
left_out = {
    "ch data fetch": "needs the network",
    "ch view": "serves until Ctrl-C; tests/report has it",
    "./ch train jsc-tiny jsc ": "README's first lines are the launcher's; tests/house has it",
    "ch trian": "shows a mistake",
    "ch verify": "needs Yosys; tests/hardware/certificate_test.cpp has it",
    "ch mutate": "needs Yosys; tests/hardware/certificate_test.cpp has it",
    "ch simulate": "needs Icarus Verilog or Verilator; tests/hardware has it",
    "ch synth": "needs Yosys; tests/hardware has it",
    "ch python": "needs the Python package; tests/python has it",
    "ch notebook": "needs Jupyter",
    "ch transform --config passes.toml --plugin": "needs the Python package; tests/python has it",
    "ch train net.toml jets.csv --target class --learn-bits": "takes minutes; tests/run has it",
    "ch train net.toml jets.npz --learn-bits": "takes minutes; tests/run has it",
    "ch shrink --load point.mz": "needs a network of the line above; tests/run has it",
    "ch predict --load best.mz --input photographs": "needs photographs; tests/cli/train_test.cpp has some",
    "ch predict bert.onnx": "needs an exported BERT; tests/io has one",
    "ch import text_model.onnx": "needs a file with open sizes; tests/io has some",
    "ch import detector.onnx": "needs a file with open sizes; tests/io has some",
    "ch import sentences.onnx": "needs a file with open sizes; tests/io has some",
    "ch compress --load mobilenet.mz": "needs a trained MobileNet",
    "ch compress --load FOLDER": "needs a language model and long texts; tests/run has one",
    "ch report sqlite:///": "needs a study; tests/search has some",
    "ch train net.toml patients.csv": "tests/house/shown_commands_long_test.py has the table",
    "ch train lenet fashion-mnist --batch-size 64 --max-epochs 25": "takes minutes where the images are",
}


def examples():
    found = []
    reference = subprocess.run([ch, "reference"], capture_output=True, text=True, check=True).stdout
    pages = {"reference": reference}
    for page, text in pages.items():
        text = re.sub(r"```.*?```", "", text, flags=re.S)  # console blocks have a test of their own
        for line in text.split("\n"):
            if match := re.match(r" {4}(?:\$ )?(?:\./)?((?:mpirun \S+ \d+ )?ch \S.*|eval .*)$", line):
                found.append((page, match[1].split("  #")[0].strip()))
    return found


def write_npy(path, rows, columns, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        out.write(struct.pack(f"<{len(values)}f", *values))


def write_files(folder):
    for name in ("configs", "examples", "tests", "docs"):
        os.symlink(os.path.join(source, name), os.path.join(folder, name))
    names = ("zlogz c1_b0_mmdt c1_b1_mmdt c1_b2_mmdt c2_b1_mmdt c2_b2_mmdt d2_b1_mmdt d2_b2_mmdt d2_a1_b1_mmdt"
             " d2_a1_b2_mmdt m2_b1_mmdt m2_b2_mmdt n2_b1_mmdt n2_b2_mmdt mass_mmdt multiplicity").split()
    dice = random.Random(1)
    classes = ["g", "q", "w", "z", "t"]
    rows = []
    for _ in range(1500):
        kind = dice.randrange(5)
        rows.append(([f"{dice.gauss(kind if f % 5 == kind else 0, 1):.5f}" for f in range(len(names))], classes[kind]))
    with open(f"{folder}/data/jsc.csv", "w") as out:
        out.write(",".join([*names, "class"]) + "\n")
        out.writelines(",".join([*row, kind]) + "\n" for row, kind in rows)
    with open(f"{folder}/rows.csv", "w") as out:
        out.write(",".join(names) + "\n")
        out.writelines(",".join(row) + "\n" for row, _ in rows[:20])
    write_npy(f"{folder}/rows.npy", 20, 16, [float(value) for row, _ in rows[:20] for value in row])
    write_npy(f"{folder}/weights.npy", 8, 16, [dice.gauss(0, 1) for _ in range(128)])
    tensor = json.dumps({"w": {"dtype": "F32", "shape": [8, 16], "data_offsets": [0, 512]}}).encode()
    for name in ("weights.safetensors", "in.safetensors"):
        with open(f"{folder}/{name}", "wb") as out:
            out.write(struct.pack("<Q", len(tensor)) + tensor + struct.pack("<128f", *[dice.gauss(0, 1) for _ in range(128)]))
    with open(f"{folder}/cases.json", "w") as out:
        json.dump([{"quantizer": "integer", "config": {"width": 8, "frac_width": 4}, "input": "w", "output": "w8"}], out)
    shutil.copy(f"{source}/configs/examples/jsc_toy_by_type.toml", f"{folder}/quantize.toml")
    shutil.copy(f"{source}/configs/examples/search_jsc_tiny.toml", f"{folder}/search.toml")
    os.makedirs(f"{folder}/mnist")  # ~/mnist in the guides
    for name, count in (("train", 200), ("t10k", 50)):
        with open(f"{folder}/mnist/{name}-images-idx3-ubyte", "wb") as out:
            out.write(struct.pack(">4i", 2051, count, 28, 28) + dice.randbytes(count * 28 * 28))
        with open(f"{folder}/mnist/{name}-labels-idx1-ubyte", "wb") as out:
            out.write(struct.pack(">2i", 2049, count) + bytes(i % 10 for i in range(count)))
    shutil.copytree(f"{folder}/mnist", f"{folder}/data/mnist")
    for kind in ("cats", "dogs"):
        os.makedirs(f"{folder}/photos/{kind}")
        for i in range(12):
            with open(f"{folder}/photos/{kind}/{i}.pgm", "wb") as out:
                out.write(b"P5 28 28 255\n" + dice.randbytes(28 * 28))
    os.makedirs(f"{folder}/data/cifar10")
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        with open(f"{folder}/data/cifar10/{name}", "wb") as out:
            out.write(b"".join(bytes([i]) + dice.randbytes(3072) for i in range(10)))
    shutil.copytree(f"{source}/tests/golden/hf/tiny", f"{folder}/models/all-MiniLM-L6-v2")
    shutil.copytree(f"{source}/tests/golden/hf/tiny", f"{folder}/FOLDER")  # with a tokenizer
    shutil.copy(f"{source}/tests/golden/text/bpe_gpt2.tokenizer.json", f"{folder}/tokenizer.json")
    for name, text in (("FOLDER/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\ngood\nbad\nfilm\n"),
                       ("lines.txt", "a good film\na bad film\n"), ("sentences.txt", "A good film\nbad\n"),
                       ("text.txt", "to be or not to be\n" * 3)):
        with open(f"{folder}/{name}", "w") as out:
            out.write(text)
    for name, largest in (("tokens", 39), ("ids", 39), ("mask", 1)):
        write_npy(f"{folder}/{name}.npy", 3, 16, [dice.randint(largest == 1, largest) for _ in range(48)])
    shutil.copytree(f"{source}/tests/golden/language/gpt2", f"{folder}/GPT")
    with zipfile.ZipFile(f"{folder}/digits.npz", "w") as archive:
        for name, shape, values in (("x", "(60, 28, 28)", dice.randbytes(60 * 784)),
                                    ("y", "(60,)", bytes(i % 10 for i in range(60)))):
            header = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }\n" % shape
            archive.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)
    guide = open(f"{source}/docs/data.md", encoding="utf-8").read()
    for name, text in (("bag.toml", re.search(r"```toml\n(name = \"bag\".*?)```", guide, re.S)[1]),
                       ("reviews.txt", "a good film\na bad film\n" * 20),
                       ("vocab.txt", "[PAD]\n[UNK]\na\ngood\nbad\nfilm\n"), ("classes.txt", "yes\nno\n" * 20)):
        with open(f"{folder}/{name}", "w") as out:
            out.write(text)
    with open(f"{folder}/iris.csv", "w") as out:
        out.write("length,width,species\n")
        out.writelines(f"{dice.random()},{dice.random()},{dice.choice(['setosa', 'virginica'])}\n" for _ in range(60))


def main():
    folder = tempfile.mkdtemp()
    os.makedirs(folder + "/data")
    os.makedirs(folder + "/bin")
    os.symlink(ch, folder + "/bin/ch")
    environment = dict(os.environ, HOME=folder, MASE_DATA=folder + "/data", PATH=folder + "/bin:" + os.environ["PATH"],
                       OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1")
    failures = 0

    def run(command, page):
        nonlocal failures
        # OpenMPI's own memory is not given back at the end; sanitizer builds are not to count that.
        mine = dict(environment, ASAN_OPTIONS="detect_leaks=0") if command.startswith("mpirun") else environment
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=mine, capture_output=True, text=True,
                              timeout=300)
        if done.returncode != 0:
            failures += 1
            print(f"{page}: {command}\n  exit code {done.returncode}\n{done.stdout[-600:]}{done.stderr[-600:]}")

    try:
        write_files(folder)
        train = "ch train {} jsc --max-epochs 1 --learning-rate 1e-2 --project {} >/dev/null"
        for project in ("ten", "batch_64", "batch_256", "jsc-tiny_classification_jsc_2024-01-31",
                        "jsc-tiny_classification_jsc_2024-02-10"):
            run(train.format("jsc-10x" if project == "ten" else "jsc-tiny", project), "set-up")
        run(train.format("jsc-toy", "toy"), "set-up")
        run("ch tokenizer train GPT/tokenizer.json --input text.txt --size 257", "set-up")
        toy = "jsc-toy --load mase_output/toy/software/training_ckpts/best.ckpt"
        run(f"ch export {toy} --to model.onnx >/dev/null", "set-up")
        run(f"ch transform {toy} --config configs/examples/hardware_8bit.toml --project quantised >/dev/null", "set-up")
        shutil.copy(f"{folder}/mase_output/quantised/software/transform/transformed.mz", f"{folder}/quantised.mz")
        shutil.copy(f"{folder}/rows.npy", f"{folder}/in.npy")

        def use(project):  # the files that examples call best.ckpt and best.mz are of the network they name
            for name in ("best.ckpt", "best.mz"):
                shutil.copy(f"{folder}/mase_output/{project}/software/training_ckpts/{name}", folder)
            shutil.copy(f"{folder}/best.mz", f"{folder}/transformed.mz")

        seen = set()
        for page, command in examples():
            if command in seen:
                continue
            seen.add(command)
            if any(command.startswith(beginning) for beginning in left_out):
                continue
            if sanitized and command == "ch bench primitives":
                continue  # every one of them, slowly: tests/engine has them
            if command.startswith("mpirun") and not shutil.which("mpirun"):
                continue
            if command.startswith("ch bench") and "--dump" not in command:
                command += " --seconds 0.1"  # figures are not looked at here
            if command.startswith("ch sweep"):
                command += " --max-epochs 1"
            if re.search(r"(^|\d )ch train", command) and not re.search("--max-epochs|--resume", command):
                command += " --max-epochs 2"
            if command.startswith("ch shrink"):
                command += " --rounds 1"
            if command.startswith(("ch generate", "ch perplexity")):  # with a small language model
                command = command.replace("FOLDER", "GPT").replace("--length 2048", "--length 32")
                if command.startswith("ch generate") and "--tokens" not in command:
                    command += " --tokens 20"
            use("batch_64" if re.search("jsc[-_]tiny|search.toml", command) else
                "toy" if command.startswith(("ch export jsc-toy", "ch compress jsc-toy")) else "ten")
            run(command, page)
    finally:
        shutil.rmtree(folder)
    if len(seen) < 40:
        sys.exit(f"only {len(seen)} examples were found")
    sys.exit(1 if failures else 0)


main()
