# SPDX-License-Identifier: Apache-2.0
"""torch.nn.MultiheadAttention with rounded operands: what it is given (data_in), the weights and biases of both
projections, query, key and value as the heads take them (projected), and what the last projection is given
(attended). torch's own forward is one function without a place for the last two."""
from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import torch
import torch.nn.functional as F

from mase import _native, torch_stand_ins


def added(mask: torch.Tensor) -> torch.Tensor:
    """What is added to scores: a mask of bools hides where it is true."""
    if mask.dtype is not torch.bool:
        return mask
    return torch.zeros(mask.shape, device=mask.device).masked_fill(mask, -math.inf)


class RoundedAttention(torch_stand_ins.MultiheadAttention):
    """The forward of the quantised classes; `rounded` is theirs."""

    def rounded(self, x: torch.Tensor, operand: str) -> torch.Tensor:
        raise NotImplementedError

    def _heads(self, x: torch.Tensor, part: int) -> torch.Tensor:
        rows = slice(part * self.embed_dim, (part + 1) * self.embed_dim)
        weight = self.rounded(self.in_proj_weight, "in_proj_weight")[rows]
        bias = None if self.in_proj_bias is None else self.rounded(self.in_proj_bias, "in_proj_bias")[rows]
        y = F.linear(self.rounded(x, "data_in"), weight, bias)
        y = y if self.batch_first else y.transpose(0, 1)
        y = y.reshape(y.shape[0], y.shape[1], self.num_heads, self.embed_dim // self.num_heads).transpose(1, 2)
        return self.rounded(y, "projected")

    def attended(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                 key_padding_mask: Optional[torch.Tensor] = None, need_weights: bool = True,
                 attn_mask: Optional[torch.Tensor] = None, average_attn_weights: bool = True,
                 is_causal: bool = False) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
        if self.in_proj_weight is None or self.bias_k is not None or self.add_zero_attn:
            raise _native.Error(f"{type(self).__name__}: kdim, vdim, add_bias_kv and add_zero_attn cannot be quantised; "
                                "write the projections as linear layers")
        if query.dim() == 2:  # one sample
            batch = 0 if self.batch_first else 1
            padding = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
            y, shares = self.attended(query.unsqueeze(batch), key.unsqueeze(batch), value.unsqueeze(batch), padding,
                                      need_weights, attn_mask, average_attn_weights)
            return y.squeeze(batch), None if shares is None else shares.squeeze(0)
        q, k, v = (self._heads(x, part) for part, x in enumerate((query, key, value)))
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]))
        masks = []
        if self.is_causal:
            masks.append(torch.full(scores.shape[-2:], -math.inf, device=scores.device).triu(1))
        if attn_mask is not None:
            own = added(attn_mask)
            masks.append(own if own.dim() == 2 else own.reshape(-1, self.num_heads, *own.shape[1:]))
        if key_padding_mask is not None:
            masks.append(added(key_padding_mask)[:, None, None, :])
        for mask in masks:
            scores = scores + mask
        if masks:  # a query that sees nothing gives zeros
            blind = torch.all(scores == -math.inf, -1, keepdim=True)
            shares = torch.softmax(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
        else:
            shares = torch.softmax(scores, -1)
        mixed = (F.dropout(shares, self.dropout, self.training) @ v).transpose(1, 2).flatten(2)
        mixed = mixed if self.batch_first else mixed.transpose(0, 1)
        bias = None if self.out_proj.bias is None else self.rounded(self.out_proj.bias, "out_proj.bias")
        y = F.linear(self.rounded(mixed, "attended"), self.rounded(self.out_proj.weight, "out_proj.weight"), bias)
        if not need_weights:
            return self.rounded(y, "data_out"), None
        return self.rounded(y, "data_out"), shares.mean(1) if average_attn_weights else shares
