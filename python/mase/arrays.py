# SPDX-License-Identifier: Apache-2.0
"""Arrays as the library takes them: contiguous, in host memory, without a copy where they are."""
from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:
    from mase.lazy import numpy as np


def path_text(path: Any) -> str:
    """A path as the library takes it: text that UTF-8 has."""
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    try:
        name.encode()
    except UnicodeEncodeError:
        from mase._native import Error

        raise Error(f"{name!a}: the name is not Unicode; rename the file") from None
    return name


def is_torch(value: Any) -> bool:
    """True for a torch tensor, without importing torch."""
    kind: Any = type(value)
    return _is_tensor(kind)


@lru_cache(maxsize=None)
def _is_tensor(kind: type) -> bool:
    return any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in kind.__mro__)


def host_array(value: Any, dtype: Any = "float32") -> np.ndarray:
    """The values as a contiguous NumPy array of this type; shared where nothing must change.

    Numbers of other types are converted, so that float64 loses precision: the library computes in
    single precision.
    """
    if is_torch(value):
        value = value.detach()
        if value.device.type != "cpu":
            value = value.cpu()
        value = value.numpy()
    if type(value).__module__ == "torch.fx.proxy":
        from mase._native import Error

        raise Error("torch.fx traces a module that rounds values itself; give the layer number formats instead (LinearInteger, "
                    "or quantize_transform_pass)")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        from mase._native import Error

        raise Error("some values are masked; fill them (values.filled(0)) or leave their rows out")
    array = np.asarray(value)
    if array.dtype == object or array.dtype.kind in "SUmMVc":
        from mase._native import Error

        raise Error(f"expected an array of real numbers, got {array.dtype}")
    with np.errstate(over="ignore"):  # beyond float32 is infinite, and formats know what to do with that
        return np.ascontiguousarray(array, dtype=dtype).reshape(array.shape)
