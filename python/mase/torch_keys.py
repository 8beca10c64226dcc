# SPDX-License-Identifier: Apache-2.0
"""Keys that MASE has for a whole layer, as keys of its operands, which formats here have."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, Tuple

from mase import _native


@lru_cache(maxsize=None)
def _operands(op: str) -> Tuple[str, ...]:
    return tuple(_native.ops()[op]["operands"])


@lru_cache(maxsize=None)
def _keys(format: str) -> Tuple[str, ...]:
    for name, record in _native.formats().items():
        if format == name or format in record["aliases"]:
            return tuple(option["name"] for option in record["options"])
    return ()


def for_operands(config: Dict[str, Any], op: str, format: str) -> Dict[str, Any]:
    """`floor`: every operand that is rounded is rounded down. `binary_training`: what it says of the weights; False leaves binary
    ones in float, as they are while others are trained. The rest stays as it is, and unknown keys stay unknown."""
    if "floor" not in config and "binary_training" not in config:
        return config
    config = dict(config)
    rounded = [operand for operand in _operands(op) if any(key.startswith(f"{operand}_") for key in config)]
    if "floor" in config and "floor" in _keys(format):
        if config.pop("floor"):
            config.update({f"{operand}_floor": True for operand in rounded if f"{operand}_rounding" not in config})
    if "binary_training" in config:
        training = config["binary_training"]
        if "binary_training" in _keys(format):
            del config["binary_training"]
            config.update({f"{operand}_binary_training": training for operand in rounded if operand == "weight"})
        elif format == "binary":
            del config["binary_training"]
            if not training:
                config = {key: value for key, value in config.items() if not key.startswith("weight_")}
    return config
