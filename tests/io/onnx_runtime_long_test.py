# SPDX-License-Identifier: Apache-2.0
"""Networks that ch export writes, in the hands of others: onnx's checker takes them, onnxruntime and
qonnx give our outputs. Needs a Python with onnx, onnxruntime and qonnx from PyPI; MASE_ONNX_PYTHON
names it (default: this one)."""
import os
import re
import sys

from onnx_peers import ch, export_quantised, folder, need, predict

need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
import onnxruntime

rng = np.random.default_rng(1)
failures = compared = 0


def by_onnxruntime(path, inputs):
    """Every output of a model by its name; without shapes, so that any value may be one."""
    options = onnxruntime.SessionOptions()  # as the file says, nothing rearranged
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    outputs = session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs)})
    return {o.name: y for o, y in zip(session.get_outputs(), outputs)}


def by_qonnx(path, inputs):
    from qonnx.core.modelwrapper import ModelWrapper
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes
    model = ModelWrapper(path)
    names = [i.name for i in model.graph.input]
    for name, x in zip(names, inputs):
        model.set_tensor_shape(name, list(x.shape))
    model.set_tensor_shape(model.graph.output[0].name, [inputs[0].shape[0]] +
                           [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim[1:]])
    model = model.transform(InferShapes())
    return execute_onnx(model, dict(zip(names, inputs)), return_full_exec_context=True)


def held(title, ours, theirs, tolerance):
    global failures, compared
    ours = ours.reshape(theirs.shape)
    scale = max(1.0, float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0)))
    with np.errstate(invalid="ignore"):  # a mask's infinities are equal, their difference is none
        apart = np.where(ours == theirs, 0, np.abs(ours - theirs))
    difference = float(apart.max()) / scale
    compared += 1
    if not difference <= tolerance:
        failures += 1
        print(f"{title}: {difference:.2g} is more than {tolerance:.2g}", flush=True)
    return difference


def compare(title, path, inputs, execute, tolerance):
    """Our network, and what we read from the file's nodes alone, against the other executor."""
    model = onnx.load(os.path.join(folder, path))
    theirs = execute(os.path.join(folder, path), inputs)[model.graph.output[0].name]
    assert [p.key for p in model.metadata_props] == ["mase.graph"], "it says where it is from"
    del model.metadata_props[:]
    onnx.save(model, os.path.join(folder, "nodes.onnx"))
    differences = [held(f"{title} ({what})", predict(file, inputs)[0], theirs, tolerance)
                   for what, file in (("network", path), ("nodes", "nodes.onnx"))]
    print(f"{title:40} {differences[0]:.2g}, from its nodes {differences[1]:.2g}", flush=True)


def inputs_of(path, batch=2):
    inputs = []
    for value in onnx.load(os.path.join(folder, path)).graph.input:
        kind = value.type.tensor_type
        sizes = [batch] + [d.dim_value for d in kind.shape.dim[1:]]
        inputs.append(rng.integers(0, 50, sizes) if kind.elem_type == onnx.TensorProto.INT64
                      else rng.standard_normal(sizes).astype(np.float32))
    return inputs


def step_by_step(title, path, inputs, execute):
    """Every node by itself, on the values that the other executor gives it: a network whose nodes are
    independent of each other, with an input for each value and an output for each node. So a value
    on the edge of a rounding cannot hide an error behind it, nor be one."""
    model = onnx.load(os.path.join(folder, path))
    graph = model.graph
    constants = {t.name for t in graph.initializer}
    quantisers = {"QuantizeLinear", "Clip", "DequantizeLinear", "Quant"}
    named = {v.name for v in graph.output}
    for node in graph.node:
        if all(i in constants for i in node.input if i):
            constants.update(node.output)  # weights, and what becomes of them
    values = [node.output[0] for node in graph.node
              if node.op_type not in quantisers and node.output[0] not in constants]
    if execute is by_onnxruntime:
        for name in values:
            if name not in named:
                graph.output.append(onnx.helper.make_tensor_value_info(name, 1, None))
    whole = os.path.join(folder, "whole.onnx")
    onnx.save(model, whole)
    theirs = execute(whole, inputs)
    del graph.output[:], graph.value_info[:]
    fed = {}
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name in values:
                fed[name] = theirs[name]
                node.input[i] = name + "/given"
    for name, value in fed.items():
        graph.input.append(onnx.helper.make_tensor_value_info(
            name + "/given", onnx.helper.np_dtype_to_tensor_dtype(value.dtype),
            ["batch", *value.shape[1:]]))
    for name in values:
        graph.output.append(onnx.helper.make_tensor_value_info(name, 1, None))
    onnx.save(model, os.path.join(folder, "steps.onnx"))
    ours = predict("steps.onnx", inputs + list(fed.values()))
    assert len(ours) == len(values)
    worst = max(held(f"{title}: {name}", y, theirs[name], 1e-6) for name, y in zip(values, ours))
    print(f"{title:40} {worst:.2g}  {len(values)} nodes by themselves", flush=True)


def attempt(title, work):
    global failures
    try:
        work()
    except Exception as error:  # each network by itself
        failures += 1
        print(f"{title}: {str(error)[:2000]}", flush=True)


def networks():
    names = [line.split()[0] for line in ch("--info", "model").splitlines() if line.strip()]
    wanted = os.environ.get("MASE_ONNX_NETWORKS")
    return [n for n in names if re.fullmatch(r"[a-z][a-z0-9_-]+", n) and (not wanted or n in wanted.split(","))]


def in_float(name, opset):
    path = f"{name}_{opset}.onnx"
    ch("export", name, "--to", path, "--opset", str(opset))
    onnx.checker.check_model(os.path.join(folder, path), full_check=True)
    compare(f"{name} opset {opset}", path, inputs_of(path), by_onnxruntime, 1e-6)


def quantised(name, flavour):
    path = f"{name}_{flavour}.onnx"
    layers = ["linear"] + (["conv2d"] if "Conv2d" in ch("summary", name) else [])
    export_quantised(name, path, flavour, layers)
    # Shapes cannot be inferred through the nodes of a domain that onnx does not know.
    onnx.checker.check_model(os.path.join(folder, path), full_check=flavour != "qonnx")
    execute = by_qonnx if flavour == "qonnx" else by_onnxruntime
    inputs = inputs_of(path)
    # Transformers compute in float between their roundings (softmax, norms): executors differ in the
    # last bits there, and a value on a rounding edge then falls a step (1/32) further. So their
    # nodes are held one by one as well.
    transformer = re.match("bert|minilm|llama", name)
    compare(f"{name} {flavour}", path, inputs, execute, 2.0 ** -5 if transformer else 1e-6)
    if transformer:
        step_by_step(f"{name} {flavour}", path, inputs, execute)


for name in networks():
    for opset in (13, 17, 20):
        attempt(f"{name} opset {opset}", lambda: in_float(name, opset))
    for flavour in ("qonnx", "qcdq", "qdq"):
        attempt(f"{name} {flavour}", lambda: quantised(name, flavour))
print(f"{compared} compared, {failures} failed")
sys.exit(1 if failures else 0)
