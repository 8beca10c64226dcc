# SPDX-License-Identifier: Apache-2.0
"""From graphs to torch modules that train. Weights are copied."""
from __future__ import annotations

import inspect
import operator
from typing import Any, Dict, List, Tuple

import torch
import torch.fx

from mase import _native, torch_stand_ins
from mase.graph import Graph
from mase.torch_layers import QuantizedFunction, layer_class, op_records, quantized_class
from mase.torch_ops import apply_mask


def _function(op: str) -> Any:
    """torch's function for an operation, or ours where it has none."""
    path = op_records()[op]["function"]
    value: Any = operator if path.startswith("operator.") else torch
    for part in path.split(".")[1:]:
        value = getattr(value, part, None)
    if op == "scaled_dot_product_attention" or value in (None, torch):  # torch's own has other arguments
        value = getattr(torch_stand_ins, op, None)
    if value is None:
        raise _native.Error(f"{op}: torch has nothing like it")
    return value


class _Chain(torch.nn.Module):
    """A network that is one Sequential, as MASE's jet networks are."""

    def __init__(self, name: str, layers: torch.nn.Sequential):
        super().__init__()
        self._chain = name
        setattr(self, name, layers)

    def forward(self, x):  # type: ignore[no-untyped-def]  # fx prints annotations
        return getattr(self, self._chain)(x)


def _make_layer(entry: dict, tensors: Dict[str, Any], path: str) -> torch.nn.Module:
    op = entry["op"]
    keys = {key: (tuple(value) if isinstance(value, list) else value) for key, value in entry["attributes"].items()
            if value is not None and key != "result"}
    if keys.get("mode") == "nearest":  # torch refuses it there
        keys.pop("align_corners", None)
    if keys.get("momentum") == "cumulative":
        keys["momentum"] = None
    config = entry.get("quantization")
    if config is not None:
        layer = quantized_class(op, config["name"])(**keys, config=config)
    else:
        kind: Any = layer_class(op)
        taken = inspect.signature(kind).parameters
        if any(key not in taken for key in keys):
            kind = getattr(torch_stand_ins, kind.__name__, kind)
        layer = kind(**keys)
    with torch.no_grad():
        for name, tensor in list(layer.named_parameters()) + list(layer.named_buffers()):
            if f"{path}.{name}" in tensors:
                tensor.copy_(torch.from_numpy(tensors[f"{path}.{name}"].copy()))
    if entry.get("frozen"):
        layer.requires_grad_(False)
    return layer


def _tree(layers: Dict[str, torch.nn.Module]) -> torch.nn.Module:
    """Layers by path as nested modules; children called 0, 1, 2, ... are a Sequential."""
    children: Dict[str, Dict[str, torch.nn.Module]] = {}
    for path, layer in layers.items():
        head, _, rest = path.partition(".")
        children.setdefault(head, {})[rest] = layer
    root: torch.nn.Module = torch.nn.Sequential() if list(children) == [str(i) for i in range(len(children))] else torch.nn.Module()
    for head, inner in children.items():
        root.add_module(head, inner[""] if list(inner) == [""] else _tree(inner))
    return root


def _layers_of(graph: Graph) -> Tuple[dict, Dict[str, torch.nn.Module]]:
    description, tensors = graph.description(), graph.state_dict()
    order = [node["target"] for node in description["nodes"] if node["kind"] == "call_module"]
    with torch.random.fork_rng(devices=[]):  # layers draw their initial weights, which are not kept
        layers = {path: _make_layer(description["modules"][path], tensors, path) for path in dict.fromkeys(order)}
    for path, layer in layers.items():
        for name, mask in graph.modules[path].masks.items():
            apply_mask(layer, torch.from_numpy(mask.copy()), name)
    return description, layers


def network_of(graph: Graph) -> torch.nn.Module:
    """The graph as the module its author would have written where it is one Sequential; else as
    to_torch gives it."""
    description, layers = _layers_of(graph)
    targets = [node["target"] for node in description["nodes"] if node["kind"] == "call_module"]
    kinds = [node["kind"] for node in description["nodes"]]
    prefix = targets[0].partition(".")[0] if targets else ""
    chain = (kinds == ["placeholder"] + ["call_module"] * len(targets) + ["output"]
             and targets == [f"{prefix}.{i}" for i in range(len(targets))])
    if not chain:
        return to_torch(graph)
    network = _Chain(prefix, torch.nn.Sequential(*layers.values()))
    network.mase_name = graph.name  # type: ignore[assignment]
    return network


def _owner(tree: torch.nn.Module, path: str) -> torch.nn.Module:
    """The module of this path, made where there is none."""
    for part in path.split(".") if path else ():
        if part not in tree._modules:
            tree.add_module(part, torch.nn.Module())
        tree = tree._modules[part]  # type: ignore[assignment]
    return tree


def _add_constants(tree: torch.nn.Module, description: dict, graph: Graph) -> None:
    """The tensors that nodes read, where they were."""
    for path, entry in description["modules"].items():
        if entry.get("op"):
            continue
        owner = _owner(tree, path)
        for name in entry.get("parameters", {}):
            owner.register_parameter(name, torch.nn.Parameter(torch.from_numpy(graph.modules[path][name].copy())))
        for name in entry.get("buffers", {}):
            owner.register_buffer(name, torch.from_numpy(graph.modules[path][name].copy()))


def _literal(value: Any) -> Any:
    if isinstance(value, dict):
        return slice(*value["slice"])
    if isinstance(value, list):
        return tuple(_literal(item) for item in value)
    return value


def _index(value: Any) -> Any:
    """An index as Python has it."""
    if isinstance(value, tuple):
        return tuple(_index(item) for item in value)
    return {"...": Ellipsis, "Ellipsis": Ellipsis, "None": None}.get(value, value) if isinstance(value, str) else value


def to_torch(graph: Graph) -> torch.fx.GraphModule:
    description, layers = _layers_of(graph)
    fx_graph = torch.fx.Graph()
    made: Dict[str, torch.fx.Node] = {}

    def value(argument: dict) -> Any:
        if "node" in argument:
            return made[argument["node"]]
        if "list" in argument:
            return [value(item) for item in argument["list"]]
        return _literal(argument.get("literal"))

    for node in description["nodes"]:
        args: List[Any] = [value(item) for item in node.get("args", [])]
        keys = {key: value(item) for key, item in node.get("kwargs", {}).items()}
        target: Any = node["target"]
        kind = node["kind"]
        if kind == "output" and isinstance(args[0], list):
            args = [tuple(args[0])]
        elif kind == "call_function" and target == "dropout":  # torch's function does not know whether it trains
            kind, target = "call_module", f"_{node['name']}"
            layers[target] = torch.nn.Dropout(*args[1:], **keys)
            args, keys = args[:1], {}
        elif target in ("gather", "index_select") and kind != "placeholder":  # torch has the dimension between them
            keys["index"] = args.pop()
            target = _function(target) if kind == "call_function" else target
        elif kind == "call_function" or (kind == "call_method" and node.get("quantization")):
            kind = "call_function"  # a method cannot round
            if target == "getitem":
                args[1:] = [_index(item) for item in args[1:]]
            first = keys.pop("input", None)  # 1 - x
            if first is not None:
                args.insert(0, first)
            if "other" in keys:
                args.append(keys.pop("other"))
            target = _function(node["target"])
            if hasattr(target, "mase_op"):
                names = [field["name"] for field in op_records()[node["target"]]["attributes"]]
                literals = [a for a in args if not isinstance(a, torch.fx.Node)]
                args, keys = [a for a in args if isinstance(a, torch.fx.Node)], {**dict(zip(names, literals)), **keys}
            if node.get("quantization"):
                target = QuantizedFunction(target, node["target"], node["quantization"]["name"], node["quantization"])
        made[node["name"]] = fx_graph.create_node(kind, target, tuple(args), keys, node["name"])
    tree = _tree(layers)
    _add_constants(tree, description, graph)
    module = torch.fx.GraphModule(tree, fx_graph, "GraphModule")
    for other, kept in description.get("meta", {}).get("tied", {}).items():  # a parameter's further names
        _owner(module, other.rpartition(".")[0]).register_parameter(other.rpartition(".")[2], module.get_parameter(kept))
    # What was computed from sizes is no part of the network's state (torch_lowering).
    module._non_persistent_buffers_set.update(name for name in module._buffers if name.startswith("_tensor_constant"))
    module.mase_name = graph.name  # type: ignore[assignment]
    return module
