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
    """Rounded operands and their product in one native call, and so the gradient: most of a small layer's
    time would go into the tape and the calls otherwise."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, native: Any) -> Any:  # type: ignore[override]
        xq, wq = torch.empty_like(x), torch.empty_like(weight)
        out, width = weight.shape
        if x.dim() == 2:
            rows = x.shape[0]
            y = torch.empty(rows, out)
        else:
            rows = x.numel() // width if width else 0
            y = x.new_empty((*x.shape[:-1], out))
        native.forward(rows, x.data_ptr(), weight.data_ptr(), 0 if bias is None else bias.data_ptr(), xq.data_ptr(),
                       wq.data_ptr(), y.data_ptr())
        ctx.native, ctx.rows = native, rows
        ctx.save_for_backward(xq, wq)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        xq, wq = ctx.saved_tensors
        needs_x, needs_w, needs_b, _ = ctx.needs_input_grad
        grad = grad.contiguous()
        gx = torch.empty_like(xq) if needs_x else None
        gw = torch.empty_like(wq) if needs_w else None
        gb = grad.new_empty(wq.shape[0]) if needs_b else None
        ctx.native.backward(ctx.rows, grad.data_ptr(), xq.data_ptr(), wq.data_ptr(), 0 if gx is None else gx.data_ptr(),
                            0 if gw is None else gw.data_ptr(), 0 if gb is None else gb.data_ptr())
        return gx, gw, gb, None


def fits_native_linear(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """True for what the native layer reads: contiguous float32 in host memory, of the right width."""
    float32 = torch.float32
    return (x.dtype is float32 and weight.dtype is float32 and x.is_contiguous() and weight.is_contiguous()
            and x.is_cpu and weight.is_cpu and x.dim() > 0 and x.shape[-1] == weight.shape[1])


def linear(x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], native: Any) -> torch.Tensor:
    """y = q(x) q(W)^T + q(b) by a native layer, of tensors that fit it."""
    if x.dim() == 1:
        return _Linear.apply(x.view(1, -1), weight, bias, native).view(-1)
    return _Linear.apply(x, weight, bias, native)
