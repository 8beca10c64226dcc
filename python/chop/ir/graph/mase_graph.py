# SPDX-License-Identifier: Apache-2.0
"""MaseGraph: a torch.fx.GraphModule whose nodes carry metadata. Without torch it is a graph of the
library with the same surface as far as that goes."""
from __future__ import annotations

import copy
import inspect
import os
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

from chop.ir.graph.huggingface import KEPT, example_inputs, graph_of, is_huggingface, without_loss
from chop.tools.logger import get_logger
from mase._native import Error


@dataclass(frozen=True)
class _NodeName:
    """Stands for a node in a file."""

    name: str


def _replaced(value: Any, by: Dict[Any, Any]) -> Any:
    """The tables of metadata with some of what they hold replaced."""
    if isinstance(value, dict):
        return {key: _replaced(item, by) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, by) for item in value]
    return by.get(value, value) if type(value).__name__ in ("Node", "_NodeName") else value


def _copied(model: Any, memo: Optional[dict] = None, whole: Any = None) -> Tuple[Any, Dict[str, Any]]:
    """A GraphModule of its own, with nodes, layers, weights and metadata, and the metadata of the whole graph (`whole`)
    for it: tables that show its own parameters and nodes."""
    from chop.ir.graph.mase_metadata import MaseMetadata

    other = copy.deepcopy(model, memo if memo is not None else {})
    type(other).__name__ = type(model).__name__  # each GraphModule has a class of its own
    for name in ("mase_name", *KEPT):
        if hasattr(model, name) and not hasattr(other, name):
            other.__dict__[name] = getattr(model, name)
    own = {id(p): name for name, p in model.named_parameters()}
    theirs = dict(other.named_parameters())
    nodes = dict(zip(model.graph.nodes, other.graph.nodes))

    def copied(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: copied(item) for key, item in value.items()}
        if isinstance(value, list):
            return [copied(item) for item in value]
        if type(value).__name__ == "Node":
            return nodes.get(value, value)
        return theirs[own[id(value)]] if id(value) in own else value

    for old, new in nodes.items():
        if "mase" in old.meta:
            new.meta["mase"] = MaseMetadata(new, other, copied(old.meta["mase"].parameters))
    return other, {} if whole is None else {"mase": MaseMetadata(None, other, copied(whole.parameters))}


def _unmasked(model: Any) -> Dict[Tuple[str, str], Any]:
    """The masks of pruned layers, which are plain ones afterwards, their zeros kept: torch writes no others into files."""
    from mase.torch_ops import remove_masks

    return {(path, name): mask for path, module in list(model.named_modules()) for name, mask in remove_masks(module).items()}


class MaseGraph:
    """A network that passes work on.

    `model` is any module that torch.fx can trace. `mg.model` is a real GraphModule, `mg.fx_graph.nodes`
    its nodes with `node.meta["mase"]`, `mg.modules` its layers by path. Of a module that is traced here the
    layers are those of the model that came in, so its weights are shared until a pass replaces a layer. A
    GraphModule is copied, weights and all: passes change the graph itself, and the caller keeps his.
    Modules of Hugging Face, and others for which `hf_input_names` are given, become graphs that take these
    inputs and give a table with `loss`, where `labels` are among them, and `logits`.
    """

    def __new__(cls, model: Any = None, *args: Any, **keys: Any) -> Any:
        from mase.graph import Graph

        if cls is MaseGraph and (isinstance(model, Graph) or type(model).__name__ == "NumpyNetwork"):
            from chop.ir.graph.numpy_graph import NumpyMaseGraph

            return super().__new__(NumpyMaseGraph)
        return super().__new__(cls)

    def __init__(self, model: Any, cf_args: Optional[Dict[str, Any]] = None, custom_ops: Optional[dict] = None,
                 hf_input_names: Optional[list] = None, skip_init_metadata: bool = False,
                 add_metadata_args: Optional[dict] = None):
        if isinstance(model, (str, os.PathLike)):
            raise Error(f"MaseGraph: {model!r} is a name; give the network itself: get_model(...) or mase.load(...)")
        try:
            import torch
        except ImportError:
            raise Error("MaseGraph: a torch module needs torch; without it, give what get_model returned") from None
        if not isinstance(model, torch.nn.Module):
            raise Error(f"MaseGraph: expected a torch module, got {type(model).__name__}")
        from mase.torch_trace import trace

        leaves = tuple((custom_ops or {}).get("modules", {}))
        self.cf_args, self.custom_ops = cf_args, custom_ops
        if isinstance(model, torch.fx.GraphModule):
            if hf_input_names is not None and hf_input_names != [node.target for node in model.graph.nodes if node.op == "placeholder"]:
                raise Error("hf_input_names: a GraphModule has its inputs; give the module that it was made from")
            self.model = _copied(model)[0]
        elif hf_input_names is not None or is_huggingface(model):
            if any(value is not None for value in (cf_args or {}).values()):
                raise Error("cf_args: a network whose inputs have names (hf_input_names) has all others left out")
            self.model = graph_of(model, hf_input_names, leaves)
        else:
            try:
                self.model = trace(model, cf_args, leaves)
            except Error as error:
                if "input_ids" not in inspect.signature(model.forward).parameters:
                    raise
                raise Error(f"{error}; with hf_input_names=['input_ids', ...] its code is followed on made-up sentences") from error
        self.meta: Dict[str, Any] = {}
        if not skip_init_metadata:
            from chop.passes.graph.metadata import add_common_metadata_analysis_pass, init_metadata_analysis_pass

            init_metadata_analysis_pass(self)
            if add_metadata_args is not None:
                add_common_metadata_analysis_pass(self, add_metadata_args)

    @property
    def fx_graph(self) -> Any:
        return self.model.graph

    @fx_graph.setter
    def fx_graph(self, graph: Any) -> None:
        self.model.graph = graph

    @property
    def modules(self) -> Dict[str, Any]:
        """Layers by path: dict(mg.model.named_modules()), without its generator for each level."""
        found: Dict[str, Any] = {}
        seen = set()

        def visit(module: Any, path: str) -> None:
            if module in seen:
                return
            seen.add(module)
            found[path] = module
            start = path + "." if path else ""
            for name, child in module._modules.items():
                if child is not None:
                    visit(child, start + name)

        visit(self.model, "")
        return found

    @classmethod
    def from_module(cls, model: Any, cf_args: Optional[Dict[str, Any]] = None, custom_ops: Optional[dict] = None) -> "MaseGraph":
        """The graph of a torch module, as the constructor makes it."""
        return cls(model, cf_args, custom_ops)

    @property
    def is_huggingface(self) -> bool:
        """Whether it was made from a module of transformers."""
        return is_huggingface(self.model)

    @property
    def device(self) -> Any:
        """Where the weights are."""
        import torch

        return next((p.device for p in self.model.parameters()), torch.device("cpu"))

    @property
    def nodes(self) -> Any:
        return self.fx_graph.nodes

    @property
    def nodes_in(self) -> list:
        return [node for node in self.fx_graph.nodes if node.op == "placeholder"]

    @property
    def nodes_out(self) -> list:
        return [node for node in self.fx_graph.nodes if node.op == "output"]

    def native(self, example: Any = None, partial: bool = False) -> Any:
        """The same network as a graph of the library, up to its logits where it computes a loss; weights are shared.
        `partial`: operations that the library lacks are kept to be looked at, instead of an error that names them."""
        import torch

        from mase.torch_import import from_torch

        model = without_loss(self.model)
        if example is None:
            values = {}
            for node in self.nodes_in:
                entry = getattr(node.meta.get("mase"), "parameters", {}).get("common", {})
                result = entry.get("results", {}).get("data_out_0", {})
                value = result.get("value")
                if value is None and "torch_dtype" in result:  # metadata without values: zeros have the shape
                    value = torch.zeros(result["shape"], dtype=result["torch_dtype"])
                if value is not None:
                    values[node.name] = value
            example = values or None
            if example is None and hasattr(self.model, "class_for_deserialization"):
                example = example_inputs(self.model, [node.target for node in model.graph.nodes if node.op == "placeholder"])
        # Outputs by name, a loss and the configuration are in the .pt only.
        meta = {"more_in_pt": True} if hasattr(self.model, "class_for_deserialization") else {}
        return from_torch(model, example, partial=partial, meta=meta)

    def _drawn(self) -> Any:
        """What a picture is made from; where shapes are not known, it does without them."""
        from mase.torch_sketch import sketch

        try:
            return self.native(partial=True)
        except Error:
            return sketch(self.model)

    def draw(self, file: Any = "mase_graph.svg") -> None:
        """The graph as a picture."""
        self._drawn().draw(file)

    def export(self, fname: Any = "masegraph", save_format: str = "full_model") -> None:
        """FNAME.pt with the module (or its state dict) and FNAME.mz with graph, formats and weights; without the
        latter, which a warning says, where the network has operations that the library lacks. An older FNAME.mz is
        removed first: it would be another network's."""
        import torch

        if save_format not in ("full_model", "state_dict"):
            raise Error(f"save_format: expected full_model or state_dict, got {save_format!r}")
        name = os.fspath(fname)
        clean = copy.deepcopy(self)
        for node in clean.fx_graph.nodes:
            node.meta.pop("mase", None)
        try:
            os.remove(f"{name}.mz")
        except FileNotFoundError:
            pass
        if save_format == "full_model":
            clean.model.__dict__["mase_masks"] = _unmasked(clean.model)
        torch.save(clean.model if save_format == "full_model" else clean.model.state_dict(), f"{name}.pt")
        try:
            native = self.native()
        except Error as error:
            get_logger("chop").warning(f"{name}.mz was not written: {error}")
            return
        native.save(f"{name}.mz")

    @classmethod
    def from_checkpoint(cls, checkpoint: Any, propagate_missing_metadata: bool = True) -> "MaseGraph":
        """What export wrote."""
        from chop.passes.graph.metadata import add_software_metadata_analysis_pass, init_metadata_analysis_pass
        from mase import load, to_torch

        name = os.fspath(checkpoint)
        if not os.path.exists(f"{name}.mz") and not os.path.exists(f"{name}.pt"):
            raise FileNotFoundError(f"{name}: there is no {name}.pt and no {name}.mz, as mg.export({name!r}) writes them")
        native = load(f"{name}.mz") if os.path.exists(f"{name}.mz") or not os.path.exists(f"{name}.pt") else None
        if native is not None and not (native.meta.get("more_in_pt") and os.path.exists(f"{name}.pt")):
            graph = cls(to_torch(native))
        else:  # what export wrote with torch's own means, which run what is in the file
            import torch

            from mase.torch_ops import apply_mask

            keys: Dict[str, Any] = {} if torch.__version__.startswith("1.") else {"weights_only": False}
            model = torch.load(f"{name}.pt", **keys)
            if not isinstance(model, torch.nn.Module):
                raise Error(f"{name}.pt: it has weights and no network; read it into one with load_state_dict(mase.read_checkpoint"
                            f"({name + '.pt'!r}).to_torch())")
            masks = model.__dict__.pop("mase_masks", {})
            graph = cls(model)
            for (path, parameter), mask in masks.items():
                apply_mask(graph.model.get_submodule(path), mask, parameter)
        graph, _ = init_metadata_analysis_pass(graph)
        graph, _ = add_software_metadata_analysis_pass(graph)
        return graph

    def __deepcopy__(self, memo: dict) -> "MaseGraph":
        """A graph of its own: layers, weights and metadata are copied."""
        other = type(self).__new__(type(self))
        other.cf_args, other.custom_ops = self.cf_args, self.custom_ops
        other.model, other.meta = _copied(self.model, memo, self.meta.get("mase"))
        return other

    def __getstate__(self) -> dict:
        """Metadata beside the module: torch writes the code of a graph into files and makes nodes of it anew."""
        names = {node: _NodeName(node.name) for node in self.fx_graph.nodes}
        metadata = [(node.name, _replaced(node.meta["mase"].parameters, names) if "mase" in node.meta else None) for node in names]
        whole = _replaced(self.meta["mase"].parameters, names) if "mase" in self.meta else None
        return {"cf_args": self.cf_args, "custom_ops": self.custom_ops, "model": self.model, "metadata": metadata, "whole": whole}

    def __setstate__(self, state: dict) -> None:
        from chop.ir.graph.mase_metadata import MaseMetadata

        self.cf_args, self.custom_ops, self.model, self.meta = state["cf_args"], state["custom_ops"], state["model"], {}
        nodes = list(self.fx_graph.nodes)
        if len(nodes) != len(state["metadata"]):
            raise Error(f"MaseGraph: the file has metadata of {len(state['metadata'])} nodes, and the network {len(nodes)}")
        named: Dict[Any, Any] = {}
        for node, (name, _) in zip(nodes, state["metadata"]):
            node.name = name  # those that were inserted by hand have other names when their code is read
            named[_NodeName(name)] = node
        for node, (_, parameters) in zip(nodes, state["metadata"]):
            if parameters is not None:
                node.meta["mase"] = MaseMetadata(node, self.model, _replaced(parameters, named))
        if state["whole"] is not None:
            self.meta["mase"] = MaseMetadata(None, self.model, _replaced(state["whole"], named))

    def __repr__(self) -> str:
        return f"<MaseGraph of {type(self.model).__name__}: {len(self.fx_graph.nodes)} nodes>"

    def _repr_html_(self) -> str:
        return self._drawn()._repr_html_()


def trace_torch_module(model: Any, cf_args: Optional[Dict[str, Any]] = None, custom_ops: Optional[dict] = None) -> Any:
    """A module as a torch.fx.GraphModule."""
    return MaseGraph(model, cf_args, custom_ops, skip_init_metadata=True).model


def __getattr__(name: str) -> Any:
    if name == "MaseTracer":
        from mase.torch_trace import Tracer

        return Tracer
    from chop._layout import absent_or_missing

    return absent_or_missing(__name__, name, ["MaseGraph", "MaseTracer", "trace_torch_module"])
