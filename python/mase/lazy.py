# SPDX-License-Identifier: Apache-2.0
"""Modules that are imported when they are first used: NumPy takes longer to import than all of ours."""
from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    def __init__(self, name: str):
        self.__dict__["_name"] = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        self.__dict__[attribute] = value
        return value


numpy = LazyModule("numpy")
