# SPDX-License-Identifier: Apache-2.0
"""Weights of a checkpoint into a torch model, read without running anything in the file."""
from __future__ import annotations

import os
from typing import Any

from mase import Error, read_checkpoint
from mase.graph import Graph


def load_model(load_name: Any, load_type: str = "mz", model: Any = None) -> Any:
    """The model with the weights of a file: "pl" (Lightning's), "pt" (a state dict), "mz" (a whole graph).

    Files of a GPU are read on any machine. With "mz" no model is needed.
    """
    path = os.fspath(load_name)
    if load_type not in ("pt", "pl", "mz", "hf"):
        raise Error(f"load_type: expected pt, pl, mz or hf, got {load_type!r}")
    checkpoint = read_checkpoint(path, load_type)
    if load_type == "mz" and checkpoint.graph is not None:
        if model is None or not hasattr(model, "state_dict"):
            from mase.torch_export import to_torch

            return to_torch(checkpoint.graph)
    if model is None:
        raise Error("load_model: needs the model that the weights are for")
    if isinstance(model, Graph) or type(model).__name__ == "NumpyNetwork":
        model.load_state_dict(checkpoint.tensors)
        return model
    import torch

    own = model.state_dict()
    missing, unexpected = sorted(own.keys() - checkpoint.keys()), sorted(checkpoint.keys() - own.keys())
    wrong = [name for name in own if name in checkpoint and tuple(own[name].shape) != checkpoint[name].shape]
    if missing or unexpected or wrong:
        parts = [f"{word} {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
                 for word, names in (("missing", missing), ("unexpected", unexpected), ("of another shape", wrong)) if names]
        raise Error(f"{path}: the weights are not those of this model: {'; '.join(parts)}")
    with torch.no_grad():
        model.load_state_dict(checkpoint.to_torch())
    return model
