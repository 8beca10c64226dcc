# SPDX-License-Identifier: Apache-2.0
"""From torch modules to graphs. Weights are shared."""
from __future__ import annotations

import inspect
import operator
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.fx

from mase import _native
from mase.graph import Graph
from mase.torch_layers import QuantizedFunction, QuantizedLayer, layer_class, op_records
from mase.torch_lowering import Lowering, name_of, rewrite_of
from mase.torch_ops import op_of_node, pruning_mask
from mase.torch_trace import trace

# Arguments that say nothing about what is computed, or whose one value here is this; ...: any.
_NEUTRAL: Dict[str, Any] = {
    "inplace": ..., "_stacklevel": ..., "memory_format": ..., "device": ..., "layout": ..., "sparse": ..., "scale_grad_by_freq": False,
    "training": True, "return_indices": False, "alpha": 1, "dropout_p": 0.0, "average_attn_weights": True, "norm_type": 2.0,
    "dtype": torch.float32, "antialias": False, "enable_gqa": False, "need_weights": ..., "generator": None}


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


def _is_direct(node: torch.fx.Node, modules: Dict[str, torch.nn.Module]) -> bool:
    """Whether the library has the operation as it is called here."""
    if node.op == "output":
        ops = [op_of_node(result, modules) for result in node.all_input_nodes]
        return not any(field["name"] == "result" for op in ops if op for field in op_records()[op]["attributes"])
    if node.op in ("placeholder", "get_attr"):
        return True
    size = _size_of(node)
    if size is not None:
        if size[1] is None:
            return all(_size_of(user) is not None for user in node.users)
        return all(user.op == "call_method" and user.target in ("view", "reshape") for user in node.users)
    return op_of_node(node, modules) is not None and rewrite_of(node, modules) is None


def layer_attributes(module: torch.nn.Module, op: str) -> Dict[str, Any]:
    """The values of the operation's attributes, which torch's layers keep under the same names."""
    attributes: Dict[str, Any] = {}
    for field in op_records()[op]["attributes"]:
        name = field["name"]
        if not hasattr(module, name):
            if name == "bias" and hasattr(module, "in_proj_bias"):
                attributes["bias"] = module.in_proj_bias is not None
            continue
        value = getattr(module, name)
        if name == "momentum" and value is None:
            value = "cumulative" if op.startswith("batch_norm") else 0.0
        if isinstance(value, torch.Tensor) or (value is None and name == "bias"):
            value = value is not None  # whether there is one
        elif isinstance(field["default"], bool):
            value = bool(value)  # nn.ReLU(16) is in place
        elif isinstance(value, (tuple, torch.Size)):
            value = list(value)
        if value is not None:
            attributes[name] = value
    return attributes


def _check_settings(module: torch.nn.Module, op: str, path: str) -> None:
    """What a layer was given that the operation knows nothing of must say nothing."""
    if op == "multihead_attention":  # its rewrite looks at all of them
        return
    known = {field["name"] for field in op_records()[op]["attributes"]}
    for name, parameter in inspect.signature(layer_class(op)).parameters.items():
        value = getattr(module, name, parameter.default)
        if isinstance(value, torch.nn.Parameter):  # `bias` of torch's newer norms says whether there is one
            continue
        if name in known or _NEUTRAL.get(name) is ...:
            continue
        if value is parameter.default or value == parameter.default:
            continue
        value = False if value is None and parameter.default is True else value
        raise _native.Error(f"{path}: {type(module).__name__} takes no {name}={value!r} here")


def _argument(value: Any, place: str) -> dict:
    if isinstance(value, torch.fx.Node):
        return {"node": value.name}
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, torch.fx.Node) for item in value):
            return {"list": [_argument(item, place) for item in value]}
        return {"literal": [_argument(item, place)["literal"] for item in value]}
    if isinstance(value, slice):
        parts = [_argument(part, place) for part in (value.start, value.stop, value.step)]
        if all("literal" in part for part in parts):
            return {"literal": {"slice": [part["literal"] for part in parts]}}
    if value is Ellipsis:
        return {"literal": "..."}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"literal": value}
    raise _native.Error(f"{place}: an argument is {type(value).__name__}, which graphs cannot hold")


def _bound(node: torch.fx.Node) -> Tuple[list, Dict[str, Any]]:
    """Positional tensors, and all else by name, where the order of a call does not tell one from the other."""
    targets: List[Any] = []
    if isinstance(node.target, QuantizedFunction):
        targets = [node.target.function]
    elif callable(node.target):
        targets = [node.target]
    elif hasattr(torch, str(node.target)):
        targets = [getattr(torch, str(node.target))]
    names = {field["name"] for field in op_records()[op_of_node(node, {}) or ""]["attributes"]}
    for target in targets:
        try:
            signatures = [inspect.signature(target)]
        except (TypeError, ValueError):
            from torch.fx.operator_schemas import get_signature_for_torch_op

            signatures = get_signature_for_torch_op(target) or []
        for signature in signatures:
            try:
                given = signature.bind(*node.args, **node.kwargs).arguments
            except TypeError:
                continue
            tensors = [v for v in given.values() if _has_node(v)]
            literals = {k: v for k, v in given.items() if not _has_node(v)}
            if all(v is None or k in names or k in _NEUTRAL for k, v in literals.items()):
                return tensors, literals
    raise _native.Error(f"{node.name}: how {name_of(node.target)} is called here is not understood; write its numbers by name")


def _has_node(value: Any) -> bool:
    return isinstance(value, torch.fx.Node) or (isinstance(value, (list, tuple)) and any(map(_has_node, value)))


def _call(node: torch.fx.Node, op: str) -> Tuple[List[dict], Dict[str, dict]]:
    """The arguments of a function or method as the library takes them."""
    args, kwargs = list(node.args), dict(node.kwargs)
    schema = {field["name"] for field in op_records()[op]["attributes"]}
    if "input" in schema and len(args) == 2 and not _has_node(args[0]):  # 1 - x
        args, kwargs = [args[1]], {"input": args[0], **kwargs}
    if "other" in schema:  # mask == False
        args = [int(v) if isinstance(v, bool) else v for v in args]
    mixed = any(v is None for v in args) or any(_has_node(v) for v in kwargs.values())
    mixed = mixed or any(_has_node(b) and not _has_node(a) for a, b in zip(args, args[1:]))
    if op == "getitem":
        args = [args[0], ["None"] if args[1] is None else _index(args[1])]
    elif mixed and op not in ("layer_norm", "reshape"):  # sizes are nodes too
        args, kwargs = _bound(node)
    return [_argument(v, node.name) for v in args], _keywords(node, kwargs, schema)


def _index(value: Any) -> Any:
    """A new dimension by its name: what is nothing is not given."""
    if isinstance(value, (list, tuple)):
        return [_index(item) for item in value]
    return "None" if value is None else value


def _keywords(node: torch.fx.Node, kwargs: Dict[str, Any], schema: Any) -> Dict[str, dict]:
    kept = {}
    for key, value in kwargs.items():
        if value is None:
            continue
        if key in schema or _has_node(value):
            kept[key] = _argument(value, node.name)
        elif key not in _NEUTRAL or _NEUTRAL[key] not in (..., value):
            raise _native.Error(f"{node.name}: {name_of(node.target)} takes no {key}={value!r} here")
    return kept


def _examples(traced: torch.fx.GraphModule, example: Any) -> Dict[str, torch.Tensor]:
    """Inputs by node names."""
    places = [node for node in traced.graph.nodes if node.op == "placeholder"]
    if isinstance(example, dict):
        return {node.name: example[key] for node in places for key in (node.name, str(node.target))
                if isinstance(example.get(key), torch.Tensor)}
    given = example if isinstance(example, (tuple, list)) else () if example is None else (example,)
    return {node.name: value for node, value in zip(places, given) if isinstance(value, torch.Tensor)}


def _defaults(module: torch.nn.Module, example: Any) -> Optional[Dict[str, Any]]:
    """What forward's further parameters are when they are left out, as the example leaves them out."""
    if example is None or isinstance(module, torch.fx.GraphModule):
        return None
    parameters = [p for p in inspect.signature(module.forward).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    count = len(example) if isinstance(example, (tuple, list)) else 1
    given = set(example) if isinstance(example, dict) else {p.name for p in parameters[:count]}
    left = {p.name: p.default for p in parameters if p.name not in given and p.default is not p.empty}
    return left or None


def guessed_shape(node: torch.fx.Node, modules: Dict[str, torch.nn.Module]) -> Optional[List[int]]:
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


def _parameter(tensor: torch.Tensor, name: str) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_floating_point() and tensor.dtype is not torch.float32:
        raise _native.Error(f"{name}: expected float32, got {tensor.dtype}; convert the module with .float()")
    return tensor.contiguous()


# Layers whose function takes weight and bias as inputs, and its other arguments.
_TIED: Dict[str, Tuple[str, ...]] = {
    "linear": (), "embedding": ("padding_idx",), "conv1d": ("stride", "padding", "dilation", "groups"),
    "conv2d": ("stride", "padding", "dilation", "groups"),
    "conv_transpose1d": ("stride", "padding", "output_padding", "groups", "dilation"),
    "conv_transpose2d": ("stride", "padding", "output_padding", "groups", "dilation")}

_ELEMENTS = {torch.int64: "int64", torch.int32: "int64", torch.int16: "int64", torch.uint8: "int64", torch.bool: "bool"}


class _Importer:
    def __init__(self, traced: torch.fx.GraphModule, examples: Dict[str, torch.Tensor]):
        self.traced, self.examples = traced, dict(examples)
        self.graph, self.modules = traced.graph, dict(traced.named_modules())
        self.constants: Dict[str, torch.Tensor] = {}
        self.nodes: List[dict] = []
        self.layers: Dict[str, dict] = {}
        self.tensors: Dict[str, Any] = {}
        self.owners: Dict[int, str] = {}  # parameters by identity: under which name they were met first
        self.others: Dict[str, str] = {}  # their further names
        self.unknown: List[str] = []

    def lower(self) -> None:
        if all(_is_direct(node, self.modules) for node in self.graph.nodes):
            return
        for node in self.graph.nodes:
            if node.op == "placeholder" and node.name not in self.examples and not node.args:
                self.examples[node.name] = torch.zeros(2, *self.shape(node))
        lowering = Lowering(self.traced, self.examples)
        self.graph = lowering.run()
        self.constants, self.modules, self.unknown = lowering.constants, lowering.modules, lowering.unknown

    def shape(self, node: torch.fx.Node) -> List[int]:
        if node.name in self.examples:
            return list(self.examples[node.name].shape[1:])
        shape = guessed_shape(node, self.modules)
        if shape is None:
            raise _native.Error(f"{node.name}: the shape of this input is not known; give an example")
        return shape

    def description(self) -> Tuple[List[dict], Dict[str, dict], Dict[str, Any]]:
        for node in self.graph.nodes:
            if node.op == "placeholder" and not node.users and len(self.graph.nodes) > 2 and node.name not in self.examples:
                continue  # an optional input that nobody gave
            entry = self.entry(node)
            if entry is not None:
                self.nodes.append(entry)
        return self.nodes, self.layers, self.tensors

    def entry(self, node: torch.fx.Node) -> Optional[dict]:
        entry: Dict[str, Any] = {"name": node.name, "kind": node.op, "target": str(node.target)}
        if node.op == "placeholder":
            entry["shape"] = self.shape(node)
            example = self.examples.get(node.name)
            if example is not None and example.dtype in _ELEMENTS:
                entry["element"] = _ELEMENTS[example.dtype]
            return entry
        if node.op == "get_attr":
            self.constant(str(node.target))
            return entry
        if node.op == "output":
            return dict(entry, target="output", args=[_argument(_outputs(node.args[0]), "output")])
        size = _size_of(node)
        if size is not None:
            if size[1] is None:
                return None  # its users say which dimension
            return dict(entry, kind="call_method", target="size", args=[_argument(size[0], node.name), {"literal": size[1]}])
        op = op_of_node(node, self.modules)
        if op is None:
            what: Any = type(self.modules[str(node.target)]) if node.op == "call_module" else node.target
            self.unknown.append(f"{node.name} ({name_of(what)})")
            return None
        if node.op == "call_module":
            path = str(node.target)
            if "op" not in self.layers.get(path, {}):
                names = self.tied(self.modules[path], op, path)
                if names is not None:
                    return self.tied_call(node, op, names)
                self.layers[path] = self.layer(self.modules[path], op, path)
            entry["args"] = [_argument(value, node.name) for value in node.args]
            kwargs = _keywords(node, dict(node.kwargs), {field["name"] for field in op_records()[op]["attributes"]})
        else:
            # Methods take sizes one by one: x.view(-1, 16).
            method = node.op == "call_method" and node.target in ("view", op)
            entry["kind"], entry["target"] = "call_method" if method else "call_function", node.target if method else op
            if isinstance(node.target, QuantizedFunction) and node.target.quantizers:
                entry["quantization"] = dict(node.target.config, name=node.target.format)
            entry["args"], kwargs = _call(node, op)
        if kwargs:
            entry["kwargs"] = kwargs
        return entry

    def tied(self, module: torch.nn.Module, op: str, path: str) -> Optional[Dict[str, str]]:
        """Under which names a layer's parameters are kept, if one of them is another layer's too."""
        names = {}
        for name, trainable, _ in _native.parameter_names(op, layer_attributes(module, op)):
            value = operator.attrgetter(name)(module)
            own = f"{path}.{name}"
            names[name] = self.owners.setdefault(id(value), own) if trainable and isinstance(value, torch.nn.Parameter) else own
        return names if any(kept != f"{path}.{name}" for name, kept in names.items()) else None

    def tied_call(self, node: torch.fx.Node, op: str, names: Dict[str, str]) -> dict:
        """A layer that shares a parameter with an earlier one is the function of it, which reads that parameter."""
        module = self.modules[str(node.target)]
        settings = layer_attributes(module, op)
        others = {f"{node.target}.{name}": kept for name, kept in names.items() if kept != f"{node.target}.{name}"}
        if op not in _TIED or settings.get("padding_mode", "zeros") != "zeros":
            raise _native.Error(f"{node.target}: it shares {next(iter(others.values()))} with another layer, and {type(module).__name__} has no "
                                "function that could read it")
        _check_settings(module, op, str(node.target))
        read = []
        self.others.update(others)
        for kept in names.values():
            name = f"{node.name}_{kept.replace('.', '_')}"
            self.nodes.append({"name": name, "kind": "get_attr", "target": kept})
            read.append({"node": name})
            self.constant(kept)
        kwargs = {key: {"literal": settings[key]} for key in _TIED[op] if settings.get(key) is not None}
        entry: Dict[str, Any] = {"name": node.name, "kind": "call_function", "target": op, "kwargs": kwargs,
                                 "args": [_argument(value, node.name) for value in node.args] + read}
        if isinstance(module, QuantizedLayer):
            entry["quantization"] = {**{k: v for k, v in module.config.items() if v is not None}, "name": module.format}
        return entry

    def constant(self, target: str) -> None:
        """A tensor of the module's own, which nodes read."""
        path, _, name = target.rpartition(".")
        if name in self.layers.get(path, {}).get("parameters", {}):
            return
        kind = "buffers"
        if target in self.constants:
            value = self.constants[target]
        else:
            owner = self.traced.get_submodule(path)
            value = getattr(owner, name)
            kind = "parameters" if name in owner._parameters and value.requires_grad else "buffers"
            kept = self.owners.setdefault(id(value), target) if kind == "parameters" else target
            if kept != target:
                raise _native.Error(f"{target}: it is the same tensor as {kept}; read it by that name")
        tensor = _parameter(value, target)
        if tensor.dtype in _ELEMENTS and tensor.dtype is not torch.bool:
            tensor = tensor.to(torch.int64)
        entry = self.layers.setdefault(path, {})
        entry.setdefault(kind, {})[name] = {"shape": list(tensor.shape), "dtype": str(tensor.dtype).replace("torch.", "")}
        self.tensors[f"{path}.{name}"] = tensor.numpy()

    def layer(self, module: torch.nn.Module, op: str, path: str) -> dict:
        _check_settings(module, op, path)
        for hook in module._forward_pre_hooks.values():
            if hasattr(hook, "sparsity"):  # the network would compute something else without it
                raise _native.Error(f"{path}: its inputs are pruned sample by sample, which graphs of the library do not")
        attributes = layer_attributes(module, op)
        entry: Dict[str, Any] = {"op": op, "attributes": attributes, "parameters": {}, "buffers": {}}
        for name, trainable, dtype in _native.parameter_names(op, attributes):
            tensor = _parameter(operator.attrgetter(name)(module), f"{path}.{name}")
            entry["parameters" if trainable else "buffers"][name] = {"shape": list(tensor.shape), "dtype": dtype}
            self.tensors[f"{path}.{name}"] = tensor.numpy()
        trained = {name: operator.attrgetter(name)(module).requires_grad for name in entry["parameters"]}
        if len(set(trained.values())) > 1:
            kept = ", ".join(name for name, trains in trained.items() if not trains)
            raise _native.Error(f"{path}: {kept} is not to be trained and the rest of the layer is; layers are frozen as a whole")
        if trained and not any(trained.values()):
            entry["frozen"] = True
        further = [name for name, _ in module.named_parameters(recurse=False) if name not in trained]
        if further and not isinstance(module, QuantizedLayer):
            raise _native.Error(f"{path}: {', '.join(further)} is no parameter of {type(module).__name__}; take such a "
                                "parametrisation off first (torch.nn.utils.remove_weight_norm)")
        for name in entry["parameters"]:
            mask = pruning_mask(module, name)
            if mask is not None:
                entry.setdefault("masks", {})[name] = {"shape": list(mask.shape), "dtype": "float32"}
                self.tensors[f"mask:{path}.{name}"] = mask.detach().to(torch.float32).contiguous().numpy()
        if isinstance(module, QuantizedLayer):
            entry["quantization"] = {**{k: v for k, v in module.config.items() if v is not None}, "name": module.format}
        return entry


def _outputs(value: Any) -> Any:
    """One node, or a list of them."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return value
    flat: List[Any] = []
    for item in value:
        inner = _outputs(item)
        flat += inner if isinstance(inner, list) else [] if inner is None else [inner]
    return flat[0] if len(flat) == 1 else flat


def from_torch(module: torch.nn.Module, example: Any = None, *, name: Optional[str] = None, partial: bool = False,
               meta: Optional[Dict[str, Any]] = None) -> Graph:
    """`partial`: operations that the library lacks are kept to be looked at; such a graph cannot be run. `meta`: facts that
    travel with the graph."""
    traced = trace(module, _defaults(module, example))
    importer = _Importer(traced, _examples(traced, example))
    importer.lower()
    nodes, layers, tensors = importer.description()
    if importer.unknown and not partial:
        raise _native.Error(f"{type(module).__name__}: there is no operation for {', '.join(importer.unknown)}")
    description = {"name": name or getattr(module, "mase_name", None) or type(module).__name__, "nodes": nodes, "modules": layers}
    facts = {**(meta or {}), **({"tied": importer.others} if importer.others else {})}
    if facts:
        description["meta"] = facts
    return Graph(_native.described_graph(description, tensors))
