# SPDX-License-Identifier: Apache-2.0
"""Metadata: what each node is, and the type, precision, shape and value of everything it takes and
gives. The network runs once, in evaluation mode: batch-norm statistics stay what they were, and
in-place layers do not overwrite what was recorded."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, Mapping, Optional, Tuple

import torch
from torch.fx.node import map_arg

from chop.ir.graph.huggingface import example_inputs
from chop.ir.graph.mase_metadata import MaseMetadata
from chop.passes.graph.utils import arguments_of, as_graph
from chop.tools.logger import get_logger
from mase._native import Error
from mase.torch_import import guessed_shape
from mase.torch_layers import op_of_class
from mase.torch_ops import op_of_node
from mase.torch_layers import QuantizedFunction, QuantizedLayer, op_records
from mase.torch_stand_ins import evaluating

_NAMES: Dict[int, str] = {i: f"data_in_{i}" for i in range(64)}


def init_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Empty metadata on every node and on the graph."""
    graph = as_graph(graph)
    for node in graph.fx_graph.nodes:
        node.meta["mase"] = MaseMetadata(node, graph.model)
    graph.meta["mase"] = MaseMetadata(None, graph.model)
    return graph, {}


@lru_cache(maxsize=None)
def _layer_kind(kind: type) -> Tuple[str, str]:
    op = op_of_class(kind)
    return (op_records()[op]["mase_type"], op) if op is not None else ("module", kind.__name__.lower())


def node_kind(node: Any, modules: Dict[str, Any]) -> Tuple[str, str]:
    """MASE's type and operation of a node."""
    if node.op == "call_module":
        layer: Any = type(modules[node.target])
        return _layer_kind(layer)
    if node.op in ("placeholder", "output"):
        return node.op, node.op
    if node.op == "get_attr":
        return "get_attr", "constant"
    op = op_of_node(node, modules)
    if op is not None:
        kind = op_records()[op]["mase_type"]
        return ("implicit_func" if node.op == "call_method" and kind != "builtin_func" else kind), op
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    return "implicit_func", name


def _result(value: Any, add_value: bool) -> Dict[str, Any]:
    if isinstance(value, torch.Tensor):
        entry: Dict[str, Any] = {"type": "float", "precision": [32], "shape": list(value.shape),
                                 "torch_dtype": value.dtype}
    else:
        entry = {"type": type(value), "shape": [1]}
        add_value = True
    if add_value:
        entry["value"] = value
    return entry


def _results(value: Any, add_value: bool) -> Dict[str, Any]:
    values = value if isinstance(value, (tuple, list)) else (value,)
    return {f"data_out_{i}": _result(item, add_value) for i, item in enumerate(values)}


def _input(value: torch.Tensor, add_value: bool) -> Dict[str, Any]:
    entry = {"shape": list(value.shape), "torch_dtype": value.dtype, "type": "float", "precision": [32]}
    if add_value:
        entry["value"] = value
    return entry


def quantized_entry(entry: Any, quantizer: Any) -> None:
    """The type and precision of an operand that has a number format."""
    if isinstance(entry, dict) and quantizer is not None:
        entry["type"], entry["precision"] = quantizer.name, list(quantizer.precision)


def describe_formats(meta: MaseMetadata, target: Any) -> None:
    """Types and precisions of a quantised layer's or function's arguments."""
    common = meta.parameters["common"]
    args = common.get("args", {})
    if isinstance(target, QuantizedLayer):
        for name, entry in args.items():
            quantized_entry(entry, target.quantizers.get("data_in" if name.startswith("data_in") else name))
        for entry in common.get("results", {}).values():
            quantized_entry(entry, target.out_quantizer)
    elif isinstance(target, QuantizedFunction):
        for name, entry in args.items():
            if name.startswith("data_in_"):
                quantized_entry(entry, target.quantizers.get(target.operand(int(name[8:]))))


def _arguments(node: Any, values: tuple, keys: dict, module: Any, op: Optional[str], add_value: bool) -> Dict[str, Any]:
    args: Dict[str, Any] = {}
    literals: list = []
    count = 0
    if len(values) == 1 and isinstance(values[0], torch.Tensor):  # nearly every layer
        args["data_in_0"] = _input(values[0], add_value)
        values = ()
    for value in values:
        for item in value if isinstance(value, (tuple, list)) and any(isinstance(v, torch.Tensor) for v in value) else (value,):
            if isinstance(item, torch.Tensor):
                args[_NAMES[count]] = _input(item, add_value)
                count += 1
            else:
                literals.append(item)
    if module is None:
        names = [field["name"] for field in op_records()[op]["attributes"]] if op is not None else []
        for index, literal in enumerate(literals):
            args[names[index] if index < len(names) else f"arg_{index}"] = literal
    for key, value in keys.items():
        args[key] = _input(value, add_value) if isinstance(value, torch.Tensor) else value
    if module is not None:
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            entry: Dict[str, Any] = {"type": "float", "precision": [32], "shape": list(parameter.shape), "from": None}
            if add_value:
                entry["value"] = parameter
            args[name] = entry
        if "parametrizations" in module._modules and "weight" not in args:
            weight = module.weight
            args["weight"] = {"type": "float", "precision": [32], "shape": list(weight.shape), "from": None, "value": weight}
    return args


def _placeholder(node: Any, dummy_in: Mapping, modules: Dict[str, Any]) -> Any:
    for name in (node.target, node.name):
        if name in dummy_in:
            return dummy_in[name]
    if node.args:
        return node.args[0]
    shape = guessed_shape(node, modules)
    if shape is not None and not dummy_in:
        return torch.zeros(1, *shape)
    raise Error(f"dummy_in: there is no value for the input '{node.target}'; it has: {', '.join(map(str, dummy_in)) or 'nothing'}")


def _own_inputs(graph: Any) -> Dict[str, Any]:
    """For a graph whose inputs have names: two short rows that are made here."""
    names = [node.target for node in graph.nodes_in]
    if not hasattr(graph.model, "class_for_deserialization"):
        return {}
    get_logger("chop").info(f"add_common_metadata: without dummy_in: two rows of eight made-up tokens for {', '.join(names)}")
    return example_inputs(graph.model, names)


def add_common_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Types, precisions, shapes, dtypes and values (`add_value`) of one run on `dummy_in`, any mapping of inputs by name. Inputs
    that are left out are one sample of zeros where the first layer says how wide they are."""
    graph = as_graph(graph)
    given = pass_args or {}
    unknown = given.keys() - {"dummy_in", "add_value", "force_device_meta"}
    if unknown:
        raise Error(f"add_common_metadata: unknown key '{sorted(unknown)[0]}'; it takes dummy_in, add_value, force_device_meta")
    dummy_in = given.get("dummy_in")
    if dummy_in is None:
        dummy_in = _own_inputs(graph)
    if not isinstance(dummy_in, Mapping):
        raise Error("dummy_in: expected a dict of inputs by name, such as {'x': tensor}")
    add_value = given.get("add_value", True)
    model, modules = graph.model, graph.modules
    values: Dict[Any, Any] = {}
    with evaluating(modules.values()), torch.no_grad():
        for node in model.graph.nodes:
            meta = node.meta.get("mase")
            if meta is None:
                meta = node.meta["mase"] = MaseMetadata(node, model)
            kind, op_name = node_kind(node, modules)
            args: Dict[str, Any] = {}
            target: Any = None
            if node.op == "placeholder":
                value = _placeholder(node, dummy_in, modules)
            elif node.op == "output":
                value = map_arg(node.args[0], values.__getitem__)
            elif node.op == "get_attr":
                value = model
                for part in node.target.split("."):
                    value = getattr(value, part)
            else:
                inputs = arguments_of(node.args, values)
                keys = map_arg(node.kwargs, values.__getitem__) if node.kwargs else {}
                if node.op == "call_module":
                    target = modules[node.target]
                    inplace = target.__dict__.get("inplace", False)  # getattr takes long where there is none
                    value = target(*(inputs if not inplace else [x.clone() for x in inputs]), **keys)
                    args = _arguments(node, inputs, keys, target, None, add_value)
                else:
                    target = node.target
                    own = [x.clone() for x in inputs] if keys.get("inplace") or (len(inputs) > 1 and inputs[1] is True) else inputs
                    value = getattr(own[0], target)(*own[1:], **keys) if node.op == "call_method" else target(*own, **keys)
                    args = _arguments(node, inputs, keys, None, op_name if op_name in op_records() else None, add_value)
            values[node] = value
            results = {"data_out_0": _result(value, add_value)} if value.__class__ is torch.Tensor else _results(value, add_value)
            meta.parameters["common"] = {"mase_type": kind, "mase_op": op_name, "args": args, "results": results}
            if node.op in ("placeholder", "output"):
                meta.parameters["hardware"].setdefault("is_implicit", True)
            elif isinstance(target, (QuantizedLayer, QuantizedFunction)):
                describe_formats(meta, target)
    _describe_graph(graph, [n for n in values if n.op == "placeholder"], [n for n in values if n.op == "output"])
    return graph, {}


def _describe_graph(graph: Any, nodes_in: list, nodes_out: list) -> None:
    meta = graph.meta.get("mase")
    if meta is None:
        meta = graph.meta["mase"] = MaseMetadata(None, graph.model)
    results = [node.meta["mase"].parameters["common"]["results"] for node in nodes_out]
    meta.parameters["common"] = {
        "nodes_in": nodes_in, "nodes_out": nodes_out,
        "args": {_NAMES[i]: node.meta["mase"].parameters["common"]["results"]["data_out_0"] for i, node in enumerate(nodes_in)},
        "results": {f"data_out_{i}": entry for i, entry in enumerate(v for r in results for v in r.values())}}


def add_software_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """An empty table of statistics for every argument, parameter, buffer and result."""
    graph = as_graph(graph)
    modules = graph.modules
    for node in graph.fx_graph.nodes:
        meta = node.meta.get("mase")
        if meta is None:
            raise Error("add_software_metadata: the graph has no metadata; run init_metadata_analysis_pass first")
        software: Dict[str, Any] = {}
        if node.op not in ("placeholder", "get_attr"):
            count = len(node.all_input_nodes)
            args: Dict[str, Any] = {_NAMES[i]: {"stat": {}} for i in range(count)}
            if node.op == "call_module":
                module = modules[node.target]
                for name, _ in module.named_parameters(recurse=False):
                    args[name] = {"stat": {}}
                for name, buffer in module.named_buffers(recurse=False):
                    if buffer.is_floating_point():
                        args[name] = {"stat": {}}
            software["args"] = args
        if node.op != "output":
            software["results"] = {"data_out_0": {"stat": {}}}
        meta.parameters["software"] = software
    return graph, {}


__all__ = ["add_common_metadata_analysis_pass", "add_software_metadata_analysis_pass", "init_metadata_analysis_pass",
           "op_of_class"]
