# SPDX-License-Identifier: Apache-2.0
"""Low-rank adapters beside the linear layers of a torch graph, in the form of the library's passes: LAYER.lora_A and LAYER.lora_B
with nodes of their own. The library says which layers are meant, checks the arguments and draws A; B is zero, so that the network
computes what it did."""
from __future__ import annotations

import operator
from typing import Any, Dict, List, Optional, Tuple

import torch

from chop.ir.graph.mase_metadata import MaseMetadata
from chop.passes.graph.metadata import node_kind
from chop.passes.graph.utils import as_graph, get_parent_name
from mase._native import Error
from mase.torch_layers_apart import layers_apart
from mase.torch_ops import own_layer

_PARTS = ("lora_A", "lora_B", "lora_dropout")


def _calls(graph: Any, path: str) -> List[Any]:
    return [node for node in graph.fx_graph.nodes if node.op == "call_module" and node.target == path]


def _counts(graph: Any) -> Dict[str, int]:
    return {"trainable": sum(p.numel() for p in graph.model.parameters() if p.requires_grad),
            "total": sum(p.numel() for p in graph.model.parameters())}


def _describe(graph: Any, nodes: List[Any]) -> None:
    modules = graph.modules
    for node in nodes:
        meta = node.meta["mase"] = MaseMetadata(node, graph.model)
        kind, op = node_kind(node, modules)
        meta.parameters["common"] = {"mase_type": kind, "mase_op": op, "args": {}, "results": {}}


def _insert(graph: Any, path: str, native: Any, args: Dict[str, Any]) -> None:
    parent, name = get_parent_name(path)
    layer = own_layer(graph.model.get_submodule(path))  # the caller keeps his, trained as it was
    setattr(graph.model.get_submodule(parent), name, layer)
    layer.lora_trained = {key: p.requires_grad for key, p in layer._parameters.items() if p is not None}
    for key, p in list(layer._parameters.items()):
        if p is not None:
            layer._parameters[key] = torch.nn.Parameter(p.detach(), requires_grad=False)
    weight = layer.weight
    first = torch.from_numpy(native.modules[f"{path}.lora_A"]["weight"].copy()).to(weight)
    a = torch.nn.Linear(first.shape[1], first.shape[0], bias=False, device=weight.device, dtype=weight.dtype)
    b = torch.nn.Linear(first.shape[0], weight.shape[0], bias=False, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        a.weight.copy_(first)
        b.weight.zero_()
    layer.add_module("lora_A", a)
    layer.add_module("lora_B", b)
    share = args.get("dropout", args.get("lora_dropout")) or 0.0
    if share:
        layer.add_module("lora_dropout", torch.nn.Dropout(share))
    alpha = args.get("alpha", args.get("lora_alpha"))
    layer.lora_scale = 1.0 if alpha is None else float(alpha) / first.shape[0]
    fx = graph.fx_graph
    for node in _calls(graph, path):
        users = list(node.users)
        with fx.inserting_after(node):
            total = fx.call_function(operator.add, (node, node))  # stands until its second term is there
        with fx.inserting_before(total):
            x = fx.call_module(f"{path}.lora_dropout", (node.args[0],)) if share else node.args[0]
            inner = fx.call_module(f"{path}.lora_B", (fx.call_module(f"{path}.lora_A", (x,)),))
            scaled = fx.call_function(operator.mul, (inner, layer.lora_scale))
        total.args = (node, scaled)
        for user in users:
            user.replace_input_with(node, total)
        _describe(graph, [n for n in fx.nodes if "mase" not in n.meta])


def insert_lora_adapter_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """{"rank", "alpha" or "lora_alpha", "dropout" or "lora_dropout", "by", "targets", "base"}: y = W x + b becomes
    y = W x + b + alpha / rank B A dropout(x). Adapted layers are frozen, biases kept; everything else is trained as it was, or
    frozen too (base="frozen"). Without targets all linear layers are adapted; without alpha it is the rank."""
    graph = as_graph(graph)
    args = {key: value for key, value in (pass_args or {}).items() if value is not None}
    if args.get("base", "kept") not in ("kept", "frozen"):
        raise Error(f"base: expected kept or frozen, got {args['base']!r}")
    if any(hasattr(module, "lora_A") for module in graph.model.modules()):
        raise Error("insert_lora_adapter: there are adapters already; run fuse_lora_weights_transform_pass first")
    native = layers_apart(graph.model)
    found = native.run_pass("insert_lora_adapter", {**args, "base": "kept"}, print=None)
    if args.get("base") == "frozen":
        for p in graph.model.parameters():
            p.requires_grad_(False)
    for path in found["replaced"]:
        _insert(graph, path, native, args)
    graph.model.recompile()
    return graph, {"replaced": list(found["replaced"]), **_counts(graph)}


def fuse_lora_weights_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """W + alpha / rank B A in each adapted layer's place; its bias, number format, dtype and device stay, and it is trained as it
    was before the adapter came."""
    graph = as_graph(graph)
    if pass_args:
        raise Error(f"fuse_lora_weights: unknown key '{sorted(pass_args)[0]}'; it takes none")
    fused = []
    for path, layer in list(graph.modules.items()):
        if not hasattr(layer, "lora_A") or not hasattr(layer, "lora_B"):
            continue
        for node in _calls(graph, path):
            total: Any = next((user for user in node.users if user.target is operator.add and len(user.args) == 2 and user.args[0] is node), None)
            scaled = total.args[1] if total is not None else None
            if scaled is None or scaled.args[0].target != f"{path}.lora_B":
                raise Error(f"{path}: the nodes of its adapter are not those that insert_lora_adapter made")
            total.replace_all_uses_with(node)
            dead = [total, scaled, scaled.args[0], scaled.args[0].args[0], scaled.args[0].args[0].args[0]]
            for other in dead:
                if not other.users and (other.op == "call_function" or str(other.target).rpartition(".")[2] in _PARTS):
                    graph.fx_graph.erase_node(other)
        with torch.no_grad():
            change = layer.lora_scale * (layer.lora_B.weight.double() @ layer.lora_A.weight.double())
            weight = torch.nn.Parameter((layer.weight.detach().double() + change).to(layer.weight.dtype))
        masked = layer._modules.get("parametrizations")
        if masked is not None:
            raise Error(f"{path}: it is pruned; run prune_detach_hook_transform_pass first")
        layer._parameters["weight"] = weight
        for key, trained in layer.lora_trained.items():
            layer._parameters[key].requires_grad_(trained)
        for part in _PARTS:
            layer._modules.pop(part, None)
        del layer.lora_scale, layer.lora_trained
        fused.append(path)
    graph.model.delete_all_unused_submodules()
    graph.model.recompile()
    return graph, {"fused": fused}


class LoRALinear(torch.nn.Module):
    """A linear layer with an adapter beside it, as one module: y = linear(x) + alpha / rank lora_b(lora_a(dropout(x)))."""

    def __init__(self, in_dim: int, out_dim: int, rank: int, alpha: float, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        if rank < 1:
            raise Error(f"LoRALinear: rank: expected at least 1, got {rank}")
        self.in_dim, self.out_dim, self.rank, self.alpha = in_dim, out_dim, rank, alpha
        self.linear = torch.nn.Linear(in_dim, out_dim, bias=bias)
        self.linear.requires_grad_(False)
        self.lora_a = torch.nn.Linear(in_dim, rank, bias=False)
        self.lora_b = torch.nn.Linear(rank, out_dim, bias=False)
        self.dropout = torch.nn.Dropout(dropout)
        torch.nn.init.kaiming_uniform_(self.lora_a.weight, a=5 ** 0.5)
        torch.nn.init.zeros_(self.lora_b.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + self.alpha / self.rank * self.lora_b(self.lora_a(self.dropout(x)))
