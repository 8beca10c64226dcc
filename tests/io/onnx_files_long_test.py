# SPDX-License-Identifier: Apache-2.0
"""A folder of ONNX files of other tools with inputs and expected outputs (MASE_ONNX_FILES), each
through ch predict. Every sub-folder has model.onnx, input_0.npy, ..., output_0.npy; names begin with
the kind, which says how near the outputs must be:

  f   float networks: 1e-5 of the largest output
  q c quantised by Brevitas: the same; where a value stands on the edge of a rounding, executors may
      differ by a step: 99.5 % of the elements to 1e-4 of the largest, the rest to a tenth of it
  o   quantised by onnxruntime: as q; o with operators that round products (`loose`) may differ in a
      few more
  micro/*: single quantisers, bit for bit but for the sign of zeros

public/*.onnx have their inputs and outputs in a .io.npz beside them."""
import glob
import os
import sys

from onnx_peers import folder, need, predict

FILES = os.environ.get("MASE_ONNX_FILES", "")
need("numpy")
if not os.path.isdir(FILES):
    print("skipped: MASE_ONNX_FILES names no folder")
    sys.exit(77)
import numpy as np

# Share of elements that onnxruntime itself changes by optimising: between executors it is no less.
LOOSE = {"o05_encoder_qdq_s8": 0.15, "o09_encoder_int4_block32_qdq": 0.01}
failures = 0


def compare(name, ours, wanted, exact, loose):
    global failures
    if ours.shape != wanted.shape and ours.size == wanted.size:
        ours = ours.reshape(wanted.shape)
    if ours.shape != wanted.shape:
        failures += 1
        return print(f"{name}: shape {ours.shape}, wanted {wanted.shape}")
    with np.errstate(invalid="ignore"):
        apart = np.where((ours == wanted) | (np.isnan(ours) & np.isnan(wanted)), 0, np.abs(ours - wanted))
    scale = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
    apart = np.nan_to_num(apart, nan=np.inf)
    if exact:
        good = not apart.any()
    else:
        off = float((apart > (1e-5 if loose is None else 1e-4) * scale).mean())
        good = off <= (loose or 0) and apart.max() <= (0.1 * scale if loose else 1e-5 * scale)
    failures += not good
    print(f"{name:45} {apart.max() / scale:.2g} {'' if good else 'FAILED'}", flush=True)


def attempt(name, model, inputs, wanted, exact=False, loose=None):
    global failures
    try:
        compare(name, predict(model, inputs)[0], wanted, exact, loose)
    except RuntimeError as error:
        failures += 1
        print(f"{name}: {error}", flush=True)


for model in sorted(glob.glob(os.path.join(FILES, "**", "model.onnx"), recursive=True)):
    place = os.path.dirname(model)
    name = os.path.relpath(place, FILES)
    inputs = []
    while os.path.exists(file := os.path.join(place, f"input_{len(inputs)}.npy")):
        inputs.append(np.load(file))
    wanted = np.load(os.path.join(place, "output_0.npy"))
    loose = LOOSE.get(name, 0.005) if name[0] in "qco" else None
    attempt(name, model, inputs, wanted, exact=name.startswith("micro"), loose=loose)
for archive in sorted(glob.glob(os.path.join(FILES, "**", "*.io.npz"), recursive=True)):
    arrays = np.load(archive)
    inputs = [arrays[key] for key in arrays.files if key.startswith("in:")]
    wanted = next(arrays[key] for key in arrays.files if key.startswith("out:"))
    attempt(os.path.relpath(archive, FILES), archive[:-len(".io.npz")] + ".onnx", inputs, wanted,
            loose=0.005)
print(f"{failures} failed")
sys.exit(1 if failures else 0)
