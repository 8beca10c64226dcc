#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/ops/torch.json: what PyTorch's double precision gives for every op, forward
and backward. Needs python3-torch; the tests only read the file."""
import json
import math
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
    numbers = t.detach().flatten().tolist()  # JSON has no infinity and no NaN
    return {"shape": list(t.shape), "data": [v if math.isfinite(v) else str(v) for v in numbers]}


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
    if isinstance(y, tuple):
        y = y[attributes.get("result", 0)]
    g = torch.randn_like(y) if y.is_floating_point() else torch.zeros(y.shape)
    if y.requires_grad:
        y.backward(g)
    result = {
        "op": op, "attributes": attributes, "training": training,
        "inputs": [plain(x) for x in xs], "params": params, "output": plain(y),
        "grad_output": plain(g),
        "grad_inputs": [plain(torch.zeros_like(x) if x.grad is None else x.grad) for x in xs],
    }
    if module is not None:
        result["printed"] = repr(module)
        result["grad_params"] = {n: plain(torch.zeros_like(p) if p.grad is None else p.grad)
                                 for n, p in module.named_parameters()}
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

for training in (False, True):
    case("batch_norm2d", {"num_features": 3}, None, [(2, 3, 4, 2)], nn.BatchNorm2d(3), training)
for attributes, shape in [
    (dict(in_channels=3, out_channels=4, kernel_size=3), (2, 3, 5, 6)),
    (dict(in_channels=2, out_channels=4, kernel_size=[3, 2], stride=[2, 1], padding=[1, 0]),
     (1, 2, 6, 5)),
    (dict(in_channels=4, out_channels=6, kernel_size=3, groups=2, bias=False, dilation=2,
          padding=2), (2, 4, 5, 5)),
    (dict(in_channels=3, out_channels=3, kernel_size=3, groups=3, stride=2, padding=1),
     (2, 3, 7, 6)),
    (dict(in_channels=2, out_channels=2, kernel_size=4, padding="same"), (1, 2, 5, 5)),
    (dict(in_channels=2, out_channels=1, kernel_size=1, padding="valid", stride=2), (1, 2, 5, 5)),
] + [(dict(in_channels=2, out_channels=3, kernel_size=3, padding=2, padding_mode=mode,
           stride=2), (2, 2, 5, 4)) for mode in ("reflect", "replicate", "circular")]:
    torch_attributes = {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
    case("conv2d", attributes, None, [shape], nn.Conv2d(**torch_attributes))
case("conv2d", {"stride": 2, "padding": 1, "groups": 2},
     lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1, groups=2),
     [(2, 4, 5, 5), (6, 2, 3, 3), (6,)])
for attributes, shape in [
    (dict(in_channels=3, out_channels=4, kernel_size=3), (2, 3, 7)),
    (dict(in_channels=2, out_channels=2, kernel_size=2, stride=2, padding=1, dilation=2,
          groups=2), (1, 2, 9)),
]:
    case("conv1d", attributes, None, [shape], nn.Conv1d(**attributes))
for attributes, shape in [
    (dict(in_channels=3, out_channels=2, kernel_size=3), (2, 3, 3, 4)),
    (dict(in_channels=4, out_channels=6, kernel_size=3, stride=2, padding=1, output_padding=1,
          groups=2), (1, 4, 3, 3)),
    (dict(in_channels=2, out_channels=2, kernel_size=2, dilation=2, bias=False), (1, 2, 3, 3)),
]:
    case("conv_transpose2d", attributes, None, [shape], nn.ConvTranspose2d(**attributes))
case("conv_transpose1d", dict(in_channels=2, out_channels=3, kernel_size=3, stride=2), None,
     [(2, 2, 4)], nn.ConvTranspose1d(2, 3, 3, 2))
for attributes in (dict(kernel_size=2), dict(kernel_size=3, stride=2, padding=1),
                   dict(kernel_size=2, stride=2, ceil_mode=True)):
    case("max_pool2d", attributes, None, [(2, 2, 5, 6)], nn.MaxPool2d(**attributes))
    case("avg_pool2d", attributes, None, [(2, 2, 5, 6)], nn.AvgPool2d(**attributes))
    case("max_pool1d", attributes, None, [(2, 2, 7)], nn.MaxPool1d(**attributes))
    case("avg_pool1d", attributes, None, [(2, 2, 7)], nn.AvgPool1d(**attributes))
case("max_pool2d", dict(kernel_size=2, dilation=2), None, [(1, 2, 5, 5)],
     nn.MaxPool2d(2, dilation=2))
case("avg_pool2d", dict(kernel_size=3, padding=1, stride=2, count_include_pad=False), None,
     [(1, 2, 5, 5)], nn.AvgPool2d(3, 2, 1, count_include_pad=False))
case("avg_pool2d", dict(kernel_size=3, padding=1, stride=2, ceil_mode=True), None,
     [(1, 2, 6, 6)], nn.AvgPool2d(3, 2, 1, ceil_mode=True))
for size in (1, 3, [2, None]):
    torch_size = tuple(size) if isinstance(size, list) else size
    case("adaptive_avg_pool2d", {"output_size": size}, None, [(2, 3, 5, 4)],
         nn.AdaptiveAvgPool2d(torch_size))
    case("adaptive_max_pool2d", {"output_size": size}, None, [(2, 3, 5, 4)],
         nn.AdaptiveMaxPool2d(torch_size))
case("adaptive_avg_pool1d", {"output_size": 3}, None, [(2, 3, 7)], nn.AdaptiveAvgPool1d(3))
case("adaptive_max_pool1d", {"output_size": 3}, None, [(2, 3, 7)], nn.AdaptiveMaxPool1d(3))

positive = [torch.rand(3, 4) + 0.3]
for name, fn in (("exp", torch.exp), ("erf", torch.erf), ("abs", torch.abs),
                 ("square", torch.square)):
    case(name, {}, fn, [(3, 4)])
for name, fn in (("log", torch.log), ("sqrt", torch.sqrt), ("rsqrt", torch.rsqrt)):
    case(name, {}, fn, None, xs=positive)
for exponent in (2, 3, -1, 0.5, -0.5, 1.7):
    case("pow", {"other": exponent}, lambda x: torch.pow(x, exponent), None, xs=positive)
case("pow", {}, torch.pow, None, xs=[positive[0], torch.randn(3, 4)])
case("pow", {"other": 3}, lambda x: torch.pow(x, 3), [(3, 4)])
case("maximum", {}, torch.maximum, [(3, 4), (4,)])
case("minimum", {}, torch.minimum, [(3, 4), (4,)])
for limits in (dict(min=-0.5), dict(max=0.7), dict(min=-0.5, max=0.7)):
    case("clamp", limits, lambda x: torch.clamp(x, **limits), [(3, 4)])
hostile = torch.tensor([1.0, 2.0, float("nan"), float("inf"), -float("inf"), 0.0])
other = torch.tensor([1.0, 1.0, float("nan"), float("inf"), 1.0, float("nan")])
for name in ("lt", "le", "gt", "ge", "eq", "ne"):
    value = getattr(operator, name)(hostile, other).double()
    zero = torch.zeros(6)
    cases.append({"op": name, "attributes": {}, "training": False,
                  "inputs": [{"shape": [6], "data": [1.0, 2.0, "nan", "inf", "-inf", 0.0]},
                             {"shape": [6], "data": [1.0, 1.0, "nan", "inf", 1.0, "nan"]}],
                  "params": {}, "output": plain(value), "grad_output": plain(zero),
                  "grad_inputs": None})
mask = torch.tensor([[1.0, 0.0, 1.0, 0.0]]).expand(3, 4)
x, y = torch.randn(3, 4).requires_grad_(), torch.randn(4).requires_grad_()
z = torch.where(mask != 0, x, y)
g = torch.randn(3, 4)
z.backward(g)
cases.append({"op": "where", "attributes": {}, "training": False,
              "inputs": [plain(mask), plain(x), plain(y)], "params": {}, "output": plain(z),
              "grad_output": plain(g),
              "grad_inputs": [plain(torch.zeros(3, 4)), plain(x.grad), plain(y.grad)]})
for name, attributes, module in [
    ("mish", {}, nn.Mish()), ("log_sigmoid", {}, nn.LogSigmoid()),
    ("tanhshrink", {}, nn.Tanhshrink()), ("hardshrink", {}, nn.Hardshrink()),
    ("softshrink", {"lambd": 0.8}, nn.Softshrink(0.8)),
]:
    case(name, attributes, None, [(3, 4)], module)
case("prelu", {}, None, [(3, 4)], nn.PReLU())
case("prelu", {"num_parameters": 3, "init": 0.1}, None, [(2, 3, 2, 2)], nn.PReLU(3, init=0.1))
case("squeeze", {}, torch.squeeze, [(1, 3, 1, 2)])
case("squeeze", {"dim": -2}, lambda x: torch.squeeze(x, -2), [(1, 3, 1, 2)])
case("unsqueeze", {"dim": -1}, lambda x: torch.unsqueeze(x, -1), [(2, 3)])
case("permute", {"dims": [2, 0, -2]}, lambda x: x.permute(2, 0, -2), [(2, 3, 4)])
case("narrow", {"dim": 1, "start": -3, "length": 2}, lambda x: x.narrow(1, x.shape[1] - 3, 2),
     [(2, 4, 3)])
case("stack", {"dim": 1}, lambda *t: torch.stack(t, 1), [(2, 3), (2, 3)])
case("group_norm", {"num_groups": 2, "num_channels": 4}, None, [(2, 4, 3, 2)], nn.GroupNorm(2, 4))
case("group_norm", {"num_groups": 1, "num_channels": 3, "affine": False, "eps": 0.001}, None,
     [(2, 3)], nn.GroupNorm(1, 3, eps=0.001, affine=False))
case("instance_norm2d", {"num_features": 3}, None, [(2, 3, 3, 2)], nn.InstanceNorm2d(3))
case("instance_norm1d", {"num_features": 3, "affine": True}, None, [(2, 3, 4)],
     nn.InstanceNorm1d(3, affine=True))


def attention(q, k, v, mask=None, causal=False, scale=None):
    heads = q.shape[-3] // k.shape[-3] if q.dim() > 3 else 1
    if heads > 1:
        k, v = k.repeat_interleave(heads, -3), v.repeat_interleave(heads, -3)
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores + mask
    if causal:
        hidden = torch.ones(scores.shape[-2:]).triu(1).bool()
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.softmax(scores, -1) @ v


name = "scaled_dot_product_attention"
case(name, {}, attention, [(2, 3, 4), (2, 5, 4), (2, 5, 2)])
case(name, {"is_causal": True}, lambda q, k, v: attention(q, k, v, causal=True),
     [(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)])
case(name, {"scale": 0.3}, lambda q, k, v, m: attention(q, k, v, m, scale=0.3),
     [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 2), (3, 5)])
case(name, {}, attention, [(2, 4, 3, 2), (2, 2, 5, 2), (2, 2, 5, 3)])

x = torch.randn(2, 3, 4)
for attributes in ({}, {"dim": 1}, {"dim": -1, "keepdim": True}):
    value = torch.argmax(x, **attributes).double()
    cases.append({"op": "argmax", "attributes": attributes, "training": False,
                  "inputs": [plain(x)], "params": {}, "output": plain(value),
                  "grad_output": plain(torch.zeros_like(value)), "grad_inputs": None})
case("cumsum", {"dim": 1}, lambda x: torch.cumsum(x, 1), [(2, 3, 4)])
case("pad", {"pad": [1, 2, 0, 1], "value": 0.5}, lambda x: F.pad(x, (1, 2, 0, 1), value=0.5),
     [(2, 3, 4)])
case("pad", {"pad": [-1, 2]}, lambda x: F.pad(x, (-1, 2)), [(2, 3, 4)])
for attributes in (dict(scale_factor=2), dict(scale_factor=1.5), dict(size=[5, 3])):
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
    case("upsample", attributes, None, [(1, 2, 3, 4)], nn.Upsample(**given))
    for corners in (False, True):
        case("upsample", {**attributes, "mode": "bilinear", "align_corners": corners}, None,
             [(1, 2, 3, 4)], nn.Upsample(**given, mode="bilinear", align_corners=corners))


def indexed(op, attributes, value, x):
    """A result that has no gradient."""
    cases.append({"op": op, "attributes": attributes, "training": False, "inputs": [plain(x)],
                  "params": {}, "output": plain(value.double()),
                  "grad_output": plain(torch.zeros_like(value.double())), "grad_inputs": None})


for shape, chunks, dim in (((2, 5, 3), 2, 1), ((4, 7), 3, -1), ((3, 4), 5, 0)):
    parts = torch.chunk(torch.zeros(shape), chunks, dim)
    for k in range(len(parts)):
        case("chunk", {"chunks": chunks, "dim": dim, "result": k},
             lambda x: torch.chunk(x, chunks, dim)[k], [shape])
for sizes in (2, [1, 0, 4]):
    for k in range(len(torch.split(torch.zeros(2, 5, 3), sizes, 1))):
        case("split", {"split_size_or_sections": sizes, "dim": 1, "result": k},
             lambda x: torch.split(x, sizes, 1)[k], [(2, 5, 3)])
ties = torch.tensor([[2., 5., 5., -1.], [0., -0., 0., -3.], [1., float("nan"), 3., float("nan")]])
for op, fn in (("max", torch.max), ("min", torch.min)):
    case(op, {}, fn, [(2, 3)])
    case(op, {}, fn, None, xs=[torch.tensor([1., 4., 4., -2., -2.])])
    for dim, keep in ((0, False), (1, True), (-1, False)):
        attributes = {"dim": dim, "keepdim": keep}
        case(op, attributes, lambda x: fn(x, dim, keep)[0], [(2, 3, 4)])
        indexed(op, {**attributes, "result": 1}, fn(ties, dim, keep)[1], ties)
for dim, k, largest in ((-1, 2, True), (0, 1, True), (1, 3, False)):
    attributes = {"k": k, "dim": dim, "largest": largest}
    case("topk", attributes, lambda x: torch.topk(x, k, dim, largest)[0], [(2, 3, 4)])
    x = torch.randn(2, 3, 4)
    indexed("topk", {**attributes, "result": 1}, torch.topk(x, k, dim, largest)[1], x)


def picked(op, attributes, fn, x, index):
    """Values by whole numbers."""
    x = x.clone().requires_grad_()
    y = fn(x, index)
    g = torch.randn_like(y) if y.is_floating_point() else torch.zeros(y.shape)
    if y.requires_grad:
        y.backward(g)
    inputs = [plain(x), plain(index.double())]
    zeros = plain(torch.zeros_like(index.double()))
    cases.append({"op": op, "attributes": attributes, "training": False, "inputs": inputs,
                  "params": {}, "output": plain(y), "grad_output": plain(g),
                  "grad_inputs": [plain(x.grad), zeros]})


for dim, shape in ((0, (4, 2)), (1, (2, 5)), (-1, (3, 3))):
    index = torch.randint(0, 3, shape)
    picked("gather", {"dim": dim}, lambda x, i: torch.gather(x, dim, i), torch.randn(3, 3), index)


def part(start=None, stop=None, step=None):
    return {"slice": [start, stop, step]}


def python_index(entry):
    if isinstance(entry, list):
        return tuple(python_index(e) for e in entry)
    return slice(*entry["slice"]) if isinstance(entry, dict) else \
        {"...": Ellipsis, "None": None}.get(entry, entry)


for index in (1, -1, part(1), [part(), 0], ["...", part(None, -1, 2)], [part(0, 99), "None", 2],
              [0, "...", -1], ["None", "..."], [part(), part(3, 1)]):
    case("getitem", {"index": index}, lambda x: x[python_index(index)], [(3, 4, 5)])
for attributes, shapes in (
        ({"embed_dim": 4, "num_heads": 2}, [(3, 2, 4), (5, 2, 4), (5, 2, 4)]),
        ({"embed_dim": 6, "num_heads": 3, "batch_first": True}, [(2, 4, 6)] * 3),
        ({"embed_dim": 4, "bias": False, "batch_first": True}, [(1, 3, 4), (1, 2, 4), (1, 2, 4)])):
    given = {"num_heads": 1, **attributes}
    for k in (0, 1):
        case("multihead_attention", {**attributes, "result": k}, None, shapes,
             nn.MultiheadAttention(**given))
for mode in ("reflect", "replicate", "circular"):
    for pads in ((2, 1), (-1, 2), (1, 0, 2, 1), (-1, 2, 1, -2), (3, -1, 0, 0)):
        case("pad", {"pad": list(pads), "mode": mode}, lambda x: F.pad(x, pads, mode),
             [(2, 3, 4, 5)] if len(pads) == 4 else [(2, 3, 4)])
for attributes in (dict(kernel_size=2, divisor_override=3),
                   dict(kernel_size=[3, 2], stride=2, padding=1, ceil_mode=True, divisor_override=-2)):
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
    case("avg_pool2d", attributes, None, [(2, 2, 5, 6)], nn.AvgPool2d(**given))
for k in (0, 1):
    case("max_pool2d", dict(kernel_size=3, stride=2, padding=1, ceil_mode=True, return_indices=True, result=k), None,
         [(2, 2, 5, 6)], nn.MaxPool2d(3, 2, 1, return_indices=True, ceil_mode=True))
    case("max_pool1d", dict(kernel_size=2, dilation=2, return_indices=True, result=k), None,
         [(2, 2, 7)], nn.MaxPool1d(2, dilation=2, return_indices=True))
    case("adaptive_max_pool2d", dict(output_size=[3, 4], return_indices=True, result=k), None,
         [(2, 2, 5, 6)], nn.AdaptiveMaxPool2d((3, 4), return_indices=True))
for training in (False, True):
    for attributes in (dict(track_running_stats=True), dict(track_running_stats=True, affine=True, momentum=0.3)):
        case("instance_norm2d", {"num_features": 3, **attributes}, None, [(2, 3, 3, 2)],
             nn.InstanceNorm2d(3, **attributes), training)
        case("instance_norm1d", {"num_features": 3, **attributes}, None, [(2, 3, 4)],
             nn.InstanceNorm1d(3, **attributes), training)
for attributes in (dict(scale_factor=1.7), dict(scale_factor=1.7, mode="bilinear"), dict(scale_factor=[0.6, 2.3])):
    attributes = {**attributes, "recompute_scale_factor": True}
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
    case("upsample", attributes, None, [(1, 2, 5, 4)], nn.Upsample(**given))
whole = torch.tensor([[-2.0, -0.5, 0.0, 0.5], [1.0, 1.5, -1.25, 0.0]])
for exponent in (17, 20, 1.5, 2.5):
    case("pow", {"other": exponent}, lambda x: torch.pow(x, exponent), [], xs=[whole if exponent > 3 else whole.abs()])
steps = torch.tensor([-12345.678, -3.7, -2.5, -1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.5, 3.7, 1e6])
for name in ("sin", "cos", "round", "floor", "ceil", "trunc", "sign"):
    case(name, {}, getattr(torch, name), [], xs=[steps])

path = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "ops" / "torch.json"
path.parent.mkdir(parents=True, exist_ok=True)
lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
path.write_text(f"[\n{lines}\n]\n")
print(f"{len(cases)} cases of {len({c['op'] for c in cases})} ops")
