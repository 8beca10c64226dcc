# SPDX-License-Identifier: Apache-2.0
"""quantize: layers and functions get number formats. A layer is replaced by its quantised class with
copies of its tensors; weights stay in float and are rounded when they are used, so quantising again
never compounds. The caller's dict is left as it is."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, Optional, Tuple

import torch

import chop.passes.graph.rules  # noqa: F401 - tells which formats are rounded otherwise
from chop.passes.graph.metadata import describe_formats
from chop.passes.graph.utils import as_graph, get_parent_name, match_a_pattern
from mase._native import Error
from mase.torch_ops import apply_mask, op_of_node, pruning_mask
from mase.torch_keys import for_operands
from mase.torch_layers import QuantizedFunction, op_records, quantized_class

QUANTIZEABLE_OP = tuple(sorted(name for name, record in op_records().items() if record["operands"]))
_NONE = (None, "NA", "None", "none")


def rule_for(name: str, op: str, by: str, rules: Dict[str, Any]) -> Optional[dict]:
    if by == "type":
        key: Optional[str] = op
    elif by == "name":
        key = name
    else:
        key = match_a_pattern(name, [k for k in rules if k not in ("by", "default")])
    rule = rules.get(key) if key is not None and key in rules else rules.get("default")
    if rule is None:
        return None
    if not isinstance(rule, dict) or not isinstance(rule.get("config"), dict):
        raise Error(f"quantize: '{key}' is no table with a config; write {{'config': {{'name': 'integer', ...}}}}")
    config = rule["config"]
    return None if config.get("name") in _NONE else config


@lru_cache(maxsize=None)
def _other_operands(op: str) -> Tuple[str, ...]:
    own = set(op_records()[op]["operands"])
    return tuple(sorted({f"{o}_" for record in op_records().values() for o in record["operands"] if o not in own}))


def _for_op(config: dict, op: str) -> dict:
    """The keys an operation has operands for: one table may serve several operations."""
    others = _other_operands(op)
    kept = {key: value for key, value in config.items() if not key.startswith(others)} if others else dict(config)
    return for_operands(kept, op, config["name"])


def _check(graph: Any, by: str, rules: Dict[str, Any], ops: Dict[Any, str]) -> None:
    known = set(ops.values()) if by == "type" else {node.name for node in ops}
    for key in rules:
        if key in ("by", "default"):
            continue
        if by == "type" and key not in op_records():
            raise Error(f"quantize: there is no operation '{key}'; the graph has {', '.join(sorted(known))}")
        if by == "name" and key not in known:
            raise Error(f"quantize: there is no node '{key}' that can be quantised; there are {', '.join(sorted(known))}")


def quantize_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Number formats by operation (`by` "type"), node name ("name") or expression ("regex_name")."""
    graph = as_graph(graph)
    rules = pass_args or {}
    if not rules:
        raise Error('quantize: nothing says what to quantise; give pass_args such as {"by": "type", "linear": {"config": {...}}}')
    by = rules.get("by", "type")
    if by not in ("type", "name", "regex_name"):
        raise Error(f"by: expected type, name or regex_name, got {by!r}")
    modules = graph.modules
    ops: Dict[Any, str] = {}
    for node in graph.fx_graph.nodes:
        op = op_of_node(node, modules)
        record = op_records()[op] if op is not None else {}
        if op is not None and record["operands"] and (node.op == "call_module" or record["function"]):
            ops[node] = op
    _check(graph, by, rules, ops)
    # Everything that can be wrong is found before anything is changed.
    planned = []
    for node, op in ops.items():
        config = rule_for(node.name, op, by, rules)
        if config is None:
            continue
        config = _for_op(config, op)
        if node.op == "call_module":
            old = modules[node.target]
            planned.append((node, quantized_class(op, config["name"]).from_layer(old, config)))
        else:
            function = node.target.function if isinstance(node.target, QuantizedFunction) else node.target
            if node.op == "call_method":
                function = getattr(torch.Tensor, node.target)
            planned.append((node, QuantizedFunction(function, op, config["name"], config)))
    replaced: Dict[str, Any] = {}
    for node, new in planned:
        if node.op == "call_module":
            new = replaced.setdefault(node.target, new)
            old = modules[node.target]
            if old is not new:
                parent, name = get_parent_name(node.target)
                mask = pruning_mask(old)
                setattr(modules[parent], name, new)
                if mask is not None:
                    apply_mask(new, mask.clone())
        else:
            node.op, node.target = "call_function", new
        meta = node.meta.get("mase")
        if meta is not None and meta.parameters["common"]:
            if node.op == "call_module":
                for name, parameter in new._parameters.items():
                    entry = meta.parameters["common"]["args"].get(name)
                    if isinstance(entry, dict) and "value" in entry:
                        entry["value"] = parameter
            describe_formats(meta, new)
    if any(node.op != "call_module" for node, _ in planned):
        graph.model.recompile()
    return graph, {}
