# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any, List

from chop.passes import graph

__all__ = [*graph.__all__, "report_trainable_parameters_analysis_pass"]


def __getattr__(name: str) -> Any:
    if name == "report_trainable_parameters_analysis_pass":
        from chop.passes.modules import report_trainable_parameters_analysis_pass

        return report_trainable_parameters_analysis_pass
    return getattr(graph, name)


def __dir__() -> List[str]:
    return __all__
