# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any, Optional

from chop.tools import attributes
from chop.tools.attributes import deepgetattr
from mase._native import Error
from mase.arrays import is_torch

__all__ = ["copy_weights", "deepgetattr", "deepsetattr", "device", "execute_cli", "get_checkpoint_file", "get_factors", "is_tensor",
           "parse_accelerator", "set_excepthook", "to_numpy", "to_numpy_if_tensor", "to_tensor", "to_tensor_if_numpy"]


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


def is_tensor(x: Any) -> bool:
    return is_torch(x)


def to_numpy(x: Any) -> Any:
    """A tensor, or a list or dict of them, as arrays."""
    if isinstance(x, dict):
        return {key: to_numpy(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(to_numpy(value) for value in x)
    return to_numpy_if_tensor(x)


def to_tensor(x: Any) -> Any:
    """An array, or a list or dict of them, as tensors."""
    if isinstance(x, dict):
        return {key: to_tensor(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(to_tensor(value) for value in x)
    return to_tensor_if_numpy(x)


def get_factors(n: int) -> list:
    """The divisors of a whole number, ascending."""
    if n < 1:
        raise Error(f"get_factors: expected a whole number above 0, got {n!r}")
    small = [d for d in range(1, int(n ** 0.5) + 1) if n % d == 0]
    return small + [n // d for d in reversed(small) if d * d != n]


def execute_cli(cmd: Any, log_output: bool = True, cwd: str = ".") -> str:
    """Runs a program, given as a list of its name and arguments, and returns what it printed; a failure is an error."""
    import subprocess

    if isinstance(cmd, str):
        raise Error("execute_cli: give the program and its arguments as a list; no shell is started")
    done = subprocess.run(list(cmd), cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise Error(f"{cmd[0]}: ended with code {done.returncode}: {done.stderr.strip()[-300:]}")
    if log_output and done.stdout:
        from chop.tools.logger import get_logger

        get_logger(__name__).info(done.stdout.rstrip("\n"))
    return done.stdout


def get_checkpoint_file(checkpoint_dir: Any) -> str:
    """The checkpoint in a run's folder: best.ckpt, or the only one."""
    import os

    files = sorted(name for name in os.listdir(checkpoint_dir) if name.endswith((".ckpt", ".mz")))
    chosen = "best.ckpt" if "best.ckpt" in files else files[0] if len(files) == 1 else None
    if chosen is None:
        raise Error(f"{os.fspath(checkpoint_dir)}: expected best.ckpt or one checkpoint, found {', '.join(files) or 'none'}")
    return os.path.join(os.fspath(checkpoint_dir), chosen)


def set_excepthook() -> None:
    """Exceptions that nobody catches go through the logger too, before Python prints them."""
    import sys

    from chop.tools.logger import root_logger

    before = sys.excepthook

    def hook(kind: Any, value: Any, trace: Any) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            root_logger.error(f"{kind.__name__}: {value}")
        before(kind, value, trace)

    sys.excepthook = hook
