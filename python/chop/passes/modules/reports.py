# SPDX-License-Identifier: Apache-2.0
"""What a module has: trained parameters, and bits of its weights."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from mase import _native


def report_trainable_parameters_analysis_pass(module: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """A table of submodules with their trainable parameters, and the total, each parameter counted once."""
    rows = [[name or "(all)", f"{sum(p.numel() for p in part.parameters() if p.requires_grad):,}"]
            for name, part in module.named_modules() if name]
    total = sum(p.numel() for p in module.parameters() if p.requires_grad)
    print(_native.table(["Submodule", "Trainable Parameters"], rows, "grid"))
    print(f"\nTotal Trainable Parameters: {total}")
    return module, {"total": total}


def calculate_avg_bits_module_analysis_pass(module: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """average_bitwidth: bits that a weight of linear layers and convolutions is stored in, shared scales and exponents included; those
    without a number format count with the bits of their type."""
    from mase.torch_layers import op_of_class

    bits = count = 0.0
    for part in module.modules():
        kind: Any = type(part)
        if op_of_class(kind) not in ("linear", "conv1d", "conv2d"):
            continue
        weight, quantizer = part.weight, getattr(part, "w_quantizer", None)
        each = quantizer.bits(list(weight.shape)) if quantizer is not None else 8.0 * weight.element_size()
        bits, count = bits + each * weight.numel(), count + weight.numel()
    if not count:
        from mase._native import Error

        raise Error("calculate_avg_bits_module: there is no linear layer and no convolution")
    return module, {"average_bitwidth": bits / count}
