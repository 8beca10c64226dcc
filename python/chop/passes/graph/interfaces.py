# SPDX-License-Identifier: Apache-2.0
"""Graphs and their metadata in files: graph_module.mz, state_dict.pt and node_meta_param.toml."""
from __future__ import annotations

import os
from typing import Any, Optional, Tuple

from chop.passes.graph.utils import as_graph
from mase import _native
from mase._native import Error


def _plain(value: Any) -> Any:
    """What a TOML file can hold; None is "NA", tensors and nodes are left out."""
    if value is None:
        return "NA"
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items() if key != "value"}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def save_node_meta_param_interface_pass(graph: Any, pass_args: Any) -> Tuple[Any, dict]:
    """The metadata of every node as TOML, to a path (or {"save_path": path})."""
    graph = as_graph(graph)
    path = pass_args.get("save_path") if isinstance(pass_args, dict) else pass_args
    if path is None:
        raise Error("save_node_meta_param: needs a path")
    nodes = {node.name: _plain(node.meta["mase"].parameters) for node in graph.fx_graph.nodes}
    with open(path, "w", encoding="utf-8") as file:
        file.write(_native.to_toml(nodes))
    return graph, {}


def load_node_meta_param_interface_pass(graph: Any, pass_args: Any) -> Tuple[Any, dict]:
    """What save_node_meta_param wrote, into the metadata; values stay what they are."""
    graph = as_graph(graph)
    path = pass_args.get("load_path") if isinstance(pass_args, dict) else pass_args
    saved = _native.read_toml(os.fspath(path))

    def merge(into: dict, table: dict) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                merge(into.setdefault(key, {}), value)
            elif key != "torch_dtype":
                into[key] = None if value == "NA" else value

    for node in graph.fx_graph.nodes:
        if node.name in saved:
            merge(node.meta["mase"].parameters, saved[node.name])
    return graph, {}


def save_state_dict_ckpt(graph_module: Any, save_path: Any) -> None:
    import torch

    torch.save(graph_module.state_dict(), save_path)


def save_mase_graph_interface_pass(graph: Any, pass_args: Any = None) -> Tuple[Any, dict]:
    """Graph, weights and metadata to a folder (or {"save_dir": folder})."""
    graph = as_graph(graph)
    folder = pass_args.get("save_dir") if isinstance(pass_args, dict) else pass_args
    if folder is None:
        raise Error("save_mase_graph: needs a folder: {'save_dir': ...}")
    os.makedirs(folder, exist_ok=True)
    graph.native().save(os.path.join(folder, "graph_module.mz"))
    save_state_dict_ckpt(graph.model, os.path.join(folder, "state_dict.pt"))
    save_node_meta_param_interface_pass(graph, os.path.join(folder, "node_meta_param.toml"))
    return graph, {}


def load_mase_graph_interface_pass(graph: Any, pass_args: Any = None) -> Tuple[Any, dict]:
    """What save_mase_graph wrote; `graph` may be None."""
    from chop.ir.graph.mase_graph import MaseGraph
    from chop.passes.graph.metadata import init_metadata_analysis_pass
    from mase import load, to_torch

    folder = pass_args.get("load_dir") if isinstance(pass_args, dict) else pass_args
    if folder is None:
        raise Error("load_mase_graph: needs a folder: {'load_dir': ...}")
    loaded = MaseGraph(to_torch(load(os.path.join(folder, "graph_module.mz"))))
    loaded, _ = init_metadata_analysis_pass(loaded)
    return load_node_meta_param_interface_pass(loaded, os.path.join(folder, "node_meta_param.toml"))
