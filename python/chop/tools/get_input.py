# SPDX-License-Identifier: Apache-2.0
"""Batches of a data module as keyword arguments of a model."""
from __future__ import annotations

import inspect
from typing import Any, Dict, Iterator, Optional

from mase._native import Error


def _input_name(model_info: Any) -> str:
    return "x"


class InputGenerator:
    """Iterates over batches as dicts: {"x": tensor}. `datamodule` is data_module's older name."""

    def __init__(self, model_info: Any = None, data_module: Any = None, task: str = "cls", which_dataloader: str = "train",
                 max_batches: Optional[int] = None, datamodule: Any = None):
        data_module = data_module if data_module is not None else datamodule
        if data_module is None:
            raise Error("InputGenerator: data_module is missing")
        if which_dataloader not in ("train", "val", "test"):
            raise Error(f"which_dataloader: expected train, val or test, got {which_dataloader!r}")
        data_module.prepare_data()
        data_module.setup()
        self.task, self.model_info = task, model_info
        self.dataloader = getattr(data_module, f"{which_dataloader}_dataloader")()
        self.batch_size = data_module.batch_size
        self.max_batches, self.current_batch = max_batches, 0
        self._batches = iter(self.dataloader)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return self

    def __next__(self) -> Dict[str, Any]:
        if self.max_batches is not None and self.current_batch >= self.max_batches:
            self.current_batch = 0
            raise StopIteration
        self.current_batch += 1
        try:
            batch = next(self._batches)
        except StopIteration:
            self._batches = iter(self.dataloader)
            batch = next(self._batches)
        return {_input_name(self.model_info): batch[0]}


def get_dummy_input(model_info: Any, data_module: Any, task: str, device: str = "meta") -> Dict[str, Any]:
    """One batch of training rows."""
    return next(iter(InputGenerator(model_info, data_module, task, "train")))


def get_cf_args(model_info: Any, task: str, model: Any) -> dict:
    """Concrete arguments for tracing: the defaults of forward's further parameters."""
    required = [p for p in inspect.signature(model.forward).parameters.values() if p.default is not inspect.Parameter.empty]
    return {p.name: p.default for p in required}
