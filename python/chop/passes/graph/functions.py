# SPDX-License-Identifier: Apache-2.0
"""Functions whose operands are rounded, by name: add_integer(x, y, config), matmul_block_fp, relu_log, ... for every operation with a
function and every number format."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

import chop.passes.graph.rules  # noqa: F401 - tells which formats are rounded otherwise
from chop._layout import absent_or_missing
from chop.passes.graph.quantization import _for_op
from mase._native import Error
from mase.torch_export import _function as _torch_function
from mase.torch_layers import QuantizedFunction, format_records, op_records

_OTHER = {"mult": "mul", "bmm": "matmul"}


def _parts(name: str) -> Optional[Tuple[str, str]]:
    """Operation and format of a name; None: it is none of ours."""
    formats = {alias: own for own, record in format_records().items() for alias in [own, *record["aliases"]]}
    found = None
    for format in formats:
        if name.endswith("_" + format):
            op = _OTHER.get(name[: -len(format) - 1], name[: -len(format) - 1])
            if op in op_records() and op_records()[op]["operands"] and op_records()[op]["function"]:
                found = (op, formats[format]) if found is None or len(format) > len(found[1]) else found
    return found


def _made(name: str, op: str, format: str) -> Callable:
    def function(*args: Any, config: Optional[Dict[str, Any]] = None, **keys: Any) -> Any:
        if args and isinstance(args[-1], dict) and config is None:
            *rest, config = args
            args = tuple(rest)
        if config is None:
            raise Error(f"{name}: config is missing; give the operands' number formats")
        own = {key: value for key, value in config.items() if key != "name"}
        return QuantizedFunction(_torch_function(op), op, format, _for_op({**own, "name": format}, op))(*args, **keys)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{op} with operands in {format}: {name}(..., config={{'data_in_width': ...}})."
    return function


class _FunctionMap(Dict[str, Callable]):
    """add_integer -> the function, made when asked for."""

    def __missing__(self, key: str) -> Callable:
        parts = _parts(key)
        if parts is None:
            raise KeyError(key)
        return self.setdefault(key, _made(key, *parts))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and _parts(key) is not None

    def keys(self) -> Any:
        return [name for name in __dir__() if name != "quantized_func_map"]

    def __iter__(self) -> Any:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())


quantized_func_map: Dict[str, Callable] = _FunctionMap()


def __dir__() -> list:
    return sorted(["quantized_func_map", *(f"{op}_{format}" for op, record in op_records().items() if record["operands"] and record["function"]
                                           for format in format_records())])


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if _parts(name) is not None:
        return quantized_func_map[name]
    return absent_or_missing("chop.nn.quantized.functional", name, __dir__())
