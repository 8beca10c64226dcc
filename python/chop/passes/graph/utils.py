# SPDX-License-Identifier: Apache-2.0
"""Small functions on nodes and graphs."""
from __future__ import annotations

import copy
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from chop.tools.attributes import deepgetattr, deepsetattr  # noqa: F401 - the original has them here too
from mase._native import Error


def as_graph(graph: Any) -> Any:
    """The graph; of a pair (graph, info), which is what passes return, the first."""
    if isinstance(graph, tuple) and graph:
        graph = graph[0]
    if not hasattr(graph, "fx_graph"):
        raise Error(f"expected a MaseGraph, got {type(graph).__name__}")
    return graph


def arguments_of(args: tuple, values: Dict[Any, Any]) -> Any:
    """The arguments with every node's value in its place; fx's map_arg, quick where there is one node."""
    if len(args) == 1 and args[0].__class__.__name__ == "Node":
        return (values[args[0]],)
    from torch.fx.node import map_arg

    return map_arg(args, values.__getitem__)


def _common(node: Any) -> dict:
    meta = node.meta.get("mase")
    if meta is None or not meta.parameters["common"]:
        raise Error(f"{node.name}: has no metadata; run init_metadata and add_common_metadata first")
    return meta.parameters["common"]


def get_mase_op(node: Any) -> str:
    """The operation: "linear"."""
    return _common(node)["mase_op"]


def get_mase_type(node: Any) -> str:
    """The kind: "module_related_func"."""
    return _common(node)["mase_type"]


def get_node_actual_target(node: Any) -> Any:
    """The layer of a call_module node; the target of any other."""
    if node.op == "call_module":
        meta = node.meta.get("mase")
        module = node.graph.owning_module if meta is None else meta.model
        return module.get_submodule(node.target)
    return node.target


def get_parent_name(target: str) -> Tuple[str, str]:
    """("seq_blocks", "2") of "seq_blocks.2"."""
    parent, _, name = target.rpartition(".")
    return parent, name


def get_node_by_name(graph: Any, request_name: str) -> Any:
    for node in graph.nodes if hasattr(graph, "nodes") else as_graph(graph).fx_graph.nodes:
        if node.name == request_name:
            return node
    raise Error(f"{request_name}: the graph has no such node")


def get_node_target_by_name(graph: Any, request_name: str) -> Any:
    return get_node_by_name(graph, request_name).target


def get_similar_node_actual_target(graph: Any, node: Any) -> Any:
    """What the node of the same name calls in another graph; None if there is none."""
    for other in as_graph(graph).fx_graph.nodes:
        if other.name == node.name:
            return get_node_actual_target(other)
    return None


def match_a_pattern(name: str, patterns: List[str]) -> Optional[str]:
    """The first pattern that the whole name matches."""
    for pattern in patterns:
        if re.fullmatch(pattern, name):
            return pattern
    return None


def load_arg(a: Any, env: Dict[str, Any]) -> Any:
    """An argument with every node's value in its place, by the node's name."""
    from torch.fx.node import map_arg

    return map_arg(a, lambda node: env[node.name])


def fetch_attr(mod: Any, target: str) -> Any:
    """What a dotted path leads to."""
    value = mod
    for i, part in enumerate(parts := target.split(".")):
        if not hasattr(value, part):
            raise Error(f"{'.'.join(parts[:i + 1])}: {type(mod).__name__} has no such attribute")
        value = getattr(value, part)
    return value


def match_and_filter(name: str, funcs: Any) -> Tuple[bool, Optional[str]]:
    """Whether one of the words is in a name ("relu" in "relu_1"), and the longest that is."""
    found = [word for word in funcs if word in name]
    return (True, max(found, key=len)) if found else (False, None)


def pattern_name_match(pattern: str, name: str) -> bool:
    return re.fullmatch(pattern, name) is not None


def is_tensor_constant(s: str) -> bool:
    return re.match(r"_tensor_constant[0-9]+", s) is not None


def get_input_nodes(fx_graph: Any) -> list:
    return [node for node in fx_graph.nodes if node.op == "placeholder"]


def get_output_nodes(fx_graph: Any) -> list:
    return [node for node in fx_graph.nodes if node.op == "output"]


def get_module_by_name(model: Any, request_name: str) -> Any:
    return dict(model.named_modules()).get(request_name)


def get_module_by_target(model: Any, target: str) -> Any:
    return model.get_submodule(target)


def deepcopy_mase_graph(mase_graph: Any) -> Any:
    """A graph of its own: layers, weights and metadata are copied."""
    return copy.deepcopy(as_graph(mase_graph))


def init_project(project_dir: Any) -> None:
    import os

    for part in ("software", "hardware/rtl", "hardware/sim", "hardware/test"):
        os.makedirs(os.path.join(project_dir, part), exist_ok=True)


def metadata_value_type_cast_transform_pass(graph: Any, pass_args: Optional[Dict[str, Callable]] = None) -> Tuple[Any, dict]:
    """Puts every value of the metadata through a function: {"fn": to_numpy_if_tensor}."""
    graph = as_graph(graph)
    function: Any = (pass_args or {}).get("fn")
    if function is None:
        raise Error("metadata_value_type_cast: 'fn' is missing; a function from value to value")

    def cast(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cast(item) for key, item in value.items()}
        if isinstance(value, list):
            return [cast(item) for item in value]
        return function(value)

    for node in graph.fx_graph.nodes:
        meta = node.meta["mase"]
        meta.parameters = {kind: cast(part) for kind, part in meta.parameters.items()}
    return graph, {}
