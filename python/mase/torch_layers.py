# SPDX-License-Identifier: Apache-2.0
"""Quantised layers as subclasses of torch's own: LinearInteger, Conv2dBlockFP, ReLUMinifloatIEEE, ...

There is one for every operation that has a torch class and every number format; classes are made when
they are first asked for. Their parameters are torch's, in float; rounding happens in forward, with
gradients, by the library's kernels.
"""
from __future__ import annotations

import base64
import copy
import importlib
import json
import zlib
from functools import lru_cache
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

import torch
import torch.fx

from mase import _native, torch_stand_ins
from mase.formats import Format
from mase.torch_attention import RoundedAttention
from mase.torch_keys import for_operands
from mase.torch_quantize import linear

MODULES = "chop.passes.graph.transforms.quantize.quantized_modules"
FUNCTIONS = "chop.passes.graph.transforms.quantize.quantized_funcs"


@lru_cache(maxsize=None)
def op_records() -> Dict[str, dict]:
    return _native.ops()


@lru_cache(maxsize=None)
def format_records() -> Dict[str, dict]:
    return _native.formats()


def format_name(name: str) -> str:
    """The registered name of a format or alias ("fixed" is integer)."""
    if name in format_records():
        return name
    for known, record in format_records().items():
        if name in record["aliases"]:
            return known
    _native.make_quantizer(name, {}, "name")  # says which names are near
    raise AssertionError(name)


@lru_cache(maxsize=None)
def _ops_by_class() -> Dict[str, str]:
    return {record["class_name"]: name for name, record in op_records().items() if record["class_name"]}


@lru_cache(maxsize=None)
def op_of_class(kind: type) -> Optional[str]:
    """The operation a torch class, or a class derived from one, stands for; None: we have none."""
    for base in kind.__mro__:
        if base.__module__.startswith(("torch.nn", "mase.torch_stand_ins")) and base.__name__ in _ops_by_class():
            return _ops_by_class()[base.__name__]
    return None


def layer_class(op: str) -> Type[Any]:
    """torch's class for an operation, or ours where it has none."""
    name = op_records()[op]["class_name"]
    found = getattr(torch.nn, name, None) or getattr(torch_stand_ins, name, None)
    if found is None:
        raise _native.Error(f"{name}: this torch has no such layer")
    return found


_watching: List[Callable[[str, Dict[str, Any]], Dict[str, Any]]] = []


def watch_formats(function: Callable[[str, Dict[str, Any]], Dict[str, Any]]) -> None:
    """Calls a function with the format and the config of every quantised layer and function that is made; it gives the config
    that is taken."""
    _watching.append(function)


_ATTRIBUTES = {"data_in": "x_quantizer", "weight": "w_quantizer", "bias": "b_quantizer", "data_out": "out_quantizer"}


def _outer_quantizers(op: str, config: Dict[str, Any], name: str) -> Dict[str, Any]:
    made = _native.layer_quantizers(op, config, name)
    for operand in op_records()[op]["inner_operands"]:
        if operand in made:
            raise _native.Error(f"{name}: torch computes '{operand}' within the operation, where nothing rounds it; leave its format to the library's own graphs")
    return made


class QuantizedLayer:
    """What all quantised layers have: config, bypass, pruning_masks and one quantizer per operand, by the operand's
    name (`quantizers`) and, for the four that most layers have, by MASE's."""

    mase_op = ""
    format = ""
    config: Dict[str, Any]
    bypass: bool
    pruning_masks: Any
    quantizers: Dict[str, Format]
    x_quantizer: Optional[Format]
    w_quantizer: Optional[Format]
    b_quantizer: Optional[Format]
    out_quantizer: Optional[Format]

    def get_quantized_weight(self) -> torch.Tensor:
        """The weight as forward uses it."""
        return self._with_rounded_parameters().weight

    def get_quantized_weights_with_inputs(self, x: torch.Tensor) -> Dict[str, Any]:
        """Input, weight and bias as forward uses them, and what it makes of them."""
        layer: Any = self._with_rounded_parameters()
        return {"x": x if self.x_quantizer is None else self.x_quantizer(x), "w": layer.weight, "bias": getattr(layer, "bias", None),
                "y": self(x)}  # type: ignore[operator]

    def set_config(self, config: Optional[Dict[str, Any]]) -> None:
        if config is None:
            raise _native.Error(f"{type(self).__name__}: config is missing; give the layer's number formats")
        own = self.__dict__  # torch's __setattr__ would look for modules and parameters in each
        config = for_operands(config, self.mase_op, self.format)
        own["bypass"], own["pruning_masks"] = bool(config.get("bypass", False)), None
        own["_kept"] = _Kept()
        own["quantizers"] = {}
        own["x_quantizer"] = own["w_quantizer"] = own["b_quantizer"] = own["out_quantizer"] = None
        own["config"] = config
        if own["bypass"]:
            return
        for watch in _watching:
            own["config"] = config = watch(self.format, config)
        flat = dict(config, name=self.format)
        flat.pop("bypass", None)
        made = _outer_quantizers(self.mase_op, flat, type(self).__name__)
        for operand, quantizer in made.items():
            format = own["quantizers"][operand] = Format("", _native_quantizer=quantizer)
            if operand in _ATTRIBUTES:
                own[_ATTRIBUTES[operand]] = format

    @classmethod
    def from_layer(cls, layer: torch.nn.Module, config: Dict[str, Any]) -> torch.nn.Module:
        """A quantised layer with the attributes and copies of the tensors of a plain (or quantised) one."""
        new = cls.__new__(cls)
        torch.nn.Module.__init__(new)  # type: ignore[arg-type]
        own = new.__dict__
        for name, value in layer.__dict__.items():
            if name not in own and name not in ("config", "bypass", "_kept", "quantizers"):
                own[name] = value
        own["training"] = layer.training
        masked = {name: part.original for name, part in getattr(layer._modules.get("parametrizations"), "_modules", {}).items()}
        for name, parameter in {**masked, **layer._parameters}.items():  # a pruned weight as it was before its mask
            own["_parameters"][name] = None if parameter is None else torch.nn.Parameter(
                parameter.detach().clone(), parameter.requires_grad)
        for name, buffer in layer._buffers.items():
            own["_buffers"][name] = None if buffer is None else buffer.detach().clone()
        for name, part in layer._modules.items():
            if name != "parametrizations":
                own["_modules"][name] = copy.deepcopy(part)
        own["_forward_pre_hooks"].update(layer._forward_pre_hooks)
        own["_forward_hooks"].update(layer._forward_hooks)
        own["_non_persistent_buffers_set"] = set(layer._non_persistent_buffers_set)
        new.set_config(config)
        return new  # type: ignore[return-value]

    def _with_rounded_parameters(self) -> Any:
        """This layer, or a passing copy of it whose weight and bias are rounded."""
        if self.w_quantizer is None and self.b_quantizer is None:
            return self
        parameters = dict(self._parameters)  # type: ignore[attr-defined]
        kind = type(self)
        masked = self._modules.get("parametrizations", {})  # type: ignore[attr-defined]
        if masked:  # by a class of its own, which computes such parameters: the one below it has them
            kind = kind.__mro__[1]
            parameters.update({name: getattr(self, name) for name in masked})
        for name, quantizer in (("weight", self.w_quantizer), ("bias", self.b_quantizer)):
            if quantizer is not None and parameters.get(name) is not None:
                parameters[name] = quantizer(parameters[name])
        passing = object.__new__(kind)
        passing.__dict__.update(self.__dict__)
        passing.__dict__["_parameters"] = parameters
        return passing


class _LinearBase(QuantizedLayer, torch.nn.Linear):
    """y = q(x) q(W)^T + q(b)."""

    mase_op = "linear"

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None,
                 config: Optional[dict] = None, out_config: Optional[dict] = None, floor: Any = None):
        torch.nn.Linear.__init__(self, in_features, out_features, bias, device, dtype)
        if out_config:
            config = {**(config or {}), **out_config}
        if floor and config is not None:
            config = {**config, **{f"{operand}_rounding": "floor" for operand in ("data_in", "weight", "bias")}}
        self.set_config(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        own = self.__dict__  # torch's lookup of a parameter takes as long as a small product
        if own["bypass"]:
            return torch.nn.functional.linear(x, self.weight, self.bias)
        kept: _Kept = own["_kept"]
        if not kept.fits(own):
            kept.make(self)
        y = None
        if kept.layer is not None and (kept.one_by_one or x.dim() == 2):
            parameters = own["_parameters"]
            weight = parameters.get("weight")
            y = linear(x, self.weight if weight is None else weight, parameters.get("bias"), kept.layer)
        if y is None:
            layer = self._with_rounded_parameters()
            y = torch.nn.functional.linear(x if self.x_quantizer is None else self.x_quantizer(x), layer.weight, layer.bias)
        return y if own["out_quantizer"] is None else self.out_quantizer(y)  # type: ignore[misc]


class _AttentionBase(QuantizedLayer, RoundedAttention):
    mase_op = "multihead_attention"
    is_causal = False  # of layers made from torch's own

    def __init__(self, *args: Any, config: Optional[dict] = None, **keys: Any) -> None:
        RoundedAttention.__init__(self, *args, **keys)
        self.set_config(config)

    def rounded(self, x: torch.Tensor, operand: str) -> torch.Tensor:
        quantizer = self.quantizers.get(operand)
        return x if quantizer is None else quantizer(x)

    def forward(self, *args: Any, **keys: Any) -> Any:
        return RoundedAttention.forward(self, *args, **keys) if self.bypass else self.attended(*args, **keys)


class _Kept:
    """The library's layer for a module's quantizers, made when first needed; none where operands stay in
    float, or a gradient is not straight through. Copies and files of the module make their own."""

    __slots__ = ("layer", "x", "weight", "bias", "made", "one_by_one")

    def __init__(self) -> None:
        self.layer: Any = None
        self.x = self.weight = self.bias = None
        self.made = False
        self.one_by_one = False  # each value of x by itself: the layer takes rows, blocks want to know all dimensions

    def fits(self, module: Dict[str, Any]) -> bool:
        return (self.made and module["x_quantizer"] is self.x and module["w_quantizer"] is self.weight
                and module["b_quantizer"] is self.bias)

    def make(self, module: Any) -> None:
        self.x, self.weight, self.bias = module.x_quantizer, module.w_quantizer, module.b_quantizer
        formats: List[Any] = [getattr(q, "_quantizer", None) for q in (self.x, self.weight, self.bias)]
        plain = formats[0] is not None and formats[1] is not None and (formats[2] is not None or self.bias is None)
        plain = plain and all(q is None or q.straight_through for q in formats)
        x, weight, bias = formats
        self.layer = _native.LinearLayer(x, weight, bias, module.in_features, module.out_features) if plain else None
        self.one_by_one = x is not None and x.elementwise
        self.made = True

    def __deepcopy__(self, memo: dict) -> "_Kept":
        return _Kept()

    def __reduce__(self) -> Any:
        return (_Kept, ())


def _make_class(op: str, format: str) -> type:
    record = op_records()[op]
    base = layer_class(op)
    name = record["class_name"] + format_records()[format]["class_suffix"]
    body: Dict[str, Any] = {"mase_op": op, "format": format, "__module__": f"{MODULES}.{op}",
                            "__doc__": f"{record['class_name']} with operands in {format}."}
    special: Dict[str, type] = {"linear": _LinearBase, "multihead_attention": _AttentionBase}
    if op in special:
        return type(name, (special[op],), body)

    def __init__(self: Any, *args: Any, config: Optional[dict] = None, **keys: Any) -> None:
        base.__init__(self, *args, **keys)
        self.set_config(config)

    def forward(self: Any, x: torch.Tensor, *more: Any, **keys: Any) -> torch.Tensor:
        if self.bypass:
            return base.forward(self, x, *more, **keys)
        if self.x_quantizer is not None:
            x = self.x_quantizer(x)
        y = base.forward(self._with_rounded_parameters(), x, *more, **keys)
        return y if self.out_quantizer is None else self.out_quantizer(y)

    return type(name, (QuantizedLayer, base), {**body, "__init__": __init__, "forward": forward})


_classes: Dict[Tuple[str, str], type] = {}


def quantized_class(op: str, format: str) -> Type[Any]:
    """The class of an operation ("linear") in a format ("integer"). Asked twice, it is the same one."""
    key = (op, format_name(format))
    if key not in _classes:
        if op not in op_records() or not op_records()[op]["class_name"] or not op_records()[op]["operands"]:
            raise _native.Error(f"{op}: there is no layer of this name that takes number formats")
        _classes[key] = _make_class(*key)
    return _classes[key]


def class_named(name: str, op: Optional[str] = None) -> type:
    """LinearInteger, Conv2dBlockFP, ...; AttributeError if there is none of this name."""
    if name == "_LinearBase":
        return _LinearBase
    for own, record in op_records().items():
        if not record["class_name"] or not record["operands"] or (op is not None and own != op):
            continue
        for format, about in format_records().items():
            if name == record["class_name"] + about["class_suffix"]:
                return quantized_class(own, format)
    # MASE's names where they differ from the rule.
    for theirs, ours in (("BinaryScaling", "Binary"), ("Fixed", "Integer")):
        if name.endswith(theirs):
            return class_named(name[: -len(theirs)] + ours, op)
    raise AttributeError(f"there is no quantised layer '{name}'")


_CODE = "_with_"  # between the name of a quantised function and what it is made of


class QuantizedFunction:
    """A function of torch whose operands are rounded first: relu_integer, add_block_fp, ...

    Files of modules (torch.save) hold functions by their names. This one's (__qualname__) says all that it is made
    of, and the module it names (quantized_funcs) makes it from that."""

    _made: Dict[str, "QuantizedFunction"] = {}
    _weight_second: bool
    __name__: str
    __qualname__: str
    function: Any
    op: str
    format: str
    config: Dict[str, Any]
    quantizers: Dict[str, Format]

    def __new__(cls, function: Any, op: str, format: str, config: Dict[str, Any]) -> "QuantizedFunction":
        format = format_name(format)
        parts = json.dumps([_path_of(function), op, format, config], sort_keys=True, default=str)
        code = base64.b32encode(zlib.compress(parts.encode(), 9)).decode().rstrip("=")
        name = f"{op}_{format}"
        if name + _CODE + code in cls._made:  # what is equal is the same, as functions are
            return cls._made[name + _CODE + code]
        self = super().__new__(cls)
        for watch in _watching:
            config = watch(format, config)
        self.function, self.op, self.format, self.config = function, op, format, dict(config)
        self.__name__, self.__qualname__, self.__module__ = name, name + _CODE + code, FUNCTIONS
        flat = {key: value for key, value in config.items() if key != "bypass"}
        made = {} if config.get("bypass") else _outer_quantizers(op, dict(flat, name=format), name)
        self.quantizers = {operand: Format("", _native_quantizer=q) for operand, q in made.items()}
        self._weight_second = "weight" in op_records()[op]["operands"]
        cls._made[self.__qualname__] = self
        return self

    @classmethod
    def named(cls, name: str) -> "QuantizedFunction":
        """The one of this __qualname__."""
        if name not in cls._made:
            code = name.partition(_CODE)[2]
            try:
                path, op, format, config = json.loads(zlib.decompress(base64.b32decode(code + "=" * (-len(code) % 8))))
            except ValueError:
                raise AttributeError(f"there is no quantised function '{name}'") from None
            return cls(_at_path(path), op, format, config)
        return cls._made[name]

    def operand(self, index: int) -> str:
        """MASE's rule: the second tensor of a product is its weight, the third its bias."""
        if index == 0 or not self._weight_second:
            return "data_in"
        return "weight" if index == 1 else "bias"

    def __call__(self, *args: Any, **keys: Any) -> Any:
        for value in args:
            if isinstance(value, torch.fx.Proxy):  # torch.load follows a module's code
                return value.tracer.create_proxy("call_function", self, args, keys)
        rounded, index = [], 0
        for value in args:
            if isinstance(value, torch.Tensor):
                quantizer = self.quantizers.get(self.operand(index))
                index += 1
                value = value if quantizer is None else quantizer(value)
            rounded.append(value)
        y = self.function(*rounded, **keys)
        out = self.quantizers.get("data_out")
        return y if out is None else out(y)

    def __deepcopy__(self, memo: dict) -> "QuantizedFunction":
        return self

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


def _path_of(function: Any) -> str:
    """Where a function of torch or operator is found again."""
    if getattr(function, "__objclass__", None) is not None:  # of a method
        return f"torch.Tensor.{function.__name__}"
    from torch.fx.node import _get_qualified_name

    return _get_qualified_name(function)


def _at_path(path: str) -> Any:
    head, *parts = path.split(".")
    if head not in ("torch", "operator", "_operator", "mase"):  # nothing else is named by a file of ours
        raise AttributeError(f"there is no function '{path}'")
    value = importlib.import_module({"_operator": "operator"}.get(head, head))
    for part in parts:
        value = getattr(value, part)
    return value
