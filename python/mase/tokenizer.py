# SPDX-License-Identifier: Apache-2.0
"""Tokenizers: texts to token ids and back, from the files that Hugging Face's library writes."""
from __future__ import annotations

import os
from typing import Dict, List, Optional, Sequence, Union

from mase import _native


class Tokenizer:
    """A tokenizer of a file or folder: tokenizer.json, vocab.txt, or vocab.json beside merges.txt.

        tokenizer = mase.Tokenizer("FOLDER")
        ids = tokenizer.encode("To be, or not to be")["ids"]
        print(tokenizer.decode(ids))
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"]):
        self._native = _native.Tokenizer.load(os.fspath(path))

    def encode(self, text: str, pair: Optional[str] = None, *, special: bool = True,
               max_length: Optional[int] = None) -> Dict[str, list]:
        """ids, tokens, offsets in characters, type_ids, attention_mask, special_tokens_mask, and windows:
        what did not fit into max_length."""
        return self._native.encode(text, pair, special, max_length)

    def batch(self, texts: Sequence[str], *, special: bool = True, pad: bool = True,
              max_length: Optional[int] = None, threads: int = 0) -> List[Dict[str, list]]:
        """The same of several texts, filled up to the longest; attention_mask is 0 where they are."""
        return self._native.encode_batch(list(texts), special, pad, max_length, threads)

    def decode(self, ids: Sequence[int], *, skip_special: bool = False) -> str:
        return self._native.decode([int(i) for i in ids], skip_special)

    def token(self, id: int) -> Optional[str]:
        return self._native.token(id)

    def id(self, token: str) -> Optional[int]:
        return self._native.id(token)

    def __len__(self) -> int:
        return self._native.size()

    def __repr__(self) -> str:
        return f"<tokenizer of {len(self):,} tokens>"
