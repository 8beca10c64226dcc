# SPDX-License-Identifier: Apache-2.0
"""A traced network in operations that the library has.

The network is followed once more, with two examples beside every value, of two and of three samples. What is
the same in both is known: sizes, and all that is computed from sizes alone, become numbers and constants. What
grows with them is the batch. Operations that the library lacks become others (torch_rewrites)."""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.fx

import mase.torch_attention_rewrites  # noqa: F401 - their rewrites
import mase.torch_choices  # noqa: F401
import mase.torch_images  # noqa: F401
import mase.torch_indices  # noqa: F401
import mase.torch_recurrent  # noqa: F401
from mase.torch_ops import op_of_node
from mase.torch_rewrites import FUNCTIONS, LAYERS, LAYERS_NEEDED, NEEDED, Unsupported
from mase.torch_stand_ins import evaluating, opaque

SAMPLES = (2, 3)
_RESHAPES = ("view", "reshape")


class Size:
    """A number that depends on the batch: what it is for each example."""

    def __init__(self, runs: Tuple[int, int]):
        self.runs = runs

    def __mul__(self, other: Any) -> "Size":
        return Size((self.runs[0] * _at(other, 0), self.runs[1] * _at(other, 1)))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> "Size":
        return Size((self.runs[0] // _at(other, 0), self.runs[1] // _at(other, 1)))


def _at(value: Any, run: int) -> Any:
    """The value for one of the examples."""
    if isinstance(value, (Value, Size)):
        return value.runs[run]
    if isinstance(value, slice):
        return slice(*(_at(part, run) for part in (value.start, value.stop, value.step)))
    if isinstance(value, (list, tuple)):
        return type(value)([_at(item, run) for item in value]) if type(value) in (list, tuple) else tuple(_at(i, run) for i in value)
    if isinstance(value, dict):
        return {key: _at(item, run) for key, item in value.items()}
    return value


def _any(value: Any, wanted: Any) -> bool:
    if isinstance(value, slice):
        return any(_any(part, wanted) for part in (value.start, value.stop, value.step))
    if isinstance(value, (list, tuple)):
        return any(_any(item, wanted) for item in value)
    if isinstance(value, dict):
        return any(_any(item, wanted) for item in value.values())
    return isinstance(value, wanted)


def _known(a: Any, b: Any) -> Any:
    """What both runs say: a plain value, or a Size; tuples by their parts."""
    if isinstance(a, torch.Tensor):
        if a.shape == b.shape and torch.equal(a, b):
            return a
        raise Unsupported
    if isinstance(a, (tuple, list)) and len(a) == len(b):
        return tuple(_known(x, y) for x, y in zip(a, b))
    if a == b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return Size((a, b))
    raise Unsupported


class Value(torch.fx.Proxy):
    """A tensor of the new graph, with what it is for each example."""

    runs: Tuple[Any, Any]

    @property
    def shape(self) -> Any:
        return _known(tuple(self.runs[0].shape), tuple(self.runs[1].shape))

    @property
    def dtype(self) -> torch.dtype:
        return self.runs[0].dtype

    def filled(self, sizes: List[Any]) -> Any:
        """As many copies as these sizes say: where(true, x, x)."""
        return self.tracer.filled(self, sizes)  # type: ignore[attr-defined]

    def constant(self, number: float) -> "Value":
        return self.tracer.constant(torch.tensor(number, dtype=self.dtype))  # type: ignore[attr-defined]

    def reshaped(self, sizes: List[Any]) -> Any:
        return self.tracer.create_proxy("call_method", "reshape", (self, sizes), {})

    def called(self, function: Callable, *args: Any, **keys: Any) -> Any:
        """A function of ours, as one node."""
        return self.tracer.create_proxy("call_function", function, (self, *args), keys)

    def through(self, layer: torch.nn.Module) -> Any:
        """What a layer of its own makes of it."""
        return self.tracer.through(layer, self)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self.runs[0]))])

    def __len__(self) -> int:  # type: ignore[override]
        return len(self.runs[0])


def _opened(value: Any) -> Any:
    """All results of what has several, one by one."""
    if isinstance(value, Value):
        return tuple(value) if isinstance(value.runs[0], (tuple, list)) else value
    if isinstance(value, dict):
        return {key: _opened(item) for key, item in value.items()}
    return type(value)(map(_opened, value)) if type(value) in (tuple, list) else value


class _Layer:
    """A layer as rewrites see it: its tensors are values of the graph, its parts are layers."""

    def __init__(self, tracer: "Lowering", module: torch.nn.Module, path: str):
        self.__dict__.update(_tracer=tracer, _module=module, _path=path)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, torch.nn.Module):
            return _Layer(self._tracer, value, f"{self._path}.{name}")
        if isinstance(value, torch.Tensor):
            return self._tracer.create_proxy("get_attr", f"{self._path}.{name}", (), {})
        return value

    def call(self, *args: Any, **keys: Any) -> Any:
        return self._tracer.create_proxy("call_module", self._path, args, keys)


def name_of(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", "")


def _reads_a_tensor(node: torch.fx.Node) -> Optional[str]:
    """The name of x.T and torch.max(x, 1).values, which fx writes as getattr."""
    return str(node.args[1]) if node.op == "call_function" and node.target is getattr else None


def rewrite_of(node: torch.fx.Node, modules: Dict[str, torch.nn.Module]) -> Optional[Callable]:
    if node.op == "call_module":
        layer = modules[str(node.target)]
        kind = next((kind for kind in type(layer).__mro__ if kind in LAYERS), None)
        needed = kind is not None and LAYERS_NEEDED.get(kind, lambda layer: True)(layer)
        return LAYERS[kind] if kind is not None and needed else None
    if node.op not in ("call_function", "call_method") or hasattr(node.target, "quantizers") or hasattr(node.target, "mase_op"):
        return None
    attribute = _reads_a_tensor(node)
    if attribute is not None:
        return FUNCTIONS.get(attribute) if attribute in ("T", "mT") else None
    name = name_of(node.target)
    if node.op == "call_method" and f".{name}" in FUNCTIONS:
        return FUNCTIONS[f".{name}"]
    return FUNCTIONS.get(name) if name not in NEEDED or NEEDED[name](node) else None


class Lowering(torch.fx.proxy.GraphAppendingTracer):
    def __init__(self, traced: torch.fx.GraphModule, examples: Dict[str, torch.Tensor]):
        super().__init__(torch.fx.Graph())
        self.modules: Dict[str, torch.nn.Module] = dict(traced.named_modules())
        self.constants: Dict[str, torch.Tensor] = {}
        self.unknown: List[str] = []
        self._traced, self._examples, self._prefix = traced, examples, ""
        self._batch: Any = None  # a value whose first dimension is the batch

    # What fx asks of a tracer ---------------------------------------------------------------

    def proxy(self, node: torch.fx.Node) -> Value:
        return Value(node, self)  # type: ignore[arg-type]

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, name: Optional[str] = None,
                     type_expr: Any = None, proxy_factory_fn: Any = None) -> Any:
        runs = [self._compute(kind, target, _at(args, run), _at(kwargs, run)) for run in (0, 1)]
        if kind in ("call_function", "call_method") and name_of(target) in _RESHAPES:
            kind, target, args, kwargs = "call_method", "reshape", (args[0], *self._sizes(runs)), {}
        if name is None and self._prefix and kind != "get_attr":
            name = f"{self._prefix}_{name_of(target).rpartition('.')[2]}"
        value = super().create_proxy(kind, target, args, kwargs, name)
        value.runs = runs
        return value

    def create_arg(self, value: Any) -> Any:
        if isinstance(value, torch.nn.Parameter):
            raise Unsupported
        if isinstance(value, torch.Tensor):
            return self.constant(value).node
        if isinstance(value, Size):
            if value.runs != SAMPLES or self._batch is None:
                raise Unsupported
            return self.graph.create_node("call_method", "size", (self._batch.node, 0))
        return super().create_arg(value)

    def constant(self, tensor: torch.Tensor) -> Value:
        name = f"_tensor_constant{len(self.constants)}"
        while hasattr(self._traced, name):
            name += "_"
        self.constants[name] = tensor
        value = self.proxy(self.graph.create_node("get_attr", name))
        value.runs = (tensor, tensor)
        return value

    # Following the network ------------------------------------------------------------------

    def _compute(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        if kind == "call_module":
            return self.modules[target](*args, **kwargs)
        if kind == "call_method":  # values that need not be contiguous here
            return getattr(args[0], "reshape" if target == "view" else target)(*args[1:], **kwargs)
        if kind == "get_attr":
            value: Any = self._traced
            for part in target.split("."):
                value = getattr(value, part)
            return value
        return target(*args, **kwargs)

    def _sizes(self, runs: List[torch.Tensor]) -> List[int]:
        """The sizes of a result, -1 in the place of the one that depends on the batch."""
        sizes = [a if a == b else -1 for a, b in zip(runs[0].shape, runs[1].shape)]
        if sizes.count(-1) > 1:
            raise Unsupported
        return sizes

    def filled(self, x: Any, sizes: List[Any]) -> Any:
        fixed = [1 if isinstance(size, Size) else size for size in sizes]
        grown = [place for place, size in enumerate(sizes) if isinstance(size, Size)]
        own = [1] * (len(sizes) - len(x.shape)) + list(x.shape)
        grown = [place for place in grown if not isinstance(own[place], Size)]
        if any(own[p] != 1 for p in grown) or any(sizes[p].runs != SAMPLES for p in grown) or len(grown) > 1:
            raise Unsupported
        fixed = [o if isinstance(o, Size) else f for o, f in zip(own, fixed)]
        if any(o != f for o, f in zip(own, fixed) if not isinstance(o, Size)):
            ones = torch.ones([1 if isinstance(f, Size) else f for f in fixed], dtype=torch.bool)
            x = torch.where(self.constant(ones), x, x)
        if grown:
            rows = self._batch[(slice(None),) + (0,) * (len(self._batch.shape) - 1)]
            true = (rows == rows).reshaped([-1 if p == grown[0] else 1 for p in range(len(sizes))])
            x = torch.where(true, x, x)
        return x

    def through(self, layer: torch.nn.Module, x: Any) -> Any:
        path = f"_{self._prefix}"
        if path in self.modules:  # a rewrite may make several
            path = next(f"{path}_{i}" for i in range(1, len(self.modules) + 2) if f"{path}_{i}" not in self.modules)
        self.modules[path] = layer
        return self.create_proxy("call_module", path, (x,), {})

    def _plain(self, node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
        """A node that reads no tensor of the graph: known, or rows that are all the same."""
        a, b = (self._compute(node.op, node.target, _at(args, run), _at(kwargs, run)) for run in (0, 1))
        grown = [d for d in range(a.dim()) if a.shape[d] != b.shape[d]] if isinstance(a, torch.Tensor) and a.dim() == b.dim() else []
        if len(grown) == 1 and (a.shape[grown[0]], b.shape[grown[0]]) == SAMPLES:
            row = a.narrow(grown[0], 0, 1)
            if torch.equal(a, row.expand_as(a)) and torch.equal(b, row.expand_as(b)):
                return self.constant(row.clone()).filled([Size(SAMPLES) if d in grown else size for d, size in enumerate(a.shape)])
        return _known(a, b)

    def _follow(self, node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
        if node.op == "get_attr":
            return self.create_proxy("get_attr", node.target, (), {}, node.name)
        if not _any((args, kwargs), Value) and node.op != "call_module":
            return self._plain(node, args, kwargs)
        if node.target is operator.setitem:  # nothing in a graph of the library changes
            raise Unsupported
        if node.target is operator.getitem and isinstance(args[0], tuple):
            return args[0][args[1]]
        attribute = _reads_a_tensor(node)
        rewrite = rewrite_of(node, self.modules)
        if rewrite is not None:
            self._prefix = node.name
            kwargs = {key: value for key, value in kwargs.items() if value is not None}
            if node.op == "call_module":
                return rewrite(_Layer(self, self.modules[str(node.target)], str(node.target)), *args, **kwargs)
            return rewrite(args[0]) if attribute else rewrite(*args, **kwargs)
        if attribute in ("values", "indices"):
            return args[0][0 if attribute == "values" else 1]
        runs = [self._compute(node.op, node.target, _at(args, run), _at(kwargs, run)) for run in (0, 1)]
        if not _any(runs, torch.Tensor):  # sizes and types
            return _known(*runs)
        if op_of_node(node, self.modules) is None:
            raise Unsupported
        return self.create_proxy(node.op, node.target, args, kwargs, node.name)

    def run(self) -> torch.fx.Graph:
        known: Dict[torch.fx.Node, Any] = {}

        def settled(argument: Any) -> Any:
            return torch.fx.node.map_aggregate(argument, lambda a: known[a] if isinstance(a, torch.fx.Node) else a)

        # With gradients: torch has other kernels without them, which do not take all that it takes itself.
        with torch.enable_grad(), evaluating(self._traced.modules()):
            for node in self._traced.graph.nodes:
                if node.op == "placeholder":
                    if node.name not in self._examples:
                        known[node] = node.args[0] if node.args else None
                        continue
                    value = self.proxy(self.graph.create_node("placeholder", node.target, (), {}, node.name))
                    example = self._examples[node.name][:1]
                    value.runs = torch.cat([example] * SAMPLES[0]), torch.cat([example] * SAMPLES[1])
                    known[node] = value
                    if self._batch is None:
                        self._batch = value
                elif node.op == "output":
                    self.graph.create_node("output", "output", (self.create_arg(_opened(settled(node.args[0]))),))
                elif not name_of(node.target).startswith("_assert"):
                    args, kwargs = settled(node.args), settled(node.kwargs)
                    self._prefix = ""
                    try:
                        known[node] = self._follow(node, args, kwargs)
                    except Unsupported:
                        known[node] = self._foreign(node, args, kwargs)
        for node in reversed(list(self.graph.nodes)):  # what nobody reads
            if node.op not in ("placeholder", "output") and not node.users:
                self.graph.erase_node(node)
        return self.graph

    def _foreign(self, node: torch.fx.Node, args: Any, kwargs: Any) -> Any:
        """An operation that stays torch's: it is told, and the others with it."""
        what = type(self.modules[str(node.target)]) if node.op == "call_module" else node.target
        self.unknown.append(f"{node.name} ({name_of(what)})")
        inputs: List[torch.fx.Node] = []
        torch.fx.node.map_aggregate((args, kwargs), lambda a: inputs.append(a.node) if isinstance(a, Value) else None)

        def result(a: Any, b: Any) -> Any:
            if isinstance(a, (tuple, list)):
                return tuple(result(x, y) for x, y in zip(a, b))
            if not isinstance(a, torch.Tensor):
                return a
            batched = a.dim() > 0 and a.shape[0] != b.shape[0]
            facts = {"operator": name_of(what), "shape": list(a.shape[1:] if batched else a.shape), "batched": batched}
            value = self.proxy(self.graph.create_node("call_function", opaque, tuple(inputs), facts, node.name))
            value.runs = (a, b)
            return value

        return result(*(self._compute(node.op, node.target, _at(args, run), _at(kwargs, run)) for run in (0, 1)))
