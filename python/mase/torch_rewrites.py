# SPDX-License-Identifier: Apache-2.0
"""What the library has no operation for, written in torch by what it has one for. A function's rewrite has
the function's own parameters; a layer's has the layer in front of the inputs. All compute to the same bits, or
as near as another order of sums is. Sizes that they ask for are known (torch_lowering runs the network)."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, List

import torch
import torch.nn.functional as F

from mase.torch_stand_ins import scaled_dot_product_attention

Rewrite = Callable[..., Any]
FUNCTIONS: Dict[str, Rewrite] = {}  # functions, methods and operators by name
LAYERS: Dict[type, Rewrite] = {}


class Unsupported(Exception):
    """These arguments have no rewrite: the node is reported as torch's own."""


def _function(*names: str) -> Callable[[Rewrite], Rewrite]:
    def add(rewrite: Rewrite) -> Rewrite:
        FUNCTIONS.update({name: rewrite for name in names})
        return rewrite

    return add


def _layer(*kinds: str) -> Callable[[Rewrite], Rewrite]:
    def add(rewrite: Rewrite) -> Rewrite:
        LAYERS.update({getattr(torch.nn, kind): rewrite for kind in kinds if hasattr(torch.nn, kind)})
        return rewrite

    return add


def _number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _reshape(x, sizes):
    return x.reshape(sizes) if isinstance(x, torch.Tensor) else x.reshaped(list(sizes))


# The same values under other shapes and names.

@_function("contiguous", "clone", "detach", "cpu", "requires_grad_")
def _same(x, *args, **keys):
    return x


@_function("float")
def _in_float(x, **keys):
    return x if x.dtype is torch.float32 else x * 1.0


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
    return _reshape(x, [*x.shape[:dim], *sizes, *x.shape[dim + 1:]])


@_layer("Unflatten")
def _unflatten_layer(layer, x):
    return _unflattened(x, layer.dim, list(layer.unflattened_size))


@_function("view_as", "reshape_as")
def _shaped_as(x, other):
    return _reshape(x, list(other.shape))


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
        return _copies(_reshape(x, own), times)
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


@_layer("ReflectionPad1d", "ReflectionPad2d", "ReplicationPad1d", "ReplicationPad2d")
def _padded_by_values(layer, x):
    return F.pad(x, list(layer.padding), "reflect" if "Reflection" in type(layer).__name__ else "replicate")


@_function("pixel_shuffle")
def _pixels(x, upscale_factor):
    n, c, h, w = x.shape
    r = upscale_factor
    x = torch.permute(_reshape(x, [n, c // (r * r), r, r, h, w]), [0, 1, 4, 2, 5, 3])
    return _reshape(x, [n, c // (r * r), h * r, w * r])


@_layer("PixelShuffle")
def _pixel_layer(layer, x):
    return _pixels(x, layer.upscale_factor)


# Arithmetic.

@_function("where")
def _where(condition, input, other):
    like = next((v for v in (input, other) if not _number(v)), None)
    dtype = torch.float32 if like is None else like.dtype
    a, b = (torch.tensor(v, dtype=dtype) if _number(v) else v for v in (input, other))
    return torch.where(condition, a, b)


@_function("masked_fill", "masked_fill_")
def _masked(x, mask, value):
    return torch.where(mask, torch.tensor(value, dtype=x.dtype) if _number(value) else value, x)


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
    off = x - torch.mean(x, dims, True)
    taken = int(unbiased) if correction is None else correction
    return torch.mean(off * off, dims, keepdim) * (count / (count - taken))


@_function("std")
def _deviation(x, *args, **keys):
    return torch.sqrt(_variance(x, *args, **keys))


@_function("norm")
def _norm(x, p=2, dim=None, keepdim=False):
    if p not in (2, 2.0, "fro", None) or dim is None:
        raise Unsupported
    return torch.sqrt(torch.sum(x * x, dim, keepdim))


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
        return _reshape(x, [size[c] for c in batch] + [math.prod(size[c] for c in group) for group in groups])

    y = torch.matmul(arranged(operands[0], first, rows, summed), arranged(operands[1], second, summed, columns))
    letters = batch + rows + columns
    return torch.permute(_reshape(y, [size[c] for c in letters]), [letters.index(c) for c in out])


@_function("interpolate", "upsample")
def _resized(input, size=None, scale_factor=None, mode="nearest", align_corners=None, **keys):
    return input.through(torch.nn.Upsample(size, scale_factor, mode, align_corners))


@_function("log1p")
def _log1p(x):
    return torch.log(1.0 + x)


@_function("expm1")
def _expm1(x):
    return torch.exp(x) - 1.0


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


@_function("layer_norm")
def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    y = F.layer_norm(input, tuple(normalized_shape), eps=eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


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
    return input * _reshape(scale, along) + _reshape(shift, along)


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


# Attention.

@_function("scaled_dot_product_attention")
def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        raise Unsupported
    if not dropout_p:
        keys = {"is_causal": is_causal, **({} if scale is None else {"scale": scale})}
        masks = [] if attn_mask is None else [_additive(attn_mask, allowed=True)]
        return query.called(scaled_dot_product_attention, key, value, *masks, **keys)
    scores = torch.matmul(query, torch.transpose(key, -2, -1)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        rows, keys = query.shape[-2], key.shape[-2]
        scores = scores + torch.full((rows, keys), -math.inf).triu(1)
    if attn_mask is not None:
        scores = scores + _additive(attn_mask, allowed=True)
    weights = torch.softmax(scores, -1)
    return torch.matmul(F.dropout(weights, dropout_p), value)


def _additive(mask, allowed):
    """0 where a key may be seen, minus infinity elsewhere; a mask of numbers is added as it is."""
    if mask.dtype is not torch.bool:
        return mask
    seen, hidden = torch.tensor(0.0), torch.tensor(-math.inf)
    return torch.where(mask, seen, hidden) if allowed else torch.where(mask, hidden, seen)


def _rounded(layer, x, operand):
    """As the quantised layer rounds this operand, by a layer of its own."""
    quantizer = getattr(layer, "quantizers", {}).get(operand)
    if quantizer is None:
        return x
    from mase.torch_layers import quantized_class

    config = {f"data_in_{key}": value for key, value in quantizer.config.items()}
    return x.through(quantized_class("identity", quantizer.name)(config=config))


@_layer("MultiheadAttention")
def _heads(layer, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True,
           is_causal=False):
    plain = layer.in_proj_weight is not None and layer.bias_k is None and not layer.add_zero_attn and average_attn_weights
    if plain and attn_mask is None and key_padding_mask is None and not layer.dropout:
        return layer.call(query, key, value, need_weights=need_weights)
    if layer.bias_k is not None or layer.add_zero_attn:
        raise Unsupported
    width, heads = layer.embed_dim, layer.num_heads
    query, key, value = (_rounded(layer, x, "data_in") for x in (query, key, value))
    if not layer.batch_first:
        query, key, value = (torch.transpose(x, 0, 1) for x in (query, key, value))
    joint = None if layer.in_proj_bias is None else _rounded(layer, layer.in_proj_bias, "in_proj_bias")
    biases = [None] * 3 if joint is None else [joint[i * width:(i + 1) * width] for i in range(3)]
    if layer.in_proj_weight is None:
        weights = [layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight]
    else:
        whole = _rounded(layer, layer.in_proj_weight, "in_proj_weight")
        weights = [whole[i * width:(i + 1) * width] for i in range(3)]
    parts = []
    for x, weight, bias in zip((query, key, value), weights, biases):
        n, length = x.shape[0], x.shape[1]
        projected = F.linear(x, weight) if bias is None else F.linear(x, weight, bias)
        projected = torch.permute(_reshape(projected, [n, length, heads, width // heads]), [0, 2, 1, 3])
        parts.append(_rounded(layer, projected, "projected"))
    q, k, v = parts
    masks = []
    if attn_mask is not None:
        if len(attn_mask.shape) == 3:
            attn_mask = _reshape(attn_mask, [-1, heads, *attn_mask.shape[1:]])
        masks.append(_additive(attn_mask, allowed=False))
    if getattr(layer, "is_causal", False):
        masks.append(torch.full((q.shape[2], k.shape[2]), -math.inf).triu(1))
    if key_padding_mask is not None:
        masks.append(torch.unsqueeze(torch.unsqueeze(_additive(key_padding_mask, allowed=False), 1), 1))
    seen = None
    if need_weights or layer.dropout:
        scores = torch.matmul(q, torch.transpose(k, -2, -1)) * (1 / math.sqrt(width // heads))
        seen = torch.softmax(sum(masks, scores), -1)
        mixed = torch.matmul(F.dropout(seen, layer.dropout) if layer.dropout else seen, v)
    else:
        mixed = q.called(scaled_dot_product_attention, k, v, *([sum(masks[1:], masks[0])] if masks else []))
    joined = torch.permute(mixed, [0, 2, 1, 3])
    y = _reshape(joined, [joined.shape[0], joined.shape[1], width])
    y = _rounded(layer, y if layer.batch_first else torch.transpose(y, 0, 1), "attended")
    weight, bias = _rounded(layer, layer.out_proj.weight, "out_proj.weight"), layer.out_proj.bias
    y = F.linear(y, weight) if bias is None else F.linear(y, weight, _rounded(layer, bias, "out_proj.bias"))
    return _rounded(layer, y, "data_out"), (torch.mean(seen, 1) if average_attn_weights else seen) if need_weights else None
