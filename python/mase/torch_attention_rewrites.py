# SPDX-License-Identifier: Apache-2.0
"""Rewrites of attention: what the library's own layer and function do not take (masks of a layer, dropout of the
shares, projections of other widths) in its parts."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from mase.torch_rewrites import Unsupported, reshape, rewrites, rewrites_layers
from mase.torch_stand_ins import scaled_dot_product_attention


@rewrites("scaled_dot_product_attention")
def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa and dropout_p:
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


@rewrites_layers("MultiheadAttention")
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
        projected = torch.permute(reshape(projected, [n, length, heads, width // heads]), [0, 2, 1, 3])
        parts.append(_rounded(layer, projected, "projected"))
    q, k, v = parts
    masks = []
    if attn_mask is not None:
        if len(attn_mask.shape) == 3:
            attn_mask = reshape(attn_mask, [-1, heads, *attn_mask.shape[1:]])
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
    y = reshape(joined, [joined.shape[0], joined.shape[1], width])
    y = _rounded(layer, y if layer.batch_first else torch.transpose(y, 0, 1), "attended")
    weight, bias = _rounded(layer, layer.out_proj.weight, "out_proj.weight"), layer.out_proj.bias
    y = F.linear(y, weight) if bias is None else F.linear(y, weight, _rounded(layer, bias, "out_proj.bias"))
    return _rounded(layer, y, "data_out"), (torch.mean(seen, 1) if average_attn_weights else seen) if need_weights else None
