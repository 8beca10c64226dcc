# SPDX-License-Identifier: Apache-2.0
"""What experiments give back: figures as attributes, tables on request."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List

from mase._native import Error
from mase.graph import Graph
from mase.record import Record, dataframe

if TYPE_CHECKING:
    import numpy as np
else:
    from mase.lazy import numpy as np


class Evaluation(Record):
    """Figures of a network on one split. `split` says which: figures are named after it."""

    split: str
    rows: int
    loss: float
    figures: Dict[str, float]
    record: Dict[str, Any]
    seconds: float
    outputs: np.ndarray

    @property
    def accuracy(self) -> float:
        """Share of rows whose largest output is their class; an AttributeError for regression."""
        if "accuracy" not in self.record:
            raise AttributeError("accuracy: the targets are numbers, not classes")
        return self.record["accuracy"]

    def to_dict(self) -> dict:
        return {"split": self.split, "rows": self.rows, **self.figures, "record": self.record}

    def to_dataframe(self) -> Any:
        """One row for each class with its figures, or one row with all figures where there are no classes."""
        classes = self.record.get("classes")
        if not classes:
            return dataframe([{"split": self.split, "rows": self.rows, **self.figures}])
        each = {key: values for key, values in self.record.items() if isinstance(values, list) and len(values) == len(classes)
                and all(isinstance(value, (int, float)) for value in values)}
        return dataframe([{"class": name, **{key: values[i] for key, values in each.items()}} for i, name in enumerate(classes)])

    def __repr__(self) -> str:
        return f"<{self.split}, {self.rows:,} rows: " + ", ".join(f"{k} {v:.4f}" for k, v in self.figures.items()) + ">"

    def _repr_html_(self) -> str:
        from mase.html import figures

        return figures(f"{self.split}, {self.rows:,} rows", [[k, f"{v:.6f}"] for k, v in self.figures.items()])


class MissingFigures(Error, AttributeError):
    """Figures that a run has not: hasattr(run, "test") is false."""


class TrainResult(Record):
    """What a training run came to. `graph` has the best weights where something was written."""

    status: str
    message: str
    remedy: str
    folder: str
    monitor: str
    epochs: int
    steps: int
    best_epoch: int
    best: Dict[str, float]
    seconds: float
    samples: int
    stopped_early: bool

    def __init__(self, parts: dict, graph: Graph, history: List[dict]):
        super().__init__(parts)
        self.evaluations: Dict[str, Evaluation] = {  # of the best weights; a split that had no rows is not there
            name: Evaluation(parts[name]) for name in ("validation", "test") if parts[name]}
        self.graph, self.history = graph, history

    @property
    def validation(self) -> Evaluation:
        """The best weights on the validation rows."""
        return self._evaluation("validation")

    @property
    def test(self) -> Evaluation:
        """The best weights on the test rows."""
        return self._evaluation("test")

    def _evaluation(self, split: str) -> Evaluation:
        if split not in self.evaluations:
            why = ("the best weights are kept, and measured, where a run is written; mase.test(run.graph, ...) measures the last"
                   if not self.folder else f"the run is {self.status} after {self.steps:,} steps")
            raise MissingFigures(f"{split}: this run has no such figures: {why}")
        return self.evaluations[split]

    @property
    def best_checkpoint(self) -> str:
        return f"{self.folder}/software/training_ckpts/best.ckpt" if self.folder else ""

    def to_dict(self) -> dict:
        keys = ("status", "message", "folder", "monitor", "epochs", "steps", "best_epoch", "best", "seconds", "history")
        parts = {key: getattr(self, key) for key in keys}
        for name in ("validation", "test"):
            parts[name] = self.evaluations[name].to_dict() if name in self.evaluations else None
        return parts

    def to_dataframe(self) -> Any:
        """One row per epoch."""
        return dataframe(self.history)

    def __repr__(self) -> str:
        best = ", ".join(f"{k} {v:.4f}" for k, v in self.best.items())
        return f"<training {self.status}: {self.steps:,} steps, {self.epochs} epochs; best epoch {self.best_epoch}: {best}>"

    def _repr_html_(self) -> str:
        from mase.html import figures

        rows: List[List[Any]] = [["steps", f"{self.steps:,}"], ["epochs", self.epochs], ["best epoch", self.best_epoch]]
        rows += [[f"best {k}", f"{v:.6f}"] for k, v in self.best.items()]
        for evaluation in self.evaluations.values():
            rows += [[k, f"{v:.6f}"] for k, v in evaluation.figures.items()]
        return figures(f"Training {self.status}", rows + [["folder", self.folder]])


class TransformResult(Record):
    """What passes did: `passes` in order, each with its result, and `record` with the comparison."""

    passes: List[dict]
    record: Dict[str, Any]
    folder: str

    def __init__(self, parts: dict, graph: Graph, original: Graph):
        super().__init__(parts)
        self.graph, self.original = graph, original

    def __getitem__(self, name: str) -> Any:
        for outcome in self.passes:
            if outcome["pass"] == name:
                return outcome["data"]
        raise KeyError(name)

    def to_dict(self) -> dict:
        return {"passes": self.passes, "record": self.record, "folder": self.folder}

    def __repr__(self) -> str:
        return "<transformed by " + ", ".join(outcome["pass"] for outcome in self.passes) + ">"

    def _repr_html_(self) -> str:
        from mase.html import table

        return table(["Pass", "Changed the graph", "Seconds"],
                     [[p["pass"], p["changed"], f"{p['seconds']:.3f}"] for p in self.passes])


class SearchResult(Record):
    """The trials of a search, and the best of them as networks and configurations."""

    status: str
    folder: str
    trials: List[dict]
    best: Any
    table: str
    test: List[dict]
    test_table: str
    trained: List[dict]
    record: Dict[str, Any]
    objectives: List[str]
    configurations: List[dict]

    def __init__(self, parts: dict, extra: Any):
        super().__init__(parts)
        self.networks: List[Graph] = [Graph(native, extra) for native in parts["networks"]]

    def to_dict(self) -> dict:
        keys = ("status", "folder", "objectives", "trials", "best", "test", "trained", "configurations")
        return {key: getattr(self, key) for key in keys}

    def to_dataframe(self) -> Any:
        """One row per trial: its number, objectives and what was measured."""
        return dataframe([{"number": t["number"], "state": t["state"],
                           **dict(zip(self.objectives, t["values"])), **t["user_attributes"]} for t in self.trials])

    def __str__(self) -> str:
        return self.table

    def __repr__(self) -> str:
        return f"<search {self.status}: {len(self.trials)} trials for {', '.join(self.objectives)}>"

    def _repr_html_(self) -> str:
        from mase.html import table

        best = [{"trial": entry["number"], **entry["software_metrics"], **entry["hardware_metrics"]}
                for entry in self.best.values()]
        header = list(dict.fromkeys(key for entry in best for key in entry))
        rows = [[f"{v:.6g}" if isinstance(v, float) else v for v in (entry.get(key, "") for key in header)] for entry in best]
        return f"<b>Best of {len(self.trials):,} trials</b>" + table(header, rows)


class CompressResult(Record):
    """Number formats times methods: a row for each, and the networks of the front."""

    figure: str
    higher_is_better: bool
    measured_on: str
    calibrated_on: str
    original: Dict[str, Any]
    rows: List[dict]
    table: str
    folder: str
    stopped: bool

    def __init__(self, parts: dict, extra: Any):
        super().__init__(parts)
        self.networks: Dict[int, Graph] = {row: Graph(native, extra) for row, native in parts["networks"].items()}

    @property
    def front(self) -> List[dict]:
        """The rows that no other is better than, the cheapest first."""
        return sorted((row for row in self.rows if row["front"]), key=lambda row: row["bits"])

    def to_dict(self) -> dict:
        return {key: getattr(self, key) for key in ("figure", "measured_on", "calibrated_on", "original", "rows", "folder", "stopped")}

    def to_dataframe(self) -> Any:
        """One row per format and method, the network as it was first."""
        keys = ("format", "method", "bits", "bytes", "value", "difference", "loss", "seconds", "front", "trouble")
        return dataframe([{(self.figure if key == "value" else key): row[key] for key in keys} for row in [self.original, *self.rows]])

    def __str__(self) -> str:
        return self.table

    def __repr__(self) -> str:
        return f"<{len(self.rows)} formats and methods by {self.figure}, {len(self.front)} on the front>"

    def _repr_html_(self) -> str:
        from mase.html import table

        rows = [["*" if row["front"] else "", row["format"], row["method"], f"{row['bits']:.2f}", f"{row['value']:.6g}"]
                for row in [self.original, *self.rows] if not row["trouble"]]
        return table(["", "Format", "Method", "Bits per weight", self.figure], rows)
