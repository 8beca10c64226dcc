# SPDX-License-Identifier: Apache-2.0
"""Quantizers as functions: integer_quantizer(x, width, frac_width), ... on tensors and arrays."""
from __future__ import annotations

from typing import Any, Callable

from chop.passes.graph.rules import tell_rule
from mase import _native
from mase.formats import Format


def integer_quantizer(x: Any, width: int, frac_width: Any = None, is_signed: bool = True) -> Any:
    """Fixed point; without a frac_width half of the bits stand behind the point."""
    if isinstance(x, int):
        return x
    return Format("integer", {"width": width, "frac_width": width // 2 if frac_width is None else frac_width,
                              "is_signed": is_signed})(x)


def integer_floor_quantizer(x: Any, width: int, frac_width: Any = None, is_signed: bool = True) -> Any:
    return Format("integer", {"width": width, "frac_width": width // 2 if frac_width is None else frac_width,
                              "is_signed": is_signed, "rounding": "floor"})(x)


def binary_quantizer(x: Any, stochastic: bool = False, bipolar: bool = False) -> Any:
    return Format("binary", {"stochastic": stochastic, "bipolar": bipolar})(x)


def _function(format: str) -> Callable:
    keys = [option["name"] for option in _native.formats()[format]["options"]]

    def quantizer(x: Any, *values: Any, **config: Any) -> Any:
        config.update(zip(keys, values))
        config = tell_rule(format, config)
        return Format(format, {key: value for key, value in config.items() if value is not None})(x)

    quantizer.__name__ = quantizer.__qualname__ = f"{format}_quantizer"
    quantizer.__doc__ = f"{_native.formats()[format]['summary']}. Keys: {', '.join(keys)}"
    return quantizer


def __dir__() -> list:
    return sorted(["quantizer_map", "residual_sign_quantizer", *(f"{format}_quantizer" for format in _native.formats())])


def __getattr__(name: str) -> Any:
    if name == "quantizer_map":
        return {format: _function(format) for format in _native.formats()}
    if name == "residual_sign_quantizer":
        return _function("binary_residual")
    format = name[: -len("_quantizer")] if name.endswith("_quantizer") else ""
    if format not in _native.formats():
        from chop._layout import absent_or_missing

        return absent_or_missing("chop.nn.quantizers", name, __dir__())
    return _function(format)
