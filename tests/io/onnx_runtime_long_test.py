# SPDX-License-Identifier: Apache-2.0
"""Networks that ch export writes, in the hands of others: onnx's checker takes them, onnxruntime and
qonnx give our outputs. Needs a Python with onnx, onnxruntime and qonnx from PyPI; MASE_ONNX_PYTHON
names it (default: this one)."""
import os
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
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
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
    print(f"{title:40} {difference:.2g}")
    if not difference <= tolerance:
        failures += 1
        print(f"  more than {tolerance}")


SHAPES = {"jsc-tiny": (16,), "jsc-toy": (16,), "jsc-10x": (16,), "lenet": (1, 28, 28), "vgg7": (3, 32, 32),
          "cnv": (3, 32, 32), "toy_convnet": (3, 32, 32), "resnet18-cifar": (3, 32, 32),
          "mobilenetv2": (3, 224, 224), "bert-tiny": None}
for name, shape in SHAPES.items():
    path = f"{name}.onnx"
    try:
        ch("export", name, "--to", path)
        onnx.checker.check_model(os.path.join(folder, path), full_check=True)
        model = onnx.load(os.path.join(folder, path))
        inputs = []
        for value in model.graph.input:
            kind = value.type.tensor_type
            sizes = [2] + [d.dim_value for d in kind.shape.dim[1:]]
            inputs.append(rng.integers(0, 50, sizes) if kind.elem_type == onnx.TensorProto.INT64
                          else rng.standard_normal(sizes).astype(np.float32))
        compare(name, path, inputs, by_onnxruntime, 1e-5)
    except Exception as error:  # each network by itself
        failures += 1
        print(f"{name}: {error}")

QUANTIZE = """[passes.quantize]
by = "type"
[passes.quantize.linear.config]
name = "integer"
"""
for operand in ("data_in", "weight", "bias"):
    QUANTIZE += f"{operand}_width = 8\n{operand}_frac_width = 5\n"
with open(os.path.join(folder, "quantize.toml"), "w", encoding="utf-8") as file:
    file.write(QUANTIZE)
x = rng.standard_normal((16, 16)).astype(np.float32)
for flavour, execute in (("qonnx", by_qonnx), ("qcdq", by_onnxruntime), ("qdq", by_onnxruntime)):
    path = f"jsc_{flavour}.onnx"
    try:
        ch("export", "jsc-toy", "--config", "quantize.toml", "--to", path, "--flavour", flavour)
        if flavour != "qonnx":
            onnx.checker.check_model(os.path.join(folder, path), full_check=True)
        compare(f"jsc-toy {flavour}", path, [x], execute, 1e-6)
    except Exception as error:
        failures += 1
        print(f"jsc-toy {flavour}: {error}")
print(f"{compared} compared, {failures} failed")
sys.exit(1 if failures else 0)
