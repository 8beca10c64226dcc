# SPDX-License-Identifier: Apache-2.0
"""Formats whose numbers are rounded otherwise than MASE rounds them: said once for each, with the key that gives MASE's rule.
Widths that only MASE's rule has numbers for get that rule, and it is said."""
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


def _only_by_reference(format: str, config: Dict[str, Any]) -> str:
    """Why the format has such numbers by MASE's rule alone; empty: it is not so. `config` is a quantizer's own."""
    try:
        _native.make_quantizer(format, config, format)
    except _native.Error as error:
        try:
            _native.make_quantizer(format, {**config, "rounding": "reference"}, format)
        except _native.Error:
            return ""
        return str(error).partition(";")[0]
    return ""


def _tell(once: str, message: str) -> None:
    if once not in _told:
        _told.add(once)
        get_logger("chop").warning(message)


def tell_rule(format: str, config: Dict[str, Any]) -> Dict[str, Any]:
    """`config` is a layer's, or a quantizer's own; what is to be taken in its place comes back."""
    format = format_name(format)
    if format not in differing_formats():
        return config
    keys = {option["name"] for option in _native.formats()[format]["options"]}
    rounded = {key[: -len("width")] for key in config if key == "width" or (
        key.endswith("_width") and not key.endswith(("exponent_width", "exponent_bias_width", "frac_width")))}
    plain = sorted(name for name in rounded if config.get(f"{name}rounding") != "reference")
    for name in plain:
        own = {key[len(name):]: value for key, value in config.items()
               if key.startswith(name) and key[len(name):] in keys and value is not None}
        why = "rounding" not in own and _only_by_reference(format, own)
        if why:
            config = {**config, f"{name}rounding": "reference"}
            _tell(f"{format} {own}", f"{why}; MASE's rule has numbers for that, which are taken ({name}rounding = \"reference\")")
    plain = [name for name in plain if config.get(f"{name}rounding") != "reference"]
    if plain:
        wanted = ", ".join(f"{name}rounding" for name in plain)
        _tell(format, f"{format}: numbers are rounded by another rule than MASE's; {wanted} = \"reference\" gives MASE's "
              "(docs/python.md)")
    return config


watch_formats(tell_rule)
