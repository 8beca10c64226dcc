# SPDX-License-Identifier: Apache-2.0
"""Networks whose code asks about its inputs, as those of Hugging Face do (`if mask.dim() == 3`, `for i in range(x.size(1))`),
as graphs: they are followed on an example. Every value of the graph goes with what it is for the example, and what the code
asks is answered from there; sizes stay values, so that the graph takes other inputs too. That it does is then tried on
inputs of other sizes, and a graph that holds for the example only is refused."""
from __future__ import annotations

import copy
import inspect
import logging
import operator
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

import torch
import torch.fx
from torch.fx.node import map_aggregate

from mase import _native
from mase.torch_stand_ins import evaluating
from mase.torch_trace import ReadingTracer, Tracer

_NUMBERS = (int, float)
_KEPT = (torch.Tensor, torch.Size, torch.device, tuple, list, *_NUMBERS)  # what stays a value of the graph; all else is known


def _known(value: Any) -> bool:
    return isinstance(value, bool) or not isinstance(value, _KEPT)


class Followed(torch.fx.Proxy):
    """A value of the graph and what it is for the example."""

    def __init__(self, node: Any, tracer: Any, value: Any):
        super().__init__(node, tracer)
        self.__dict__["value"] = value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # type: ignore[override]
        kind = type(self.__dict__["value"])
        return kind if kind in _NUMBERS or kind is torch.device else type(self)  # code that asks whether a size is a number

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.value, name)
        if callable(value) and not isinstance(value, torch.Tensor):
            return lambda *args, **keys: self.tracer.create_proxy("call_method", name, (self, *args), keys)
        return value if _known(value) or name == "ndim" else self.tracer.create_proxy("call_function", getattr, (self, name), {})

    def __setitem__(self, place: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, place, value), {})

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self.value))])

    def __len__(self) -> int:
        return len(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return self.value.__index__()

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __contains__(self, item: Any) -> bool:
        return item in self.value

    def __hash__(self) -> int:
        return id(self)


def _values(arguments: Any) -> Any:
    return map_aggregate(arguments, lambda a: a.value if type(a) is Followed else a)


class Follower(Tracer):
    """fx's tracer with the example's values beside the graph's."""

    def __init__(self, example: Mapping[str, Any] = {}, leaves: Tuple[type, ...] = ()):
        super().__init__(leaves, buffers=True)
        self.example, self.computing, self.added = example, False, {}  # type: Mapping[str, Any], bool, Dict[str, torch.nn.Module]

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, name: Any = None, type_expr: Any = None,
                     proxy_factory_fn: Any = None) -> Any:
        if kind == "call_function" and target is torch.nn.functional.dropout:
            return self.dropout(*args, **kwargs)
        if getattr(target, "__name__", "") == "scaled_dot_product_attention" and kwargs.get("dropout_p"):
            kwargs = dict(kwargs, dropout_p=0.0)  # it would drop in evaluation too
            logging.getLogger("mase").warning(f"{type(self.root).__name__}: the dropout inside scaled_dot_product_attention is left out of the "
                                              "graph; attention written in parts (attn_implementation='eager') keeps it as a layer")
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        if kind == "output":
            return None
        value = self.computed(kind, target, _values(args), _values(kwargs))
        changes = target is operator.setitem or (kind == "call_method" and target.endswith("_") and not target.endswith("__"))
        if not changes and (_known(value) or (kind == "call_method" and target in ("dim", "ndimension"))):
            self.graph.erase_node(node)
            return value
        return Followed(node, self, value)

    def computed(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        """What a node is for the example."""
        if kind == "placeholder":
            return self.example[target]
        before, self.computing = self.computing, True
        try:
            with torch.no_grad():
                if kind == "get_attr":
                    value = self.root
                    for part in target.split("."):
                        value = getattr(value, part)
                    return value
                if kind == "call_method":
                    return getattr(args[0], target)(*args[1:], **kwargs)
                if kind == "call_function":
                    return target(*args, **kwargs)
                module = self.module(target)
                with evaluating(list(module.modules())):
                    return module.forward(*args, **kwargs)
        finally:
            self.computing = before

    def module(self, path: str) -> torch.nn.Module:
        return self.added[path] if path in self.added else self.root.get_submodule(path)

    def dropout(self, input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        """The function is told whether it trains when the graph is made; a layer knows it."""
        if not p:
            return input
        path = f"dropout_{len(self.added)}"
        self.added[path] = torch.nn.Dropout(p)
        return self.create_proxy("call_module", path, (input,), {})

    def call_module(self, module: torch.nn.Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        if self.computing:
            return forward(*args, **kwargs)
        try:
            self.path_of_module(module)
        except NameError:  # made in forward, as losses are: a function of its inputs
            return forward(*args, **kwargs)
        return super().call_module(module, forward, args, kwargs)

    def getattr(self, name: str, value: Any, parameters: Dict[str, Any]) -> Any:
        return value if self.computing else super().getattr(name, value, parameters)

    _module_getattr = getattr  # its name until torch 1.13


def _entering(kind: type, names: Sequence[str]) -> type:
    """The class with a forward that takes these inputs and no others; decorated ones show fx no arguments."""
    inner: Any = kind.forward  # type: ignore[attr-defined]
    scope: Dict[str, Any] = {"inner": inner}
    given = ", ".join(f"{name}={name}" for name in names)
    exec(f"def forward(self, {', '.join(names)}):\n    return inner(self, {given})\n", scope)
    return type(kind.__name__, (kind,), {"forward": scope["forward"], "__module__": kind.__module__})


@contextmanager
def _as_it_was(config: Any) -> Iterator[None]:
    """Code that is followed writes what it finds out into the configuration (`problem_type`)."""
    before = dict(config.__dict__) if hasattr(config, "__dict__") else None
    try:
        yield
    finally:
        if before is not None:
            config.__dict__.clear()
            config.__dict__.update(before)


def _tensors(value: Any) -> List[torch.Tensor]:
    found: List[torch.Tensor] = []
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    for item in value if isinstance(value, (tuple, list)) else ():
        found += _tensors(item)
    return found


def _check(module: torch.nn.Module, graph: torch.fx.GraphModule, example: Mapping[str, Any], what: str) -> None:
    with torch.no_grad(), evaluating(list(module.modules())), evaluating(list(graph.modules())):
        expected = _tensors(module(**example))
        try:
            found = _tensors(graph(**example))
        except Exception as error:  # whatever a size that was written down leads to
            raise _native.Error(f"{type(module).__name__}: its graph does not take {what}: {' '.join(str(error).split())}") from error
    same = len(expected) == len(found) and all(a.shape == b.shape and torch.allclose(a.float(), b.float(), 1e-4, 1e-5, True)
                                               for a, b in zip(expected, found))
    if not same:
        raise _native.Error(f"{type(module).__name__}: its graph gives something else than the network for {what}; its code decides by "
                            "values of tensors, or by sizes, what it computes")


def follow(module: torch.nn.Module, example: Mapping[str, Any], other: Mapping[str, Any],
           leaves: Tuple[type, ...] = ()) -> torch.fx.GraphModule:
    """The graph of a module that takes the inputs of `example` by their names, held to the module on it and on `other`, which
    has other sizes. Layers are the module's own."""
    names = list(example)
    known = inspect.signature(module.forward).parameters
    for name in names:
        if name not in known and not any(p.kind is p.VAR_KEYWORD for p in known.values()):
            raise _native.Error(f"{type(module).__name__}: there is no input '{name}'; it takes {', '.join(known)}")
    root = copy.copy(module)  # what is added to it is no part of the caller's
    root.__class__ = _entering(type(module), names)
    root._modules = dict(module._modules)  # type: ignore[assignment]
    tracer = Follower(example, leaves)
    try:
        with _as_it_was(getattr(module, "config", None)):
            graph = tracer.trace(root)
    except _native.Error:
        raise
    except Exception as error:  # code that is given values of a graph may raise anything
        raise _native.Error(f"{type(module).__name__}: its code cannot be followed: {' '.join(str(error).split())}") from error
    root._modules.update(tracer.added)
    graph._tracer_cls = ReadingTracer
    graph.lint()
    followed = torch.fx.GraphModule(root, graph, type(module).__name__)
    for node in graph.nodes:
        if node.op == "get_attr":
            path, _, name = str(node.target).rpartition(".")
            if name in getattr(module.get_submodule(path), "_non_persistent_buffers_set", ()):
                followed.get_submodule(path)._non_persistent_buffers_set.add(name)
    followed.train(module.training)
    _check(module, followed, example, "the inputs it was followed on")
    _check(module, followed, other, "inputs of another size")
    return followed
