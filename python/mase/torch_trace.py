# SPDX-License-Identifier: Apache-2.0
"""Tracing torch modules: torch.fx's, for which our quantised layers are layers too, and which looks into
torch's transformers. Those decide by the values of their inputs which of several equal ways they take, so
that fx cannot follow them; here each is written down once, by its own parts."""
from __future__ import annotations

import copy
import dis
import inspect
import operator
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import torch
import torch.fx

from mase import _native
from mase.torch_layers import QuantizedLayer
from mase.torch_stand_ins import StandIn


def _given(**masks: Any) -> Dict[str, Any]:
    return {name: mask for name, mask in masks.items() if mask is not None}


def _attend(attention: Any, x: Any, memory: Any, mask: Any, padding: Any) -> Any:
    return attention(x, memory, memory, need_weights=False, **_given(attn_mask=mask, key_padding_mask=padding))[0]


def _encoder_layer(layer: Any, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
    def attended(x: Any) -> Any:
        return layer.dropout1(_attend(layer.self_attn, x, x, src_mask, src_key_padding_mask))

    def fed(x: Any) -> Any:
        return layer.dropout2(layer.linear2(layer.dropout(layer.activation(layer.linear1(x)))))

    if layer.norm_first:
        x = src + attended(layer.norm1(src))
        return x + fed(layer.norm2(x))
    x = layer.norm1(src + attended(src))
    return layer.norm2(x + fed(x))


def _encoder(encoder: Any, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None) -> Any:
    for layer in encoder.layers:
        src = layer(src, **_given(src_mask=mask, src_key_padding_mask=src_key_padding_mask))
    return src if encoder.norm is None else encoder.norm(src)


def _decoder_layer(layer: Any, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
                   tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, tgt_is_causal: bool = False,
                   memory_is_causal: bool = False) -> Any:
    def own(x: Any) -> Any:
        return layer.dropout1(_attend(layer.self_attn, x, x, tgt_mask, tgt_key_padding_mask))

    def other(x: Any) -> Any:
        return layer.dropout2(_attend(layer.multihead_attn, x, memory, memory_mask, memory_key_padding_mask))

    def fed(x: Any) -> Any:
        return layer.dropout3(layer.linear2(layer.dropout(layer.activation(layer.linear1(x)))))

    if layer.norm_first:
        x = tgt + own(layer.norm1(tgt))
        x = x + other(layer.norm2(x))
        return x + fed(layer.norm3(x))
    x = layer.norm1(tgt + own(tgt))
    x = layer.norm2(x + other(x))
    return layer.norm3(x + fed(x))


def _decoder(decoder: Any, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None,
             tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None, tgt_is_causal: Any = None,
             memory_is_causal: bool = False) -> Any:
    for layer in decoder.layers:
        tgt = layer(tgt, memory, **_given(tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                                          memory_key_padding_mask=memory_key_padding_mask))
    return tgt if decoder.norm is None else decoder.norm(tgt)


def _transformer(network: Any, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
                 src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
                 src_is_causal: Any = None, tgt_is_causal: Any = None, memory_is_causal: bool = False) -> Any:
    memory = network.encoder(src, **_given(mask=src_mask, src_key_padding_mask=src_key_padding_mask))
    return network.decoder(tgt, memory, **_given(tgt_mask=tgt_mask, memory_mask=memory_mask,
                                                 tgt_key_padding_mask=tgt_key_padding_mask,
                                                 memory_key_padding_mask=memory_key_padding_mask))


COMPOSED: Dict[type, Callable] = {
    torch.nn.TransformerEncoderLayer: _encoder_layer, torch.nn.TransformerEncoder: _encoder,
    torch.nn.TransformerDecoderLayer: _decoder_layer, torch.nn.TransformerDecoder: _decoder,
    torch.nn.Transformer: _transformer,
}

for _function in COMPOSED.values():  # fx would write them into graphs
    _function.__annotations__ = {}


def _composed(module: torch.nn.Module) -> Optional[Callable]:
    """How to follow this module; None: by its own forward, which a derived class may have written anew."""
    kind: Any
    for kind, function in COMPOSED.items():
        if isinstance(module, kind) and module.__class__.forward is kind.forward:
            return function
    return None


_MAKERS = ("arange", "empty", "eye", "full", "linspace", "ones", "tensor", "zeros")


def _maker(original: Callable) -> Callable:
    """A function that makes tensors of given sizes: fx does not see that a size is a proxy."""
    def make(*args: Any, **keys: Any) -> Any:
        found: list = []
        torch.fx.node.map_aggregate((args, keys), lambda a: found.append(a) if isinstance(a, torch.fx.Proxy) else a)
        return found[0].tracer.create_proxy("call_function", original, args, keys) if found else original(*args, **keys)

    return make


@contextmanager
def _followed() -> Iterator[None]:
    """What fx does not follow is followed while we trace: tensors made from sizes, abs(proxy), and `a, b = proxy`,
    for which fx of torch 1.13 reads the code of Python 3.11 wrongly."""
    proxy = torch.fx.Proxy
    before, had_abs = proxy.__iter__, "__abs__" in proxy.__dict__
    makers = {name: getattr(torch, name) for name in _MAKERS}

    def unpacked(self: Any) -> Any:
        frame: Any = inspect.currentframe()
        caller = frame.f_back
        for step in dis.get_instructions(caller.f_code):
            if step.offset == caller.f_lasti and step.opname == "UNPACK_SEQUENCE":
                return iter([self[i] for i in range(step.argval)])
        return self.tracer.iter(self)

    proxy.__iter__ = unpacked  # type: ignore[method-assign]
    if not had_abs:
        proxy.__abs__ = lambda self: self.tracer.create_proxy("call_function", operator.abs, (self,), {})  # type: ignore[attr-defined]
    for name, original in makers.items():
        setattr(torch, name, _maker(original))
    try:
        yield
    finally:
        for name, original in makers.items():
            setattr(torch, name, original)
        proxy.__iter__ = before  # type: ignore[method-assign]
        if not had_abs:
            del proxy.__abs__  # type: ignore[attr-defined]


class Tracer(torch.fx.Tracer):
    def __init__(self, leaves: Tuple[type, ...] = (), buffers: bool = False):
        super().__init__()
        self.proxy_buffer_attributes = buffers  # self.table[:x.size(1)] wants it; most modules do not
        self._leaves = (QuantizedLayer, StandIn, *leaves)

    def is_leaf_module(self, module: torch.nn.Module, path: str) -> bool:
        if isinstance(module, self._leaves):
            return True
        return super().is_leaf_module(module, path) and _composed(module) is None

    def call_module(self, module: torch.nn.Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        composed = _composed(module)
        return super().call_module(module, forward if composed is None else partial(composed, module), args, kwargs)

    def trace(self, root: Any, concrete_args: Any = None) -> torch.fx.Graph:
        composed = _composed(root) if isinstance(root, torch.nn.Module) else None
        if composed is not None:  # fx takes the forward of a root's class
            kind = type(root)
            root = copy.copy(root)
            root.__class__ = type(kind.__name__, (kind,), {"forward": composed, "__module__": kind.__module__})
        with _followed():
            return super().trace(root, concrete_args)


class ReadingTracer(Tracer):
    """Follows the code of a graph that is read from a file again: everything it reads of the module is a value."""

    def __init__(self) -> None:
        super().__init__(buffers=True)

    def trace(self, root: Any, concrete_args: Any = None) -> torch.fx.Graph:
        proxy: Any = torch.fx.Proxy
        proxy.__setitem__ = lambda self, place, value: self.tracer.create_proxy("call_function", operator.setitem, (self, place, value), {})
        try:
            return super().trace(root, concrete_args)
        finally:
            del proxy.__setitem__


def trace(module: torch.nn.Module, concrete_args: Optional[dict] = None, leaves: Tuple[type, ...] = ()) -> torch.fx.GraphModule:
    if isinstance(module, torch.fx.GraphModule):
        return module
    try:
        graph = _traced(module, concrete_args, leaves)
    except _native.Error:
        raise
    except Exception as error:  # a forward that is given proxies may raise anything
        raise _native.Error(f"{type(module).__name__}: torch.fx cannot trace it: {' '.join(str(error).split())}; values of "
                            "tensors may not decide what is computed") from error
    return torch.fx.GraphModule(module, graph, type(module).__name__)


def _traced(module: torch.nn.Module, concrete_args: Optional[dict], leaves: Tuple[type, ...]) -> torch.fx.Graph:
    try:
        return Tracer(leaves).trace(module, concrete_args)
    except (torch.fx.proxy.TraceError, TypeError, AttributeError):
        try:
            graph = Tracer(leaves, buffers=True).trace(module, concrete_args)
            graph._tracer_cls = ReadingTracer
            return graph
        except Exception:
            pass
        raise
