# SPDX-License-Identifier: Apache-2.0
"""Layers and functions of the library that torch, or an older one, does not have. They compute what the
library's operations of these names compute. And what torch lacks around layers."""
from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any, Iterable, Iterator, Optional

import torch


class StandIn:
    """A layer that torch.fx does not look into."""


class RMSNorm(StandIn, torch.nn.Module):
    """x / sqrt(mean(x^2) + eps), times a weight."""

    def __init__(self, normalized_shape: Any, eps: Optional[float] = None, elementwise_affine: bool = True):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = torch.nn.Parameter(torch.ones(self.normalized_shape)) if elementwise_affine else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        dims = list(range(-len(self.normalized_shape), 0))
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        y = x * torch.rsqrt(torch.mean(x * x, dims, keepdim=True) + eps)
        return y if self.weight is None else y * self.weight

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class PositionEmbedding(StandIn, torch.nn.Module):
    """A learned row for each position, added."""

    def __init__(self, num_embeddings: int = 512, embedding_dim: int = 0):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = torch.nn.Parameter(torch.randn(num_embeddings, embedding_dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.weight[:x.shape[1]]

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class MultiheadAttention(StandIn, torch.nn.MultiheadAttention):
    """torch's, which may be told once for all that a position sees itself and earlier ones only."""

    def __init__(self, *args: Any, is_causal: bool = False, need_weights: bool = True, **keys: Any):
        super().__init__(*args, **keys)
        self.is_causal = is_causal

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **keys: Any) -> Any:  # type: ignore[override]
        if self.is_causal:
            rows, seen = (x.shape[1 if self.batch_first else 0] for x in (query, key))
            keys["attn_mask"] = torch.ones(rows, seen, dtype=torch.bool, device=query.device).triu(1)
        return super().forward(query, key, value, **keys)


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 attn_mask: Optional[torch.Tensor] = None, is_causal: bool = False,
                                 scale: Optional[float] = None) -> torch.Tensor:
    if key.shape[-3] != query.shape[-3]:  # heads that share keys
        key, value = (torch.repeat_interleave(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        scores = scores + torch.full(scores.shape[-2:], -math.inf).triu(1)
    if attn_mask is None:
        return torch.softmax(scores, -1) @ value
    scores = scores + attn_mask
    blind = torch.all(scores == -math.inf, -1, keepdim=True)  # a query that sees nothing gives zeros
    return torch.softmax(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0) @ value


def rotary_embedding(x: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    half = x.shape[-1] // 2
    angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), base ** (-torch.arange(half, dtype=torch.float64) / half))
    cosine, sine = torch.cos(angles).float(), torch.sin(angles).float()
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)


def opaque(*inputs: Any, operator: str, **facts: Any) -> Any:
    """Stands for an operation that the library lacks where a network is only looked at."""
    raise RuntimeError(f"{operator}: kept to be looked at only")


@contextmanager
def evaluating(modules: Iterable[torch.nn.Module]) -> Iterator[None]:
    """These modules (of `model.modules()`) in evaluation mode, and afterwards each in its own again."""
    trained = [module.__dict__ for module in modules if module.training]
    try:
        for own in trained:  # torch's __setattr__ would look for parameters and modules of this name
            own["training"] = False
        yield
    finally:
        for own in trained:
            own["training"] = True


for _function in (scaled_dot_product_attention, rotary_embedding, opaque):
    _function.mase_op = _function.__name__  # type: ignore[attr-defined]
