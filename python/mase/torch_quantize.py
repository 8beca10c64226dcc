# SPDX-License-Identifier: Apache-2.0
"""Rounding torch tensors with the library's kernels, with gradients: straight through, or what the
format says. Kernels read and write the tensors' own memory."""
from __future__ import annotations

from typing import Any, Optional

import torch


def _plain(x: torch.Tensor) -> torch.Tensor:
    """Contiguous float32 values in host memory: the tensor itself where it is so already."""
    x = x.detach()
    if x.dtype is not torch.float32 or x.device.type != "cpu":
        x = x.to(device="cpu", dtype=torch.float32)
    return x.contiguous()


def rounded(x: torch.Tensor, quantizer: Any) -> torch.Tensor:
    """Without gradient."""
    source = _plain(x)
    out = torch.empty_like(source)
    quantizer.quantize_memory(source.data_ptr(), out.data_ptr(), list(source.shape))
    if x.dtype is not torch.float32 or x.device.type != "cpu":
        out = out.to(device=x.device, dtype=x.dtype)
    return out


def gradient(x: torch.Tensor, grad: torch.Tensor, quantizer: Any) -> torch.Tensor:
    source, given = _plain(x), _plain(grad)
    out = torch.empty_like(source)
    quantizer.gradient_memory(source.data_ptr(), given.data_ptr(), out.data_ptr(), list(source.shape))
    return out.to(device=grad.device, dtype=grad.dtype)


class _Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, quantizer: Any) -> torch.Tensor:  # type: ignore[override]
        ctx.quantizer = quantizer
        if not quantizer.straight_through:
            ctx.save_for_backward(x)
        return rounded(x, quantizer)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        if ctx.quantizer.straight_through:
            return grad, None
        return gradient(ctx.saved_tensors[0], grad, ctx.quantizer), None


def quantize(x: torch.Tensor, quantizer: Any) -> torch.Tensor:
    return _Quantize.apply(x, quantizer)


class _Linear(torch.autograd.Function):
    """x, W and b rounded and multiplied in one step of the tape: most of a small layer's time would
    go into the tape otherwise. The backward pass multiplies by the rounded operands."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, qx: Any, qw: Any, qb: Any) -> Any:  # type: ignore[override]
        xq, wq = rounded(x, qx), rounded(weight, qw)
        bq: Optional[torch.Tensor] = None
        if bias is not None:
            bq = bias if qb is None else rounded(bias, qb)
        ctx.quantizers = (qx, qw, qb)
        straight = qx.straight_through and qw.straight_through and (qb is None or qb.straight_through)
        ctx.save_for_backward(xq, wq, *(() if straight else (x, weight, bias)))
        return torch.nn.functional.linear(xq, wq, bq)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        xq, wq, *originals = ctx.saved_tensors
        rows = grad.reshape(-1, grad.shape[-1])
        needs_x, needs_w, needs_b = ctx.needs_input_grad[:3]
        gx = (rows @ wq).reshape(xq.shape) if needs_x else None
        gw = rows.t() @ xq.reshape(-1, xq.shape[-1]) if needs_w else None
        gb = rows.sum(0) if needs_b else None
        if originals:
            found = []
            for original, grad_in, quantizer in zip(originals, (gx, gw, gb), ctx.quantizers):
                plain = grad_in is None or quantizer is None or quantizer.straight_through
                found.append(grad_in if plain else gradient(original, grad_in, quantizer))
            gx, gw, gb = found
        return gx, gw, gb, None, None, None


def linear(x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], qx: Any, qw: Any, qb: Any) -> torch.Tensor:
    """y = q(x) q(W)^T + q(b) with native quantizers; `qb` may be None."""
    if x.dim() == 1:
        return _Linear.apply(x.view(1, -1), weight, bias, qx, qw, qb).view(-1)
    return _Linear.apply(x, weight, bias, qx, qw, qb)
