# SPDX-License-Identifier: Apache-2.0
"""Passes written in Python, for graphs here and for `ch python`'s transform."""
from __future__ import annotations

import importlib.util
import os
from typing import Any, Callable, Optional, Union

from mase import _native
from mase.arrays import path_text
from mase.graph import Graph


def register_pass(function: Optional[Callable] = None, *, name: Optional[str] = None, transform: bool = False) -> Any:
    """Makes a function a pass: it is then run by graph.run_pass, mase.transform and [passes.NAME].

        @mase.register_pass
        def count_relus(graph, args):
            return {"relus": sum(node.mase_op == "relu" for node in graph)}

    The function gets a Graph, which it may change (`transform=True`), and the arguments as a dict;
    it returns a dict of what it found, or None.
    """
    def register(target: Callable) -> Callable:
        def call(native: Any, args: dict) -> Any:
            return target(Graph(native), args) or {}

        summary = (target.__doc__ or "a pass written in Python").strip().splitlines()[0]
        _native.register_pass(name or target.__name__, call, summary, transform)
        return target

    return register if function is None else register(function)


def register_figure(function: Optional[Callable] = None, *, name: Optional[str] = None,
                    higher_is_better: bool = False) -> Any:
    """Makes a function a figure that a search may be for: metrics, --objective and hw_runner take its name.

        @mase.register_figure
        def wide_layers(graph):
            return sum(tensor.shape[0] > 32 for tensor in graph.parameters().values())

    The function gets each candidate's Graph and returns a number. What it raises fails that trial.
    """
    def register(target: Callable) -> Callable:
        summary = (target.__doc__ or "a figure written in Python").strip().splitlines()[0]
        _native.register_figure(name or target.__name__, lambda native: float(target(Graph(native))), higher_is_better,
                                summary)
        return target

    return register if function is None else register(function)


def load_plugin(path: Union[str, "os.PathLike[str]"]) -> Any:
    """Runs a Python file that registers passes (or anything else), and returns it as a module."""
    file = path_text(path)
    spec = importlib.util.spec_from_file_location("mase_plugin_" + os.path.splitext(os.path.basename(file))[0], file)
    if spec is None or spec.loader is None:
        raise _native.Error(f"{file}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise _native.Error(f"{file}: there is no such file") from None
    return module
