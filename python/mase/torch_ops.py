# SPDX-License-Identifier: Apache-2.0
"""Which operation of the library a node of torch.fx stands for, and the masks that pruning puts on layers."""
from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any, Dict, Optional, Tuple

import torch
import torch.fx
from torch.fx.node import _get_qualified_name

from mase.torch_layers import QuantizedFunction, op_of_class, op_records

# torch and operator have many functions under several names.
_OTHER_NAMES = {"view": "reshape", "truediv": "div", "itruediv": "div", "true_divide": "div", "divide": "div", "iadd": "add",
                "isub": "sub", "subtract": "sub", "imul": "mul", "multiply": "mul", "negative": "neg", "absolute": "abs",
                "concat": "cat", "concatenate": "cat", "clip": "clamp", "logsigmoid": "log_sigmoid", "not_equal": "ne",
                "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}
_PLACES = ("torch", "torch.nn.functional", "torch._C._nn", "torch.functional", "operator", "torch.Tensor", "torch._C._TensorBase")


@lru_cache(maxsize=None)
def _ops_by_function() -> Dict[str, str]:
    return {record["function"]: name for name, record in op_records().items() if record["function"]}


def _op_named(name: str) -> Optional[str]:
    for known in (name, name.rstrip("_")):
        known = _OTHER_NAMES.get(known, known)
        if known in op_records():
            return known
    return None


def op_of_target(target: Any) -> Optional[str]:
    """The operation of a function or of a method's name; None: we have none."""
    if isinstance(target, QuantizedFunction):
        return target.op
    if isinstance(target, str):
        return "identity" if target == "contiguous" else _op_named(target)
    own = getattr(target, "mase_op", None)
    if own is not None:
        return own
    try:
        name = _get_qualified_name(target).replace("_operator.", "operator.")
    except (RuntimeError, AttributeError):
        return None
    if name in _ops_by_function():
        return _ops_by_function()[name]
    place, _, last = name.rpartition(".")
    return _op_named(last) if place in _PLACES else None


def op_of_node(node: torch.fx.Node, modules: Dict[str, torch.nn.Module]) -> Optional[str]:
    if node.op == "call_module":
        kind: Any = type(modules[str(node.target)])
        return op_of_class(kind)
    return op_of_target(node.target) if node.op in ("call_function", "call_method") else None


def _owner(layer: torch.nn.Module, name: str) -> Tuple[torch.nn.Module, str]:
    """The module that has this parameter, itself or a part of it (out_proj.weight)."""
    path, _, last = name.rpartition(".")
    return layer.get_submodule(path), last


def pruning_mask(module: torch.nn.Module, name: str = "weight") -> Optional[torch.Tensor]:
    """The mask of a layer whose parameter is parametrised by one."""
    module, name = _owner(module, name)
    for item in getattr(getattr(module, "parametrizations", {}), name, ()) if hasattr(module, "parametrizations") else ():
        if hasattr(item, "mask"):
            return item.mask
    return None


class _Mask(torch.nn.Module):
    """Keeps pruned weights at zero while a layer is trained."""

    def __init__(self, mask: torch.Tensor):
        super().__init__()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight * self.mask


def apply_mask(layer: torch.nn.Module, mask: torch.Tensor, name: str = "weight") -> None:
    import torch.nn.utils.parametrize as parametrize

    layer, name = _owner(layer, name)
    for item in layer.parametrizations[name] if parametrize.is_parametrized(layer, name) else ():  # type: ignore[index, union-attr]
        if hasattr(item, "mask"):
            item.mask = mask
            return
    parametrize.register_parametrization(layer, name, _Mask(mask))


def remove_masks(module: torch.nn.Module) -> Dict[str, torch.Tensor]:
    """Makes masked parameters plain ones again, their zeros kept, and gives the masks. torch's own way takes the parameter away
    from the class, which copies of the module share."""
    parts = getattr(module._modules.get("parametrizations"), "_modules", {})
    if not parts or not all(len(part) == 1 and isinstance(part[0], _Mask) for part in parts.values()):
        return {}
    masks = {}
    for name, part in parts.items():
        masks[name] = part[0].mask.clone()
        module._parameters[name] = torch.nn.Parameter(getattr(module, name).detach().clone(), part.original.requires_grad)
    del module._modules["parametrizations"]
    module.__class__ = type(module).__mro__[1]
    return masks


def own_layer(layer: torch.nn.Module) -> torch.nn.Module:
    """A layer that has the same tensors and can be changed without changing this one."""
    other = layer.__class__.__new__(layer.__class__)
    other.__dict__.update({name: copy.copy(value) if isinstance(value, (dict, set)) else value
                           for name, value in layer.__dict__.items()})
    return other
