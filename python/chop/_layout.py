# SPDX-License-Identifier: Apache-2.0
"""The original's module paths. Its names live in deep trees and are imported from several places; here
they live where they belong, and this table says which of our modules each of the original's stands
for. Quantised layers and quantizers have a module for each operation and format, made on demand."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Dict, List, Optional, Sequence

_G = "chop.passes.graph"
_METADATA, _REPORTS = f"{_G}.metadata", f"{_G}.reports"

LAYOUT: Dict[str, List[str]] = {
    f"{_G}.analysis": [_G],
    f"{_G}.analysis.init_metadata": [_METADATA],
    f"{_G}.analysis.add_metadata": [_METADATA],
    f"{_G}.analysis.add_metadata.add_common_metadata": [_METADATA],
    f"{_G}.analysis.add_metadata.add_software_metadata": [_METADATA],
    f"{_G}.analysis.add_metadata.add_hardware_metadata": [_METADATA],
    f"{_G}.analysis.report": [_REPORTS],
    f"{_G}.analysis.report.report_graph": [_REPORTS],
    f"{_G}.analysis.report.report_node": [_REPORTS],
    f"{_G}.analysis.statistical_profiler": [f"{_G}.statistics"],
    f"{_G}.analysis.statistical_profiler.profile_statistics": [f"{_G}.statistics"],
    f"{_G}.analysis.quantization": [f"{_G}.costs"],
    f"{_G}.analysis.quantization.calculate_avg_bits": [f"{_G}.costs"],
    f"{_G}.analysis.flop_estimator": [f"{_G}.costs"],
    f"{_G}.analysis.flop_estimator.calculator": [f"{_G}.costs"],
    f"{_G}.analysis.flop_estimator.calculator.calc_modules": [f"{_G}.costs"],
    f"{_G}.analysis.pruning": [f"{_G}.pruning"],
    f"{_G}.analysis.pruning.calculate_sparsity": [f"{_G}.pruning"],
    f"{_G}.transforms": [_G],
    f"{_G}.transforms.quantize": [f"{_G}.quantization", f"{_G}.summary"],
    f"{_G}.transforms.quantize.quantize": [f"{_G}.quantization"],
    f"{_G}.transforms.quantize.summary": [f"{_G}.summary"],
    f"{_G}.transforms.quantize.quantized_modules": [f"{_G}.layers"],
    f"{_G}.transforms.quantize.quantized_funcs": [f"{_G}.layers"],
    f"{_G}.transforms.quantize.quantizers": [f"{_G}.quantizers"],
    f"{_G}.transforms.pruning": [f"{_G}.pruning"],
    f"{_G}.transforms.pruning.prune": [f"{_G}.pruning"],
    f"{_G}.transforms.utils": [f"{_G}.utils"],
    f"{_G}.transforms.utils.metadata_value_type_cast": [f"{_G}.utils"],
    f"{_G}.interface": [f"{_G}.interfaces"],
    f"{_G}.interface.save_and_load": [f"{_G}.interfaces"],
    "chop.passes.module": ["chop.passes.modules"],
    "chop.passes.module.analysis": ["chop.passes.modules"],
    "chop.passes.module.analysis.report": ["chop.passes.modules"],
    "chop.nn": [],
    "chop.nn.quantized": [f"{_G}.layers"],
    "chop.nn.quantized.modules": [f"{_G}.layers"],
    "chop.nn.quantizers": [f"{_G}.quantizers"],
    "chop.models.utils": ["chop.models"],
    "chop.models.physical": ["chop.models"],
    "chop.ir.common": ["chop.passes.graph.utils"],
    "chop.actions.train": ["chop.actions"],
    "chop.actions.test": ["chop.actions"],
    "chop.actions.search": ["chop.actions"],
    "chop.actions.search.search": ["chop.actions"],
    "chop.plt_wrapper": ["chop.actions"],
    "chop.tools.registry": ["chop.tools.utils"],
}
# Below these, every name is a module: one per operation or format.
_OPEN = (f"{_G}.transforms.quantize.quantized_modules.", f"{_G}.transforms.quantize.quantizers.",
         "chop.nn.quantized.modules.", "chop.nn.quantizers.")
# A module that is also a function: `from chop.actions import train` and `import chop.actions.train`.


def _sources(name: str) -> Optional[List[str]]:
    if name in LAYOUT:
        return LAYOUT[name]
    for prefix in _OPEN:
        if name.startswith(prefix):
            return LAYOUT[prefix[:-1]]
    return None


class _Alias(ModuleType):
    """Looks names up in our modules when they are asked for."""

    _sources: List[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for source in self._sources:
            module = importlib.import_module(source)
            if hasattr(module, name):
                return getattr(module, name)
        child = f"{self.__name__}.{name}"
        if _sources(child) is not None:
            return importlib.import_module(child)
        raise AttributeError(f"{self.__name__} has no '{name}'")

    def __dir__(self) -> Sequence[str]:
        return sorted({name for source in self._sources for name in dir(importlib.import_module(source))})


class LayoutFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last: a file of that name wins."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith("chop.") or _sources(name) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        module = _Alias(spec.name)
        module._sources = _sources(spec.name) or []
        return module

    def exec_module(self, module: ModuleType) -> None:
        # `import chop.actions.train` must not hide the function chop.actions.train.
        parent, _, name = module.__name__.rpartition(".")
        owner = sys.modules.get(parent)
        if owner is not None and name in getattr(owner, "__dict__", {}):
            module.__dict__.setdefault("_hides", owner.__dict__[name])
