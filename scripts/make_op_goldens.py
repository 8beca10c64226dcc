#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/ops/torch.json: what PyTorch's double precision gives for every op, forward
and backward. Needs python3-torch; the tests only read the file."""
import json
import operator
import pathlib
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.simplefilter("ignore")
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
cases = []


def plain(t):
    return {"shape": list(t.shape), "data": t.detach().flatten().tolist()}


def case(op, attributes, fn, shapes, module=None, training=False, xs=None):
    xs = xs or [torch.randn(tuple(s)) * 1.7 for s in shapes]
    xs = [x.clone().requires_grad_() for x in xs]
    params = {}
    if module is not None:
        module.train(training)
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(torch.randn_like(p))
            for b in module.buffers():
                if b.dtype.is_floating_point:
                    b.copy_(torch.rand_like(b) + 0.5)
        named = list(module.named_parameters()) + list(module.named_buffers())
        params = {n: plain(p) for n, p in named}
        fn = module
    y = fn(*xs)
    g = torch.randn_like(y)
    y.backward(g)
    result = {
        "op": op, "attributes": attributes, "training": training,
        "inputs": [plain(x) for x in xs], "params": params, "output": plain(y),
        "grad_output": plain(g), "grad_inputs": [plain(x.grad) for x in xs],
    }
    if module is not None:
        result["grad_params"] = {n: plain(p.grad) for n, p in module.named_parameters()}
        if training:
            result["buffers"] = {n: plain(b.double()) for n, b in module.named_buffers()}
    cases.append(result)


edge = torch.tensor([[0., -0., 1., -1.], [3., -3., 6., -6.], [30., -30., 0.5, 2.]])
# Hardswish and Hardsigmoid have another one-sided gradient at their corners in PyTorch.
corners = {"hardswish", "hardsigmoid"}
for name, attributes, module in [
    ("relu", {}, nn.ReLU()), ("relu6", {}, nn.ReLU6()), ("leaky_relu", {}, nn.LeakyReLU()),
    ("elu", {"alpha": 0.7}, nn.ELU(0.7)), ("selu", {}, nn.SELU()), ("gelu", {}, nn.GELU()),
    ("gelu", {"approximate": "tanh"}, nn.GELU("tanh")), ("silu", {}, nn.SiLU()),
    ("sigmoid", {}, nn.Sigmoid()), ("tanh", {}, nn.Tanh()),
    ("hardtanh", {"min_val": -0.5, "max_val": 2}, nn.Hardtanh(-0.5, 2)),
    ("hardswish", {}, nn.Hardswish()), ("hardsigmoid", {}, nn.Hardsigmoid()),
    ("softplus", {}, nn.Softplus()),
    ("softplus", {"beta": 2.0, "threshold": 1.5}, nn.Softplus(2.0, 1.5)),
    ("softsign", {}, nn.Softsign()), ("identity", {}, nn.Identity()),
]:
    case(name, attributes, module, [(3, 4)])
    if name not in corners:
        case(name, attributes, module, None, xs=[edge])
    case(name, attributes, module, [()])
    case(name, attributes, module, [(0, 3)])
for dim in (None, 0, -1):
    for shape in ((3,), (3, 4), (2, 3, 4)):
        attributes = {} if dim is None else {"dim": dim}
        case("softmax", attributes, nn.Softmax(dim), [shape])
        case("log_softmax", attributes, nn.LogSoftmax(dim), [shape])
for shape in ((4, 3), (2, 3, 5)):
    for training in (False, True):
        case("batch_norm1d", {"num_features": 3}, None, [shape], nn.BatchNorm1d(3), training)
        case("batch_norm1d", {"num_features": 3, "affine": False, "momentum": "cumulative"}, None,
             [shape], nn.BatchNorm1d(3, affine=False, momentum=None), training)
        case("batch_norm1d", {"num_features": 3, "track_running_stats": False, "eps": 1e-3}, None,
             [shape], nn.BatchNorm1d(3, eps=1e-3, track_running_stats=False), training)
case("layer_norm", {"normalized_shape": 4}, None, [(3, 4)], nn.LayerNorm(4))
case("layer_norm", {"normalized_shape": [3, 4], "eps": 1e-3}, None, [(2, 3, 4)],
     nn.LayerNorm([3, 4], eps=1e-3))
for shape in ((3,), (2, 3), (2, 1, 3), (0, 3)):
    case("linear", {"in_features": 3, "out_features": 4}, None, [shape], nn.Linear(3, 4))
    case("linear", {"in_features": 3, "out_features": 4, "bias": False}, None, [shape],
         nn.Linear(3, 4, bias=False))
case("linear", {}, F.linear, [(2, 3), (4, 3), (4,)])
case("dropout", {"p": 0.5}, nn.Dropout(0.5).eval(), [(2, 3)])
for attributes, dims in (({}, (1, -1)), ({"start_dim": 0}, (0, -1)), ({"start_dim": -2}, (-2, -1)),
                         ({"start_dim": 0, "end_dim": 1}, (0, 1))):
    case("flatten", attributes, nn.Flatten(*dims), [(2, 3, 4)])
for name, fn in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul),
                 ("div", operator.truediv)):
    for shapes in (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((), (2,)),
                   ((0, 3), (1, 3))):
        case(name, {}, fn, shapes)
    case(name, {"other": 2.5}, lambda x: fn(x, 2.5), [(2, 3)])
    case(name, {"input": 2.5}, lambda x: fn(2.5, x), [(2, 3)])
case("neg", {}, operator.neg, [(2, 3)])
for shapes in (((3,), (3,)), ((2, 3), (3, 4)), ((3,), (3, 2)), ((2, 3), (3,)), ((5, 2, 3), (3,)),
               ((3,), (5, 3, 2)), ((2, 1, 2, 3), (4, 3, 2))):
    case("matmul", {}, torch.matmul, shapes)
case("bmm", {}, torch.bmm, ((2, 3, 4), (2, 4, 5)))
case("cat", {"dim": 1}, lambda *t: torch.cat(t, 1), ((2, 3, 2), (2, 0, 2), (2, 1, 2)))
case("cat", {}, lambda *t: torch.cat(t), ((2, 3), (1, 3)))
for name, fn in (("sum", torch.sum), ("mean", torch.mean)):
    case(name, {}, fn, [(2, 3)])
    case(name, {"dim": 1}, lambda x: fn(x, 1), [(2, 3, 4)])
    case(name, {"dim": [0, -1], "keepdim": True}, lambda x: fn(x, (0, -1), keepdim=True),
         [(2, 3, 4)])
    case(name, {}, fn, [()])
case("reshape", {"shape": [-1, 6]}, lambda x: x.reshape(-1, 6), [(2, 3, 4)])
case("transpose", {"dim0": 0, "dim1": -1}, lambda x: x.transpose(0, -1), [(2, 3, 4)])

path = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "ops" / "torch.json"
path.parent.mkdir(parents=True, exist_ok=True)
lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
path.write_text(f"[\n{lines}\n]\n")
print(f"{len(cases)} cases of {len({c['op'] for c in cases})} ops")
