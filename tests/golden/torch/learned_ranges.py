#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes learned_ranges.safetensors: ten steps of gradient descent under PyTorch's autograd on two
linear layers, the first with learned steps (LSQ) for weights and inputs, the second with a step for
each row of the weights and a learned clip (PACT) for the inputs."""
import json
import struct
import sys

import torch


def scaled_gradient(x, factor):
    return (x - x * factor).detach() + x * factor


def rounded(x):
    return (x.round() - x).detach() + x


def lsq(x, s, low, high, values):
    s = scaled_gradient(s, 1 / (values * high) ** 0.5)
    return rounded(torch.clamp(x / s, low, high)) * s


def pact(x, alpha, high):
    y = 0.5 * (x.abs() - (x - alpha).abs() + alpha)
    step = (alpha / high).detach()
    return (torch.round(y / step) * step - y).detach() + y


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "I32" if tensor.dtype == torch.int32 else "F32",
                        "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


torch.manual_seed(4)
x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
names = {"a.weight": torch.randn(8, 6) * 0.4, "a.bias": torch.randn(8) * 0.1,
         "a.data_in_scale": torch.tensor([0.31]), "a.weight_scale": torch.tensor([0.23]),
         "b.weight": torch.randn(3, 8) * 0.4, "b.bias": torch.randn(3) * 0.1,
         "b.data_in_clip": torch.tensor([0.8]),
         "b.weight_scale": torch.tensor([[0.11], [0.09], [0.14]])}
p = {name: value.clone().requires_grad_() for name, value in names.items()}
out = {"x": x, "y": y.to(torch.int32)}
out.update({"init." + name: value for name, value in names.items()})
losses = []
for step in range(10):
    h = torch.nn.functional.linear(lsq(x, p["a.data_in_scale"], -8, 7, 6),
                                   lsq(p["a.weight"], p["a.weight_scale"], -4, 3, 48), p["a.bias"])
    h = torch.relu(h)
    h = torch.nn.functional.linear(pact(h, p["b.data_in_clip"], 15),
                                   lsq(p["b.weight"], p["b.weight_scale"], -8, 7, 8), p["b.bias"])
    loss = torch.nn.functional.cross_entropy(h, y)
    losses.append(loss.item())
    for value in p.values():
        value.grad = None
    loss.backward()
    for name, value in p.items():
        if step == 0:
            out["grad0." + name] = value.grad.clone()
        value.data -= 0.05 * value.grad
out.update({"final." + name: value for name, value in p.items()})
out["loss"] = torch.tensor(losses)
save(sys.argv[1], out)
