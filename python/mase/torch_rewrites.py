# SPDX-License-Identifier: Apache-2.0
"""What the library has no operation for, written in torch by what it has one for. A function's rewrite has
the function's own parameters; a layer's has the layer in front of the inputs. All compute to the same bits, or
as near as another order of sums is. Sizes that they ask for are known (torch_lowering runs the network)."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Optional

import torch
import torch.fx
import torch.nn.functional as F

Rewrite = Callable[..., Any]
FUNCTIONS: Dict[str, Rewrite] = {}  # functions, methods and operators by name; ".name": a method with other arguments
NEEDED: Dict[str, Callable[[torch.fx.Node], bool]] = {}  # of functions that the library has for other arguments
LAYERS: Dict[type, Rewrite] = {}
LAYERS_NEEDED: Dict[type, Callable[[torch.nn.Module], bool]] = {}  # of layers that the library has with other settings


class Unsupported(Exception):
    """These arguments have no rewrite: the node is reported as torch's own."""


def _function(*names: str, when: Optional[Callable[[torch.fx.Node], bool]] = None) -> Callable[[Rewrite], Rewrite]:
    def add(rewrite: Rewrite) -> Rewrite:
        FUNCTIONS.update({name: rewrite for name in names})
        if when is not None:
            NEEDED.update({name: when for name in names})
        return rewrite

    return add


def _layer(*kinds: str, when: Optional[Callable[[torch.nn.Module], bool]] = None) -> Callable[[Rewrite], Rewrite]:
    def add(rewrite: Rewrite) -> Rewrite:
        found = [getattr(torch.nn, kind) for kind in kinds if hasattr(torch.nn, kind)]
        LAYERS.update({kind: rewrite for kind in found})
        if when is not None:
            LAYERS_NEEDED.update({kind: when for kind in found})
        return rewrite

    return add


rewrites, rewrites_layers = _function, _layer  # in the other files of rewrites too


def is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def reshape(x, sizes):
    return x.reshape(sizes) if isinstance(x, torch.Tensor) else x.reshaped(list(sizes))


# The same values under other shapes and names.

@_function("contiguous", "clone", "cpu", "requires_grad_")
def _same(x, *args, **keys):
    return x


@_function("float")
def _in_float(x, **keys):
    return x if x.dtype is torch.float32 else x * 1.0


@_function("long", "int")
def _whole(x, **keys):
    if x.dtype.is_floating_point:
        raise Unsupported
    return x * 1 if x.dtype is torch.bool else x


@_function("to", "type", "type_as")
def _converted(x, *args, **keys):
    kinds = [a if isinstance(a, torch.dtype) else getattr(a, "dtype", None) for a in (*args, *keys.values())]
    for kind in kinds:
        if kind is torch.float32:
            return _in_float(x)
        if kind is not None and kind is not x.dtype:
            raise Unsupported
    return x


@_function("t")
def _t(x):
    return torch.transpose(x, 0, 1) if len(x.shape) == 2 else x


@_function("T", "mT")
def _reversed(x):
    order = list(range(len(x.shape)))
    return torch.permute(x, order[::-1])


@_function("swapaxes", "swapdims")
def _swapped(x, axis0, axis1):
    return torch.transpose(x, axis0, axis1)


@_function("movedim", "moveaxis")
def _moved(x, source, destination):
    rank = len(x.shape)
    sources = [d % rank for d in ([source] if isinstance(source, int) else source)]
    places = [d % rank for d in ([destination] if isinstance(destination, int) else destination)]
    order: List[Any] = [None] * rank
    for s, d in zip(sources, places):
        order[d] = s
    rest = iter([d for d in range(rank) if d not in sources])
    return torch.permute(x, [next(rest) if d is None else d for d in order])


@_function("unflatten")
def _unflattened(x, dim, sizes):
    dim %= len(x.shape)
    return reshape(x, [*x.shape[:dim], *sizes, *x.shape[dim + 1:]])


@_layer("Unflatten")
def _unflatten_layer(layer, x):
    return _unflattened(x, layer.dim, list(layer.unflattened_size))


@_function("view_as", "reshape_as")
def _shaped_as(x, other):
    return reshape(x, list(other.shape))


@_function("select")
def _selected(x, dim, index):
    return x[(slice(None),) * (dim % len(x.shape)) + (index,)]


@_function("unbind")
def _unbound(x, dim=0):
    return tuple(_selected(x, dim, i) for i in range(x.shape[dim]))


@_function("expand", "broadcast_to")
def _expanded(x, *sizes):
    sizes = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    own = [1] * (len(sizes) - len(x.shape)) + list(x.shape)
    return x.filled([o if s == -1 else s for s, o in zip(sizes, own)])


@_function("expand_as")
def _expanded_as(x, other):
    return x.filled(list(other.shape))


@_function("repeat", "tile")
def _repeated(x, *times):
    times = list(times[0]) if len(times) == 1 and not isinstance(times[0], int) else list(times)
    own = [1] * (len(times) - len(x.shape)) + list(x.shape)
    if any(o != 1 and t != 1 for o, t in zip(own, times)):
        return _copies(reshape(x, own), times)
    return x.filled([o if t == 1 else t for o, t in zip(own, times)])


def _copies(x, times):
    for dim, count in enumerate(times):
        if count != 1:
            if not isinstance(count, int):
                raise Unsupported
            x = torch.cat([x] * count, dim)
    return x


@_layer("ZeroPad1d", "ZeroPad2d", "ConstantPad1d", "ConstantPad2d")
def _padded(layer, x):
    return F.pad(x, list(layer.padding), "constant", float(getattr(layer, "value", 0.0)))


@_layer("ReflectionPad1d", "ReflectionPad2d")
def _mirrored(layer, x):
    return F.pad(x, list(layer.padding), "reflect")


@_layer("ReplicationPad1d", "ReplicationPad2d")
def _edges_again(layer, x):
    return F.pad(x, list(layer.padding), "replicate")


@_layer("CircularPad1d", "CircularPad2d")
def _from_the_other_end(layer, x):
    return F.pad(x, list(layer.padding), "circular")


# Arithmetic.

@_function("full_like")
def _full_like(x, fill_value, **keys):
    return x.constant(fill_value).filled(list(x.shape))


@_function("zeros_like")
def _zeros_like(x, **keys):
    return _full_like(x, 0)


@_function("ones_like")
def _ones_like(x, **keys):
    return _full_like(x, 1)


@_function("rsub")
def _rsub(x, other, alpha=1):
    return other - (x if alpha == 1 else x * alpha)


@_function("reciprocal")
def _reciprocal(x):
    return 1.0 / x


def _whole_quotient(x, other, rounded):
    for operand in (x, other):
        if not is_number(operand) and not operand.dtype.is_floating_point:
            raise Unsupported  # whole numbers stay whole
    return rounded(x / other)


@_function("floor_divide", "floor_divide_", "floordiv", "ifloordiv")
def _floor_division(x, other):
    return _whole_quotient(x, other, torch.floor)


@_function("div", "div_", "divide", "divide_", when=lambda node: node.kwargs.get("rounding_mode") is not None)
def _rounded_division(x, other, rounding_mode=None):
    return _whole_quotient(x, other, torch.floor if rounding_mode == "floor" else torch.trunc)


@_function("remainder", "remainder_", "mod", "imod")
def _remainder(x, other):
    return x - _whole_quotient(x, other, torch.floor) * other


@_function("fmod", "fmod_")
def _signed_remainder(x, other):
    return x - _whole_quotient(x, other, torch.trunc) * other


@_function("mm", "mv", "dot")
def _product(x, other):
    return torch.matmul(x, other)


@_function("addmm", "baddbmm")
def _add_product(x, a, b, *, beta=1, alpha=1):
    product = torch.matmul(a, b)
    return (x if beta == 1 else x * beta) + (product if alpha == 1 else product * alpha)


@_function("var")
def _variance(x, dim=None, unbiased=True, keepdim=False, *, correction=None):
    dims = list(range(len(x.shape))) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    count = math.prod(x.shape[d] for d in dims)
    if not isinstance(count, int):
        raise Unsupported  # over the batch
    off = x - torch.mean(x, dims, True)
    taken = int(unbiased) if correction is None else correction
    return torch.mean(off * off, dims, keepdim) * (count / (count - taken))


@_function("std")
def _deviation(x, *args, **keys):
    return torch.sqrt(_variance(x, *args, **keys))


@_function("norm")
def _norm(x, p=2, dim=None, keepdim=False):
    if p not in (1, 2, "fro", None) or dim is None:
        raise Unsupported
    return torch.sum(torch.abs(x), dim, keepdim) if p == 1 else torch.sqrt(torch.sum(x * x, dim, keepdim))


@_function("normalize")
def _normalized(input, p=2.0, dim=1, eps=1e-12):
    return input / torch.clamp(_norm(input, p, dim, True), min=eps)


@_function("amax")
def _largest(x, dim=(), keepdim=False):
    return _extreme(torch.max, x, dim, keepdim)


@_function("amin")
def _least(x, dim=(), keepdim=False):
    return _extreme(torch.min, x, dim, keepdim)


def _extreme(function, x, dim, keepdim):
    rank = len(x.shape)
    dims = sorted(d % rank for d in ([dim] if isinstance(dim, int) else list(dim) or range(rank)))
    for d in reversed(dims):
        x = function(x, d, keepdim)[0]
    return x


@_function("einsum")
def _einsum(equation, *operands):
    """Of two operands: their common letters are batches where the result has them, and summed over elsewhere."""
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    left, arrow, out = equation.replace(" ", "").partition("->")
    names = left.split(",")
    if len(operands) != 2 or len(names) != 2 or not arrow or "." in equation or any(len(set(n)) != len(n) for n in (*names, out)):
        raise Unsupported
    first, second = names
    batch = [c for c in first if c in second and c in out]
    summed = [c for c in first if c in second and c not in out]
    rows, columns = ([c for c in one if c not in other] for one, other in ((first, second), (second, first)))
    if sorted(out) != sorted(batch + rows + columns):
        raise Unsupported
    size = dict(zip(first + second, (*operands[0].shape, *operands[1].shape)))

    def arranged(x, name, *groups):
        x = torch.permute(x, [name.index(c) for group in (batch, *groups) for c in group])
        return reshape(x, [size[c] for c in batch] + [math.prod(size[c] for c in group) for group in groups])

    if not batch and len(columns) == 1 and len(summed) == 1:  # a table for all: the rows stay what they are
        table = arranged(operands[1], second, summed, columns)
        y = torch.permute(operands[0], [first.index(c) for c in rows + summed])
        y = torch.matmul(y, table)
        return torch.permute(y, [(rows + columns).index(c) for c in out])
    y = torch.matmul(arranged(operands[0], first, rows, summed), arranged(operands[1], second, summed, columns))
    letters = batch + rows + columns
    return torch.permute(reshape(y, [size[c] for c in letters]), [letters.index(c) for c in out])


@_layer("EmbeddingBag")
def _bag(layer, input, offsets=None, per_sample_weights=None):
    """Of bags that are rows of one length."""
    if offsets is not None or len(input.shape) != 2 or layer.padding_idx is not None or layer.max_norm is not None:
        raise Unsupported
    rows = F.embedding(input, layer.weight)
    if layer.mode == "max":
        return _extreme(torch.max, rows, 1, False)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    return torch.sum(rows, 1) if layer.mode == "sum" else torch.mean(rows, 1)


@_function("alpha_dropout")
def _alpha_dropped(input, p=0.5, training=False, inplace=False):
    """What is dropped becomes SELU's lowest value, and mean and variance stay. A dropout of ones says which; outside
    training it leaves them ones."""
    if not 0 < p < 1:
        raise Unsupported
    lowest = -1.7580993408473766
    drawn = _ones_like(input).through(torch.nn.Dropout(p))
    kept = drawn * (1 - p)
    scale = ((1 - p) * (1 + p * lowest * lowest)) ** -0.5
    dropped = scale * (input * kept + lowest * (1.0 - kept)) - scale * lowest * p
    return torch.where(drawn == 1.0, input, dropped)


@_layer("AlphaDropout")
def _alpha_dropout_layer(layer, x):
    return x if layer.p == 0 else _alpha_dropped(x, layer.p)


@_function("log1p")
def _log1p(x):
    """Near 0 by its series: 1 + x would lose the digits of x."""
    series = 1.0 / 9
    for n in range(8, 0, -1):
        series = (1.0 / n if n % 2 else -1.0 / n) + series * x
    return torch.where(torch.abs(x) < 0.1, series * x, torch.log(1.0 + x))


@_function("expm1")
def _expm1(x):
    """Below 1 by a tangent, which keeps the digits of small x."""
    t = torch.tanh(torch.clamp(x, max=1.0) * 0.5)
    return torch.where(x < 1.0, 2.0 * t / (1.0 - t), torch.exp(x) - 1.0)


@_function("log2")
def _log2(x):
    return torch.log(x) * (1 / math.log(2))


@_function("log10")
def _log10(x):
    return torch.log(x) * (1 / math.log(10))


@_function("logsumexp")
def _log_sum(x, dim, keepdim=False):
    largest = _extreme(torch.max, x, dim, True)
    largest = torch.where(torch.abs(largest) < math.inf, largest, x.constant(0.0))  # where inf - inf would be NaN
    total = torch.log(torch.sum(torch.exp(x - largest), dim, True)) + largest
    return total if keepdim else torch.sum(total, dim, False)


def _scaled(node: torch.fx.Node) -> bool:
    return node.kwargs.get("alpha", 1) != 1


@_function("add", "add_", when=_scaled)
def _scaled_sum(x, other, alpha=1):
    return x + other * alpha


@_function("sub", "sub_", when=_scaled)
def _scaled_difference(x, other, alpha=1):
    return x - other * alpha


@_function("addcmul")
def _add_scaled_product(x, a, b, value=1):
    return x + a * b * value


@_function("lerp")
def _line(x, end, weight):
    return x + (end - x) * weight


@_function("celu")
def _celu(x, alpha=1.0, inplace=False):
    return torch.relu(x) - torch.relu(alpha * (1.0 - torch.exp(torch.clamp(x, max=0.0) / alpha)))


@_layer("CELU")
def _celu_layer(layer, x):
    return _celu(x, layer.alpha)


@_function("glu")
def _gated(x, dim=-1):
    a, b = torch.chunk(x, 2, dim)
    return a * torch.sigmoid(b)


@_layer("GLU")
def _glu_layer(layer, x):
    return _gated(x, layer.dim)


@_function("softmin")
def _softmin(x, dim, **keys):
    return F.softmax(-x, dim)


@_layer("Softmin")
def _softmin_layer(layer, x):
    return _softmin(x, layer.dim)


@_layer("Softmax2d")
def _softmax_channels(layer, x):
    return F.softmax(x, -3)


@_function("layer_norm")
def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    y = F.layer_norm(input, tuple(normalized_shape), eps=eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _along_channels(x, numbers):
    return reshape(numbers, [-1] + [1] * (len(x.shape) - 2))


def _shifted(x, weight, bias):
    x = x if weight is None else x * _along_channels(x, weight)
    return x if bias is None else x + _along_channels(x, bias)


@_function("group_norm")
def _group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    y = input.through(torch.nn.GroupNorm(num_groups, input.shape[1], eps, affine=False))
    return _shifted(y, weight, bias)


@_function("instance_norm")
def _instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05):
    if running_mean is not None or not use_input_stats:
        raise Unsupported
    kind = {3: torch.nn.InstanceNorm1d, 4: torch.nn.InstanceNorm2d}.get(len(input.shape))
    if kind is None:
        raise Unsupported
    return _shifted(input.through(kind(input.shape[1], eps)), weight, bias)


@_function("prelu")
def _prelu(x, weight):
    slope = weight if len(x.shape) < 2 or weight.shape in ((), (1,)) else _along_channels(x, weight)
    return torch.where(x > 0, x, x * slope)


@_function("batch_norm")
def _batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05, *unused):
    if training or running_mean is None:
        raise Unsupported
    along = [1, -1] + [1] * (len(input.shape) - 2)
    scale = torch.rsqrt(running_var + eps)
    if weight is not None:
        scale = scale * weight
    shift = -running_mean * scale
    if bias is not None:
        shift = shift + bias
    return input * reshape(scale, along) + reshape(shift, along)


# What is left out in training.

@_function("dropout", "feature_dropout")
def _dropout(x, p=0.5, training=True, inplace=False):
    return F.dropout(x, p) if training else x


@_function("dropout1d", "dropout2d", "dropout3d")
def _channels_left_out(x, p=0.5, training=True, inplace=False):
    if not training:
        return x
    one = x.constant(1.0).filled([*x.shape[:2], *[1] * (len(x.shape) - 2)])
    return x * F.dropout(one, p)


@_layer("Dropout1d", "Dropout2d", "Dropout3d")
def _channel_layer(layer, x):
    return _channels_left_out(x, layer.p)
