# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any, Optional

from chop.tools import attributes
from chop.tools.attributes import deepgetattr
from mase.arrays import is_torch

__all__ = ["copy_weights", "deepgetattr", "deepsetattr", "device", "parse_accelerator", "to_numpy_if_tensor",
           "to_tensor_if_numpy"]


def deepsetattr(obj: Any, attr: str, value: Any) -> None:
    attributes.deepsetattr(obj, attr, value)


def to_numpy_if_tensor(x: Any) -> Any:
    return x.detach().cpu().numpy() if is_torch(x) else x


def to_tensor_if_numpy(x: Any) -> Any:
    import numpy
    import torch

    return torch.from_numpy(x) if isinstance(x, numpy.ndarray) else x


def copy_weights(src_weight: Any, tgt_weight: Any) -> None:
    import torch

    with torch.no_grad():
        tgt_weight.copy_(src_weight)


def parse_accelerator(accelerator: str) -> str:
    """The device's name: the CPU; a GPU only if torch has one."""
    if accelerator in ("auto", "cpu"):
        return "cpu"
    import torch

    return "cuda:0" if accelerator in ("gpu", "cuda") and torch.cuda.is_available() else "cpu"


device: Optional[str] = "cpu"
