# SPDX-License-Identifier: Apache-2.0
"""attention_swap: attention with fewer keys and values. Heads are put together in groups whose keys and values are their means, which
is exact where the heads of a group are equal."""
from __future__ import annotations

import copy
from typing import Any, Dict, Tuple

from mase._native import Error

_NAMES = (("q_proj", "k_proj", "v_proj"), ("query", "key", "value"))
_ABSENT = {"mla": "keys and values through a low-rank bottleneck would need another forward", "lora_fc": "see insert_lora_adapter_transform_pass"}


def _projections(part: Any) -> Any:
    for names in _NAMES:
        if all(hasattr(part, name) for name in names):
            return names
    return None


def _heads(part: Any, network: Any) -> int:
    for place in (part, getattr(part, "config", None), getattr(network, "config", None)):
        for name in ("num_attention_heads", "num_heads", "heads", "n_head"):
            if isinstance(getattr(place, name, None), int):
                return getattr(place, name)
    raise Error(f"attention_swap: how many heads {type(part).__name__} has is not known; give num_heads")


def _grouped(weight: Any, heads: int, groups: int) -> Any:
    """Rows of each head replaced by the mean over its group."""
    size = weight.shape[0] // heads
    parts = weight.reshape(groups, heads // groups, size, *weight.shape[1:])
    return parts.mean(1, keepdim=True).expand_as(parts).reshape(weight.shape)


def attention_swap_transform_pass(network: Any, pass_args: Dict[str, Any]) -> Tuple[Any, dict]:
    """{"by": "type" or "name" or "regex_name", KEY: {"config": {"name": "mgqa", "kv_heads": n}}}: a copy of the network whose heads share
    keys and values in `kv_heads` groups. Projections keep their sizes, equal rows for equal heads, so that the module's own forward
    runs; `kv_share` says which part of keys and values a cache would hold. By type, KEY is the class's name."""
    import torch

    from chop.passes.graph.utils import match_a_pattern

    args: Dict[str, Any] = dict(pass_args or {})
    by = args.pop("by", "type")
    if by not in ("type", "name", "regex_name"):
        raise Error(f"by: expected type, name or regex_name, got {by!r}")
    found: Dict[str, Any] = {}
    network = copy.deepcopy(network)
    for path, part in network.named_modules():
        names = _projections(part)
        if names is None:
            continue
        kind = type(part).__name__
        key = kind if by == "type" else path if by == "name" else match_a_pattern(path, [k for k in args if k != "default"])
        rule = args.get(key if key is not None else "default", args.get("default"))
        if rule is None:
            continue
        config = dict(rule.get("config") or {})
        name = config.pop("name", None)
        if name is None:
            continue
        if name != "mgqa":
            raise Error(f"attention_swap: expected mgqa, got {name!r}: {_ABSENT.get(name, 'there is no such attention')}")
        groups, heads = config.pop("kv_heads", None), config.pop("num_heads", None) or _heads(part, network)
        if config:
            raise Error(f"attention_swap: unknown key '{sorted(config)[0]}'; mgqa takes kv_heads and num_heads")
        key_layer, value_layer = getattr(part, names[1]), getattr(part, names[2])
        own = heads * key_layer.weight.shape[0] // getattr(part, names[0]).weight.shape[0]  # fewer where it has groups already
        if not isinstance(groups, int) or groups < 1 or own % groups:
            raise Error(f"{path}: kv_heads: expected a divisor of {own}, got {groups!r}")
        error = norm = 0.0
        with torch.no_grad():
            for layer in (key_layer, value_layer):
                for tensor in (layer.weight, layer.bias):
                    if tensor is not None:
                        new = _grouped(tensor, own, groups)
                        error, norm = error + float(((new - tensor) ** 2).sum()), norm + float((tensor ** 2).sum())
                        tensor.copy_(new)
        found[path] = {"kv_heads": groups, "kv_share": groups / own, "relative_error": (error / norm) ** 0.5 if norm else 0.0}
    if not found:
        raise Error(f"attention_swap: no attention ({' or '.join('/'.join(names) for names in _NAMES)}) is meant by these rules")
    return network, found


attention_transform_pass = attention_swap_transform_pass
