# SPDX-License-Identifier: Apache-2.0
"""Rounding torch tensors with the library's kernels, with gradients: straight through, or what the
format says. Kernels read and write the tensors' own memory."""
from __future__ import annotations

from typing import Any, Optional

import torch

from mase._native import Error

_tracing = torch._C._get_tracing_state  # None but under torch.jit.trace


def _plain(x: torch.Tensor) -> torch.Tensor:
    """Contiguous float32 values in host memory: the tensor itself where it is so already."""
    x = x.detach()
    if x.dtype is not torch.float32 or x.device.type != "cpu":
        x = x.to(device="cpu", dtype=torch.float32)
    return x.contiguous()


def _composed(x: torch.Tensor, quantizer: Any) -> torch.Tensor:
    """In torch's own operations, to the same bits: torch.jit does not see what the library's kernels do, and would
    keep the values of one input as constants."""
    if " fixed " not in quantizer.type_text or not quantizer.type_text.endswith("nearest_even, saturate"):
        raise Error(f"{quantizer.format}: torch.jit cannot follow how its values are rounded; "
                    "mase.from_torch(module, example).save(FILE) keeps such a network")
    step = quantizer.smallest_positive
    return torch.clamp(torch.round(x / step), quantizer.lowest / step, quantizer.largest / step) * step


def rounded(x: torch.Tensor, quantizer: Any) -> torch.Tensor:
    """Without gradient."""
    if _tracing() is not None:
        return _composed(x, quantizer)
    if x.device.type == "meta":  # shapes only
        return torch.empty_like(x)
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
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, native: Any, rows: int) -> Any:  # type: ignore[override]
        shape = weight.shape
        out, width = shape
        empty = x.new_empty  # of its type, whatever torch's default is
        rounded = empty((rows + out) * width)  # x, and after it the weight
        x_shape = x.shape
        y = empty((rows, out)) if len(x_shape) == 2 else empty((*x_shape[:-1], out))
        native.forward(rows, x.data_ptr(), weight.data_ptr(), 0 if bias is None else bias.data_ptr(), rounded.data_ptr(),
                       y.data_ptr())
        ctx.own = native, rows, x_shape, shape
        ctx.save_for_backward(rounded)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        needs_x, needs_w, needs_b, _, _ = ctx.needs_input_grad
        native, rows, x_shape, shape = ctx.own
        rounded, grad = ctx.saved_tensors[0], grad.contiguous()
        empty = rounded.new_empty
        gx = empty(x_shape) if needs_x else None
        gw = empty(shape) if needs_w else None
        gb = empty(shape[0]) if needs_b else None
        native.backward(rows, grad.data_ptr(), rounded.data_ptr(), gx.data_ptr() if gx is not None else 0,
                        gw.data_ptr() if gw is not None else 0, gb.data_ptr() if gb is not None else 0)
        return gx, gw, gb, None, None


def linear(x: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], native: Any) -> Optional[torch.Tensor]:
    """y = q(x) q(W)^T + q(b) by a native layer; None if it cannot read these tensors: it wants contiguous
    float32 in host memory, of the right width."""
    float32 = torch.float32
    if not (x.dtype is float32 and weight.dtype is float32 and x.is_contiguous() and weight.is_contiguous()
            and x.is_cpu and weight.is_cpu) or _tracing() is not None:  # type: ignore[attr-defined] # torch 1.13 does not declare it
        return None
    shape = x.shape
    dimensions = len(shape)
    if dimensions == 0 or shape[-1] != weight.shape[1]:
        return None
    if dimensions == 2:
        return _Linear.apply(x, weight, bias, native, shape[0])
    if dimensions == 1:
        return _Linear.apply(x.view(1, -1), weight, bias, native, 1).view(-1)
    return _Linear.apply(x, weight, bias, native, x.numel() // shape[-1] if shape[-1] else 0)
