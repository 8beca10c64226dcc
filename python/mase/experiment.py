# SPDX-License-Identifier: Apache-2.0
"""Training, testing, predicting, transforming and searching, as the commands of ch do them.

Options are those of the commands, with underscores: `mase.train(..., max_epochs=10)`. A dict stands
for a table of the TOML file: `optimizer={"name": "adam", "beta1": 0.95}`. What nobody reads is an
error.
"""
from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Tuple, Union


from mase import _native
from mase.arrays import host_array, path_text
from mase.display import Display, display, logger
from mase.graph import Graph
from mase.results import CompressResult, Evaluation, SearchResult, TrainResult, TransformResult

if TYPE_CHECKING:
    import numpy as np
else:
    from mase.lazy import numpy as np

PathLike = Union[str, "os.PathLike[str]"]


def open_experiment(model: Any, dataset: Any, options: Mapping[str, Any], *, config: Optional[PathLike] = None,
                    passes: Any = None, observer: Optional[Display] = None, tables: Any = None,
                    progress: Optional[bool] = None, resume: Optional[PathLike] = None, as_test: bool = False,
                    command: str = "") -> "_native.Experiment":
    """The native experiment, not yet prepared. A graph and arrays are taken as they lie in memory."""
    given = {key: value for key, value in options.items() if value is not None}
    if hasattr(dataset, "columns") and hasattr(dataset, "iloc"):
        dataset = _split_frame(dataset, given)
    held = model if isinstance(model, Graph) else None
    arrays = _Arrays(dataset) if isinstance(dataset, tuple) else None
    if held is not None and "load" in given:
        raise _native.Error("load: the graph has its weights already")
    if model is not None and held is None:
        name = path_text(model)
        file = "load" not in given and os.path.exists(name) and not name.endswith(".toml")
        given["load" if file else "model"] = name
    if dataset is not None and arrays is None:
        given["dataset"] = path_text(dataset)
    if observer is None:
        observer = Display(progress is not False)
    experiment = _native.Experiment(given, "" if config is None else path_text(config), passes, observer, tables,
                                    None if resume is None else path_text(resume), command)
    if held is not None:
        experiment.set_graph(held._native, held._extra or {})
    if arrays is not None:
        experiment.set_arrays(arrays.x, arrays.y, arrays.labels, as_test)
    return experiment


def _split_frame(frame: Any, given: dict) -> tuple:
    """A DataFrame as the pair (x, y): `target` names the column that is y."""
    names = [str(name) for name in frame.columns]
    target = given.pop("target", None)
    if target is None:
        raise _native.Error("target: is missing; name the column of the DataFrame that is to be predicted, or give a pair (x, y)")
    if str(target) not in names:
        import difflib

        near = difflib.get_close_matches(str(target), names, 1)
        remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names[:20])}"
        raise _native.Error(f"target: the DataFrame has no column {str(target)!r}; {remedy}")
    at = names.index(str(target))
    x = frame.iloc[:, [i for i in range(len(names)) if i != at]]
    words = [str(name) for name, kind in zip(x.columns, x.dtypes) if getattr(kind, "kind", "O") not in "iufb"]
    if words:
        raise _native.Error(f"dataset: columns without numbers: {', '.join(words[:10])}; write the DataFrame to a table "
                            "(frame.to_csv('rows.csv', index=False)), whose words become categories, or drop them")
    return x, frame.iloc[:, at]


class _Arrays:
    """A pair (x, y) as the library takes it."""

    def __init__(self, pair: tuple):
        if len(pair) != 2:
            raise _native.Error(f"dataset: expected a pair of arrays (x, y), got {len(pair)}")
        self.x, y = host_array(pair[0]), np.asarray(pair[1])
        self.labels: List[str] = []
        if y.dtype.kind in "OSU":
            if not all(isinstance(label, str) for label in y.ravel().tolist()):
                raise _native.Error("dataset: y has neither numbers nor words; give one class or number for each row")
            labels, y = np.unique(y.astype(str), return_inverse=True)
            self.labels = labels.tolist()
        whole = y.dtype.kind in "iub"
        self.y = host_array(y, np.int64 if whole else np.float32)
        if self.x.ndim == 0 or self.y.ndim == 0 or len(self.x) != len(self.y):
            raise _native.Error(f"dataset: x has the shape {list(self.x.shape)} and y {list(self.y.shape)}; give one row of x for each of y")


def _finish(experiment: Any) -> None:
    """What a callback threw, or Ctrl-C, once the library has put everything in order."""
    if experiment.interrupted():
        experiment.rethrow()


def train(model: Any = None, dataset: Any = None, *, config: Optional[PathLike] = None, passes: Any = None,
          resume: Optional[PathLike] = None, save: bool = True, progress: Optional[bool] = None,
          on_epoch: Optional[Callable[[dict], Any]] = None, on_step: Optional[Callable[[dict], Any]] = None,
          **options: Any) -> TrainResult:
    """Trains a network on a data set, as `ch train` does.

    `model` is a name, a path or a Graph; `dataset` a name, a path, arrays (x, y), or a DataFrame with the name of its
    column `target`. `passes` are those of a configuration's [passes] table, run before training (quantisation-aware training).
    With `save` a run folder is written, as `ch train` writes it, and Ctrl-C leaves one that
    `mase.train(resume=run.folder)` and `ch train --resume` continue; only max_epochs, max_steps, threads and
    how often checkpoints are written may then be given anew. `on_epoch` gets each epoch's
    figures; `on_step` the loss a few times a second. Both may raise to stop the run.
    """
    options = dict(options)
    if resume is not None and not (model is dataset is config is passes is None and save):
        raise _native.Error("resume: a resumed run keeps its own network, data, passes and folder")
    with display(progress, on_epoch=on_epoch, on_step=on_step, prints=False) as shown:
        experiment = open_experiment(model, dataset, options, config=config, passes=passes, observer=shown, resume=resume)
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


class _Default(str):
    """What an argument is when nobody gave it."""


def test(model: Any = None, dataset: Any = None, *, split: str = _Default("test"), load: Optional[PathLike] = None,
         config: Optional[PathLike] = None, passes: Any = None, progress: Optional[bool] = None,
         **options: Any) -> Evaluation:
    """Figures of a network on a split ("test", "validation" or "val", "train", "all"), as `ch test` gives them.

    Arrays (x, y) are test rows, all of them, and outputs come in their order; a split that is named is the one that
    `train` makes of the same arrays. Rows are scaled as the network's training did, if it did.
    """
    if not isinstance(split, str):
        raise _native.Error(f"split: expected train, validation, test or all, got {split!r}")
    whole = (isinstance(dataset, tuple) or hasattr(dataset, "iloc")) and (isinstance(split, _Default) or split == "all")
    split = {"val": "validation"}.get(split, "test" if whole else str(split))
    options = dict(options, **({"load": path_text(load)} if load is not None else {}))
    with display(progress) as shown:
        experiment = open_experiment(model, dataset, options, config=config, passes=passes, observer=shown, as_test=whole)
        experiment.prepare(True)
        _finish(experiment)
        evaluation = experiment.evaluate(split)
        _finish(experiment)
        return Evaluation(evaluation)


def _scaled(graph: Graph, rows: Any) -> Any:
    """Rows as the network takes them: scaled as its training scaled its own."""
    noted: Any = _native.scaling(graph._extra or {})
    if noted is None or isinstance(rows, (list, tuple)):
        return rows
    names, offset, scale = noted
    columns = [str(name) for name in getattr(rows, "columns", ())]
    if columns and set(names) <= set(columns):  # a DataFrame: features go by name
        rows = rows.iloc[:, [columns.index(name) for name in names]]
    x = host_array(rows)
    if x.ndim < 2 or x[0].size != offset.size:
        return x  # the graph says what it takes
    return ((x.reshape(len(x), -1) - offset) / scale).reshape(x.shape)


def predict(model: Any, rows: Any, *, load: Optional[PathLike] = None, preprocess: bool = True,
            keep_places: bool = False, tensor: str = "", **options: Any) -> Any:
    """The network's outputs for rows: the path of a table, or an array. A network of several inputs takes a list of
    paths, in its order; one of several outputs gives a tuple.

    Rows are scaled as the network's training scaled its own, which the graph and its files remember; with
    `preprocess=False` they are taken as they are, as `graph(rows)` takes them. Columns of a DataFrame go by name
    where it has all of the network's features.
    """
    files = (str, os.PathLike)
    several = isinstance(rows, (list, tuple)) and len(rows) > 0 and all(isinstance(path, files) for path in rows)
    paths = list(rows) if several else [rows] if isinstance(rows, files) else []
    options = dict(options, **({"load": path_text(load)} if load is not None else {}))
    if not paths and isinstance(model, Graph) and not options:
        return model(_scaled(model, rows) if preprocess else rows)
    experiment = open_experiment(model, None, options, progress=False)
    experiment.prepare(False)
    if not paths:
        graph = Graph(experiment.graph(), experiment.file_contents())
        return graph(_scaled(graph, rows) if preprocess else rows)
    outputs = experiment.predict([path_text(path) for path in paths], tensor, preprocess, keep_places)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def transform(model: Any = None, dataset: Any = None, *, config: Optional[PathLike] = None, passes: Any = None,
              save: bool = False, progress: Optional[bool] = None, print: bool = True, **options: Any) -> TransformResult:
    """Runs passes on a network, as `ch transform` does.

    `passes` is a dict {name: arguments} in the order they run, or `config` a TOML file with [passes].
    """
    options = dict(options)
    with display(progress, prints=print) as shown:
        experiment = open_experiment(model, dataset, options, config=config, passes=passes, observer=shown)
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
    with display(progress, prints=False) as shown:
        experiment = open_experiment(model, dataset, options, config=config, observer=shown, tables=tables, command="search")
        parts = _native.search(experiment, save, shown.trial, networks)
        _finish(experiment)
        return SearchResult(parts, parts.pop("extra"))


def compress(model: Any = None, dataset: Any = None, *, formats: Any = None, methods: Any = None, leave: Any = None,
             rows: Optional[int] = None, calibration_rows: Optional[int] = None, input: Optional[PathLike] = None,
             calibration: Optional[PathLike] = None, length: Optional[int] = None, keep: str = "front",
             config: Optional[PathLike] = None, resume: Optional[PathLike] = None, save: bool = False,
             progress: Optional[bool] = None, **options: Any) -> CompressResult:
    """Number formats times methods in one table, as `ch compress` makes it.

    `formats` and `methods` are lists of texts such as "group_integer:width=4" and "smoothquant+gptq".
    A network that predicts the next token takes two texts, `input` and `calibration`, in the place of
    a data set. The networks of the front come back as graphs by row, or with `save` (and `resume`)
    as files in the run folder.
    """
    own = dict(formats=formats, methods=methods, leave=leave, rows=rows, calibration_rows=calibration_rows, length=length, keep=keep)
    paths = {name: path_text(path) for name, path in (("input", input), ("calibration", calibration), ("resume", resume)) if path is not None}
    given = {**options, **own, **paths}
    with display(progress, prints=False) as shown:
        experiment = open_experiment(model, dataset, given, config=config, observer=shown, command="compress")
        parts = _native.compress(experiment, save, lambda name, method, done, count: logger.info("%d of %d: %s %s", done, count, name, method))
        _finish(experiment)
        return CompressResult(parts, parts.pop("extra"))


_TYPES = {"text": str, "an integer": int, "a number": float, "true or false": bool}


def _list_options(function: Callable) -> None:
    """Shows the options of the registries in a function's signature and help: `**options` says nothing to a reader or to completion."""
    signature = inspect.signature(function)
    known = list(signature.parameters.values())[:-1]
    names = {parameter.name for parameter in known}
    fields = [field for field in _native.experiment_options() if field["name"] not in names]
    known += [inspect.Parameter(field["name"], inspect.Parameter.KEYWORD_ONLY, default=field["default"],
                                annotation=_TYPES.get(field["type"], Any)) for field in fields]
    function.__signature__ = signature.replace(parameters=known + [list(signature.parameters.values())[-1]])  # type: ignore[attr-defined]
    lines = [f"    {field['name']}: {field['help']}" + (f" ({', '.join(field['choices'])})" if field["choices"] else "") for field in fields]
    function.__doc__ = (function.__doc__ or "").rstrip() + "\n\n    Options:\n" + "\n".join("    " + line for line in lines) + "\n"


_listed: Tuple[Any, ...] = (train, test, transform, search, compress)
for _function in _listed:
    _list_options(_function)
