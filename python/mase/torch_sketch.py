# SPDX-License-Identifier: Apache-2.0
"""A picture of a graph of torch.fx whose shapes nobody knows: its nodes and what each reads, without sizes."""
from __future__ import annotations

from typing import Any, Dict, List

import torch.fx

from mase import _native
from mase.graph import Graph
from mase.torch_lowering import name_of


def sketch(module: torch.fx.GraphModule) -> Graph:
    """A graph that can be drawn and not be run."""
    layers = dict(module.named_modules())
    nodes: List[Dict[str, Any]] = []
    for node in module.graph.nodes:
        inputs: List[Dict[str, Any]] = [{"node": source.name} for source in node.all_input_nodes]
        entry: Dict[str, Any] = {"name": node.name, "kind": node.op, "target": str(node.target)}
        if node.op == "placeholder":
            entry["shape"] = [1]
        elif node.op == "output":
            entry.update(target="output", args=[inputs[0] if len(inputs) == 1 else {"list": inputs}])
        else:
            what: Any = type(layers[str(node.target)]) if node.op == "call_module" else node.target
            entry.update(kind="call_function", target="opaque", args=inputs,
                         kwargs={"operator": {"literal": str(node.target) if node.op == "get_attr" else name_of(what)}})
        nodes.append(entry)
    return Graph(_native.described_graph({"name": type(module).__name__, "nodes": nodes, "modules": {}}, {}))
