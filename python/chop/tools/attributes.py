# SPDX-License-Identifier: Apache-2.0
"""Attributes of attributes, by dotted names."""
from __future__ import annotations

from typing import Any


def deepgetattr(obj: Any, attr_str: str, default: Any = None) -> Any:
    for part in attr_str.split("."):
        obj = getattr(obj, part, default)
    return obj


def deepsetattr(obj: Any, attr_str: str, value: Any) -> None:
    parent, _, name = attr_str.rpartition(".")
    for part in parent.split(".") if parent else []:
        obj = getattr(obj, part)
    setattr(obj, name, value)
