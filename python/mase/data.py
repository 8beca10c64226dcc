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

    def to_dataframe(self, split: str = "all") -> Any:
        """One row per sample: a column for each feature, the target (`target`; classes by name) and the split it is in."""
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        if split not in (*parts, "val", "all"):
            raise _native.Error(f"split: expected train, validation, test or all, got {split!r}")
        if len(self.sample_shape) != 1:
            raise _native.Error(f"{self.name}: samples of shape {self.sample_shape} are no rows of a table")
        split = {"val": "validation"}.get(split, split)
        chosen = [name for name in parts if split in (name, "all") and len(parts[name])]
        try:
            import pandas
        except ImportError:
            raise ImportError("tables as DataFrames need pandas: pip install pandas") from None
        frames = []
        for name in chosen:
            x, y = parts[name].x, parts[name].y
            frame = pandas.DataFrame(x.reshape(len(x), -1), columns=self.feature_names or None)
            if self.classification:
                frame["target"] = [self.class_names[label] for label in y.ravel()]
            else:
                for i, column in enumerate(y.reshape(len(y), -1).T):
                    frame["target" if y.size == len(y) else f"target_{i}"] = column
            frame["split"] = name
            frames.append(frame)
        return pandas.concat(frames, ignore_index=True)

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
