# SPDX-License-Identifier: Apache-2.0
"""What a network answers and how long it takes, over some batches of a data module, on this processor."""
from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from chop.tools.logger import get_logger
from mase import _native
from mase._native import Error

logger = get_logger(__name__)
_KEYS = {"data_module", "num_batches", "num_GPU_warmup_batches", "task", "test", "accelerator", "model", "model_name", "dataset", "batch_size"}
_COUNTER = "/sys/class/powercap/intel-rapl:0/energy_uj"


def _runnable(model: Any) -> Callable:
    """A function of a batch, of a graph, a module or a file."""
    import torch

    if isinstance(model, (str, os.PathLike)):
        from mase.graph import load

        return load(model)
    network = getattr(model, "model", model) if hasattr(model, "fx_graph") else model
    if isinstance(network, torch.nn.Module):
        network.eval()
    return network


def _energy() -> Optional[float]:
    """Joules that the processor has used; None where nobody may read them."""
    try:
        with open(_COUNTER, encoding="ascii") as file:
            return float(file.read()) / 1e6
    except (OSError, ValueError):
        return None


def _weighted(predicted: Any, labels: Any) -> Dict[str, float]:
    """Precision, recall and F1 of every class, by its share of the rows."""
    sums = {"Average Precision": 0.0, "Average Recall": 0.0, "Average F1 Score": 0.0}
    for kind in labels.unique().tolist():
        true, said = labels == kind, predicted == kind
        both, share = float((true & said).sum()), float(true.sum()) / len(labels)
        precision, recall = both / max(float(said.sum()), 1.0), both / float(true.sum())
        sums["Average Precision"] += share * precision
        sums["Average Recall"] += share * recall
        sums["Average F1 Score"] += share * (2 * precision * recall / (precision + recall) if both else 0.0)
    return sums


def runtime_analysis_pass(model: Any, pass_args: Optional[dict] = None) -> Tuple[Any, Dict[str, float]]:
    """{"data_module", "num_batches", "num_GPU_warmup_batches", "test"}: accuracy, precision, recall, F1 (weighted by class), loss, and the
    latency of a batch in ms: mean, median and the range that 95 % of the batches are in. Energy in mWh where the processor's counter can be
    read, NaN elsewhere. `model` is a graph, a module, or a file (.mz, .onnx)."""
    import torch

    args = dict(pass_args or {})
    unknown = sorted(args.keys() - _KEYS)
    if unknown:
        raise Error(f"runtime_analysis: unknown key '{unknown[0]}'; it takes {', '.join(sorted(_KEYS))}")
    if args.get("task", "cls") not in ("cls", "classification"):
        raise Error(f"task: only classifications are measured, not {args['task']!r}")
    if args.get("accelerator", "cpu") not in ("cpu", "auto"):
        raise Error(f"accelerator: everything runs on the processor here, got {args['accelerator']!r}")
    data = args.get("data_module")
    if data is None:
        raise Error("runtime_analysis: data_module is missing")
    run, wanted, warm = _runnable(model), int(args.get("num_batches", 500)), int(args.get("num_GPU_warmup_batches", 5))
    loader = data.test_dataloader() if args.get("test", True) else data.val_dataloader()
    times: List[float] = []
    scores, labels = [], []
    joules: Optional[float] = 0.0
    with torch.no_grad():
        for number, (x, y) in enumerate(loader):
            if number == 0:
                for _ in range(warm):
                    run(x)
            if number >= wanted:
                break
            before, start = _energy(), time.perf_counter()
            result = run(x)
            times.append(1000 * (time.perf_counter() - start))
            after = _energy()
            joules = None if joules is None or before is None or after is None or after < before else joules + after - before
            scores.append(torch.as_tensor(result["logits"] if isinstance(result, dict) else result))
            labels.append(y)
    if not times:
        raise Error("runtime_analysis: the data module gives no batches")
    outputs, expected = torch.cat(scores), torch.cat(labels)
    predicted, order = outputs.argmax(-1), sorted(times)
    found = {"Average Accuracy": float((predicted == expected).double().mean()), **_weighted(predicted, expected),
             "Average Loss": float(torch.nn.functional.cross_entropy(outputs.float(), expected)), "Average Latency": sum(times) / len(times),
             "Median Latency": order[len(order) // 2], "Latency 2.5 %": order[int(0.025 * len(order))], "Latency 97.5 %": order[int(0.975 * len(order))],
             "Inference Energy Consumption": float("nan") if joules is None else joules / 3.6 / len(times)}
    if joules is None:
        logger.info("runtime_analysis: this processor's energy counter cannot be read; energy is NaN")
    rows = [[name, f"{value:.5g}"] for name, value in found.items()]
    logger.info("\n" + _native.table(["Metric (per batch)", "Value"], rows, "simple").rstrip("\n"))
    return model, found
