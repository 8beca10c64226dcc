# SPDX-License-Identifier: Apache-2.0
"""The original's second trainer, which names schedules as Hugging Face does."""
from __future__ import annotations

from typing import Any, Dict

from mase._native import Error

_SCHEDULES: Dict[str, Dict[str, Any]] = {"linear": {"name": "linear-decay"}, "cosine": {"name": "cosine", "eta_min": 0.0},
                                         "constant": {"name": "constant"}}


def train(model: Any, task: str, data_module: Any, optimizer: str, max_epochs: int, max_steps: int = -1,
          learning_rate: float = 5e-05, weight_decay: float = 0.0, gradient_accumulation_steps: int = 1,
          lr_scheduler_type: str = "linear", num_warmup_steps: int = 0, save_path: Any = ".", load_name: Any = None,
          load_type: Any = "") -> Any:
    """As chop.actions.train: the model is trained in place, the run is returned."""
    from chop.actions import train_model

    if lr_scheduler_type not in _SCHEDULES:
        raise Error(f"lr_scheduler_type: expected {', '.join(_SCHEDULES)}, got {lr_scheduler_type!r}")
    if num_warmup_steps:
        raise Error("num_warmup_steps: no schedule here rises first and falls then, but for mase.train's one-cycle; leave it 0")
    trainer = {"max_epochs": max_epochs, "max_steps": max_steps, "accumulate_grad_batches": gradient_accumulation_steps}
    return train_model(model, data_module=data_module, task=task, optimizer=optimizer, learning_rate=learning_rate,
                       weight_decay=weight_decay, plt_trainer_args=trainer, save_path=save_path, load_name=load_name,
                       load_type=load_type, schedule=dict(_SCHEDULES[lr_scheduler_type]))
