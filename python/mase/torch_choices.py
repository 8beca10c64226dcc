# SPDX-License-Identifier: Apache-2.0
"""Rewrites of choices: limits, the larger of two, truth and what follows from it."""
from __future__ import annotations

import functools
from typing import Dict

import torch
import torch.fx

from mase.torch_rewrites import FUNCTIONS, Rewrite, Unsupported, is_number, rewrites, rewrites_layers


def _several_tensors(node: torch.fx.Node) -> bool:
    return any(isinstance(v, torch.fx.Node) for v in (*node.args[1:], *node.kwargs.values()))


@rewrites("clamp", "clamp_", "clip", "clip_", when=_several_tensors)
def _between(x, min=None, max=None):
    if min is not None:
        x = torch.clamp(x, min=min) if is_number(min) else torch.maximum(x, min)
    if max is not None:
        x = torch.clamp(x, max=max) if is_number(max) else torch.minimum(x, max)
    return x


@rewrites("clamp_min", "clamp_min_")
def _at_least(x, min):
    return _between(x, min)


@rewrites("clamp_max", "clamp_max_")
def _at_most(x, max):
    return _between(x, None, max)


@rewrites("max", when=_several_tensors)
def _larger(x, other):
    return torch.maximum(x, other)


@rewrites("min", when=_several_tensors)
def _smaller(x, other):
    return torch.minimum(x, other)


@rewrites("argmin")
def _where_least(x, dim=None, keepdim=False):
    return torch.argmax(-x, dim, keepdim)


@rewrites("sort")
def _sorted(x, dim=-1, descending=False, stable=False):
    return torch.topk(x, x.shape[dim], dim, descending)


@rewrites("erfc")
def _erfc(x):
    return 1.0 - torch.erf(x)


@rewrites("threshold", "_threshold", "threshold_")
def _above(x, threshold, value, inplace=False):
    return torch.where(x > threshold, x, x.constant(value))


@rewrites_layers("Threshold")
def _threshold_layer(layer, x):
    return _above(x, layer.threshold, layer.value)


# Truth.

@rewrites("bool")
def _as_truth(x, **keys):
    return _true(x)


def _true(x):
    return x if x.dtype is torch.bool else torch.ne(x, 0)


def _truths(a, b, bitwise):
    if bitwise and not all(v.dtype is torch.bool for v in (a, b)):
        raise Unsupported  # bits of numbers
    return _true(a), _true(b)


def _both(a, b, bitwise=True):
    a, b = _truths(a, b, bitwise)
    return torch.mul(a, b)


def _either(a, b, bitwise=True):
    a, b = _truths(a, b, bitwise)
    return torch.maximum(a, b)


def _one_of_both(a, b, bitwise=True):
    a, b = _truths(a, b, bitwise)
    return torch.ne(a, b)


def _neither(a, bitwise=True):
    if bitwise and a.dtype is not torch.bool:
        raise Unsupported
    return torch.eq(_true(a), 0)


_LOGIC: Dict[str, Rewrite] = {"and": _both, "or": _either, "xor": _one_of_both, "not": _neither}
for _name, _rewrite in _LOGIC.items():
    FUNCTIONS[f"bitwise_{_name}"] = _rewrite
    FUNCTIONS[f"logical_{_name}"] = functools.partial(_rewrite, bitwise=False)
FUNCTIONS.update({"and_": _both, "or_": _either, "xor": _one_of_both, "invert": _neither, "inv": _neither})


@rewrites("any")
def _any_true(x, dim=None, keepdim=False):
    x = _true(x)
    return torch.gt(torch.sum(x) if dim is None else torch.sum(x, dim, keepdim), 0)


@rewrites("all")
def _all_true(x, dim=None, keepdim=False):
    x = torch.eq(_true(x), 0)
    return torch.eq(torch.sum(x) if dim is None else torch.sum(x, dim, keepdim), 0)


@rewrites("where")
def _where(condition, input, other):
    like = next((v for v in (input, other) if not is_number(v)), None)
    dtype = torch.float32 if like is None else like.dtype
    a, b = (torch.tensor(v, dtype=dtype) if is_number(v) else v for v in (input, other))
    return torch.where(condition, a, b)


@rewrites(".where")
def _kept_where(x, condition, other):
    return _where(condition, x, other)


@rewrites("masked_fill", "masked_fill_")
def _masked(x, mask, value):
    return torch.where(mask, torch.tensor(value, dtype=x.dtype) if is_number(value) else value, x)
