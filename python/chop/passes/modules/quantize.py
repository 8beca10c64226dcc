# SPDX-License-Identifier: Apache-2.0
"""Number formats for the layers of a module that is no graph, such as one of Hugging Face with all its own code."""
from __future__ import annotations

import copy
from typing import Any, Dict, Optional, Tuple

from chop.passes.graph.quantization import _for_op, rule_for
from mase._native import Error
from mase.torch_layers import op_of_class, op_records, quantized_class
from mase.torch_ops import apply_mask, pruning_mask


def _layers(network: Any) -> Dict[str, str]:
    """Operations of the layers that take number formats, by path."""
    found = {}
    for path, part in network.named_modules():
        kind: Any = type(part)
        op = op_of_class(kind)
        if op is not None and op_records()[op]["operands"] and path:
            found[path] = op
    return found


def _check(by: str, rules: Dict[str, Any], layers: Dict[str, str]) -> None:
    from chop.passes.graph.utils import match_a_pattern

    for key in rules:
        if key in ("by", "default", "gptq"):
            continue
        if by == "type" and key not in op_records():
            raise Error(f"quantize_module: there is no operation '{key}'; the network has {', '.join(sorted(set(layers.values())))}")
        if by == "name" and key not in layers:
            raise Error(f"quantize_module: there is no layer '{key}' that takes number formats; there are {', '.join(layers)}")
        if by == "regex_name" and not any(match_a_pattern(path, [key]) for path in layers):
            raise Error(f"quantize_module: no layer's whole name matches '{key}'; there are {', '.join(layers)}")


def quantize_module_transform_pass(network: Any, pass_args: Dict[str, Any]) -> Tuple[Any, dict]:
    """The network with number formats by operation (`by` "type"), path ("name") or expression ("regex_name", the whole path); `default`
    for the rest. With a table `gptq` its weights are rounded by GPTQ first (run_gptq). What comes in stays as it is; a network that
    has formats gets others, from the float weights that its layers keep."""
    args: Dict[str, Any] = dict(pass_args or {})
    by = args.get("by", "type")
    if by not in ("type", "name", "regex_name"):
        raise Error(f"by: expected type, name or regex_name, got {by!r}")
    layers = _layers(network)
    _check(by, args, layers)
    gptq: Optional[dict] = args.pop("gptq", None)
    planned = {}
    parts = dict(network.named_modules())
    for path, op in layers.items():
        config = rule_for(path, op, by, args)
        if config is not None:
            config = _for_op(config, op)
            planned[path] = (quantized_class(op, config["name"]), config)
            planned[path][0].from_layer(parts[path], config)  # what is wrong is found before anything is copied
    if not planned:
        raise Error("quantize_module: nothing is quantised by these rules")
    if gptq is not None:
        from chop.passes.modules.low_bits import run_gptq

        network = run_gptq(network, gptq)
    else:
        network = copy.deepcopy(network)
    for path, (kind, config) in planned.items():
        parent, _, name = path.rpartition(".")
        old = network.get_submodule(path)
        new, mask = kind.from_layer(old, config), pruning_mask(old)
        setattr(network.get_submodule(parent), name, new)
        if mask is not None:
            apply_mask(new, mask.clone())
    return network, {}
