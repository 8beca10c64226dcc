# SPDX-License-Identifier: Apache-2.0
"""Passes over graphs: functions of (graph, pass_args) that return (graph, what they found).

With torch they work on its modules; without it, on graphs of the library (numpy_passes)."""
from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Callable, Dict, Iterator, List, Optional

from chop._layout import absent_or_missing

_HOMES = {
    "adapters": ["fuse_lora_weights_transform_pass", "insert_lora_adapter_transform_pass"],
    "costs": ["calculate_avg_bits_mg_analysis_pass", "calculate_flops_bitops_pass", "calculate_flops_mg_analysis_pass"],
    "hardware": ["add_hardware_metadata_analysis_pass", "emit_bram_transform_pass", "emit_cocotb_transform_pass",
                 "emit_internal_rtl_transform_pass", "emit_verilog_top_transform_pass", "emit_vivado_project_transform_pass",
                 "report_parallelization_analysis_pass"],
    "interfaces": ["load_mase_graph_interface_pass", "load_node_meta_param_interface_pass", "save_mase_graph_interface_pass",
                   "save_node_meta_param_interface_pass"],
    "patching": ["conv_bn_fusion_transform_pass", "parse_node_config", "patch_metadata_transform_pass"],
    "verify": ["plot_graph_analysis_pass", "verify_common_metadata_analysis_pass", "verify_hardware_metadata_analysis_pass",
               "verify_metadata_analysis_pass", "verify_software_metadata_analysis_pass"],
    "metadata": ["add_common_metadata_analysis_pass", "add_software_metadata_analysis_pass", "init_metadata_analysis_pass"],
    "pruning": ["add_natural_sparsity_metadata_analysis_pass", "add_pruning_metadata_analysis_pass",
                "hook_inspection_analysis_pass", "prune_detach_hook_transform_pass", "prune_transform_pass"],
    "quantization": ["quantize_transform_pass"],
    "reports": ["report_graph_analysis_pass", "report_node_hardware_type_analysis_pass",
                "report_node_meta_param_analysis_pass", "report_node_shape_analysis_pass", "report_node_type_analysis_pass"],
    "runtime": ["runtime_analysis_pass"],
    "statistics": ["profile_statistics_analysis_pass"],
    "summary": ["graph_iterator_compare_nodes", "summarize_quantization_analysis_pass"],
    "utils": ["metadata_value_type_cast_transform_pass"],
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_TORCH = importlib.util.find_spec("torch") is not None
_registered: Dict[str, Callable] = {}
__all__ = sorted(_HOME) + ["PASSES", "register_pass"]


def _short(name: str) -> str:
    for end in ("_mg_analysis_pass", "_analysis_pass", "_transform_pass", "_interface_pass", "_pass"):
        if name.endswith(end):
            return name[: -len(end)]
    return name


class _Passes(Dict[str, Callable]):
    """Every pass by its short name: quantize, report_graph, ... and those that were registered."""

    _names = {_short(name): name for name in _HOME if name.endswith("_pass")}

    def __missing__(self, key: str) -> Callable:
        return __getattr__(self._names[key])

    def keys(self) -> Any:
        return self._names.keys() | super().keys()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.keys()))

    def __contains__(self, key: object) -> bool:
        return key in self._names or super().__contains__(key)

    def __len__(self) -> int:
        return len(self.keys())


PASSES: Dict[str, Callable] = _Passes()


def register_pass(function: Optional[Callable] = None, *, name: Optional[str] = None) -> Any:
    """Makes a function(graph, pass_args) -> (graph, dict) one of PASSES, under its name without _pass."""
    def register(target: Callable) -> Callable:
        PASSES[name or _short(target.__name__)] = target
        return target

    return register if function is None else register(function)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        return absent_or_missing("chop.passes.graph", name, __all__)
    if not _TORCH:
        return getattr(importlib.import_module("chop.passes.graph.numpy_passes"), name)
    return getattr(importlib.import_module(f"chop.passes.graph.{_HOME[name]}"), name)


def __dir__() -> List[str]:
    return __all__
