# SPDX-License-Identifier: Apache-2.0
"""Language models: how well they predict a text, and texts of their own."""
from __future__ import annotations

import os
from typing import Any, Callable, List, Optional, Sequence, Union

from mase import _native
from mase.arrays import path_text
from mase.graph import Graph, load
from mase.record import Record
from mase.tokenizer import Tokenizer


class Perplexity(Record):
    """exp of the mean loss over all predicted tokens, and what it was measured on."""

    perplexity: float
    loss: float
    predictions: int
    tokens: int
    windows: int

    def __float__(self) -> float:
        return self.perplexity

    def __repr__(self) -> str:
        return f"<perplexity {self.perplexity:.6g}: {self.predictions} predictions in {self.windows} windows>"


def _network(network: Any) -> Graph:
    return network if isinstance(network, Graph) else load(network)


def _ids(graph: Graph, given: Any, tokenizer: Optional[Tokenizer], special: bool) -> List[int]:
    if not isinstance(given, str):
        return [int(i) for i in given]
    return (tokenizer or graph.tokenizer).encode(given, special=special)["ids"]


def perplexity(network: Any, text: Union[str, Sequence[int], None] = None, *, file: Any = None, length: int = 512,
               tokenizer: Optional[Tokenizer] = None, threads: int = 1, layer_by_layer: bool = False) -> Perplexity:
    """How well a network predicts the next token of a text, given as such, as token numbers, or as a file
    (a text, or a .npy of token numbers). The text is cut into windows of `length` tokens one behind the other;
    the first token of each is not predicted. `layer_by_layer`: all windows go through one layer after the other,
    so that only one layer's weights are in memory; `network` is then a folder or a .gguf file.

        mase.perplexity("FOLDER", file="hamlet.txt").perplexity
    """
    if (text is None) == (file is None):
        raise _native.Error("perplexity: give a text, token numbers, or file=")
    if layer_by_layer:
        if isinstance(network, Graph):
            raise _native.Error("perplexity: a network in memory is not measured layer by layer; name its folder")
        is_text = isinstance(text, str) or (text is None and not path_text(file).lower().endswith(".npy"))
        tokenizer = tokenizer or (Tokenizer(network) if is_text else None)
    graph: Any = None if layer_by_layer else _network(network)
    if file is not None:
        if path_text(file).lower().endswith(".npy"):
            ids = _native.text_tokens("", path_text(file))
        else:
            with open(os.fspath(file), encoding="utf-8", newline="") as lines:
                ids = _ids(graph, lines.read(), tokenizer, False)
    else:
        ids = _ids(graph, text, tokenizer, False)
    found: Any = (_native.layered_perplexity(path_text(network), ids, int(length), int(threads)) if layer_by_layer
                  else _native.perplexity(graph._native, ids, int(length), int(threads)))
    return Perplexity(found)


def generate(network: Any, prompt: Union[str, Sequence[int]], *, tokens: int = 64, temperature: float = 0.0,
             top_k: int = 0, top_p: float = 1.0, seed: int = 0, ignore_end: bool = False,
             tokenizer: Optional[Tokenizer] = None, threads: int = 1,
             each: Optional[Callable[[int], Any]] = None) -> Union[str, List[int]]:
    """Lets a network go on with a text: the new text, or the new token numbers where the prompt is such.

    Temperature 0 takes the likeliest token each time; `each` is called with every token as it comes, and ends the
    text by returning False.

        mase.generate("FOLDER", "To be, or", tokens=20)
    """
    graph = _network(network)
    if tokens < 0 or temperature < 0 or top_k < 0 or not 0 <= top_p <= 1:
        raise _native.Error("generate: tokens, temperature and top_k are 0 or more, top_p from 0 to 1")
    ends: List[int] = []
    if not ignore_end:
        given = _native.hf_config(graph._native).get("eos_token_id")
        ends = [int(i) for i in (given if isinstance(given, list) else [given]) if i is not None]
    ids = _native.generate(graph._native, _ids(graph, prompt, tokenizer, True), int(tokens), float(temperature),
                           int(top_k), float(top_p), int(seed), ends, int(threads), each)
    if not isinstance(prompt, str):
        return list(ids)
    return (tokenizer or graph.tokenizer).decode(ids, skip_special=True)
