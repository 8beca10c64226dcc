# SPDX-License-Identifier: Apache-2.0
"""MASE's package under its own names, on the native core: scripts and notebooks written for it run here.

Everything is imported when it is first asked for. What a name stands for, and where it differs from
the original, stands in docs/python.md.
"""
from __future__ import annotations

import importlib
import sys
from typing import Any

from chop._layout import LayoutFinder, MachopFinder, absent_or_missing

if not any(isinstance(finder, LayoutFinder) for finder in sys.meta_path):
    sys.meta_path.append(LayoutFinder())
    sys.meta_path.insert(0, MachopFinder())

_PLACES = {"MaseGraph": "chop.ir.graph.mase_graph", "MaseMetadata": "chop.ir.graph.mase_metadata",
           "MaseDataModule": "chop.dataset", "get_dataset_info": "chop.dataset", "get_model": "chop.models",
           "get_model_info": "chop.models", "register_model": "chop.models", "register_pass": "chop.passes.graph",
           **{name: "chop.pipelines" for name in ("AutoPipeline", "AutoPipelineForEmitVerilog",
                                                  "AutoPipelineForGraphCompression", "CompressionPipeline")}}
_PARTS = ("actions", "dataset", "distributed", "ir", "models", "nn", "passes", "pipelines", "tools")


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in _PARTS:
        return importlib.import_module(f"chop.{name}")
    return absent_or_missing("chop", name, [*_PLACES, *_PARTS])
