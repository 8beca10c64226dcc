# SPDX-License-Identifier: Apache-2.0
"""Models that were drawn once (onnx_random.py), and those of faults that were found, with what
onnxruntime makes of them: tests/golden/onnx_random.npz. ch predict gives the same two rows at a time
and all at once; a model without result is refused in words that name its node. Written by
onnx_random_long_test.py."""
import os
import re
import subprocess
import sys

from onnx_peers import CH, folder, need

need("numpy")
import numpy as np

GOLDEN = os.path.join(os.environ["MASE_SOURCE"], "tests/golden/onnx_random.npz")
failures = 0


def check(holds, message):
    global failures
    if not holds:
        failures += 1
        print(message, flush=True)


def near(ours, theirs):
    scale = max(1.0, float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0)))
    apart = np.abs(ours.astype(np.float64) - theirs)
    return bool(((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)) | (apart <= 2e-4 * scale + 1e-3 * np.abs(theirs))).all())


data = np.load(GOLDEN)
names = sorted({name.rsplit(".", 1)[0] for name in data.files})
path, given, out = (os.path.join(folder, name) for name in ("model.onnx", "x.npy", "y.npy"))
for index, name in enumerate(names):
    with open(path, "wb") as file:
        file.write(data[f"{name}.model"].tobytes())
    np.save(given, data[f"{name}.x"])
    wanted = data.get(f"{name}.y")
    rows = "2" if index % 3 else "1000"
    if os.path.exists(out):
        os.remove(out)
    result = subprocess.run([CH, "predict", path, "--input", given, "--output", out, "--batch-size", rows],
                            capture_output=True, text=True)
    if wanted is None:
        check(result.returncode == 2 and re.search(r"model\.onnx: (node '|an initialiser)", result.stderr),
              f"{name}: exit code {result.returncode}, {result.stderr.strip()}")
        continue
    check(result.returncode == 0, f"{name}: exit code {result.returncode}, {result.stderr.strip()}")
    if result.returncode == 0:
        with np.errstate(invalid="ignore", over="ignore"):
            ours = np.load(out)
            check(ours.size == wanted.size and near(ours.reshape(wanted.shape), wanted),
                  f"{name}: {ours.shape} {ours.ravel()[:4]}, wanted {wanted.shape} {wanted.ravel()[:4]}")
print(f"{len(names)} models, {failures} failed")
sys.exit(1 if failures else 0)
