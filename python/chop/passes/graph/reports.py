# SPDX-License-Identifier: Apache-2.0
"""Reports, printed as MASE prints them."""
from __future__ import annotations

import os
import pprint
from typing import Any, Dict, List, Optional, Tuple

from chop.passes.graph.utils import as_graph, get_mase_op, get_mase_type
from chop.tools.logger import get_logger
from mase._native import Error, table

logger = get_logger(__name__)


def _write(path: Any, text: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def report_graph_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The graph, how many nodes of each kind it has, and its layers; to a file with `file_name`."""
    graph = as_graph(graph)
    counts: Dict[str, int] = {kind: 0 for kind in
                              ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")}
    layers: List[Any] = []
    modules = graph.modules
    for node in graph.fx_graph.nodes:
        counts[node.op] += 1
        if node.op == "call_module":
            layers.append(modules[node.target])
    # One text whatever torch: it wrote "#users" before it wrote "num_users", and batch norms without a bias.
    text = str(graph.fx_graph).replace("[#users=", "[num_users=").lstrip("\n")
    shown = str(layers).replace("affine=True, bias=True, track", "affine=True, track")
    text += f"\nNetwork overview:\n{counts}\nLayer types:\n{shown}"
    file_name = (pass_args or {}).get("file_name")
    if file_name is None:
        print(text)
    else:
        _write(file_name, text + "\n")
    return graph, {}


def _log_table(title: str, header: List[str], rows: List[List[str]], style: str) -> str:
    text = table(header, rows, style)
    logger.info(title)
    logger.info("\n" + text.rstrip("\n"))
    return text


def report_node_type_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Kind, type, operation and number type of every node."""
    graph = as_graph(graph)
    rows = []
    for node in graph.fx_graph.nodes:
        first = node.meta["mase"].parameters["common"]["args"].get("data_in_0", {})
        rows.append([node.name, node.op, get_mase_type(node), get_mase_op(node), str(first.get("type", "NA"))])
    _log_table("Inspecting graph [add_common_node_type_analysis_pass]",
               ["Node name", "Fx Node op", "Mase type", "Mase op", "Value type"], rows, "simple")
    return graph, {}


def _shapes(entries: Dict[str, Any]) -> str:
    return ", ".join(f"{name} {entry['shape']}" for name, entry in entries.items()
                     if isinstance(entry, dict) and "shape" in entry)


def report_node_shape_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Shapes of what goes into and comes out of every node."""
    graph = as_graph(graph)
    rows = []
    for node in graph.fx_graph.nodes:
        common = node.meta["mase"].parameters["common"]
        rows.append([node.name, _shapes(common["args"]), _shapes(common["results"])])
    _log_table("Inspecting graph [add_common_node_shape_analysis_pass]", ["Node name", "In", "Out"], rows, "simple")
    return graph, {}


def report_node_hardware_type_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Node, operation, result type and tool chain, of nodes that become hardware."""
    graph = as_graph(graph)
    rows = []
    for node in graph.fx_graph.nodes:
        hardware = node.meta["mase"].parameters["hardware"]
        if not hardware or hardware.get("is_implicit"):
            continue
        result = node.meta["mase"].parameters["common"]["results"]["data_out_0"]
        rows.append([node.name, get_mase_op(node), str(result.get("type", "NA")), str(hardware.get("toolchain", "NA")),
                     str(hardware.get("device_id", -1))])
    _log_table("Inspecting graph [report_node_hardware_type_analysis_pass]",
               ["Node name", "Mase op", "Type", "Toolchain", "Device"], rows, "simple")
    return graph, {}


_TITLES = {"common": "Common Param", "hardware": "Hardware Param", "software": "Software Param"}


def report_node_meta_param_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The metadata of every node: `which` of common, hardware, software (or all); also to `save_path`."""
    graph = as_graph(graph)
    given = pass_args or {}
    which = given.get("which", ("all",))
    which = (which,) if isinstance(which, str) else tuple(which)
    for part in which:
        if part not in ("all", *_TITLES):
            raise Error(f"which: unknown part '{part}'; expected all, common, hardware or software")
    shown = [part for part in _TITLES if "all" in which or part in which]
    rows = []
    for node in graph.fx_graph.nodes:
        parameters = node.meta["mase"].parameters
        rows.append([node.name, node.op, get_mase_type(node), get_mase_op(node),
                     *(pprint.pformat(parameters[part]) for part in shown)])
    text = _log_table("Inspecting graph [add_common_meta_param_analysis_pass]",
                      ["Node name", "Fx Node op", "Mase type", "Mase op", *(_TITLES[part] for part in shown)], rows, "grid")
    if given.get("save_path") is not None:
        _write(given["save_path"], text)
    return graph, {}
