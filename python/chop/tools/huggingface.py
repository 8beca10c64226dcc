# SPDX-License-Identifier: Apache-2.0
"""Sentences, tokenizers and trainers as the tutorials ask for them: from local folders, by transformers where it is installed
and by the library where it is not."""
from __future__ import annotations

import importlib.util
import inspect
import os
from typing import Any, Callable, Dict, List, Optional

from chop._layout import missing
from chop.tools.logger import get_logger
from chop.tools.text_data import Rows, Splits, local_place, read_splits
from mase._native import Error

logger = get_logger(__name__)
__all__ = ["get_hf_dummy_in", "get_tokenized_dataset", "get_tokenizer", "get_trainer"]
_FILES = ("tokenizer.json", "vocab.txt", "vocab.json")


def _installed(*names: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in names)


def get_hf_dummy_in(model: Any) -> Dict[str, Any]:
    """Two short rows for a network of Hugging Face or its graph, made without a tokenizer and a network; labels are 1 and 0."""
    from chop.ir.graph.huggingface import example_inputs, input_names

    model = getattr(model, "model", model) if hasattr(model, "fx_graph") else model
    if hasattr(model, "graph"):
        return example_inputs(model, [node.target for node in model.graph.nodes if node.op == "placeholder"])
    taken = inspect.signature(model.forward).parameters
    return example_inputs(model, [*input_names(model), *(name for name in ("attention_mask", "labels") if name in taken)])


def get_tokenizer(checkpoint: Any) -> Any:
    """The tokenizer of a folder; of a name, below MASE_DATA or ~/.cache/mase, or where transformers keeps or finds it."""
    name = os.fspath(checkpoint)
    place = name if os.path.isfile(name) else local_place(name)
    if place is not None and not os.path.isfile(place) and not any(os.path.exists(os.path.join(place, file)) for file in _FILES):
        raise Error(f"{place}: there is no tokenizer in it ({', '.join(_FILES)})")
    if _installed("transformers") and (place is None or os.path.isdir(place)):
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(place or name, **({"local_files_only": True} if place else {}))
        except Exception as error:  # whatever a foreign reader or a missing network raises
            if place is None:
                raise Error(f"{name}: no folder of this name was found, here, below MASE_DATA or ~/.cache/mase, and transformers says: "
                            f"{' '.join(str(error).split())[:300]}") from error
            logger.info(f"{place}: transformers cannot read its tokenizer; the library's is used")
    if place is None:
        raise Error(f"{name}: there is no tokenizer of this name: no folder with {', '.join(_FILES)} here, below MASE_DATA or ~/.cache/mase")
    from chop.tools.plain_tokenizer import PlainTokenizer

    return PlainTokenizer(place)


def _foreign(name: str) -> Any:
    """A data set by the package that the original uses."""
    looked = f"{name}: there is no folder of this name, here, below MASE_DATA or ~/.cache/mase (with train/CLASS/*.txt, or train.csv, .tsv, .jsonl)"
    if not _installed("datasets"):
        raise Error(looked)
    from datasets import load_dataset

    try:
        return load_dataset(name)
    except Exception as error:
        raise Error(f"{looked}, and datasets says: {' '.join(str(error).split())[:300]}") from error


def get_tokenized_dataset(dataset: Any, checkpoint: Any, return_tokenizer: bool = False, return_processor: bool = False,
                          text_column: str = "text", tokenizer_checkpoint: Any = None) -> Any:
    """Splits of rows with text, label, input_ids, attention_mask and token_type_ids, cut at the tokenizer's length.

    `dataset` is a folder (train/CLASS/*.txt or train.csv, .tsv, .jsonl beside test), or a name below MASE_DATA or ~/.cache/mase;
    `checkpoint` a folder with a tokenizer. With return_tokenizer the tokenizer comes too.
    """
    if return_processor:
        raise Error("return_processor: there is no speech here")
    tokenizer = get_tokenizer(tokenizer_checkpoint or checkpoint)
    name = os.fspath(dataset)
    place = local_place(name)
    if place is not None and os.path.exists(os.path.join(place, "dataset_dict.json")):
        if not _installed("datasets"):
            raise Error(f"{place}: it was written by the package datasets, which is not installed")
        from datasets import load_from_disk

        raw: Any = load_from_disk(place)
    else:
        raw = _foreign(name) if place is None else read_splits(place, text_column)
    logger.info(f"Tokenizing dataset {name} with tokenizer from {os.fspath(tokenizer_checkpoint or checkpoint)}.")
    if isinstance(raw, Splits):
        made: Any = Splits({split: _tokenized(rows, tokenizer) for split, rows in raw.items()})
    else:
        made = raw.map(lambda rows: tokenizer(rows[text_column if text_column in rows else "text"], truncation=True), batched=True)
    return (made, tokenizer) if return_tokenizer else made


def _tokenized(rows: Rows, tokenizer: Any) -> Rows:
    encoded: Dict[str, List[Any]] = {}
    for first in range(0, len(rows), 1000):
        for name, values in tokenizer(rows["text"][first:first + 1000], truncation=True).items():
            encoded.setdefault(name, []).extend(values)
    return Rows({**rows.columns, **encoded})


def _accuracy(predicted: Any) -> Dict[str, float]:
    """Of (logits, labels), as arrays."""
    logits, labels = predicted[0], predicted[1]
    logits = logits[0] if isinstance(logits, (tuple, list)) else logits
    return {"accuracy": float((logits.argmax(-1) == labels).mean())}


def _f1(predicted: Any) -> Dict[str, float]:
    logits, labels = predicted[0], predicted[1]
    logits = logits[0] if isinstance(logits, (tuple, list)) else logits
    found = logits.argmax(-1)
    right, wrong = int(((found == 1) & (labels == 1)).sum()), int((found != labels).sum())
    return {"f1": 2 * right / (2 * right + wrong) if right + wrong else 0.0}


_METRICS: Dict[str, Callable] = {"accuracy": _accuracy, "f1": _f1}


def get_trainer(model: Any, tokenized_dataset: Any, tokenizer: Any, evaluate_metric: str = "accuracy", data_collator: Any = None,
                output_dir: str = "mase-trainer", use_mps_device: bool = False, report_to: str = "none", num_train_epochs: float = 1,
                gradient_accumulation_steps: int = 1, per_device_train_batch_size: int = 8, per_device_eval_batch_size: int = 8,
                eval_split: Optional[str] = None) -> Any:
    """A trainer: `.train()`, `.evaluate()` with `eval_accuracy`. transformers' own where it and accelerate are installed, else one of
    the same defaults. The metric (accuracy, or f1 of class 1) is computed here. `eval_split` names the split that is evaluated:
    "test", as in the original, where nothing is said; "validation" keeps the test rows out of choices that are made by it."""
    if evaluate_metric not in _METRICS:
        raise Error(f"evaluate_metric: expected {' or '.join(_METRICS)}, got {evaluate_metric!r}")
    model = model.model if hasattr(model, "fx_graph") else model
    split = eval_split or "test"
    if not hasattr(tokenized_dataset, "keys"):
        raise Error(f"tokenized_dataset: expected splits by name, as get_tokenized_dataset gives, got {type(tokenized_dataset).__name__}")
    for name in ("train", split):
        if name not in tokenized_dataset:
            raise Error(f"get_trainer: there is no split '{name}'; there are {', '.join(tokenized_dataset)}")
    if eval_split is None and not _told:
        _told.append(True)
        logger.info("get_trainer: evaluates on the test rows, as the original does; eval_split=\"validation\" keeps them for the end")
    rows = tokenized_dataset["train"], tokenized_dataset[split]
    if not _installed("transformers", "accelerate") or type(tokenizer).__name__ == "PlainTokenizer":
        from chop.tools.plain_trainer import PlainTrainer

        if data_collator is not None:
            raise Error("data_collator: needs transformers and accelerate, which are not installed")
        return PlainTrainer(model, *rows, tokenizer, _METRICS[evaluate_metric], num_train_epochs=num_train_epochs,
                            train_batch_size=per_device_train_batch_size, eval_batch_size=per_device_eval_batch_size,
                            accumulation=gradient_accumulation_steps)
    from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

    taken = inspect.signature(TrainingArguments.__init__).parameters
    options = {"report_to": report_to, "num_train_epochs": num_train_epochs, "gradient_accumulation_steps": gradient_accumulation_steps,
               "per_device_train_batch_size": per_device_train_batch_size, "per_device_eval_batch_size": per_device_eval_batch_size,
               "label_names": ["labels"], "save_strategy": "no"}
    if use_mps_device:
        options["use_mps_device"] = True
    lost = [name for name in options if name not in taken]
    if lost:
        raise Error(f"get_trainer: this version of transformers has no {', '.join(lost)}")
    own = "processing_class" if "processing_class" in inspect.signature(Trainer.__init__).parameters else "tokenizer"
    return Trainer(model, TrainingArguments(output_dir, **options), train_dataset=rows[0], eval_dataset=rows[1],
                   data_collator=data_collator or DataCollatorWithPadding(tokenizer=tokenizer), compute_metrics=_METRICS[evaluate_metric],
                   **{own: tokenizer})


_told: List[bool] = []


def __getattr__(name: str) -> Any:
    raise missing("chop.tools.huggingface", name, __all__)
