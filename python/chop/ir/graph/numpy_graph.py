# SPDX-License-Identifier: Apache-2.0
"""MaseGraph without torch: a graph of the library with the names scripts use, as far as it goes."""
from __future__ import annotations

import copy
from typing import Any, Dict, List, Optional

from chop.ir.graph.mase_graph import MaseGraph
from chop.ir.graph.mase_metadata import MaseMetadata
from mase._native import Error


class NumpyNode:
    """A node with fx's attributes; meta["mase"] is kept between passes."""

    def __init__(self, owner: "NumpyMaseGraph", node: Any):
        self._node, self.owner = node, owner
        self.name, self.op, self.target = node.name, node.op, node.target
        self.meta: Dict[str, Any] = {}

    @property
    def all_input_nodes(self) -> List["NumpyNode"]:
        by_name = {node.name: node for node in self.owner.fx_graph.nodes}
        return [by_name[name] for name in self._node.inputs]

    def __repr__(self) -> str:
        return self.name


class _FxGraph:
    def __init__(self, owner: "NumpyMaseGraph"):
        self.owner = owner

    @property
    def nodes(self) -> List[NumpyNode]:
        return self.owner._nodes

    def __str__(self) -> str:
        return str(self.owner.graph)


class _Model:
    """What mg.model is here: callable on arrays, in evaluation mode."""

    def __init__(self, owner: "NumpyMaseGraph"):
        self._owner = owner

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self._owner.graph(*inputs, *named.values())

    def eval(self) -> "_Model":
        return self

    def train(self, mode: bool = True) -> "_Model":
        if mode:
            raise Error("mg.model: without torch the model runs in evaluation mode; mase.train trains it")
        return self

    def state_dict(self) -> dict:
        return self._owner.graph.state_dict()

    def get_submodule(self, path: str) -> Any:
        return self._owner.graph.modules[path]

    def __getattr__(self, name: str) -> Any:
        raise Error(f"mg.model.{name}: needs torch; without it the model is callable, and its layers are mg.modules")


class NumpyMaseGraph(MaseGraph):
    """What MaseGraph(get_model(...)) gives where torch is not installed."""

    def __init__(self, model: Any, cf_args: Optional[dict] = None, **keys: Any):
        from mase.graph import Graph

        self.graph = (model if isinstance(model, Graph) else model.graph).copy()
        self.meta: Dict[str, Any] = {}
        self._fx, self._callable = _FxGraph(self), _Model(self)
        self.refresh()

    def refresh(self) -> None:
        """After a pass: nodes as the graph has them now, with what was known about them."""
        known = {node.name: node.meta for node in getattr(self, "_nodes", [])}
        self._nodes = [NumpyNode(self, node) for node in self.graph.nodes]
        for node in self._nodes:
            node.meta = known.get(node.name, {})
            meta = self.graph._native.metadata(node.name)
            if meta:
                node.meta["mase"] = MaseMetadata(node, self._callable, meta)

    model = property(lambda self: self._callable)  # type: ignore[assignment]
    fx_graph = property(lambda self: self._fx)  # type: ignore[assignment]
    modules = property(lambda self: {"": self._callable, **dict(self.graph.modules)})  # type: ignore[assignment]

    def native(self, example: Any = None, partial: bool = False) -> Any:
        return self.graph

    def export(self, fname: Any = "masegraph", save_format: str = "full_model") -> None:
        self.graph.save(f"{fname}.mz")

    def __deepcopy__(self, memo: dict) -> "NumpyMaseGraph":
        other = MaseGraph(self.graph)
        for old, new in zip(self._nodes, other._nodes):  # type: ignore[attr-defined]
            if "mase" in old.meta:
                new.meta["mase"] = MaseMetadata(new, other.model, copy.deepcopy(old.meta["mase"].parameters))
        return other  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"<MaseGraph of {self.graph.name}: {len(self._nodes)} nodes>"
