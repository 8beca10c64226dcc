# SPDX-License-Identifier: Apache-2.0
"""Random models (onnx_random.py) through ch predict, two rows at a time, against onnxruntime without
rearrangement: MASE_ONNX_MODELS of them (default 8000), from the seed MASE_ONNX_SEED (default 1) on.
A model is compared, or ch refuses it in words (counted). Where onnxruntime's own result changes as
much when inputs change in the seventh digit (roundings, places of maxima) a difference says nothing;
where it differs from onnx's reference evaluator and ch does not, it is onnxruntime's own.
MASE_ONNX_GOLDEN names a file that is written with the first 150 models that were compared, for
onnx_random_test.py. Needs onnx and onnxruntime from PyPI; MASE_ONNX_PYTHON names the Python."""
import collections
import os
import re
import subprocess
import sys

from onnx_peers import CH, folder, need

need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
import onnxruntime
import onnx_random

GOLDEN_MODELS = 150
onnxruntime.set_default_logger_severity(4)


def by_onnxruntime(model, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: x})[0])


def near(ours, theirs):
    with np.errstate(invalid="ignore", over="ignore"):
        scale = max(1.0, float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0)))
        apart = np.abs(ours.astype(np.float64) - theirs)
        return (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)) | (apart <= 2e-4 * scale + 1e-3 * np.abs(theirs))


def is_tie(model, x, wanted):
    for seed in range(6):
        nudge = np.random.default_rng(seed).normal(0, 3e-7, x.shape)
        moved = by_onnxruntime(model, (x * (1 + nudge)).astype(np.float32))
        if moved.shape == wanted.shape and not near(moved, wanted).all():
            return True
    return False


def is_reference(made, x, ours):
    from onnx.reference import ReferenceEvaluator
    try:
        wanted = np.asarray(ReferenceEvaluator(made).run(None, {made.graph.input[0].name: x})[0])
    except Exception:  # it has not all operators
        return False
    return ours.size == wanted.size and bool(near(ours.reshape(wanted.shape), wanted).all())


def main():
    first = int(os.environ.get("MASE_ONNX_SEED", "1"))
    count = int(os.environ.get("MASE_ONNX_MODELS", "8000"))
    counts, reasons, golden = collections.Counter(), collections.Counter(), {}
    path, given, out = (os.path.join(folder, name) for name in ("model.onnx", "x.npy", "y.npy"))
    for seed in range(first, first + count):
        made, x, kinds = onnx_random.model(seed)
        model = made.SerializeToString()
        try:
            wanted = by_onnxruntime(model, x)
        except Exception:  # its own limits: the model is none
            counts["no model"] += 1
            continue
        with open(path, "wb") as file:
            file.write(model)
        np.save(given, x)
        if os.path.exists(out):
            os.remove(out)
        result = subprocess.run([CH, "predict", path, "--input", given, "--output", out, "--batch-size", "2"],
                                capture_output=True, text=True)
        if result.returncode == 2:
            counts["refused"] += 1
            reasons[re.sub(r"'[^']*'|\d+", "#", result.stderr.replace(path, "")).strip()[:120]] += 1
            continue
        ours = np.load(out) if result.returncode == 0 else np.zeros(0)
        if ours.size == wanted.size and near(ours.reshape(wanted.shape), wanted).all():
            counts["equal"] += 1
            if counts["equal"] <= GOLDEN_MODELS:
                golden.update({f"{seed}.model": np.frombuffer(model, np.uint8), f"{seed}.x": x, f"{seed}.y": wanted})
        elif ours.size == wanted.size and is_tie(model, x, wanted):
            counts["ties"] += 1
        elif ours.size and is_reference(made, x, ours):
            counts["as the reference, onnxruntime differs"] += 1
        else:
            counts["different"] += 1
            print(f"seed {seed}: exit code {result.returncode}, {kinds}: {ours.shape} {ours.ravel()[:4]}, wanted "
                  f"{wanted.shape} {wanted.ravel()[:4]} {result.stderr.strip()[:200]}", flush=True)
    print(", ".join(f"{number} {name}" for name, number in sorted(counts.items())))
    for reason, number in reasons.most_common(20):
        print(f"  refused {number}: {reason}")
    if "MASE_ONNX_GOLDEN" in os.environ:
        np.savez_compressed(os.environ["MASE_ONNX_GOLDEN"], **golden)
    sys.exit(1 if counts["different"] else 0)


if __name__ == "__main__":
    main()
