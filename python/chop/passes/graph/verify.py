# SPDX-License-Identifier: Apache-2.0
"""Whether metadata say what the graph is, and the graph as a picture."""
from __future__ import annotations

import os
from typing import Any, Optional, Tuple

from chop.passes.graph.metadata import node_kind
from chop.passes.graph.utils import as_graph
from mase._native import Error


def _entries(node: Any, part: str) -> dict:
    table = node.meta["mase"].parameters.get(part) if "mase" in node.meta else None
    if not table:
        raise Error(f"{node.name}: has no {part} metadata")
    return table


def verify_common_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Every node has its type and operation, every value a type and a precision, parameters have the shapes of the layer's, and what a
    node takes has the shape of what another gives."""
    graph = as_graph(graph)
    modules = graph.modules
    for node in graph.fx_graph.nodes:
        common = _entries(node, "common")
        kind = node_kind(node, modules)
        if (common.get("mase_type"), common.get("mase_op")) != kind:
            raise Error(f"{node.name}: its metadata call it {common.get('mase_type')} {common.get('mase_op')}, and it is {kind[0]} {kind[1]}")
        for name, entry in {**common.get("args", {}), **common.get("results", {})}.items():
            if isinstance(entry, dict) and not ("type" in entry and "shape" in entry and ("precision" in entry or not isinstance(entry["type"], str))):
                raise Error(f"{node.name}.{name}: expected type, precision and shape, got {', '.join(entry)}")
        module = modules[node.target] if node.op == "call_module" else None
        for name, parameter in module._parameters.items() if module is not None else ():
            entry = common.get("args", {}).get(name)
            if parameter is not None and isinstance(entry, dict) and list(entry["shape"]) != list(parameter.shape):
                raise Error(f"{node.name}.{name}: its metadata have the shape {entry['shape']}, and it is {list(parameter.shape)}")
        first = common.get("args", {}).get("data_in_0")
        source = node.args[0] if node.args and hasattr(node.args[0], "meta") else None
        if isinstance(first, dict) and source is not None and node.op == "call_module":
            given = _entries(source, "common").get("results", {}).get("data_out_0", {})
            if "shape" in given and list(given["shape"]) != list(first["shape"]):
                raise Error(f"{node.name}.data_in_0: has the shape {first['shape']}, and {source.name} gives {given['shape']}")
    return graph, {}


def verify_software_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Every node has a table of statistics for what it takes and gives."""
    graph = as_graph(graph)
    for node in graph.fx_graph.nodes:
        if node.op == "output":
            continue
        software = _entries(node, "software")
        for side in ("args", "results"):
            for name, entry in software.get(side, {}).items():
                if not isinstance(entry, dict) or "stat" not in entry:
                    raise Error(f"{node.name}.{name}: its software metadata have no 'stat'")
    return graph, {}


def verify_hardware_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Every node that becomes hardware has a tool chain, a module and parameters, and parallelism divides sizes."""
    graph = as_graph(graph)
    for node in graph.fx_graph.nodes:
        hardware = _entries(node, "hardware")
        if hardware.get("is_implicit"):
            continue
        for key in ("toolchain", "module", "verilog_param"):
            if key not in hardware:
                raise Error(f"{node.name}: its hardware metadata have no '{key}'")
        parameters = hardware["verilog_param"]
        for name, at_once in parameters.items():
            size = parameters.get(name.replace("_PARALLELISM_", "_TENSOR_SIZE_")) if "_PARALLELISM_" in name else None
            if size is not None and size % at_once:
                raise Error(f"{node.name}: {name} is {at_once}, which does not divide {size}")
    return graph, {}


def verify_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """All that there are: common, and software and hardware where nodes have them."""
    graph = as_graph(graph)
    verify_common_metadata_analysis_pass(graph)
    nodes = [node for node in graph.fx_graph.nodes if node.op not in ("placeholder", "output", "get_attr")]
    if any(node.meta["mase"].parameters["software"] for node in nodes):
        verify_software_metadata_analysis_pass(graph)
    if any("toolchain" in node.meta["mase"].parameters["hardware"] for node in nodes):
        verify_hardware_metadata_analysis_pass(graph)
    return graph, {}


def plot_graph_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The graph as a picture, in `file_name` (mase_graph.svg)."""
    graph = as_graph(graph)
    path = os.fspath((pass_args or {}).get("file_name", "mase_graph.svg"))
    graph.draw(path)
    return graph, {"file_name": path}
