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

    def encode(self, text: str, pair: Optional[str] = None, *, special: bool = True, max_length: Optional[int] = None,
               stride: Optional[int] = None, strategy: Optional[str] = None, cut: Optional[str] = None,
               pad: Union[bool, str] = False, pad_to: Optional[int] = None,
               pad_multiple: Optional[int] = None) -> Dict[str, list]:
        """ids, tokens, offsets in characters, type_ids, attention_mask, special_tokens_mask, and windows:
        what did not fit into max_length, where each window shares `stride` tokens with the one before.

        Of a pair the longer text is cut first (`strategy`: "longest_first", "only_first", "only_second"), on the
        right or the left (`cut`). `pad`: True as the tokenizer's file says, or the side, "left" or "right"."""
        return self._encoded([text], None if pair is None else [pair], special, max_length, stride, strategy, cut, pad,
                             pad_to, pad_multiple, 1)[0]

    def batch(self, texts: Sequence[str], pairs: Optional[Sequence[str]] = None, *, special: bool = True,
              max_length: Optional[int] = None, stride: Optional[int] = None, strategy: Optional[str] = None,
              cut: Optional[str] = None, pad: Union[bool, str] = True, pad_to: Optional[int] = None,
              pad_multiple: Optional[int] = None, threads: int = 0) -> List[Dict[str, list]]:
        """The same of several texts, or pairs, filled up to the longest; attention_mask is 0 where they are."""
        return self._encoded(list(texts), None if pairs is None else list(pairs), special, max_length, stride, strategy,
                             cut, pad, pad_to, pad_multiple, threads)

    def _encoded(self, texts, pairs, special, max_length, stride, strategy, cut, pad, pad_to, pad_multiple, threads):
        side = None if pad is False or pad is None else "file" if pad is True else pad
        return self._native.encode_batch(texts, pairs, special, max_length, stride, strategy, cut, side, pad_to,
                                         pad_multiple, threads)

    def normalized(self, text: str) -> str:
        """The text as it is before it is cut into pieces."""
        return self._native.normalized(text)

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
