# SPDX-License-Identifier: Apache-2.0
"""Training, testing, predicting, transforming and searching, as the commands of ch do them.

Options are those of the commands, with underscores: `mase.train(..., max_epochs=10)`. A dict stands
for a table of the TOML file: `optimizer={"name": "adam", "beta1": 0.95}`. What nobody reads is an
error.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Mapping, Optional, Union
from contextlib import contextmanager


from mase import _native
from mase.arrays import host_array, path_text
from mase.display import Display, display, logger
from mase.graph import Graph
from mase.results import Evaluation, SearchResult, TrainResult, TransformResult

if TYPE_CHECKING:
    import numpy as np
else:
    from mase.lazy import numpy as np

PathLike = Union[str, "os.PathLike[str]"]


def open_experiment(model: Any, dataset: Any, options: Mapping[str, Any], *, config: Optional[PathLike] = None,
                    passes: Any = None, observer: Optional[Display] = None, tables: Any = None,
                    progress: Optional[bool] = None, resume: Optional[PathLike] = None,
                    command: str = "") -> "_native.Experiment":
    """The native experiment, not yet prepared."""
    given = {key: value for key, value in options.items() if value is not None}
    if model is not None:
        given["model"] = path_text(model)
    if dataset is not None:
        given["dataset"] = path_text(dataset)
    if observer is None:
        observer = Display(progress is not False)
    return _native.Experiment(given, "" if config is None else path_text(config), passes, observer, tables,
                              None if resume is None else path_text(resume), command)


@contextmanager
def _network(model: Any, options: Dict[str, Any]) -> Iterator[Any]:
    """The model's name; a graph goes through a file, which is the one way a network is loaded."""
    if not isinstance(model, Graph):
        if model is not None and "load" not in options and os.path.exists(model) and not path_text(model).endswith(".toml"):
            options["load"], model = path_text(model), None
        yield model
        return
    if options.get("load") is not None:
        raise _native.Error("load: the graph has its weights already")
    import tempfile

    with tempfile.TemporaryDirectory(prefix="mase-") as folder:
        path = os.path.join(folder, (model.name or "graph").replace("/", "-") + ".mz")
        model.save(path)
        options["load"], options["load_type"] = path, "mz"
        yield None


@contextmanager
def _data(dataset: Any, options: Dict[str, Any]) -> Iterator[Any]:
    """The data set's name; a pair of arrays (x, y) goes through a file of numbers."""
    if not isinstance(dataset, tuple):
        yield dataset
        return
    if len(dataset) != 2:
        raise _native.Error(f"dataset: expected a pair of arrays (x, y), got {len(dataset)}")
    x, y = dataset
    if np.asarray(y).dtype.kind in "OSU":
        raise _native.Error("dataset: y has text; give numbers of classes, or a table with the names (train(..., 'table.csv', "
                            "target='kind'))")
    x, y = host_array(x), host_array(y, np.int64 if np.asarray(y).dtype.kind in "iub" else np.float32)
    if len(x) != len(y):
        raise _native.Error(f"dataset: {len(x)} rows of x and {len(y)} of y")
    import tempfile

    with tempfile.TemporaryDirectory(prefix="mase-") as folder:
        path = os.path.join(folder, "arrays.npz")
        np.savez(path, x=x, y=y)
        options.setdefault("target", "y")
        yield path


def _finish(experiment: Any) -> None:
    """What a callback threw, or Ctrl-C, once the library has put everything in order."""
    if experiment.interrupted():
        experiment.rethrow()


def train(model: Any = None, dataset: Any = None, *, config: Optional[PathLike] = None, passes: Any = None,
          resume: Optional[PathLike] = None, save: bool = True, progress: Optional[bool] = None,
          on_epoch: Optional[Callable[[dict], Any]] = None, on_step: Optional[Callable[[dict], Any]] = None,
          **options: Any) -> TrainResult:
    """Trains a network on a data set, as `ch train` does.

    `model` is a name, a path or a Graph; `dataset` a name, a path, or arrays (x, y). `passes` are
    those of a configuration's [passes] table, run before training (quantisation-aware training).
    With `save` a run folder is written, as `ch train` writes it, and Ctrl-C leaves one that
    `mase.train(resume=run.folder)` and `ch train --resume` continue; only max_epochs, max_steps, threads and
    how often checkpoints are written may then be given anew. `on_epoch` gets each epoch's
    figures; `on_step` the loss a few times a second. Both may raise to stop the run.
    """
    options = dict(options)
    if resume is not None and not (model is dataset is config is passes is None and save):
        raise _native.Error("resume: a resumed run keeps its own network, data, passes and folder")
    with display(progress, on_epoch=on_epoch, on_step=on_step, prints=False) as shown, _network(model, options) as name, \
            _data(dataset, options) as data:
        experiment = open_experiment(name, data, options, config=config, passes=passes, observer=shown, resume=resume)
        experiment.prepare(True, False)
        _finish(experiment)
        parts = experiment.train(save)
        return _trained(experiment, parts, shown)


def _trained(experiment: Any, parts: dict, shown: Display) -> TrainResult:
    if experiment.interrupted():
        if parts["folder"]:
            logger.warning("Interrupted after step %d; continue with mase.train(resume=%r)", parts["steps"],
                           parts["folder"])
        experiment.rethrow()
    return TrainResult(parts, Graph(experiment.graph(), experiment.file_contents()), shown.history)


def test(model: Any = None, dataset: Any = None, *, split: str = "test", load: Optional[PathLike] = None,
         config: Optional[PathLike] = None, passes: Any = None, progress: Optional[bool] = None,
         **options: Any) -> Evaluation:
    """Figures of a network on a split ("test", "validation", "train"), as `ch test` gives them."""
    options = dict(options, **({"load": path_text(load)} if load is not None else {}))
    with display(progress) as shown, _network(model, options) as name, _data(dataset, options) as data:
        experiment = open_experiment(name, data, options, config=config, passes=passes, observer=shown)
        experiment.prepare(True)
        _finish(experiment)
        evaluation = experiment.evaluate(split)
        _finish(experiment)
        return Evaluation(evaluation)


def predict(model: Any, rows: Any, *, load: Optional[PathLike] = None, preprocess: bool = True,
            keep_places: bool = False, tensor: str = "", **options: Any) -> Any:
    """The network's outputs for rows: the path of a table, or an array. A network of several inputs takes a list of
    paths, in its order; one of several outputs gives a tuple.

    Rows of a file are scaled as the network's file says (`preprocess`). An array holds the network's
    own inputs and is taken as it is.
    """
    files = (str, os.PathLike)
    several = isinstance(rows, (list, tuple)) and len(rows) > 0 and all(isinstance(path, files) for path in rows)
    paths = list(rows) if several else [rows] if isinstance(rows, files) else []
    if isinstance(model, Graph) and not paths:
        return model(rows)
    options = dict(options, **({"load": path_text(load)} if load is not None else {}))
    with _network(model, options) as name:
        experiment = open_experiment(name, None, options, progress=False)
        experiment.prepare(False)
        if paths:
            outputs = experiment.predict([path_text(path) for path in paths], tensor, preprocess, keep_places)
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        return Graph(experiment.graph())(rows)


def transform(model: Any = None, dataset: Any = None, *, config: Optional[PathLike] = None, passes: Any = None,
              save: bool = False, progress: Optional[bool] = None, print: bool = True, **options: Any) -> TransformResult:
    """Runs passes on a network, as `ch transform` does.

    `passes` is a dict {name: arguments} in the order they run, or `config` a TOML file with [passes].
    """
    options = dict(options)
    with display(progress, prints=print) as shown, _network(model, options) as name, _data(dataset, options) as data:
        experiment = open_experiment(name, data, options, config=config, passes=passes, observer=shown)
        experiment.prepare(False)
        _finish(experiment)
        original = Graph(experiment.graph(), experiment.file_contents())
        parts = experiment.transform(save)
        _finish(experiment)
        return TransformResult(parts, Graph(experiment.graph(), experiment.file_contents()), original)


def search(model: Any = None, dataset: Any = None, *, config: Optional[PathLike] = None, search: Any = None,
           save: bool = False, storage: Optional[str] = None, study: str = "search", networks: int = 20,
           progress: Optional[bool] = None, **options: Any) -> SearchResult:
    """Tries configurations of a network and keeps the best, as `ch search` does.

    `search` is the [search] table of a configuration as a dict; `config` a TOML file that has one. The
    options of `ch search` are options here: space="bits=4,8", objective="accuracy,bitops", n_trials=50.
    With `save` a run folder is written, as `ch search` writes it. `networks` of the best trials come
    back as graphs, the cheapest first.
    """
    options = dict(options, storage=storage, study=study)
    tables = None if search is None else {"search": search}
    with display(progress, prints=False) as shown, _network(model, options) as name, _data(dataset, options) as data:
        experiment = open_experiment(name, data, options, config=config, observer=shown, tables=tables, command="search")
        parts = _native.search(experiment, save, shown.trial, networks)
        _finish(experiment)
        return SearchResult(parts, parts.pop("extra"))
