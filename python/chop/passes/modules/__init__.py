# SPDX-License-Identifier: Apache-2.0
"""Passes over modules instead of graphs: functions of (module, pass_args) that return (module, what they found)."""
from __future__ import annotations

import importlib
from typing import Any, List

from chop._layout import absent_or_missing

_HOME = {"report_trainable_parameters_analysis_pass": "reports", "calculate_avg_bits_module_analysis_pass": "reports",
         "quantize_module_transform_pass": "quantize", "attention_swap_transform_pass": "attention", "attention_transform_pass": "attention",
         "run_gptq": "low_bits", "rotate_llama": "low_bits", "rotate_qwen3": "low_bits", "fuse_rms_norms": "low_bits",
         "replace_rms_norms": "low_bits"}
_SHORT = {"report_trainable_parameters": "report_trainable_parameters_analysis_pass", "calculate_avg_bits": "calculate_avg_bits_module_analysis_pass",
          "quantize": "quantize_module_transform_pass", "attention_swap": "attention_swap_transform_pass"}
__all__ = sorted([*_HOME, "ANALYSIS_PASSES", "PASSES", "TRANSFORM_PASSES"])


def __getattr__(name: str) -> Any:
    if name == "PASSES":
        return {short: __getattr__(full) for short, full in _SHORT.items()}
    if name in ("ANALYSIS_PASSES", "TRANSFORM_PASSES"):
        return [full for full in _SHORT.values() if full.endswith(name.partition("_")[0].lower() + "_pass")]
    if name not in _HOME:
        return absent_or_missing("chop.passes.module", name, __all__)
    return getattr(importlib.import_module(f"chop.passes.modules.{_HOME[name]}"), name)


def __dir__() -> List[str]:
    return __all__
