# SPDX-License-Identifier: Apache-2.0
"""Networks as graphs: nodes in order, layers by path, passes over both."""
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Union

from mase import _native
from mase.arrays import host_array, is_torch, path_text
from mase.formats import Format
from mase.record import Record, dataframe

if TYPE_CHECKING:
    import numpy as np

    from mase.tokenizer import Tokenizer
else:
    from mase.lazy import numpy as np

PathLike = Union[str, "os.PathLike[str]"]
FILES = (".mz", ".ckpt", ".pt", ".pth", ".safetensors", ".onnx", ".gguf")  # that hold networks


def print_text(text: str) -> None:
    """Through sys.stdout, so that a notebook shows it in its place."""
    sys.stdout.write(text)


class Node(Record):
    """One step of a graph, with torch.fx's names: op (call_module, ...), target, name."""

    name: str
    op: str
    target: str
    mase_type: str
    mase_op: str
    class_name: str
    text: str
    format: str
    inputs: List[str]
    users: List[str]

    def __init__(self, graph: "Graph", facts: dict):
        super().__init__(facts)
        self._graph = graph

    @property
    def meta(self) -> dict:
        """The metadata that passes wrote: common, software, hardware."""
        return self._graph._native.metadata(self.name)

    @property
    def layer(self) -> Optional["Layer"]:
        return self._graph.modules[self.target] if self.op == "call_module" else None

    def __repr__(self) -> str:
        return f"<{self.name}: {self.text}>"

    def _repr_html_(self) -> str:
        from mase.html import figures

        pairs = [["op", self.op], ["target", self.target], ["layer", self.text], ["formats", self.format],
                 ["inputs", ", ".join(self.inputs)], ["users", ", ".join(self.users)]]
        return figures(self.name, [pair for pair in pairs if pair[1]])


class Layer:
    """A layer of a graph: its operation, attributes, tensors and number formats."""

    def __init__(self, graph: "Graph", path: str):
        self._graph, self.path = graph, path

    def _facts(self) -> dict:
        return self._graph._native.module(self.path)

    @property
    def op(self) -> str:
        return self._facts()["op"]

    @property
    def attributes(self) -> dict:
        return self._facts()["attributes"]

    @property
    def config(self) -> Optional[dict]:
        """The number formats as they were written; None if it is not quantised."""
        return self._facts()["config"]

    def tensors(self) -> Dict[str, np.ndarray]:
        """Parameters and buffers by name: views that cannot be written."""
        facts = self._facts()
        return {name: self._graph._native.tensor(self.path, name)
                for name in facts["parameters"] + facts["buffers"]}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._graph._native.tensor(self.path, name)

    def __setitem__(self, name: str, value: Any) -> None:
        old = self[name]
        self._graph._native.set_tensor(self.path, name, np.array(host_array(value, old.dtype)))

    def used(self) -> Dict[str, np.ndarray]:
        """The parameters as the layer uses them: rounded to its formats."""
        return self._graph._native.used_parameters(self.path)

    @property
    def mask(self) -> Optional[np.ndarray]:
        """Of the weight: 0 where it was pruned."""
        return self.masks.get("weight")

    @property
    def masks(self) -> Dict[str, np.ndarray]:
        """Of every parameter that was pruned."""
        return {name: self[f"mask:{name}"] for name in self._facts()["masks"]}

    def __repr__(self) -> str:
        return self._facts()["text"]


class _Layers(Mapping[str, Layer]):
    def __init__(self, graph: "Graph"):
        self._graph = graph

    def __getitem__(self, path: str) -> Layer:
        if path not in self._graph._native.module_paths():
            raise KeyError(path)
        return Layer(self._graph, path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._graph._native.module_paths())

    def __len__(self) -> int:
        return len(self._graph._native.module_paths())

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{path!r}: {layer!r}" for path, layer in self.items()) + "}"


class Cost:
    """What a network costs at a batch size, in all (attributes) and per layer (`layers`)."""

    def __init__(self, facts: dict):
        self._facts = facts
        self.layers: List[dict] = facts.get("layers", [])

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("_facts", {})
        for place in (facts, facts.get("total", {})):
            if name in place:
                return place[name]
        raise AttributeError(name)

    def to_dict(self) -> dict:
        return self._facts

    def to_dataframe(self) -> Any:
        return dataframe(self.layers)

    def __repr__(self) -> str:
        total = self._facts.get("total", self._facts)
        return "<" + ", ".join(f"{k} {v}" for k, v in total.items() if isinstance(v, (int, float))) + ">"

    def _repr_html_(self) -> str:
        from mase.html import figures

        total = self._facts.get("total", self._facts)
        return figures("Costs", [[k, f"{v:,}"] for k, v in total.items() if isinstance(v, (int, float))])


class Graph:
    """A network: an ordered list of nodes and a table of layers.

    A graph is a value: copying it is cheap, because tensors share memory until one is written.
    `run_pass` changes the graph it is called on; `quantize` and `pruned` give a new one.
    """

    def __init__(self, native: _native.Graph, extra: Any = None):
        self._native = native
        self._extra = extra  # what travels in its file: preprocessing, classes, the data set
        self._source: Optional[str] = None  # the folder or .gguf file that it came from

    @property
    def name(self) -> str:
        """What it is called: "jsc-tiny"."""
        return self._native.name

    @name.setter
    def name(self, name: str) -> None:
        self._native.name = name

    @property
    def nodes(self) -> List[Node]:
        """Every node in the order of the graph: what it calls, what it takes, its shape and metadata."""
        return [Node(self, facts) for facts in self._native.nodes()]

    @property
    def modules(self) -> Mapping[str, Layer]:
        """The layers by path; graph.modules["seq_blocks.2"]["weight"] is an array."""
        return _Layers(self)

    @property
    def inputs(self) -> Dict[str, List[int]]:
        """The shape of one sample of each input."""
        return self._native.input_shapes()

    @property
    def meta(self) -> dict:
        return self._native.metadata("")

    @property
    def parameter_count(self) -> int:
        """How many numbers are trained."""
        return self._native.parameter_count()

    @property
    def class_names(self) -> List[str]:
        extra = self._extra if isinstance(self._extra, dict) else {}
        return list((extra.get("mase") or {}).get("class_names") or [])

    @property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer of the folder or file that the network came from, or that it was trained with."""
        from mase.tokenizer import Tokenizer

        extra = self._extra if isinstance(self._extra, dict) else {}
        data = (extra.get("mase") or {}).get("data") or {}
        named = (data.get("arguments") or {}).get("tokenizer") if isinstance(data, dict) else None
        source = self._source or named
        if not source:
            raise _native.Error(f"{self.name}: the network came from no folder with a tokenizer; "
                                "name one: mase.Tokenizer(FOLDER)")
        return Tokenizer(source)

    def __getitem__(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def __len__(self) -> int:
        return self._native.node_count()

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def copy(self) -> "Graph":
        """A graph of its own; memory is shared until one of them is written."""
        graph = Graph(self._native.copy(), self._extra)
        graph._source = self._source
        return graph

    __copy__ = copy

    def __deepcopy__(self, memo: dict) -> "Graph":
        return self.copy()

    # Running ---------------------------------------------------------------------------------

    def __call__(self, *inputs: Any, threads: int = 1, **named: Any) -> Any:
        """The outputs for these rows, in evaluation mode; as torch tensors if torch came in. Inputs may have their
        names (`inputs`), as in graph(x=rows)."""
        if named:
            names = list(self.inputs)[len(inputs):]
            for name in named:
                if name not in names:
                    raise _native.Error(f"inputs: there is no further '{name}'; the graph takes {', '.join(self.inputs)}")
            inputs += tuple(named[name] for name in names if name in named)
        arrays = [host_array(x) for x in inputs]
        outputs = self._native.run(arrays, threads)
        if inputs and is_torch(inputs[0]):
            import torch

            outputs = [torch.from_numpy(array) for array in outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    # Passes ----------------------------------------------------------------------------------

    def run_pass(self, name: str, args: Optional[Mapping[str, Any]] = None, *, samples: Any = None,
                 labels: Any = None, original: Optional["Graph"] = None, save_dir: Optional[PathLike] = None,
                 batch_size: Optional[int] = None, seed: int = 0, print: Any = print_text, **keys: Any) -> Any:
        """Runs a pass on this graph and returns what it found.

        Arguments are the pass's own (`mase.passes()` lists them), as a dict or as keywords.
        `samples` are inputs for passes that look at activations; `original` is the graph before,
        for passes that compare. If the pass fails the graph is what it was.
        """
        arguments = dict(args or {}, **keys)
        context = {"save_dir": None if save_dir is None else path_text(save_dir), "seed": seed,
                   "batch_size": batch_size, "original": None if original is None else original._native,
                   "samples": None if samples is None else host_array(samples),
                   "labels": None if labels is None else host_array(labels, np.int32)}
        data, _ = _native.run_pass(self._native, name, arguments, context, print)
        return data

    def quantize(self, by: str = "type", default: Any = None, rules: Optional[Mapping[str, Any]] = None,
                 **by_name: Any) -> "Graph":
        """A new graph whose layers have number formats.

        A rule is an operation ("linear"), a node's name (by="name") or an expression
        (by="regex_name"); its value is a Format for all operands or a layer's config:

            graph.quantize(linear=mase.formats.integer(8, 4))
            graph.quantize(linear={"name": "integer", "data_in_width": 8, "weight_width": 4})
        """
        if isinstance(by, Format):
            raise _native.Error("quantize: which layers? Name them: graph.quantize(linear=FORMAT), or default=FORMAT for all")
        args: Dict[str, Any] = {"by": by}
        if default is not None:
            args["default"] = {"config": self._config("default", default)}
        for key, rule in {**(rules or {}), **by_name}.items():
            args[key] = {"config": self._config(key, rule)}
        quantized = self.copy()
        quantized.run_pass("quantize", args, print=None)
        return quantized

    def _config(self, key: str, rule: Any) -> Any:
        if not isinstance(rule, Format):
            return rule
        ops = {node.mase_op for node in self.nodes if node.op not in ("placeholder", "output", "get_attr")}
        records = _native.ops()
        chosen = [key] if key in records else sorted(ops)
        operands: List[str] = []
        for op in chosen:
            record = records.get(op, {})
            named_only = ["data_out", *record.get("inner_operands", [])]
            operands += [o for o in record.get("operands", []) if o not in operands + named_only]
        return rule.layer_config(operands)

    def prune(self, sparsity: float, **options: Any) -> "Graph":
        """A new graph with this share of its weights set to zero and kept there."""
        graph = self.copy()
        graph.run_pass("prune", {"weight": dict(options, sparsity=float(sparsity))}, print=None)
        return graph

    pruned = prune  # its name until quantize and prune were of one form

    # Looking ---------------------------------------------------------------------------------

    def summary(self, batch_size: int = 1) -> str:
        """A table of layers with their sizes and costs."""
        return self._native.summary(batch_size)[0]

    def cost(self, batch_size: int = 1) -> Cost:
        """Multiplications, operations, bit operations and memory."""
        return Cost(self._native.cost(batch_size))

    def state_dict(self) -> Dict[str, np.ndarray]:
        """Parameters and buffers by PyTorch's names: views that cannot be written."""
        return self._native.state_dict()

    def load_state_dict(self, tensors: Mapping[str, Any]) -> None:
        """Takes these values; every name must be there, and none besides but further names of shared parameters."""
        own = self.state_dict()
        missing, unknown = own.keys() - tensors.keys(), tensors.keys() - own.keys() - self.meta.get("tied", {}).keys()
        if missing or unknown:
            raise _native.Error(f"state dict: missing {sorted(missing)}, unexpected {sorted(unknown)}")
        arrays = {name: np.array(host_array(tensors[name], own[name].dtype)) for name in own}
        for name, array in arrays.items():
            if array.shape != own[name].shape:
                raise _native.Error(f"{name}: expected {list(own[name].shape)}, got {list(array.shape)}")
        for name, array in arrays.items():
            self._native.set_state(name, array)

    def description(self) -> dict:
        """Nodes, layers and formats as plain values, without the tensors' numbers."""
        return self._native.description()

    def save(self, path: PathLike) -> None:
        """The whole network in one file, .mz: what load, ch test and ch predict take."""
        self._native.save(path_text(path), self._extra)

    def draw(self, path: Optional[PathLike] = None) -> str:
        """The graph as SVG; written to `path` if one is given."""
        svg = self._native.svg()
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(svg)
        return svg

    def estimate(self, **options: Any) -> Any:
        """What it costs in hardware; see mase.estimate."""
        from mase.hardware import estimate

        return estimate(self, **options)

    def to_torch(self) -> Any:
        """See mase.to_torch."""
        from mase.torch_export import to_torch

        return to_torch(self)

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self)} nodes, {self.parameter_count:,} parameters>"

    def _repr_html_(self) -> str:
        from mase.html import image

        return image(self.draw(), repr(self))

    def __getstate__(self) -> dict:
        tensors = {}
        for path, layer in self.modules.items():
            for name, array in layer.tensors().items():
                tensors[f"{path}.{name}"] = np.array(array)
            for name, mask in layer.masks.items():
                tensors[f"mask:{path}.{name}"] = np.array(mask)
        return {"description": self.description(), "tensors": tensors, "extra": self._extra}

    def __setstate__(self, state: dict) -> None:
        self._native = _native.described_graph(state["description"], state["tensors"])
        self._extra = state["extra"]


def load(model: Any = None, load: Optional[PathLike] = None, *, dataset: Optional[str] = None,
         load_type: Optional[str] = None, seed: int = 0, **options: Any) -> Graph:
    """A network: a built-in name ("jsc-tiny"), a .toml that describes one, or a file that holds one.

        mase.load("jsc-tiny")                       # PyTorch's initial weights, by the seed
        mase.load("jsc-tiny", "best.ckpt")          # with the weights of a checkpoint
        mase.load("best.mz")                        # a file that describes its network
    """
    from mase.experiment import open_experiment

    if isinstance(model, Graph):
        return model.copy()
    given: Dict[str, Any] = dict(options, seed=seed, load_type=load_type)
    if load is None and model is not None and os.path.exists(model) and not path_text(model).endswith(".toml"):
        model, load = None, model
    if load is None and model is not None and os.path.splitext(path_text(model))[1] in FILES:
        raise _native.Error(f"{path_text(model)}: there is no such file")
    experiment = open_experiment(model, dataset, dict(given, load=load), progress=False)
    experiment.prepare(False)
    experiment.rethrow()
    graph = Graph(experiment.graph(), experiment.file_contents())
    if load is not None and (os.path.isdir(load) or path_text(load).lower().endswith(".gguf")):
        graph._source = path_text(load)
    return graph
