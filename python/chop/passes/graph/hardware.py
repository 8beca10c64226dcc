# SPDX-License-Identifier: Apache-2.0
"""Hardware: the original's passes write one part each of a design; here the first of them writes all of it,
compared with the network and proved."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from chop.passes.graph.utils import as_graph, get_mase_op
from mase._native import Error


def add_hardware_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Tool chain and parameters of every node that becomes hardware."""
    graph = as_graph(graph)
    for node in graph.fx_graph.nodes:
        hardware = node.meta["mase"].parameters["hardware"]
        hardware["is_implicit"] = node.op in ("placeholder", "output")
        if hardware["is_implicit"]:
            continue
        hardware.update({"device_id": -1, "toolchain": "INTERNAL", "module": get_mase_op(node), "interface": {}})
        parameters = {}
        common = node.meta["mase"].parameters["common"]
        for name, entry in {**common["args"], **common["results"]}.items():
            if isinstance(entry, dict) and "precision" in entry:
                for i, bits in enumerate(entry["precision"]):
                    parameters[f"{name.upper()}_PRECISION_{i}"] = bits
                for d, size in enumerate(reversed(entry["shape"])):
                    parameters[f"{name.upper()}_TENSOR_SIZE_DIM_{d}"] = size
        hardware["verilog_param"] = parameters
    return graph, {}


def _whole_design(name: str) -> Any:
    def emit(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
        raise Error(f"{name}: single files of a design are not written here; the whole design is, compared and proved: "
                    "emit_verilog_top_transform_pass, or mase.emit(mg.native(), folder)")

    emit.__name__ = emit.__qualname__ = name
    return emit


def emit_verilog_top_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The whole design below `project_dir`/hardware: {"project_dir", "top_name"}, and mase.emit's options."""
    import os

    from mase.hardware import emit

    graph = as_graph(graph)
    args = dict(pass_args or {})
    folder = os.path.join(os.fspath(args.pop("project_dir", "top")), "hardware")
    design = emit(graph.native(), folder, top=args.pop("top_name", "top"), **args)
    return graph, design.to_dict()


def test(dut: Any) -> None:
    """The original's testbench for cocotb."""
    raise Error("emit_tb.test: testbenches are written in SystemVerilog here, with the design; ch simulate runs them")


emit_internal_rtl_transform_pass = _whole_design("emit_internal_rtl_transform_pass")
emit_bram_transform_pass = _whole_design("emit_bram_transform_pass")
emit_cocotb_transform_pass = _whole_design("emit_cocotb_transform_pass")
