# SPDX-License-Identifier: Apache-2.0
"""Quantised layers by name: LinearInteger, Conv2dBlockFP, ReLUMinifloatIEEE, ..."""
from __future__ import annotations

from typing import Any, Dict

import chop.passes.graph.rules  # noqa: F401 - tells which formats are rounded otherwise
from mase.torch_layers import QuantizedFunction, QuantizedLayer, class_named, format_records, op_records, quantized_class

__all__ = ["QuantizedFunction", "QuantizedLayer", "quantized_module_map"]


class _ModuleMap(Dict[str, type]):
    """linear_integer -> LinearInteger, made when asked for."""

    def __missing__(self, key: str) -> type:
        for op in sorted(op_records(), key=len, reverse=True):
            if key.startswith(op + "_") and op_records()[op]["class_name"]:
                return self.setdefault(key, quantized_class(op, key[len(op) + 1:]))
        raise KeyError(key)


quantized_module_map = _ModuleMap()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if "_with_" in name:  # of a file
        return QuantizedFunction.named(name)
    return class_named(name)


def __dir__() -> list:
    return sorted(__all__ + [op["class_name"] + about["class_suffix"] for op in op_records().values() if op["class_name"] and op["operands"]
                             for about in format_records().values()])
