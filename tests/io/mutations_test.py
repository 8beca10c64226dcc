# SPDX-License-Identifier: Apache-2.0
"""Single-byte mutations of valid files, and of JSON ones every other time a value in the place of another,
through the program: whatever changes, it ends with exit code 0 or 2, one line of complaint at most, in five seconds of processor time and 64 MB of memory
above the file. A few of each format here; mutations_long_test.py tries 10,000.

    MASE_MUTATIONS=1000 MASE_FORMATS=h5,pt tests/io/mutations_test.py"""
import concurrent.futures
import io
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zlib

try:
    import numpy as np
except ImportError:
    print("python3-numpy is not installed")
    sys.exit(77)

CH = os.environ["MASE_CH"]
SOURCE = os.environ["MASE_SOURCE"]
COUNT = int(os.environ.get("MASE_MUTATIONS", "6"))
SECONDS, MEMORY = 5.0, 64 << 20
SANITIZED = b"__asan_init" in open(CH, "rb").read()

scratch = tempfile.mkdtemp()
environment = dict(os.environ, HOME=scratch, MASE_DATA=os.path.join(scratch, "data"),
                   OMP_NUM_THREADS="1", COLUMNS="80")


def golden(name):
    with open(os.path.join(SOURCE, "tests/golden/torch", name), "rb") as file:
        return file.read()


def corpus(name):
    with open(os.path.join(SOURCE, "tests/fuzz/corpus", name), "rb") as file:
        return file.read()


def saved(write):
    path = os.path.join(scratch, "seed")
    with open(path, "wb") as file:
        write(file)
    with open(path, "rb") as file:
        return file.read()


def table(separator=","):
    rng = np.random.default_rng(0)
    rows = [separator.join(["a", "b", "c", "kind"])]
    for i in range(60):
        rows.append(separator.join([f"{v:.4f}" for v in rng.random(3)] + ["xyz"[i % 3]]))
    return "\n".join(rows) + "\n"


ARFF = ("@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute c numeric\n"
        "@attribute kind {x,y,z}\n@data\n" + "".join(table().split("\n", 1)[1:]))
NETWORK = open(os.path.join(SOURCE, "configs/skip.toml")).read()
CONFIG = """[passes.quantize]
by = "regex_name"
[passes.quantize."seq_blocks_[258]".config]
name = "integer"
data_in_width = 8
data_in_frac_width = 4
weight_width = 8
weight_frac_width = 4
bias_width = 8
bias_frac_width = 4
"""


def array(count=60):
    return np.random.default_rng(0).random((count, 4)).astype("f4")


def make_run():
    """A small run of our own: its checkpoint, record and graph."""
    result = subprocess.run([CH, "train", "jsc-tiny", "jsc-sim", "--sim-rows", "500", "--max-epochs",
                             "1"], cwd=scratch, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    found = {}
    for at, _, files in os.walk(scratch):
        for name in files:
            if name == "run.json" or name.endswith((".ckpt", ".mz")):
                found[name] = os.path.join(at, name)
    return found


class Format:
    def __init__(self, content, suffix, command):
        self.content = content if isinstance(content, bytes) else content.encode()
        self.suffix = suffix
        self.command = command


def formats():
    run = make_run()
    folder = os.path.dirname(run["run.json"])
    network = lambda path: ["inspect", path]
    data = lambda path: ["data", "info", path, "--target", "kind"]
    numbers = lambda path: ["data", "info", path, "--target", "column_4"]
    graph = os.path.join(scratch, "graph.mz")
    keys = ["name=integer"] + [f"{operand}_{key}" for operand in ("data_in", "weight", "bias")
                               for key in ("width=8", "frac_width=4")]
    words = [word for key in keys for word in ("--set", "linear.config." + key)]
    subprocess.run([CH, "pass", "quantize", "jsc-tiny", *words, "--save", graph], env=environment,
                   check=True, stdout=subprocess.DEVNULL)
    with open(graph, "rb") as file:
        mz = file.read()

    def report(path):  # the record belongs in a folder like its own
        own = path + "-run"
        shutil.copytree(folder, own)
        shutil.move(path, os.path.join(own, "run.json"))
        return ["report", own, "--output", os.path.join(own, "page.html")]

    def archive():  # CIFAR's, with a few small images
        images = np.random.default_rng(0).integers(0, 4, (9, 3073), dtype=np.uint8)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name in ("data_batch_1.bin", "test_batch.bin"):
                entry = tarfile.TarInfo("cifar-10-batches-bin/" + name)
                entry.size = images.size
                tar.addfile(entry, io.BytesIO(images.tobytes()))
        return packed.getvalue()

    def cifar(path):
        own = path + "-data"
        os.mkdir(own)
        shutil.move(path, os.path.join(own, "cifar-10-binary.tar.gz"))
        return ["data", "info", "cifar10", "--data-dir", own]

    def in_place_of(name, tree, command):
        """The file in the place of one of a folder's own."""
        def run(path):
            own = path + "-run"
            shutil.copytree(tree, own)
            shutil.move(path, os.path.join(own, name))
            return command(own)
        return run

    def picture(kind):  # one broken picture among good ones
        colours = np.random.default_rng(1).integers(0, 255, (4, 4, 3), dtype=np.uint8).tobytes()
        if kind == "ppm":
            return b"P6\n4 4\n255\n" + colours
        def chunk(name, data):
            return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        rows = b"".join(b"\0" + colours[12 * r:12 * r + 12] for r in range(4))
        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

    def pictures(kind):
        tree = os.path.join(scratch, "pets-" + kind)
        for name in ("cat", "dog"):
            os.makedirs(os.path.join(tree, name))
            for i in range(10):
                with open(os.path.join(tree, name, f"{i}.{kind}"), "wb") as file:
                    file.write(picture(kind))
        return Format(picture(kind), "." + kind,
                      in_place_of(f"cat/3.{kind}", tree, lambda own: ["data", "info", own]))

    mnist = os.path.join(scratch, "mnist")
    os.mkdir(mnist)
    for name, count in (("train", 40), ("t10k", 20)):
        drawn = np.random.default_rng(2)
        with open(os.path.join(mnist, name + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 2051, count, 28, 28) + drawn.integers(0, 255, count * 784, dtype=np.uint8).tobytes())
        with open(os.path.join(mnist, name + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 2049, count) + bytes(i % 10 for i in range(count)))

    design = os.path.join(scratch, "design")
    hardware = os.path.join(SOURCE, "tests/golden/hardware/w4_toy")
    subprocess.run([CH, "emit", "--load", hardware + ".json", "--output", design, "--no-prove", "--quiet"],
                   env=environment, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    imported = os.path.join(scratch, "imported")
    os.mkdir(imported)
    for end in (".json", ".safetensors"):
        shutil.copy(hardware + end, os.path.join(imported, "toy" + end))
    hf = os.path.join(SOURCE, "tests/golden/hf/tiny")
    shards = os.path.join(SOURCE, "tests/golden/language/llama_sharded")
    hf_network = lambda own: ["summary", own]
    study = os.path.join(scratch, "study")
    searched = ["search", "jsc-tiny", "jsc-sim", "--sim-rows", "300", "--space", "bits=4,8", "--objective", "loss"]
    subprocess.run([CH, *searched, "--n-trials", "4", "--project-dir", study, "--project", "s"],
                   env=environment, cwd=scratch, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = {name: os.path.join(at, name) for at, _, files in os.walk(study) for name in files}
    page = lambda own: ["report", own, "--output", os.path.join(own, "page.html")]
    tree = os.path.join(study, "s")
    leaves = os.path.join(SOURCE, "configs/data")

    def read(path):
        with open(path, "rb") as file:
            return file.read()

    pixels = np.random.default_rng(0).integers(0, 255, (40, 5, 5), dtype=np.uint8)
    classes = np.arange(40) % 3
    ckpt = next((path for name, path in run.items() if name.endswith(".ckpt")), None)
    return {
        "pt": Format(golden("jsc-tiny.pt"), ".pt", network),
        "ckpt": Format(open(ckpt, "rb").read() if ckpt else golden("jsc-tiny.ckpt"), ".ckpt", network),
        "safetensors": Format(golden("jsc-tiny.expected.safetensors"), ".safetensors", network),
        "mz": Format(mz, ".mz", lambda path: ["pass", "report_graph", "jsc-tiny", "--load", path]),
        "onnx": Format(corpus("onnx/q05_jsc_w5a5_zero_point"), ".onnx", network),
        "gguf": Format(corpus("gguf/llama"), ".gguf", lambda path: ["summary", path]),
        "gguf-tokenizer": Format(corpus("gguf/llama"), ".gguf",
                                 lambda path: ["tokenizer", "encode", path, "to be <|endoftext|> 12"]),
        "npy": Format(saved(lambda file: np.save(file, array())), ".npy", numbers),
        "npz": Format(saved(lambda file: np.savez_compressed(file, column=array())), ".npz",
                      lambda path: ["data", "info", path, "--target", "column_4"]),
        "npz-images": Format(saved(lambda file: np.savez_compressed(file, x=pixels, y=classes)), ".npz",
                             lambda path: ["data", "info", path]),
        "tar.gz": Format(archive(), ".tar.gz", cifar),
        "h5": Format(corpus("hdf5/compound.h5"), ".h5",
                     lambda path: ["data", "info", path, "--target", "kind"]),
        "h5-gzip": Format(corpus("hdf5/compound_gzip.h5"), ".h5",
                          lambda path: ["data", "info", path, "--target", "kind"]),
        "h5-latest": Format(corpus("hdf5/latest.h5"), ".h5",
                            lambda path: ["data", "info", path, "--target", "n_3"]),
        "arff": Format(ARFF, ".arff", data),
        "csv": Format(table(), ".csv", data),
        "toml-network": Format(NETWORK, ".toml", lambda path: ["summary", path]),
        "toml-config": Format(CONFIG, ".toml",
                              lambda path: ["transform", "jsc-tiny", "--config", path,
                                            "--project-dir", path + "-out"]),
        **{"tokenizer-" + kind: Format(corpus("tokenizer/" + kind), ".json",
                                       lambda path: ["tokenizer", "encode", path, "caf\u00e9 <s> don't 1234", "--json"])
           for kind in ("byte_level", "split", "word_piece", "unigram", "metaspace", "word_level")},
        "png": pictures("png"),
        "ppm": pictures("ppm"),
        "mnist": Format(read(os.path.join(mnist, "train-images-idx3-ubyte"))[:64] + bytes(40 * 784 - 48), ".idx",
                        in_place_of("train-images-idx3-ubyte", mnist,
                                    lambda own: ["data", "info", "mnist", "--data-dir", own])),
        "fixed-network": Format(read(hardware + ".json"), ".json",
                                in_place_of("toy.json", imported,
                                            lambda own: ["import", os.path.join(own, "toy.json"), "--output",
                                                         os.path.join(own, "toy.mz")])),
        "manifest": Format(read(os.path.join(design, "manifest.json")), ".json",
                           in_place_of("manifest.json", design, page)),
        "hf-config": Format(read(os.path.join(hf, "config.json")), ".json",
                            in_place_of("config.json", hf, hf_network)),
        "hf-config-llama": Format(read(os.path.join(shards, "config.json")), ".json", in_place_of("config.json", shards, hf_network)),
        "hf-index": Format(read(os.path.join(shards, "model.safetensors.index.json")), ".json",
                           in_place_of("model.safetensors.index.json", shards, hf_network)),
        "dataset-toml": Format(read(os.path.join(leaves, "leaves.toml")), ".toml",
                               in_place_of("leaves.toml", leaves,
                                           lambda own: ["data", "info", os.path.join(own, "leaves.toml")])),
        "search.json": Format(read(found["search.json"]), ".json",
                              in_place_of(os.path.relpath(found["search.json"], tree), tree, page)),
        "study.db": Format(read(found["study.db"]), ".db",
                           lambda path: [*searched, "--n-trials", "4", "--storage", "sqlite:///" + path, "--project-dir",
                                         path + "-out", "--accept-differences"]),
        "journal": Format(read(os.path.join(SOURCE, "tests/golden/search/reference_journal.log")), ".log",
                          lambda path: [*searched, "--n-trials", "4", "--storage", "journal:" + path, "--project-dir",
                                        path + "-out"]),
        "run.json": Format(open(run["run.json"], "rb").read(), ".json", report),
    }


def attempt(form, content):
    """Exit code, what was said, processor seconds, peak memory."""
    name = f"{threading.get_ident()}-{random.getrandbits(40):x}"
    path = os.path.join(scratch, "in-" + name + form.suffix)
    with open(path, "wb") as file:
        file.write(content)
    command = form.command(path)
    errors = os.path.join(scratch, "err-" + name)
    with open(errors, "wb") as err:
        process = subprocess.Popen([CH, *command], cwd=scratch, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        timer = threading.Timer(20 * SECONDS, process.kill)  # the machine may be busy
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
    process.returncode = 0
    with open(errors, errors="replace") as file:
        said = file.read()
    for left in (path, errors):
        if os.path.exists(left):
            os.remove(left)
    for left in (path + "-run", path + "-out", path + "-data"):
        shutil.rmtree(left, ignore_errors=True)
    return (os.waitstatus_to_exitcode(status), said, usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss << 10)


VALUES = ["-1", "0", "1", "2", "3", "7", "1e308", "-1e308", "0.5", "1e-300", "9223372036854775807", "-9223372036854775808", "4294967296",
          "1000000000", "16777216", "65536", "null", "true", "false", "[]", "{}", '""', '"x"', '"\\u0000"', "[[[[[]]]]]", '{"a": 1}']


def mutated(content, number, seed, suffix):
    rng = random.Random(f"{seed} {number}")
    if suffix == ".json" and number % 2:
        places = [found.span() for found in re.finditer(rb'(?<=[:,\[ ])("(?:[^"\\]|\\.)*"|-?\d[0-9.eE+-]*|true|false|null)(?=[,\]}\s])', content)]
        if places:
            begin, end = rng.choice(places)
            return content[:begin] + rng.choice(VALUES).encode() + content[end:], begin
    at = rng.randrange(len(content))
    change = rng.choice((1 << rng.randrange(8), rng.randrange(1, 256), content[at],
                         content[at] ^ 0xff))  # a bit, any byte, zero, all ones
    return content[:at] + bytes([content[at] ^ (change or 1)]) + content[at + 1:], at


def run_format(name, form, count):
    code, said, _, base = attempt(form, form.content)
    assert code == 0, f"{name}: the seed itself is refused: {said}"
    faults, codes, most, slowest = [], {}, 0, 0.0

    def one(number):
        content, at = mutated(form.content, number, name, form.suffix)
        return number, at, attempt(form, content)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, at, (code, said, seconds, memory) in pool.map(one, range(count)):
            codes[code] = codes.get(code, 0) + 1
            most, slowest = max(most, memory - base), max(slowest, seconds)
            bad = (code not in (0, 2) or (code == 2 and not said.strip().split("\n")[-1].startswith("ch: ")) or
                   (not SANITIZED and memory > base + MEMORY) or
                   seconds > SECONDS * (10 if SANITIZED else 1))
            if bad:
                faults.append(f"{name}: mutation {number} (byte {at}): exit code {code}, "
                              f"{seconds:.1f} s, {(memory - base) >> 20} MB: {said[-300:]}")
    print(f"{name}: {count} mutations, exit codes {dict(sorted(codes.items()))}, at most "
          f"{max(0, most) / 1e6:.1f} MB above the seed, {slowest:.2f} s", flush=True)
    return faults


def main():
    wanted = os.environ.get("MASE_FORMATS", "").split(",")
    faults = []
    try:
        for name, form in formats().items():
            if wanted == [""] or name in wanted:
                faults += run_format(name, form, COUNT)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for fault in faults[:20]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    started = time.time()
    code = main()
    print(f"{time.time() - started:.0f} s")
    sys.exit(code)
