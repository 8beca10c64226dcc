# SPDX-License-Identifier: Apache-2.0
"""Neural networks from training to number formats to hardware, on a native core.

    import mase

    run = mase.train("jsc-tiny", "jsc", max_epochs=10, learning_rate=1e-2)
    graph = run.graph.quantize(linear=mase.formats.integer(8, 4))
    print(mase.test(graph, "jsc").accuracy, graph.cost().average_weight_bits)

The package chop has the same things under the names of MASE's own package.
"""
try:
    from mase._native import Error, InternalError, __version__
except ModuleNotFoundError as error:  # a folder on PYTHONPATH is found by every Python there is
    if error.name != "mase._native":
        raise
    import glob
    import os
    import sys

    built = ", ".join(os.path.basename(path) for path in glob.glob(os.path.join(os.path.dirname(__file__), "_native*.so")))
    raise ImportError(f"mase: {os.path.dirname(__file__)} has {built or 'no compiled module'}, which Python "
                      f"{sys.version_info[0]}.{sys.version_info[1]} cannot load; install it there with: pip install .") from None
from mase import formats
from mase.checkpoint import Checkpoint, read_checkpoint, save_checkpoint
from mase.data import Dataset, Split, load_dataset
from mase.experiment import compress, predict, search, test, train, transform
from mase.formats import Format
from mase.graph import Cost, Graph, Layer, Node, load
from mase.hardware import Design, Estimate, Simulation, emit, estimate, simulate
from mase.language import generate, perplexity
from mase.pages import Page, report
from mase.plugin import load_plugin, register_figure, register_pass
from mase.results import CompressResult, Evaluation, SearchResult, TrainResult, TransformResult
from mase.tokenizer import Tokenizer

__all__ = [
    "Checkpoint", "CompressResult", "Cost", "Dataset", "Design", "Error", "Estimate", "Evaluation",
    "Format", "Graph", "InternalError", "Layer", "Node", "Page", "SearchResult", "Simulation", "Split",
    "Tokenizer", "TrainResult", "TransformResult",
    "__version__", "compress", "emit", "estimate", "formats", "from_torch", "generate", "load", "load_dataset",
    "load_plugin", "models", "datasets", "passes", "perplexity", "predict", "read_checkpoint", "register_figure", "register_pass", "report",
    "save_checkpoint", "search", "simulate", "test", "to_torch", "train", "transform",
]


def __getattr__(name: str):
    """What there is not: an AttributeError with the nearest name."""
    import difflib

    found = difflib.get_close_matches(name, __all__, 1, 0.6)
    raise AttributeError(f"module 'mase' has no attribute '{name}'" + (f"; did you mean '{found[0]}'?" if found else ""))


def models() -> dict:
    """The built-in networks and what they are."""
    from mase import _native

    return _native.models()


def datasets() -> dict:
    """The data sets that have names and what they are."""
    from mase import _native

    return _native.datasets()


def passes() -> dict:
    """The passes, with summary, help and options."""
    from mase import _native

    return _native.passes()


def from_torch(module, example=None, *, name=None) -> Graph:
    """The graph of a torch module, traced by torch.fx; weights are shared.

    `example` is an input, or a tuple or dict of inputs, whose first dimension is the batch. It may
    be left out where the first layer says how wide its input is. Operations that this library does
    not have are an error that names them.
    """
    from mase.torch_import import from_torch as convert

    return convert(module, example, name=name)


def to_torch(graph: Graph):
    """A torch.fx.GraphModule with the graph's layers, weights and state-dict keys, which trains."""
    from mase.torch_export import to_torch as convert

    return convert(graph)
