# SPDX-License-Identifier: Apache-2.0
"""A trainer of torch modules over rows of token ids, with the defaults of transformers' Trainer (AdamW, 5e-5 falling linearly to
zero, batches of 8, gradients of at most 1, seed 42); used where that package, or accelerate, is not installed."""
from __future__ import annotations

import inspect
import time
from collections import namedtuple
from typing import Any, Callable, Dict, Iterator, List, Optional

from mase._native import Error

TrainOutput = namedtuple("TrainOutput", ["global_step", "training_loss", "metrics"])
_SEED = 42


class PlainTrainer:
    """trainer.train(), trainer.evaluate(): figures under the names that Trainer gives them."""

    def __init__(self, model: Any, train_dataset: Any, eval_dataset: Any, tokenizer: Any, metric: Callable, *, num_train_epochs: float = 1,
                 train_batch_size: int = 8, eval_batch_size: int = 8, accumulation: int = 1, learning_rate: float = 5e-5,
                 max_grad_norm: float = 1.0):
        self.model, self.train_dataset, self.eval_dataset = model, train_dataset, eval_dataset
        self.tokenizer, self.metric, self.num_train_epochs = tokenizer, metric, num_train_epochs
        self.train_batch_size, self.eval_batch_size, self.accumulation = train_batch_size, eval_batch_size, accumulation
        self.learning_rate, self.max_grad_norm = learning_rate, max_grad_norm
        self.log_history: List[Dict[str, float]] = []
        self.epoch: Optional[float] = None

    def _batch(self, rows: List[Dict[str, Any]]) -> Dict[str, Any]:
        import torch

        ids = [{name: row[name] for name in row if name in ("input_ids", "token_type_ids", "attention_mask")} for row in rows]
        batch = dict(self.tokenizer.pad(ids, return_tensors="pt"))
        name = next((n for n in ("label", "labels") if n in rows[0]), None)
        if name is None:
            raise Error(f"get_trainer: the rows have no label; they have {', '.join(rows[0])}")
        batch["labels"] = torch.tensor([row[name] for row in rows])
        device = next(self.model.parameters()).device
        return {key: value.to(device) for key, value in batch.items()}

    def _batches(self, dataset: Any, size: int, order: Any) -> Iterator[Dict[str, Any]]:
        for first in range(0, len(order), size):
            yield self._batch([dataset[int(i)] for i in order[first:first + size]])

    def _outputs(self, batch: Dict[str, Any]) -> Any:
        """(loss, logits): the network's own loss where it takes labels, the mean cross entropy otherwise."""
        import torch

        taken = inspect.signature(self.model.forward).parameters
        every = any(p.kind is p.VAR_KEYWORD for p in taken.values())
        found = self.model(**{name: value for name, value in batch.items() if every or name in taken})
        if hasattr(found, "keys"):
            logits, loss = found["logits"], found["loss"] if "loss" in found.keys() else None
        elif isinstance(found, (tuple, list)):
            loss, logits = (found[0], found[1]) if len(found) > 1 and found[0].dim() == 0 else (None, found[0])
        else:
            loss, logits = None, found
        if loss is None:
            loss = torch.nn.functional.cross_entropy(logits, batch["labels"])
        return loss, logits

    def train(self) -> TrainOutput:
        import torch

        torch.manual_seed(_SEED)
        start, count = time.perf_counter(), len(self.train_dataset)
        steps = -(-(-(-count // self.train_batch_size)) // self.accumulation)
        total = max(1, round(steps * self.num_train_epochs))
        trained = [p for p in self.model.parameters() if p.requires_grad]
        if not trained or not count:
            raise Error("train: " + ("no parameter is to be trained (requires_grad)" if count else "there are no rows to train on"))
        optimizer = torch.optim.AdamW(trained, lr=self.learning_rate, weight_decay=0.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, (total - step) / total))
        draw = torch.Generator().manual_seed(_SEED)
        step, sums, parts = 0, 0.0, 0
        self.model.train()
        while step < total:
            order = torch.randperm(count, generator=draw).tolist()
            for place, batch in enumerate(self._batches(self.train_dataset, self.train_batch_size, order), 1):
                loss, _ = self._outputs(batch)
                (loss / self.accumulation).backward()
                sums, parts = sums + float(loss.detach()), parts + 1
                if place % self.accumulation and place * self.train_batch_size < count:
                    continue
                torch.nn.utils.clip_grad_norm_(trained, self.max_grad_norm)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                step += 1
                if step >= total:
                    break
        self.epoch = step / steps
        seconds = time.perf_counter() - start
        metrics = {"train_runtime": seconds, "train_samples_per_second": self.epoch * count / seconds, "train_loss": sums / parts,
                   "epoch": self.epoch}
        self.log_history.append(metrics)
        return TrainOutput(step, sums / parts, metrics)

    def evaluate(self, eval_dataset: Any = None) -> Dict[str, float]:
        import torch

        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        start, before = time.perf_counter(), self.model.training
        logits, labels, loss = [], [], 0.0
        self.model.eval()
        with torch.no_grad():
            for batch in self._batches(dataset, self.eval_batch_size, range(len(dataset))):
                one, scores = self._outputs(batch)
                loss += float(one) * len(batch["labels"])
                logits.append(scores.cpu())
                labels.append(batch["labels"].cpu())
        self.model.train(before)
        if not labels:
            raise Error("evaluate: there are no rows")
        figures = self.metric((torch.cat(logits).numpy(), torch.cat(labels).numpy()))
        seconds = time.perf_counter() - start
        found = {"eval_loss": loss / len(dataset), **{f"eval_{name}": value for name, value in figures.items()}, "eval_runtime": seconds,
                 "eval_samples_per_second": len(dataset) / seconds}
        if self.epoch is not None:
            found["epoch"] = self.epoch
        self.log_history.append(found)
        return found

    def __repr__(self) -> str:
        return f"<trainer of {type(self.model).__name__}: {len(self.train_dataset):,} rows, {self.num_train_epochs} epochs>"
