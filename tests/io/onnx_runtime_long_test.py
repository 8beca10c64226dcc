# SPDX-License-Identifier: Apache-2.0
"""Networks that ch export writes, in the hands of others: onnx's checker takes them, onnxruntime and
qonnx give our outputs. Needs a Python with onnx, onnxruntime and qonnx from PyPI; MASE_ONNX_PYTHON
names it (default: this one)."""
import os
import re
import subprocess
import sys
import tempfile

python = os.environ.get("MASE_ONNX_PYTHON")
if python and os.path.abspath(python) != sys.executable and "MASE_AGAIN" not in os.environ:
    sys.exit(subprocess.run([python, __file__], env={**os.environ, "MASE_AGAIN": "1"}).returncode)
try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

CH = os.environ["MASE_CH"]
folder = tempfile.mkdtemp()
rng = np.random.default_rng(1)
failures = compared = 0


def ch(*arguments):
    result = subprocess.run([CH, *arguments], cwd=folder, text=True, capture_output=True)
    if result.returncode != 0:
        raise RuntimeError(f"ch {' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout


def by_onnxruntime(path, inputs):
    options = onnxruntime.SessionOptions()  # as the file says, nothing rearranged
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs)})[0]


def by_qonnx(path, inputs):
    from qonnx.core.modelwrapper import ModelWrapper
    from qonnx.core.onnx_exec import execute_onnx
    model = ModelWrapper(path)
    names = [i.name for i in model.graph.input]
    for name, x in zip(names, inputs):
        model.set_tensor_shape(name, list(x.shape))
    model.set_tensor_shape(model.graph.output[0].name, [inputs[0].shape[0]] +
                           [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim[1:]])
    from qonnx.transformation.infer_shapes import InferShapes
    model = model.transform(InferShapes())
    return execute_onnx(model, dict(zip(names, inputs)))[model.graph.output[0].name]


def compare(title, path, inputs, execute, tolerance):
    global failures, compared
    files = []
    for i, x in enumerate(inputs):
        files.append(os.path.join(folder, f"in_{i}.npy"))
        np.save(files[-1], x)
    ch("predict", path, "--input", *files, "--output", "ours.npy")
    ours = np.load(os.path.join(folder, "ours.npy"))
    theirs = execute(os.path.join(folder, path), inputs)
    ours = ours.reshape(theirs.shape)
    scale = max(1.0, float(np.abs(theirs).max()))
    difference = float(np.abs(ours - theirs).max()) / scale
    compared += 1
    print(f"{title:40} {difference:.2g}", flush=True)
    if not difference <= tolerance:
        failures += 1
        print(f"  more than {tolerance}")


def inputs_of(path, batch=2):
    inputs = []
    for value in onnx.load(os.path.join(folder, path)).graph.input:
        kind = value.type.tensor_type
        sizes = [batch] + [d.dim_value for d in kind.shape.dim[1:]]
        inputs.append(rng.integers(0, 50, sizes) if kind.elem_type == onnx.TensorProto.INT64
                      else rng.standard_normal(sizes).astype(np.float32))
    return inputs


def attempt(title, work):
    global failures
    try:
        work()
    except Exception as error:  # each network by itself
        failures += 1
        print(f"{title}: {error}", flush=True)


def networks():
    names = [line.split()[0] for line in ch("--info", "model").splitlines() if line.strip()]
    wanted = os.environ.get("MASE_ONNX_NETWORKS")
    return [n for n in names if re.fullmatch(r"[a-z][a-z0-9_-]+", n) and (not wanted or n in wanted.split(","))]


def in_float(name, opset):
    path = f"{name}_{opset}.onnx"
    ch("export", name, "--to", path, "--opset", str(opset))
    onnx.checker.check_model(os.path.join(folder, path), full_check=True)
    compare(f"{name} opset {opset}", path, inputs_of(path), by_onnxruntime, 1e-5)


def write_quantize(name):
    text = "[passes.quantize]\nby = \"type\"\n"
    layers = ["linear"]
    if "Conv2d" in ch("summary", name):
        layers.append("conv2d")
    for layer in layers:
        text += f"[passes.quantize.{layer}.config]\nname = \"integer\"\n"
        for operand in ("data_in", "weight", "bias"):
            text += f"{operand}_width = 8\n{operand}_frac_width = 5\n"
    with open(os.path.join(folder, "quantize.toml"), "w", encoding="utf-8") as file:
        file.write(text)


def quantised(name, flavour):
    path = f"{name}_{flavour}.onnx"
    write_quantize(name)
    ch("export", name, "--config", "quantize.toml", "--to", path, "--flavour", flavour)
    if flavour != "qonnx":
        onnx.checker.check_model(os.path.join(folder, path), full_check=True)
    execute = by_qonnx if flavour == "qonnx" else by_onnxruntime
    # Transformers compute in float between their roundings (softmax, norms): executors differ in the
    # last bits there, and a value on a rounding edge then falls a step (1/32) further.
    step = 2.0 ** -5 if re.match("bert|minilm|llama", name) else 1e-6
    compare(f"{name} {flavour}", path, inputs_of(path), execute, step)


for name in networks():
    for opset in (13, 17, 20):
        attempt(f"{name} opset {opset}", lambda: in_float(name, opset))
    for flavour in ("qonnx", "qcdq", "qdq"):
        attempt(f"{name} {flavour}", lambda: quantised(name, flavour))
print(f"{compared} compared, {failures} failed")
sys.exit(1 if failures else 0)
