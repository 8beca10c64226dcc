# SPDX-License-Identifier: Apache-2.0
"""From torch modules to graphs and back. Weights are shared on the way in and copied on the way out."""
from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.fx
from torch.fx.node import _get_qualified_name

from mase import _native
from mase.graph import Graph
from mase.torch_layers import QuantizedFunction, QuantizedLayer, op_of_class, op_records, quantized_class


class Tracer(torch.fx.Tracer):
    """fx's, for which our quantised layers are layers too."""

    def __init__(self, leaves: Tuple[type, ...] = ()):
        super().__init__()
        self._leaves = (QuantizedLayer, *leaves)

    def is_leaf_module(self, module: torch.nn.Module, path: str) -> bool:
        return isinstance(module, self._leaves) or super().is_leaf_module(module, path)


def trace(module: torch.nn.Module, concrete_args: Optional[dict] = None, leaves: Tuple[type, ...] = ()) -> torch.fx.GraphModule:
    if isinstance(module, torch.fx.GraphModule):
        return module
    try:
        graph = Tracer(leaves).trace(module, concrete_args)
    except torch.fx.proxy.TraceError as error:
        raise _native.Error(f"{type(module).__name__}: torch.fx cannot trace it: {error}; values of tensors may not decide "
                            "what is computed") from error
    return torch.fx.GraphModule(module, graph, type(module).__name__)


@lru_cache(maxsize=None)
def _ops_by_function() -> Dict[str, str]:
    table = {record["function"]: name for name, record in op_records().items() if record["function"]}
    further = {"torch.add": "add", "torch.sub": "sub", "torch.mul": "mul", "torch.div": "div", "torch.relu": "relu",
               "operator.iadd": "add", "operator.imul": "mul", "operator.isub": "sub", "operator.matmul": "matmul",
               "torch.nn.functional.linear": "linear", "torch.nn.functional.gelu": "gelu", "torch.neg": "neg",
               "torch.nn.functional.tanh": "tanh", "torch.nn.functional.sigmoid": "sigmoid", "torch.softmax": "softmax",
               "torch.nn.functional.conv1d": "conv1d", "torch.nn.functional.conv2d": "conv2d",
               "torch.nn.functional.avg_pool2d": "avg_pool2d", "torch._C._nn.adaptive_avg_pool2d": "adaptive_avg_pool2d",
               "torch.max_pool2d": "max_pool2d", "torch.dropout": "dropout"}
    return {**{key: op for key, op in further.items() if op in op_records()}, **table}


def op_of_target(target: Any) -> Optional[str]:
    """The operation of a function or of a method's name; None: we have none."""
    if isinstance(target, QuantizedFunction):
        return target.op
    if isinstance(target, str):
        name = {"view": "reshape", "contiguous": "identity"}.get(target, target.rstrip("_"))
        return name if name in op_records() else None
    try:
        name = _get_qualified_name(target).replace("_operator.", "operator.")
    except RuntimeError:
        return None
    if name in _ops_by_function():
        return _ops_by_function()[name]
    # torch has many functions in several places: torch.log_softmax, torch.nn.functional.log_softmax.
    place, _, last = name.rpartition(".")
    last = last.rstrip("_")
    return last if place in ("torch", "torch.nn.functional", "torch._C._nn") and last in op_records() else None


def _size_of(node: torch.fx.Node) -> Optional[tuple]:
    """(tensor, dimension) of x.size(1), x.size()[1] and x.shape[1]; dimension None: all of them."""
    if node.op == "call_method" and node.target == "size":
        return node.args[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    if node.op == "call_function" and node.target is getattr and node.args[1] == "shape":
        return node.args[0], None
    if node.op == "call_function" and node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
        whole = _size_of(node.args[0])
        if whole is not None and whole[1] is None and isinstance(node.args[1], int):
            return whole[0], node.args[1]
    return None


def _constant(traced: torch.fx.GraphModule, target: str, layers: Dict[str, dict], tensors: Dict[str, Any]) -> None:
    """A tensor of the module's own, which nodes read."""
    path, _, name = target.rpartition(".")
    owner = traced.get_submodule(path)
    tensor = _parameter(owner, name, path or "network")
    kind = "parameters" if name in owner._parameters else "buffers"
    entry = layers.setdefault(path, {})
    entry.setdefault(kind, {})[name] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).replace("torch.", "")}
    tensors[f"{path}.{name}"] = tensor.numpy()


def op_of_node(node: torch.fx.Node, modules: Dict[str, torch.nn.Module]) -> Optional[str]:
    if node.op == "call_module":
        kind: Any = type(modules[str(node.target)])
        return op_of_class(kind)
    return op_of_target(node.target) if node.op in ("call_function", "call_method") else None


def layer_attributes(module: torch.nn.Module, op: str) -> Dict[str, Any]:
    """The values of the operation's attributes, which torch's layers keep under the same names."""
    attributes: Dict[str, Any] = {}
    for field in op_records()[op]["attributes"]:
        name = field["name"]
        if not hasattr(module, name):
            continue
        value = getattr(module, name)
        if isinstance(value, torch.Tensor) or (value is None and name == "bias"):
            value = value is not None  # whether there is one
        elif isinstance(field["default"], bool):
            value = bool(value)  # nn.ReLU(16) is in place
        elif isinstance(value, (tuple, torch.Size)):
            value = list(value)
        if value is not None:
            attributes[name] = value
    return attributes


def _argument(value: Any, place: str) -> dict:
    if isinstance(value, torch.fx.Node):
        return {"node": value.name}
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, torch.fx.Node) for item in value):
            return {"list": [_argument(item, place) for item in value]}
        return {"literal": [_argument(item, place)["literal"] for item in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"literal": value}
    raise _native.Error(f"{place}: an argument is {type(value).__name__}, which graphs cannot hold")


def _sample_shapes(traced: torch.fx.GraphModule, example: Any) -> Dict[str, List[int]]:
    names = [node.name for node in traced.graph.nodes if node.op == "placeholder"]
    if example is None:
        return {}
    if isinstance(example, dict):
        given = example
    else:
        given = dict(zip(names, example if isinstance(example, (tuple, list)) else (example,)))
    return {name: list(value.shape[1:]) for name, value in given.items()}


def _guessed_shape(node: torch.fx.Node, modules: Dict[str, torch.nn.Module]) -> Optional[List[int]]:
    """A layer of plain features says how wide its input is."""
    for user in node.users:
        if user.op == "call_module":
            for attribute in ("in_features", "num_features", "normalized_shape"):
                size = getattr(modules[str(user.target)], attribute, None)
                if isinstance(size, int) and not type(modules[str(user.target)]).__name__.startswith(("BatchNorm2d", "InstanceNorm")):
                    return [size]
                if isinstance(size, (tuple, list)) and len(size) == 1:
                    return list(size)
    return None


def _parameter(module: torch.nn.Module, name: str, place: str) -> torch.Tensor:
    tensor = getattr(module, name).detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_floating_point() and tensor.dtype is not torch.float32:
        raise _native.Error(f"{place}.{name}: expected float32, got {tensor.dtype}; convert the module with .float()")
    return tensor.contiguous()


def from_torch(module: torch.nn.Module, example: Any = None, *, name: Optional[str] = None) -> Graph:
    traced = trace(module)
    modules = dict(traced.named_modules())
    shapes = _sample_shapes(traced, example)
    nodes: List[dict] = []
    layers: Dict[str, dict] = {}
    tensors: Dict[str, Any] = {}
    unknown: List[str] = []
    for node in traced.graph.nodes:
        entry: Dict[str, Any] = {"name": node.name, "kind": node.op, "target": str(node.target)}
        if node.op == "placeholder":
            shape = shapes.get(node.name) or shapes.get(str(node.target)) or _guessed_shape(node, modules)
            if shape is None:
                raise _native.Error(f"{node.name}: the shape of this input is not known; give an example")
            entry["shape"] = shape
        elif node.op == "get_attr":
            _constant(traced, node.target, layers, tensors)
        elif node.op == "output":
            entry["target"] = "output"
        elif _size_of(node) is not None:
            tensor, dimension = _size_of(node) or (None, None)
            if dimension is None:
                if all(_size_of(user) is not None for user in node.users):
                    continue  # its users say which dimension
                unknown.append(f"{node.name} (all sizes of a tensor)")
                continue
            nodes.append(dict(entry, kind="call_method", target="size", args=[_argument(tensor, node.name), {"literal": dimension}]))
            continue
        else:
            op = op_of_node(node, modules)
            if op is None:
                what = type(modules[node.target]).__name__ if node.op == "call_module" else node.target
                unknown.append(f"{node.name} ({getattr(what, '__name__', what)})")
                continue
            if node.op == "call_module" and node.target not in layers:
                layers[node.target] = _layer(modules[node.target], op, node.target, tensors)
            elif node.op != "call_module":
                # Methods take sizes one by one: x.view(-1, 16).
                method = node.op == "call_method" and node.target in ("view", op)
                entry["kind"], entry["target"] = "call_method" if method else "call_function", node.target if method else op
                if isinstance(node.target, QuantizedFunction) and node.target.quantizers:
                    entry["quantization"] = dict(node.target.config, name=node.target.format)
        entry["args"] = [_argument(value, node.name) for value in node.args]
        keys = {key: _argument(value, node.name) for key, value in node.kwargs.items() if value is not None}
        if keys:
            entry["kwargs"] = keys
        nodes.append(entry)
    if unknown:
        raise _native.Error(f"{type(module).__name__}: there is no operation for {', '.join(unknown)}")
    description = {"name": name or getattr(module, "mase_name", None) or type(module).__name__, "nodes": nodes, "modules": layers}
    return Graph(_native.described_graph(description, tensors))


def _layer(module: torch.nn.Module, op: str, path: str, tensors: Dict[str, Any]) -> dict:
    attributes = layer_attributes(module, op)
    entry: Dict[str, Any] = {"op": op, "attributes": attributes, "parameters": {}, "buffers": {}}
    for name, trainable, dtype in _native.parameter_names(op, attributes):
        tensor = _parameter(module, name, path)
        entry["parameters" if trainable else "buffers"][name] = {"shape": list(tensor.shape), "dtype": dtype}
        tensors[f"{path}.{name}"] = tensor.numpy()
    mask = pruning_mask(module)
    if mask is not None:
        entry["masks"] = {"weight": {"shape": list(mask.shape), "dtype": "float32"}}
        tensors[f"mask:{path}.weight"] = mask.detach().to(torch.float32).contiguous().numpy()
    if isinstance(module, QuantizedLayer):
        entry["quantization"] = {**{k: v for k, v in module.config.items() if v is not None}, "name": module.format}
    return entry


def pruning_mask(module: torch.nn.Module) -> Optional[torch.Tensor]:
    """The mask of a layer whose weight is parametrised by one."""
    for item in getattr(getattr(module, "parametrizations", {}), "weight", ()) if hasattr(module, "parametrizations") else ():
        if hasattr(item, "mask"):
            return item.mask
    return None


def _function(path: str) -> Any:
    if path.startswith("operator."):
        return getattr(operator, path.partition(".")[2])
    value: Any = torch
    for part in path.split(".")[1:]:
        value = getattr(value, part)
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
            if value is not None}
    config = entry.get("quantization")
    if config is not None:
        layer = quantized_class(op, config["name"])(**keys, config=config)
    else:
        layer = getattr(torch.nn, op_records()[op]["class_name"])(**keys)
    with torch.no_grad():
        for name, tensor in list(layer.named_parameters(recurse=False)) + list(layer.named_buffers(recurse=False)):
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
        mask = graph.modules[path].mask
        if mask is not None:
            apply_mask(layer, torch.from_numpy(mask.copy()))
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


def _add_constants(tree: torch.nn.Module, description: dict, graph: Graph) -> None:
    """The tensors that nodes read, where they were."""
    for path, entry in description["modules"].items():
        if entry.get("op"):
            continue
        owner = tree
        for part in path.split(".") if path else ():
            if part not in owner._modules:
                owner.add_module(part, torch.nn.Module())
            owner = owner._modules[part]  # type: ignore[assignment]
        for name in entry.get("parameters", {}):
            owner.register_parameter(name, torch.nn.Parameter(torch.from_numpy(graph.modules[path][name].copy())))
        for name in entry.get("buffers", {}):
            owner.register_buffer(name, torch.from_numpy(graph.modules[path][name].copy()))


class _Mask(torch.nn.Module):
    """Keeps pruned weights at zero while a layer is trained."""

    def __init__(self, mask: torch.Tensor):
        super().__init__()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight * self.mask


def apply_mask(layer: torch.nn.Module, mask: torch.Tensor) -> None:
    import torch.nn.utils.parametrize as parametrize

    if parametrize.is_parametrized(layer, "weight"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.register_parametrization(layer, "weight", _Mask(mask))


def to_torch(graph: Graph) -> torch.fx.GraphModule:
    description, layers = _layers_of(graph)
    fx_graph = torch.fx.Graph()
    made: Dict[str, torch.fx.Node] = {}

    def value(argument: dict) -> Any:
        if "node" in argument:
            return made[argument["node"]]
        if "list" in argument:
            return [value(item) for item in argument["list"]]
        literal = argument.get("literal")
        return tuple(literal) if isinstance(literal, list) else literal

    for node in description["nodes"]:
        args = tuple(value(item) for item in node.get("args", []))
        keys = {key: value(item) for key, item in node.get("kwargs", {}).items()}
        target: Any = node["target"]
        if node["kind"] == "call_method":
            pass
        elif node["kind"] == "call_function":
            target = _function(op_records()[node["target"]]["function"])
            if node.get("quantization"):
                target = QuantizedFunction(target, node["target"], node["quantization"]["name"], node["quantization"])
        made[node["name"]] = fx_graph.create_node(node["kind"], target, args, keys, node["name"])
    tree = _tree(layers)
    _add_constants(tree, description, graph)
    module = torch.fx.GraphModule(tree, fx_graph, "GraphModule")
    module.mase_name = graph.name  # type: ignore[assignment]
    return module
