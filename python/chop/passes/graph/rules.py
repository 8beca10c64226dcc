# SPDX-License-Identifier: Apache-2.0
"""Formats whose numbers are rounded otherwise than MASE rounds them: said once for each, with the key that gives MASE's rule."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, Set

from chop.tools.logger import get_logger
from mase import _native
from mase.torch_layers import format_name, watch_formats

_told: Set[str] = set()


@lru_cache(maxsize=None)
def differing_formats() -> Set[str]:
    """Those that have rounding = "reference"."""
    return {name for name, record in _native.formats().items() for option in record["options"]
            if option["name"] == "rounding" and "reference" in (option.get("choices") or [])}


def tell_rule(format: str, config: Dict[str, Any]) -> None:
    """`config` is a layer's, or a quantizer's own."""
    format = format_name(format)
    rounded = {key[: -len("_width")] if key != "width" else "" for key in config if key == "width" or (
        key.endswith("_width") and not key.endswith(("exponent_width", "exponent_bias_width", "frac_width")))}
    plain = [name for name in rounded if config.get(f"{name}_rounding" if name else "rounding") != "reference"]
    if format in _told or format not in differing_formats() or not plain:
        return
    _told.add(format)
    keys = ", ".join(f"{name}_rounding" if name else "rounding" for name in sorted(plain))
    get_logger("chop").warning(f"{format}: numbers are rounded by another rule than MASE's; {keys} = \"reference\" gives MASE's "
                               "(docs/python.md)")


watch_formats(tell_rule)
