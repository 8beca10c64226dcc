# SPDX-License-Identifier: Apache-2.0
"""The layers of a network side by side, each with an input of its own: a graph for passes that look at layers and not at what
flows between them. It exists for every network, whatever operations of torch stand between its layers."""
from __future__ import annotations

from typing import Any, Dict, List

import torch
import torch.fx

from mase import _native
from mase.graph import Graph
from mase.torch_import import _Importer
from mase.torch_layers import op_of_class

_PRODUCTS = ("linear", "conv1d", "conv2d")


def _input_shape(layer: Any) -> List[int]:
    if isinstance(layer, torch.nn.Linear):
        return [layer.in_features]
    return [layer.in_channels, *(d * (k - 1) + 1 for k, d in zip(layer.kernel_size, layer.dilation))]


def layers_apart(module: torch.fx.GraphModule) -> Graph:
    """The linear layers and convolutions of a graph under the names of their nodes, in its order."""
    importer = _Importer(module, {})
    nodes: List[Dict[str, Any]] = []
    results: List[Dict[str, Any]] = []
    for node in module.graph.nodes:
        layer: Any = importer.modules[str(node.target)] if node.op == "call_module" else None
        kind: Any = type(layer)
        op = op_of_class(kind) if layer is not None else None
        if op not in _PRODUCTS or node.target in importer.layers:
            continue
        importer.layers[str(node.target)] = importer.layer(layer, op, str(node.target))
        nodes.append({"name": f"into_{node.name}", "kind": "placeholder", "target": f"into_{node.name}", "shape": _input_shape(layer)})
        nodes.append({"name": node.name, "kind": "call_module", "target": str(node.target), "args": [{"node": f"into_{node.name}"}]})
        results.append({"node": node.name})
    if not results:
        raise _native.Error(f"{type(module).__name__}: it has no linear layer and no convolution")
    nodes.append({"name": "output", "kind": "output", "target": "output", "args": [results[0] if len(results) == 1 else {"list": results}]})
    return Graph(_native.described_graph({"name": type(module).__name__, "nodes": nodes, "modules": importer.layers}, importer.tensors))


class SparseInput:
    """A hook before a layer: of each sample, the share of its input that is smallest (`l1-norm`), or any (`random`), is zero."""

    def __init__(self, sparsity: float, method: str = "l1-norm"):
        self.sparsity, self.method = float(sparsity), method

    def __call__(self, module: torch.nn.Module, args: tuple) -> tuple:
        x = args[0]
        rows = x.reshape(x.shape[0], -1)
        count = round(self.sparsity * rows.shape[1])
        if not count:
            return args
        size = torch.rand_like(rows) if self.method == "random" else rows.detach().abs()
        mask = torch.ones_like(rows).scatter(1, torch.topk(size, count, dim=1, largest=False).indices, 0.0)
        return (x * mask.reshape(x.shape), *args[1:])

    def __repr__(self) -> str:
        return f"SparseInput({self.sparsity:g}, {self.method!r})"
