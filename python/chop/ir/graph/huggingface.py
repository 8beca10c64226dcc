# SPDX-License-Identifier: Apache-2.0
"""Networks of Hugging Face, and modules written like theirs (named inputs, a loss where labels are among them), as graphs. Any
version of transformers will do: its classes are followed as every module is, and nothing of it is imported."""
from __future__ import annotations

import inspect
import operator
from typing import Any, Dict, List, Optional, Sequence

from mase._native import Error

KEPT = ("config", "class_for_deserialization", "main_input_name")  # what a GraphModule keeps of the module it was made from
_LONG = ("ForCausalLM", "ForMaskedLM", "LMHeadModel", "ForTokenClassification", "ForConditionalGeneration", "ForPreTraining")


def is_huggingface(model: Any) -> bool:
    """Whether it is transformers' own, or the graph of such a module."""
    kinds = [type(model), getattr(model, "class_for_deserialization", object)]
    return any(base.__module__.partition(".")[0] == "transformers" for kind in kinds for base in getattr(kind, "__mro__", ()))


def input_names(model: Any) -> List[str]:
    """The inputs of a graph for which none were named: transformers' own choice."""
    taken = inspect.signature(model.forward).parameters
    for names in (list(getattr(model, "dummy_inputs", None) or []), [getattr(model, "main_input_name", "input_ids")]):
        if names and all(name in taken for name in names):
            return names
    raise Error(f"{type(model).__name__}: which inputs? Name them: MaseGraph(model, hf_input_names=['input_ids', 'attention_mask'])")


def _vocabulary(model: Any) -> int:
    import torch

    size: Any = getattr(getattr(model, "config", None), "vocab_size", None)
    if size is None:
        size = next((layer.num_embeddings for layer in model.modules() if isinstance(layer, torch.nn.Embedding)), None)
    if size is None:
        raise Error(f"{type(model).__name__}: how many tokens there are is not known, as it has no config.vocab_size and no Embedding; "
                    "give dummy_in")
    return int(size)


def _labels(model: Any, rows: int, length: int) -> Any:
    import torch

    config = getattr(model, "config", None)
    name = getattr(model, "class_for_deserialization", type(model)).__name__
    classes = int(getattr(config, "num_labels", 2) or 2)
    shape = (rows, length) if any(part in name for part in _LONG) else (rows,)
    limit = classes if "LM" not in name and "Generation" not in name and "PreTraining" not in name else _vocabulary(model)
    if getattr(config, "problem_type", None) == "multi_label_classification":
        return (torch.arange(rows * classes).reshape(rows, classes) % 2).float()
    if len(shape) == 1 and classes == 1:
        return torch.linspace(-1.0, 1.0, rows)
    count = int(torch.tensor(shape).prod())
    return ((torch.arange(count) + 1) % limit).reshape(shape)


def example_inputs(model: Any, names: Sequence[str], rows: int = 2, length: int = 8) -> Dict[str, Any]:
    """Inputs to look at a network with, made without a tokenizer: ids of its vocabulary, a mask whose second row ends two positions
    before the first, labels 1, 0, 1, ..."""
    import torch

    config = getattr(model, "config", None)
    found: Dict[str, Any] = {}
    for name in names:
        if name in ("input_ids", "decoder_input_ids"):
            size = _vocabulary(model)
            found[name] = (torch.arange(rows * length) * 7 + 5).reshape(rows, length) % max(size - 1, 1) + (1 if size > 1 else 0)
        elif name in ("attention_mask", "decoder_attention_mask"):
            found[name] = torch.ones(rows, length, dtype=torch.int64)
            found[name][1:2, -2:] = 0
        elif name == "token_type_ids":
            types = int(getattr(config, "type_vocab_size", 1) or 1)
            found[name] = torch.zeros(rows, length, dtype=torch.int64)
            found[name][:, length // 2:] = min(types - 1, 1)
        elif name == "position_ids":
            found[name] = torch.arange(length).expand(rows, length).clone()
        elif name == "labels":
            found[name] = _labels(model, rows, length)
        elif name in ("start_positions", "end_positions"):
            found[name] = torch.arange(rows) % length
        elif name == "inputs_embeds":
            width = getattr(config, "hidden_size", None)
            if width is None:
                raise Error("inputs_embeds: how wide they are is not known; give dummy_in")
            found[name] = torch.sin(torch.arange(rows * length * width).float()).reshape(rows, length, width)
        elif name == "pixel_values":
            image: Any = getattr(config, "image_size", None)
            channels = getattr(config, "num_channels", 3)
            if image is None:
                raise Error("pixel_values: the size of images is not known, as the network has no config.image_size; give dummy_in")
            high, wide = (image, image) if isinstance(image, int) else image
            found[name] = torch.sin(torch.arange(rows * channels * high * wide).float()).reshape(rows, channels, high, wide)
        else:
            raise Error(f"{name}: what this input looks like is not known; give dummy_in={{'{name}': tensor, ...}}")
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    return {name: value.to(device) for name, value in found.items()}


def graph_of(model: Any, names: Optional[Sequence[str]] = None, leaves: tuple = (), example: Optional[Dict[str, Any]] = None) -> Any:
    """A GraphModule whose inputs are these, in this order; all others are left out. Its output is a table (`loss`, where labels are
    among the inputs, and `logits`), as transformers' Trainer reads it."""
    from mase.torch_follow import follow

    wanted = list(names) if names is not None else input_names(model)
    if not wanted or len(set(wanted)) != len(wanted) or not all(isinstance(name, str) and name.isidentifier() for name in wanted):
        raise Error(f"hf_input_names: expected names of inputs, each once, got {wanted!r}")
    taken = inspect.signature(model.forward).parameters
    for name in wanted:
        if name not in taken:
            raise Error(f"hf_input_names: {type(model).__name__} has no input '{name}'; it has {', '.join(taken)}")
    config: Any = getattr(model, "config", None)
    before = getattr(config, "return_dict", None)
    if before is False:  # the loss would be one of a tuple
        config.return_dict = True
    try:
        graph = follow(model, example_inputs(model, wanted), example_inputs(model, wanted, 3, 11), leaves)
    finally:
        if before is False:
            config.return_dict = before
    for name in KEPT:
        value = type(model) if name == "class_for_deserialization" else getattr(model, name, None)
        if value is not None:
            graph.__dict__[name] = value
    return graph


def without_loss(model: Any) -> Any:
    """The graph up to its logits where it computes a loss too, and the module as it is otherwise; layers are the same ones."""
    import torch

    out = next(node for node in model.graph.nodes if node.op == "output")
    results = out.args[0]
    if not isinstance(results, dict) or "loss" not in results or "logits" not in results:
        return model
    graph = torch.fx.Graph()
    copied: Dict[Any, Any] = {}
    graph.graph_copy(model.graph, copied)
    graph.output(copied[results["logits"]])
    for node in reversed(list(graph.nodes)):
        kept = node.op == "output" or (node.op == "placeholder" and node.target != "labels") or node.target is operator.setitem
        if not node.users and not kept:
            graph.erase_node(node)
    other = torch.fx.GraphModule(model, graph, type(model).__name__)
    if hasattr(model, "mase_name"):
        other.mase_name = model.mase_name
    return other
