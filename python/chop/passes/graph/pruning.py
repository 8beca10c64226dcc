# SPDX-License-Identifier: Apache-2.0
"""prune: the least important weights are zero and stay zero, by a mask that parametrises the weight. The
library chooses them: exactly the share that was asked for."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch

from chop.passes.graph.utils import as_graph, get_mase_op, get_parent_name
from mase._native import Error
from mase.torch_ops import apply_mask, own_layer, pruning_mask


def prune_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """{"weight": {sparsity, method, scope, granularity}, "activation": {...}}.

    `activation` removes input features by their size on the dummy input: a masked input is the same as
    a zeroed column of weights, so it becomes part of the same mask.
    """
    graph = as_graph(graph)
    args = dict(pass_args or {})
    for name in ("weight", "activation"):
        table = args.get(name)
        if isinstance(table, dict) and isinstance(table.get("sparsity"), (int, float)) and not 0 <= table["sparsity"] <= 1:
            raise Error(f"{name}.sparsity: expected a share between 0 and 1, got {table['sparsity']}")
    if isinstance(args.get("activation"), dict) and not args["activation"].get("sparsity"):
        args.pop("activation")
    samples = None
    for node in graph.nodes_in:
        common = node.meta["mase"].parameters["common"] if "mase" in node.meta else {}
        samples = common.get("results", {}).get("data_out_0", {}).get("value", samples)
    native = graph.native()
    info = native.run_pass("prune", args, samples=samples, print=None)
    for path, layer in native.modules.items():
        mask = layer.mask
        if mask is None:
            continue
        own = graph.model.get_submodule(path)
        if pruning_mask(own) is None:  # it may be the caller's, who keeps his as it is
            parent, name = get_parent_name(path)
            own = own_layer(own)
            setattr(graph.model.get_submodule(parent), name, own)
        apply_mask(own, torch.from_numpy(mask.copy()))
    return graph, info


def prune_detach_hook_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Makes pruned weights plain parameters again, their zeros kept."""
    import torch.nn.utils.parametrize as parametrize

    graph = as_graph(graph)
    for module in list(graph.model.modules()):
        if parametrize.is_parametrized(module, "weight"):
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)
    return graph, {}


def add_pruning_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """weight_sparsity of every linear layer and convolution: the share of zeros of its mask."""
    graph = as_graph(graph)
    found: Dict[str, Any] = {}
    for node in graph.fx_graph.nodes:
        if node.op == "call_module" and get_mase_op(node) in ("linear", "conv1d", "conv2d"):
            mask = pruning_mask(graph.model.get_submodule(node.target))
            sparsity = 0.0 if mask is None else float(1 - mask.to(torch.float64).mean())
            node.meta["mase"].parameters["software"].setdefault("args", {}).setdefault("weight", {"stat": {}})["sparsity"] = sparsity
            found[node.name] = {"weight_sparsity": sparsity}
    return graph, found


def add_natural_sparsity_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The share of zeros among the weights as they are."""
    graph = as_graph(graph)
    found = {}
    for name, parameter in graph.model.named_parameters():
        if name.endswith("weight") or name.endswith("weight.original"):
            found[name] = float((parameter == 0).to(torch.float64).mean())
    return graph, found


def hook_inspection_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The hooks of every layer."""
    graph = as_graph(graph)
    found = {}
    for name, module in graph.model.named_modules():
        for kind in ("_forward_pre_hooks", "_forward_hooks"):
            for number, hook in getattr(module, kind).items():
                found[f"{name}_{number}"] = (number, hook)
    return graph, found
