# SPDX-License-Identifier: Apache-2.0
"""What quantising changed: a table of nodes and a histogram by type."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

from chop.passes.graph.utils import as_graph, get_mase_op, get_mase_type, get_node_actual_target
from chop.tools.logger import get_logger
from mase._native import Error, table

logger = get_logger(__name__)
_HEADER = ["Ori name", "New name", "MASE_TYPE", "Mase_OP", "Original type", "Quantized type", "Changed"]


def get_type_str(node: Any) -> str:
    """The class of a layer, the name of a function, the target of anything else."""
    target = get_node_actual_target(node)
    if node.op == "call_module":
        return type(target).__name__
    return getattr(target, "__name__", None) or str(target)


def compare_nodes(ori_graph: Any, graph: Any) -> List[List[Any]]:
    rows = []
    for before, after in zip(as_graph(ori_graph).fx_graph.nodes, as_graph(graph).fx_graph.nodes):
        old, new = get_type_str(before), get_type_str(after)
        rows.append([before.name, after.name, get_mase_type(before), get_mase_op(before), old, new, old != new])
    return rows


def graph_iterator_compare_nodes(ori_graph: Any, graph: Any, save_path: Any = None, silent: bool = False) -> Any:
    """The nodes of two graphs side by side, as a DataFrame."""
    try:
        import pandas
    except ImportError:
        raise Error("graph_iterator_compare_nodes: a DataFrame needs pandas: pip install pandas") from None
    rows = compare_nodes(ori_graph, graph)
    if not silent:
        logger.debug("Compare nodes:")
        logger.debug("\n" + table(_HEADER, [[str(cell) for cell in row] for row in rows], "orgtbl").rstrip("\n"))
    frame = pandas.DataFrame(rows, columns=_HEADER)
    if save_path is not None:
        frame.to_csv(save_path)
    return frame


def graph_iterator_node_histogram(ori_graph: Any, graph: Any, save_path: Any = None) -> None:
    """How many nodes of each type changed."""
    _histogram(compare_nodes(ori_graph, graph), save_path)


def _histogram(rows: List[List[Any]], save_path: Any) -> List[List[str]]:
    types: Dict[str, List[Any]] = {}
    for _, _, _, op, old, _, changed in rows:
        entry = types.setdefault(old, [op, 0, 0])
        entry[1] += 1
        entry[2] += changed
    cells = [[name, op, str(total), str(changed), str(total - changed)] for name, (op, total, changed) in sorted(types.items())]
    header = ["Original type", "OP", "Total", "Changed", "Unchanged"]
    logger.info("Quantized graph histogram:")
    logger.info("\n" + table(header, cells, "orgtbl").rstrip("\n"))
    if save_path is not None:
        _write(save_path, table(header, cells, "csv"))
    return cells


def _write(path: Any, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def summarize_quantization_analysis_pass(graph: Any, second: Any = None, save_dir: Any = None, *, ori_graph: Any = None,
                                         pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Both of MASE's forms: (ori_graph, graph, save_dir=None) and (graph, {"original_graph", "save_dir"})."""
    if ori_graph is not None:
        graph, second = ori_graph, graph
    if pass_args is None and isinstance(second, dict):
        pass_args = second
    if pass_args is not None:
        original, transformed = pass_args.get("original_graph"), graph
        save_dir = pass_args.get("save_dir")
    else:
        original, transformed = graph, second
    if original is None or transformed is None:
        raise Error("summarize_quantization: needs the graph before quantising: "
                    "summarize_quantization_analysis_pass(ori_graph, graph), or {'original_graph': ori_graph}")
    rows = compare_nodes(original, transformed)
    if save_dir is not None:
        os.makedirs(save_dir, exist_ok=True)
        _write(os.path.join(save_dir, "quantize_table.csv"),
               table(_HEADER, [[str(cell) for cell in row] for row in rows], "csv"))
    _histogram(rows, None if save_dir is None else os.path.join(save_dir, "quantize_histogram.csv"))
    return as_graph(transformed), {}
