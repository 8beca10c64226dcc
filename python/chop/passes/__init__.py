# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any, List

from chop.passes import graph, modules

__all__ = sorted({*graph.__all__, *(name for name in modules.__all__ if name.endswith("_pass"))})


def __getattr__(name: str) -> Any:
    return getattr(modules if name in modules.__all__ and name not in graph.__all__ else graph, name)


def __dir__() -> List[str]:
    return __all__
