# SPDX-License-Identifier: Apache-2.0
"""Data modules: the library's data sets as torch's loaders, or as loaders of arrays without torch."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from mase._native import Error, datasets

_SHAPES = {"jsc": (16, 5), "jsc-sim": (16, 5), "toy_tiny": (4, 2), "toy-tiny": (4, 2)}
_IMAGES = {"mnist": ((1, 28, 28), 10), "fashion-mnist": ((1, 28, 28), 10), "cifar10": ((3, 32, 32), 10),
           "cifar100": ((3, 32, 32), 100), "imagenet": ((3, 224, 224), 1000)}


class DatasetInfo:
    """What a model needs to know about data: num_features, num_classes, image_size."""

    def __init__(self, name: str, num_features: Optional[int] = None, num_classes: Optional[int] = None,
                 image_size: Optional[tuple] = None):
        self.name, self.num_features, self.num_classes, self.image_size = name, num_features, num_classes, image_size
        self.vision_dataset = image_size is not None
        self.physical_data_point_classification = self.physical_dataset = image_size is None

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __repr__(self) -> str:
        size = f"image_size={self.image_size}" if self.image_size else f"num_features={self.num_features}"
        return f"DatasetInfo({self.name}: {size}, num_classes={self.num_classes})"


def get_dataset_info(name: str) -> DatasetInfo:
    if name in _SHAPES:
        return DatasetInfo(name, *_SHAPES[name])
    if name in _IMAGES:
        return DatasetInfo(name, None, _IMAGES[name][1], _IMAGES[name][0])
    if name in datasets():
        raise Error(f"{name}: sizes are known when it is loaded: MaseDataModule(name={name!r}, ...)")
    raise Error(f"{name}: there is no data set of this name; there are {', '.join(sorted(datasets()))}")


class ArrayLoader:
    """Batches of arrays, shuffled by a seed: what loaders are without torch."""

    def __init__(self, x: Any, y: Any, batch_size: int, shuffle: bool):
        self.x, self.y, self.batch_size, self.shuffle, self.epoch = x, y, batch_size, shuffle, 0

    def __len__(self) -> int:
        return -(-len(self.x) // self.batch_size)

    def __iter__(self) -> Any:
        import numpy

        order = numpy.random.default_rng(self.epoch).permutation(len(self.x)) if self.shuffle else numpy.arange(len(self.x))
        self.epoch += 1
        for first in range(0, len(order), self.batch_size):
            rows = order[first:first + self.batch_size]
            yield self.x[rows], self.y[rows].astype("int64") if self.y.dtype.kind == "i" else self.y[rows]


class MaseDataModule:
    """A data set by name or path, with loaders. `name` may be the path of a table (.csv, .npz, ...).

    Validation rows are a tenth of the training rows, as `ch train` takes them; val_split="train" is the
    original's rule, for which they are the training rows themselves.
    """

    def __init__(self, name: str, batch_size: int, num_workers: int = 0, max_token_len: Optional[int] = None,
                 tokenizer: Any = None, load_from_cache_file: bool = True, model_name: Optional[str] = None,
                 custom_path: Optional[str] = None, **options: Any):
        if tokenizer is not None:
            raise Error("tokenizer: there are no data sets of text here")
        self.name, self.batch_size, self.num_workers, self.model_name = custom_path or name, int(batch_size), num_workers, model_name
        self.options = dict(options, disable_dataset_cache=not load_from_cache_file)
        self._data: Any = None
        self._tensors: Dict[str, Any] = {}

    @property
    def data(self) -> Any:
        """The data set itself: mase.Dataset."""
        if self._data is None:
            from mase.data import load_dataset

            self._data = load_dataset(self.name, **self.options)
        return self._data

    @property
    def dataset_info(self) -> DatasetInfo:
        if self._data is None and (self.name in _SHAPES or self.name in _IMAGES):
            return get_dataset_info(self.name)
        shape: List[int] = self.data.sample_shape
        images = tuple(shape) if len(shape) > 1 else None
        return DatasetInfo(self.name, None if images else shape[0], self.data.outputs, images)

    def prepare_data(self) -> None:
        self.data  # noqa: B018 - loads it

    def setup(self, stage: Optional[str] = None) -> None:
        self.data  # noqa: B018

    def _loader(self, split: str, shuffle: bool) -> Any:
        rows = getattr(self.data, split)
        try:
            import torch
            from torch.utils.data import DataLoader, TensorDataset
        except ImportError:
            return ArrayLoader(rows.x, rows.y, self.batch_size, shuffle)
        if split not in self._tensors:
            import warnings

            with warnings.catch_warnings():
                # Arrays cannot be written; neither do loaders write them.
                warnings.simplefilter("ignore")
                x, y = torch.from_numpy(rows.x), torch.from_numpy(rows.y)
            self._tensors[split] = TensorDataset(x, y.long() if not y.is_floating_point() else y)
        return DataLoader(self._tensors[split], batch_size=self.batch_size, shuffle=shuffle, num_workers=0)

    def train_dataloader(self) -> Any:
        return self._loader("train", True)

    def val_dataloader(self) -> Any:
        return self._loader("validation", False)

    def test_dataloader(self) -> Any:
        return self._loader("test", False)

    def pred_dataloader(self) -> Any:
        return self._loader("test", False)

    predict_dataloader = pred_dataloader

    @property
    def train_dataset(self) -> Any:
        return self.train_dataloader().dataset

    @property
    def test_dataset(self) -> Any:
        return self.test_dataloader().dataset


def get_dataset(name: str, **options: Any) -> Any:
    """A data set of the library by name or path: mase.Dataset, with train, validation and test."""
    from mase.data import load_dataset

    return load_dataset(name, **options)


def __getattr__(name: str) -> Any:
    if name == "AVAILABLE_DATASETS":
        return sorted(datasets())
    from chop._layout import absent_or_missing

    return absent_or_missing("chop.dataset", name, ["AVAILABLE_DATASETS", *(key for key in globals() if not key.startswith("_"))])
