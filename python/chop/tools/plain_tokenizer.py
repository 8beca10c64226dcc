# SPDX-License-Identifier: Apache-2.0
"""A tokenizer of the library with the calls that scripts make of transformers' ones; used where that package is not installed."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Sequence, Union

from mase._native import Error


class Encoding(Dict[str, Any]):
    """input_ids, attention_mask and what else the network takes; `to` moves tensors, attributes are its entries."""

    def to(self, device: Any) -> "Encoding":
        return Encoding({name: value.to(device) if hasattr(value, "to") else value for name, value in self.items()})

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)


def _length(folder: str) -> int:
    """How many tokens it takes; 512 where its folder says nothing that can be believed."""
    try:
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as file:
            length = json.load(file).get("model_max_length")
    except (OSError, ValueError, AttributeError):
        length = None
    return int(length) if isinstance(length, int) and 0 < length < 1 << 20 else 512


class PlainTokenizer:
    """tokenizer("a text"), tokenizer([...], truncation=True, padding=True, return_tensors="pt")."""

    padding_side = "right"

    def __init__(self, folder: str):
        from mase.tokenizer import Tokenizer

        self.name_or_path = folder
        self._own = Tokenizer(folder)
        self.model_max_length = _length(folder) if os.path.isdir(folder) else 512
        ids = [self._own.id(token) for token in ("[PAD]", "<pad>", "<|endoftext|>")]
        self.pad_token_id = next((i for i in ids if i is not None), 0)
        first = self._own.encode("a", "b")
        self.model_input_names = ["input_ids", *(["token_type_ids"] if any(first["type_ids"]) else []), "attention_mask"]

    def _one(self, text: str, pair: Optional[str], special: bool, limit: Optional[int]) -> Dict[str, List[int]]:
        made = self._own.encode(text, pair, special=special, max_length=limit)
        named = {"input_ids": made["ids"], "token_type_ids": made["type_ids"], "attention_mask": made["attention_mask"]}
        return {name: list(named[name]) for name in self.model_input_names}

    def __call__(self, text: Union[str, Sequence[str]], text_pair: Any = None, *, truncation: Any = False, padding: Any = False,
                 max_length: Optional[int] = None, return_tensors: Optional[str] = None, add_special_tokens: bool = True) -> Encoding:
        limit = (max_length or self.model_max_length) if truncation else None
        if isinstance(text, str):
            one = self._one(text, text_pair, add_special_tokens, limit)
            return Encoding(one) if return_tensors is None else self.pad([one], return_tensors=return_tensors)
        pairs = text_pair if text_pair is not None else [None] * len(text)
        rows = [self._one(t, p, add_special_tokens, limit) for t, p in zip(text, pairs)]
        if padding or return_tensors:
            return self.pad(rows, max_length=max_length if padding == "max_length" else None, return_tensors=return_tensors)
        return Encoding({name: [row[name] for row in rows] for name in self.model_input_names})

    def pad(self, rows: Sequence[Dict[str, Any]], max_length: Optional[int] = None, return_tensors: Optional[str] = "pt") -> Encoding:
        """Rows of ids filled up to the longest."""
        longest = max_length or max(len(row["input_ids"]) for row in rows)
        filled = {name: [list(row[name]) + [self.pad_token_id if name == "input_ids" else 0] * (longest - len(row[name])) for row in rows]
                  for name in self.model_input_names if name in rows[0]}
        if return_tensors is None:
            return Encoding(filled)
        if return_tensors not in ("pt", "np"):
            raise Error(f"return_tensors: expected pt or np, got {return_tensors!r}")
        if return_tensors == "np":
            import numpy

            return Encoding({name: numpy.array(values, dtype=numpy.int64) for name, values in filled.items()})
        import torch

        return Encoding({name: torch.tensor(values, dtype=torch.int64) for name, values in filled.items()})

    def tokenize(self, text: str) -> List[str]:
        return list(self._own.encode(text, special=False)["tokens"])

    def encode(self, text: str, **keys: Any) -> List[int]:
        return self(text, **keys)["input_ids"]

    def decode(self, ids: Any, skip_special_tokens: bool = False) -> str:
        return self._own.decode(ids.tolist() if hasattr(ids, "tolist") else ids, skip_special=skip_special_tokens)

    @property
    def vocab_size(self) -> int:
        return len(self._own)

    def __len__(self) -> int:
        return len(self._own)

    def __repr__(self) -> str:
        return f"<tokenizer of {self.name_or_path}: {len(self):,} tokens>"
