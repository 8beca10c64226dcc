# SPDX-License-Identifier: Apache-2.0
"""Passes over modules instead of graphs."""
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
