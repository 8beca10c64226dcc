# SPDX-License-Identifier: Apache-2.0
"""The passes without torch: the library's own, on its own graphs, under MASE's names."""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Optional, Tuple

from mase._native import Error


def _graph(graph: Any) -> Any:
    if isinstance(graph, tuple):
        graph = graph[0]
    if not hasattr(graph, "refresh"):
        raise Error(f"expected a MaseGraph, got {type(graph).__name__}")
    return graph


def _run(graph: Any, name: str, args: Optional[Dict[str, Any]] = None, **context: Any) -> Tuple[Any, dict]:
    graph = _graph(graph)
    info = graph.graph.run_pass(name, args or {}, print=sys.stdout.write, **context)
    graph.refresh()
    return graph, info or {}


def _plain(name: str) -> Callable:
    def run(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
        return _run(graph, name, pass_args)

    run.__doc__ = f"The library's pass {name}."
    return run


init_metadata_analysis_pass = _plain("init_metadata")
add_software_metadata_analysis_pass = _plain("add_software_metadata")
report_graph_analysis_pass = _plain("report_graph")
report_node_type_analysis_pass = _plain("report_node_type")
report_node_shape_analysis_pass = _plain("report_node_shape")
report_node_meta_param_analysis_pass = _plain("report_node_meta_param")
quantize_transform_pass = _plain("quantize")
prune_transform_pass = _plain("prune")
add_pruning_metadata_analysis_pass = _plain("add_pruning_metadata")
calculate_flops_mg_analysis_pass = _plain("calculate_flops")
calculate_flops_bitops_pass = _plain("calculate_flops_bitops")


def add_common_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Shapes at the batch size of `dummy_in`; values are not kept."""
    rows = [len(value) for value in ((pass_args or {}).get("dummy_in") or {}).values()]
    return _run(graph, "add_common_metadata", {"batch_size": rows[0]} if rows else {})


def profile_statistics_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Statistics over `num_samples` rows of `input_generator`."""
    import numpy

    args = dict(pass_args or {})
    generator, wanted, rows = args.pop("input_generator", None), int(args.get("num_samples", 32)), []
    for batch in generator if generator is not None else ():
        rows.append(next(iter(batch.values())))
        if sum(map(len, rows)) >= wanted:
            break
    return _run(graph, "profile_statistics", args, samples=numpy.concatenate(rows)[:wanted] if rows else None)


def summarize_quantization_analysis_pass(graph: Any, second: Any = None, save_dir: Any = None, *,
                                         pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Both of MASE's forms."""
    if pass_args is None and isinstance(second, dict):
        pass_args = second
    original, transformed = (pass_args.get("original_graph"), graph) if pass_args is not None else (graph, second)
    save_dir = pass_args.get("save_dir") if pass_args is not None else save_dir
    if original is None or transformed is None:
        raise Error("summarize_quantization: needs the graph before quantising")
    args = {"save_dir": str(save_dir)} if save_dir is not None else {}
    return _run(transformed, "summarize_quantization", args, original=_graph(original).graph)


def calculate_avg_bits_mg_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Bits per value of the inputs and weights of products."""
    cost = _graph(graph).graph.cost()
    return _graph(graph), {"data_avg_bit": cost.average_activation_bits, "w_avg_bit": cost.average_weight_bits}


def __getattr__(name: str) -> Any:
    from chop.passes.graph import _HOME

    if name not in _HOME:
        raise AttributeError(name)

    def needs_torch(*args: Any, **keys: Any) -> Any:
        raise Error(f"{name}: needs torch, which is not installed")

    return needs_torch
