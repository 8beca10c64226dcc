# SPDX-License-Identifier: Apache-2.0
"""Names of the original that have nothing to stand for here. They can be imported, because import blocks are
copied from one script to the next; a call says what is missing and what to use instead."""
from __future__ import annotations

from typing import Any, List

from chop._layout import missing
from mase._native import Error

_TENSORRT = "TensorRT is not used here; number formats are those of mase.formats, hardware that of mase.emit"
_YOLO = "there is no YOLO here; any module that torch.fx traces can be given to MaseGraph"
_REASONS = {
    "tensorrt_calibrate_transform_pass": _TENSORRT,
    "tensorrt_fake_quantize_transform_pass": _TENSORRT,
    "tensorrt_fine_tune_transform_pass": _TENSORRT,
    "runtime_analysis_pass": "networks are timed by ch bench",
    "get_yolo_detection_model": _YOLO,
    "patch_yolo": _YOLO,
}
__all__ = sorted([*_REASONS, "check_deps_tensorRT_pass", "train"])


def check_deps_tensorRT_pass(silent: bool = True) -> bool:
    """Whether TensorRT can be used."""
    return False


def train(*args: Any, **keys: Any) -> Any:
    """accelerate_peft's."""
    raise Error("accelerate_peft.train: there are no adapters (LoRA) here; actions.train trains all weights")


def __getattr__(name: str) -> Any:
    if name not in _REASONS:
        raise missing("chop", name, __all__)

    def absent(*args: Any, **keys: Any) -> Any:
        raise Error(f"{name}: {_REASONS[name]}")

    absent.__name__ = absent.__qualname__ = name
    return absent


def __dir__() -> List[str]:
    return __all__
