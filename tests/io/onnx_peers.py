# SPDX-License-Identifier: Apache-2.0
"""For tests that hold ch against other readers of ONNX: the Python that has them (MASE_ONNX_PYTHON;
default: this one), the program, and networks of ours with 8-bit layers."""
import os
import subprocess
import sys
import tempfile

CH = os.environ["MASE_CH"]
folder = tempfile.mkdtemp()


def need(*modules):
    """Goes on in the Python that has these modules, or ends the test as skipped."""
    python = os.environ.get("MASE_ONNX_PYTHON")
    if python and os.path.abspath(python) != sys.executable and "MASE_AGAIN" not in os.environ:
        sys.exit(subprocess.run([python, sys.argv[0]], env={**os.environ, "MASE_AGAIN": "1"}).returncode)
    try:
        for module in modules:
            __import__(module)
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)


def ch(*arguments):
    result = subprocess.run([CH, *arguments], cwd=folder, text=True, capture_output=True)
    if result.returncode != 0:
        raise RuntimeError(f"ch {' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout


def predict(path, inputs):
    """All outputs of a model, by ch."""
    import numpy as np
    files = []
    for i, x in enumerate(inputs):
        files.append(os.path.join(folder, f"in_{i}.npy"))
        np.save(files[-1], x)
    for name in os.listdir(folder):
        if name.startswith("ours"):
            os.remove(os.path.join(folder, name))
    ch("predict", path, "--input", *files, "--output", "ours.npy")
    outputs = [np.load(os.path.join(folder, "ours.npy"))]
    while os.path.exists(further := os.path.join(folder, f"ours_{len(outputs)}.npy")):
        outputs.append(np.load(further))
    return outputs


def export_quantised(name, path, flavour, layers=("linear",), bits=8, fraction=5):
    """A built-in network whose layers take and hold integers of so many bits."""
    text = "[passes.quantize]\nby = \"type\"\n"
    for layer in layers:
        text += f"[passes.quantize.{layer}.config]\nname = \"integer\"\n"
        for operand in ("data_in", "weight", "bias"):
            text += f"{operand}_width = {bits}\n{operand}_frac_width = {fraction}\n"
    with open(os.path.join(folder, "quantize.toml"), "w", encoding="utf-8") as file:
        file.write(text)
    ch("export", name, "--config", "quantize.toml", "--to", path, "--flavour", flavour)
