# SPDX-License-Identifier: Apache-2.0
"""Data sets: three splits in memory, as arrays that share it."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, List, Optional, Union


from mase import _native
from mase.arrays import path_text

if TYPE_CHECKING:
    import numpy as np
else:
    from mase.lazy import numpy as np


@dataclass(frozen=True)
class Split:
    """Rows: x is [rows, features...] in float32, y class numbers (int32) or targets (float32)."""

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.x)


class Dataset:
    """Training, validation and test rows, and what they are. Arrays cannot be written."""

    def __init__(self, parts: dict):
        self.name: str = parts["name"]
        self.variant: str = parts["variant"]
        self.identity: str = parts["identity"]
        self.notice: str = parts["notice"]
        self.classification: bool = parts["classification"]
        self.class_names: List[str] = parts["class_names"]
        self.feature_names: List[str] = parts["feature_names"]
        self.outputs: int = parts["outputs"]
        self.sample_shape: List[int] = parts["sample_shape"]
        self.train, self.validation, self.test = (Split(**parts[key]) for key in ("train", "validation", "test"))

    def __repr__(self) -> str:
        return (f"<data set {self.name} ({self.variant}): {len(self.train):,} training, "
                f"{len(self.validation):,} validation, {len(self.test):,} test rows>")

    def _repr_html_(self) -> str:
        from mase.html import figures

        return figures(f"{self.name} ({self.variant})", [
            ["training rows", len(self.train)], ["validation rows", len(self.validation)],
            ["test rows", len(self.test)], ["sample", self.sample_shape],
            ["classes" if self.classification else "targets", ", ".join(self.class_names) or self.outputs],
            ["notice", self.notice]])


def load_dataset(name: Union[str, "os.PathLike[str]"], *, progress: Optional[bool] = None, **options: Any) -> Dataset:
    """A data set by name (`mase.datasets()`) or the path of a table (.csv, .arff, .npy, .npz, .h5).

    Options are those of `ch train`: data_dir, val_split, target, scaling, seed, ...
    """
    from mase.display import display

    given = dict(options, dataset=path_text(name))
    with display(progress) as shown:
        return Dataset(_native.load_dataset({k: v for k, v in given.items() if v is not None}, shown))
