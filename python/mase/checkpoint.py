# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: read without running anything in them."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional, Union


from mase import _native
from mase.arrays import host_array, is_torch, path_text

if TYPE_CHECKING:
    import numpy as np
else:
    from mase.lazy import numpy as np

PathLike = Union[str, "os.PathLike[str]"]


class _Tensors(Mapping[str, Any]):
    """Arrays by name. Those of a large file are read when they are asked for."""

    def __init__(self, parts: Dict[str, Any]):
        self._parts = parts

    def __getitem__(self, name: str) -> Any:
        part = self._parts[name]
        if isinstance(part, _native.FileTensor):
            part = self._parts[name] = part.read()
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def numbers(self) -> int:
        """How many there are, without reading them."""
        return sum(part.size for part in self._parts.values())


class Checkpoint(Mapping[str, Any]):
    """The tensors of a file by name, and what else it holds.

    Arrays cannot be written. Files of up to 256 MiB are read at once; tensors of larger ones when they are asked for,
    and one that was cut meanwhile is then an error. `contents` has everything that is not a tensor, `others` the tensors that are not the
    network's (an optimiser's state), `graph` the network where the file describes one.
    """

    def __init__(self, path: PathLike, parts: dict):
        from mase.graph import Graph

        self.path = path_text(path)
        self.type: str = parts["type"]
        self.tensors = _Tensors(parts["tensors"])
        self.others = _Tensors(parts["others"])
        self.contents: Any = parts["contents"]
        self.prefix: str = parts["prefix"]
        self.graph: Optional[Graph] = None if parts["graph"] is None else Graph(parts["graph"], parts["contents"])

    def __getitem__(self, name: str) -> np.ndarray:
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def to_dict(self) -> dict:
        return dict(self.tensors)

    def to_torch(self) -> dict:
        """The network's tensors as torch tensors of their own: a state dict."""
        import torch

        return {name: torch.from_numpy(np.array(array)) for name, array in self.tensors.items()}

    def __repr__(self) -> str:
        return f"<{self.type} checkpoint {self.path}: {len(self)} tensors, {self.tensors.numbers():,} numbers>"

    def _repr_html_(self) -> str:
        from mase.html import table

        return table(["Tensor", "Shape", "Type"],
                     [[name, list(array.shape), array.dtype] for name, array in self.items()])


def read_checkpoint(path: PathLike, type: Optional[str] = None) -> Checkpoint:
    """Reads .pt, .pth, .ckpt, .safetensors, .mz or a Hugging Face folder; the content says which.

    Nothing in the file is run: pickles are read by a reader that knows tensors and plain values.
    Files of a GPU are read on any machine.
    """
    name = path_text(path)
    if type is not None:
        return Checkpoint(name, _native.read_checkpoint(name, type))
    return Checkpoint(name, _native.read_checkpoint(name, None, True))


def save_checkpoint(path: PathLike, tensors: Mapping[str, Any]) -> None:
    """Writes named tensors: .safetensors, .ckpt (Lightning's layout) or .pt, by the path's end."""
    name = path_text(path)
    arrays = {}
    for key, value in tensors.items():
        dtype = value.detach().cpu().numpy().dtype if is_torch(value) else np.asarray(value).dtype
        arrays[key] = host_array(value, dtype)
    ends = {".safetensors": _native.save_safetensors, ".ckpt": _native.save_lightning,
            ".pt": _native.save_state_dict, ".pth": _native.save_state_dict}
    end = os.path.splitext(name)[1]
    if end not in ends:
        raise _native.Error(f"{name}: expected .pt, .pth, .ckpt or .safetensors")
    ends[end](name, arrays)
