# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from chop._layout import absent_or_missing
from chop.ir.graph.mase_graph import MaseGraph
from chop.ir.graph.mase_metadata import MaseMetadata

MaseGraphMetadata = MaseMetadata
__all__ = ["MaseGraph", "MaseGraphMetadata", "MaseMetadata", "MaseTracer", "trace_torch_module"]


def __getattr__(name: str) -> Any:
    if name in ("MaseTracer", "trace_torch_module"):
        from chop.ir.graph import mase_graph

        return getattr(mase_graph, name)
    return absent_or_missing("chop.ir", name, __all__)
