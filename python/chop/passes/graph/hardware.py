# SPDX-License-Identifier: Apache-2.0
"""Hardware, by the library's passes: their metadata come back to the nodes, and what was edited by hand in the metadata (types,
precisions, parallelism) goes into the design or is refused. The original's emit passes write one part each; here the first that is
called writes the whole design, compared with the network, and each says which files are its part."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

from chop.ir.graph.mase_metadata import MaseMetadata
from chop.passes.graph.utils import as_graph, get_mase_op
from chop.tools.logger import get_logger
from mase import _native
from mase._native import Error
from mase.torch_layers import op_records

logger = get_logger(__name__)
_FIXED = ("fixed", "integer")
_EMIT = {"project_dir", "top_name", "style", "cycles", "prove"}
last_project: List[str] = []  # where a design was written last


def default_project() -> str:
    return os.path.join(os.path.expanduser("~"), ".mase", "top")


# Precisions --------------------------------------------------------------------------------------


def _precision(entry: Any) -> Optional[Tuple[int, int]]:
    """Width and bits behind the point that metadata say of a value; None: it is not fixed point."""
    if not isinstance(entry, dict) or entry.get("type") not in _FIXED:
        return None
    bits = entry.get("precision")
    if not isinstance(bits, (list, tuple)) or len(bits) != 2 or not all(isinstance(bit, int) for bit in bits):
        raise Error(f"precision: fixed point has two whole numbers, [width, bits behind the point], got {bits!r}")
    return int(bits[0]), int(bits[1])


def _operands(node: Any, op: str) -> Dict[str, Tuple[int, int]]:
    """What the metadata of a node say of each operand of its operation."""
    common = node.meta["mase"].parameters["common"]
    found: Dict[str, Tuple[int, int]] = {}
    places = {"data_in": common["args"].get("data_in_0"), "weight": common["args"].get("weight", common["args"].get("data_in_1")),
              "bias": common["args"].get("bias"), "data_out": common["results"].get("data_out_0")}
    for operand in op_records()[op]["operands"]:
        precision = _precision(places.get(operand))
        if precision is not None:
            found[operand] = precision
    return found


def _target(graph: Any, node: Any) -> Any:
    return graph.modules[node.target] if node.op == "call_module" else node.target


def _config(name: str, target: Any, wanted: Dict[str, Tuple[int, int]]) -> Optional[Dict[str, Any]]:
    """The config that a node has with these precisions; None: it has them."""
    quantizers = getattr(target, "quantizers", {}) or {}
    config = dict(getattr(target, "config", None) or {})
    if wanted and quantizers and getattr(target, "format", "integer") != "integer":
        raise Error(f"{name}: its metadata say fixed point, and its numbers are {target.format}; quantise it anew")
    changed = {operand: bits for operand, bits in wanted.items()
               if operand not in quantizers or list(quantizers[operand].precision) != list(bits)}
    if not changed:
        return None
    floor = any(config.get(f"{operand}_floor") or config.get(f"{operand}_rounding") == "floor" for operand in quantizers)
    for operand, (width, frac) in changed.items():
        config[f"{operand}_width"], config[f"{operand}_frac_width"] = width, frac
        if floor and operand not in quantizers:
            config[f"{operand}_rounding"] = "floor"
    config.pop("bypass", None)
    return {**config, "name": "integer"}


def edited(graph: Any) -> Any:
    """The library's graph with the precisions that the metadata have."""
    native = graph.native()
    rules: Dict[str, Any] = {}
    known = {node.name for node in native.nodes}
    for node in graph.fx_graph.nodes:
        if "mase" not in node.meta or not node.meta["mase"].parameters["common"]:
            raise Error(f"{node.name}: has no metadata; run init_metadata and add_common_metadata first")
        op = get_mase_op(node)
        if node.op in ("placeholder", "output") or op not in op_records() or node.name not in known:
            continue
        if op_records()[op]["operands"]:
            config = _config(node.name, _target(graph, node), _operands(node, op))
            if config is not None:
                rules[node.name] = {"config": config}
    if rules:
        logger.info(f"precisions of the metadata go into the design: {', '.join(rules)}")
        native.run_pass("quantize", {"by": "name", **rules}, print=None)
    _agree(graph, {node.name: node for node in graph.fx_graph.nodes}, native)
    return native


def _agree(graph: Any, nodes: Dict[str, Any], native: Any) -> None:
    """Values that nothing rounds (inputs, and what only moves them) have the precision of the layer that reads them, or the
    metadata promise what the design has not."""
    for node in nodes.values():
        op = get_mase_op(node)
        if node.op == "output" or (op in op_records() and op_records()[op]["operands"]):
            continue
        own = _precision(node.meta["mase"].parameters["common"]["results"].get("data_out_0"))
        for user in node.users:
            theirs = _precision(user.meta["mase"].parameters["common"]["args"].get("data_in_0"))
            if own is not None and theirs is not None and theirs != own and len(user.all_input_nodes) == 1:
                raise Error(f"{node.name}: its metadata say fixed point {own[0]}/{own[1]}, and those of {user.name}, which reads it, "
                            f"{theirs[0]}/{theirs[1]}; nothing rounds between them")


# Metadata ----------------------------------------------------------------------------------------


def adopt(graph: Any, native: Any, part: str) -> None:
    """What the library's passes wrote on the nodes of its graph, on the nodes of this one."""
    for node in graph.fx_graph.nodes:
        meta = node.meta.setdefault("mase", MaseMetadata(node, graph.model))
        found = native._native.metadata(node.name).get(part) if any(n.name == node.name for n in native.nodes) else None
        if found:
            meta.parameters[part].update(found)


def _sizes(node: Any, limits: Optional[List[int]]) -> Dict[str, Any]:
    """Precision, sizes and, with limits, parallelism of every value of a node."""
    parameters: Dict[str, Any] = {}
    common = node.meta["mase"].parameters["common"]
    for name, entry in {**common["args"], **common["results"]}.items():
        if isinstance(entry, dict) and "precision" in entry:
            for i, bits in enumerate(entry["precision"]):
                parameters[f"{name.upper()}_PRECISION_{i}"] = bits
            for d, size in enumerate(reversed(entry["shape"])):
                parameters[f"{name.upper()}_TENSOR_SIZE_DIM_{d}"] = size
                if limits is not None:
                    parameters[f"{name.upper()}_PARALLELISM_DIM_{d}"] = min(size, limits[min(d, len(limits) - 1)])
    return parameters


def _planned(native: Any, cycles: int) -> Tuple[Dict[str, Any], int]:
    return native.run_pass("add_hardware_metadata", {"cycles": cycles}, print=None) or {}, cycles


def _within(native: Any, limit: int) -> Tuple[Dict[str, Any], int]:
    """The fewest cycles between rows with which no layer takes or gives more values at once."""
    cycles = 1
    while True:
        info, _ = _planned(native, cycles)
        plans = [native._native.metadata(node.name).get("hardware", {}).get("parallelism") or [] for node in native.nodes]
        if info.get("reason") or all(at_once <= limit for plan in plans for at_once in plan):
            return info, cycles
        cycles *= 2


def add_hardware_metadata_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Tool chain, module, files, sizes and parallelism of every node that becomes hardware. `cycles` between rows decide the
    parallelism of every layer; with `max_parallelism` (numbers for each dimension, the last size first; layers of hardware have
    one) they are the fewest with which no layer takes or gives more values at once."""
    graph = as_graph(graph)
    args = dict(pass_args or {})
    limits = args.pop("max_parallelism", None)
    if limits is not None and (not isinstance(limits, (list, tuple)) or not limits or not all(isinstance(n, int) and n > 0 for n in limits)):
        raise Error(f"max_parallelism: expected whole numbers above 0, one for each dimension, got {limits!r}")
    if set(args) - {"cycles"} or (limits is not None and "cycles" in args):
        raise Error(f"add_hardware_metadata: expected cycles or max_parallelism, got {', '.join(sorted(pass_args or {}))}")
    info: Dict[str, Any] = {}
    cycles = args.get("cycles", 64)
    try:
        native = edited(graph)
        info, cycles = _planned(native, cycles) if limits is None else _within(native, limits[0])
        adopt(graph, native, "hardware")
        graph.meta.setdefault("mase", MaseMetadata(None, graph.model)).parameters["hardware"]["cycles"] = cycles
    except Error as error:  # there is no such hardware; the nodes say why
        info = {"layers": 0, "reason": str(error)}
    for node in graph.fx_graph.nodes:
        hardware = node.meta["mase"].parameters["hardware"]
        hardware["is_implicit"] = node.op in ("placeholder", "output")
        if hardware["is_implicit"]:
            continue
        planned = dict(hardware.get("verilog_param") or {})
        sizes = _sizes(node, list(limits) if limits is not None else None)
        hardware["verilog_param"] = {**sizes, **planned}
        hardware.setdefault("device_id", -1)
        hardware.setdefault("interface", {})
        hardware.setdefault("dependence_files", [])
        if info.get("reason"):
            hardware["reason"] = info["reason"]
            continue
        hardware["module"] = hardware.get("module") or get_mase_op(node)
        hardware["toolchain"] = hardware.get("toolchain") or "INTERNAL_RTL"
    return graph, info


def report_parallelization_analysis_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """Sizes, parallelism and clock cycles of every layer, after add_hardware_metadata."""
    graph = as_graph(graph)
    rows = []
    for node in graph.fx_graph.nodes:
        hardware = node.meta["mase"].parameters["hardware"]
        if "cycles" not in hardware:
            continue
        p = hardware["verilog_param"]
        rows.append([node.name, *(str(p.get(f"{side}_{what}_DIM_0", "")) for what in ("TENSOR_SIZE", "PARALLELISM")
                                  for side in ("DATA_IN_0", "DATA_OUT_0")), str(hardware["cycles"])])
    text = _native.table(["Node name", "Inputs", "Outputs", "At once in", "At once out", "Cycles"], rows, "simple")
    logger.info("Inspecting graph [report_parallelization_analysis_pass]")
    logger.info("\n" + text.rstrip("\n"))
    return graph, {"layers": [row[0] for row in rows]}


# Designs -----------------------------------------------------------------------------------------


def _asked(graph: Any) -> Optional[Dict[str, Tuple[int, int]]]:
    """The parallelism of each layer that the metadata have, if it is another than was planned; None: it is not."""
    asked: Dict[str, Tuple[int, int]] = {}
    changed = False
    for node in graph.fx_graph.nodes:
        hardware = node.meta["mase"].parameters["hardware"]
        if "parallelism" not in hardware:
            continue
        p = hardware.get("verilog_param") or {}
        before, after = (p.get(f"{side}_PARALLELISM_DIM_0") for side in ("DATA_IN_0", "DATA_OUT_0"))
        if not isinstance(before, int) or not isinstance(after, int) or before < 1 or after < 1:
            raise Error(f"{node.name}: *_PARALLELISM_DIM_0 in verilog_param: expected whole numbers above 0, got {before!r} and {after!r}")
        asked[node.name] = (before, after)
        changed = changed or [before, after] != list(hardware["parallelism"])
    return asked if changed else None


def _cycles_for(native: Any, asked: Dict[str, Tuple[int, int]]) -> int:
    """The clock cycles with which the planner gives every layer the parallelism that was asked for."""
    cycles = 1
    for name, (before, after) in asked.items():
        entry = native._native.metadata(name)["hardware"]["verilog_param"]
        sizes = entry["DATA_IN_0_TENSOR_SIZE_DIM_0"], entry["DATA_OUT_0_TENSOR_SIZE_DIM_0"]
        for size, at_once, side in zip(sizes, (before, after), ("inputs", "outputs")):
            if size % at_once:
                raise Error(f"{name}: {at_once} of {size} {side} at once: parallelism divides sizes")
        cycles = max(cycles, (sizes[0] // before) * (sizes[1] // after))
    native.run_pass("add_hardware_metadata", {"cycles": cycles}, print=None)
    for name, wanted in asked.items():
        planned = tuple(native._native.metadata(name)["hardware"]["parallelism"])
        if planned != tuple(wanted):
            raise Error(f"{name}: {wanted[0]} inputs and {wanted[1]} outputs at once were asked for; with a row every {cycles} cycles, which that "
                        f"needs, the design has {planned[0]} and {planned[1]}: layers are planned together, one cannot be slower for nothing")
    return cycles


def emit_verilog_top_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The whole design below `project_dir`/hardware (~/.mase/top if not given), in the style "stream" if no other is named."""
    graph = as_graph(graph)
    args = {key: value for key, value in (pass_args or {}).items() if value is not None}
    unknown = sorted(args.keys() - _EMIT)
    if unknown:
        raise Error(f"emit_verilog_top: unknown key '{unknown[0]}'; it takes {', '.join(sorted(_EMIT))}")
    project = os.path.abspath(os.path.expanduser(os.fspath(args.pop("project_dir", None) or default_project())))
    native = edited(graph)
    if args.get("style", "stream") == "stream":
        known = graph.meta["mase"].parameters["hardware"].get("cycles", 64) if "mase" in graph.meta else 64
        cycles = args.get("cycles", known)
        native.run_pass("add_hardware_metadata", {"cycles": cycles}, print=None)
        asked = _asked(graph)
        if asked is not None:
            if "cycles" in args:
                raise Error("cycles: the metadata have parallelism of their own; give one of the two")
            cycles = _cycles_for(native, asked)
        args["cycles"] = cycles
    os.makedirs(project, exist_ok=True)
    found = native.run_pass("emit_verilog_top", {**args, "project_dir": project})
    if not found["emitted"]:
        raise Error(f"emit_verilog_top: {found['reason']}")
    adopt(graph, native, "hardware")
    graph.meta.setdefault("mase", MaseMetadata(None, graph.model)).parameters["hardware"]["project_dir"] = project
    last_project[:] = [project]
    return graph, dict(found)


def _part(name: str, what: str) -> Any:
    def emit(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
        graph = as_graph(graph)
        args = dict(pass_args or {})
        project = args.pop("project_dir", None)
        if args.keys() - {"top_name"}:
            raise Error(f"{name}: unknown key '{sorted(args)[0]}'; it takes project_dir and top_name")
        known = graph.meta["mase"].parameters["hardware"].get("project_dir") if "mase" in graph.meta else None
        project = os.path.abspath(os.path.expanduser(os.fspath(project))) if project is not None else known
        if project is None or project != known:
            graph, _ = emit_verilog_top_transform_pass(graph, {"project_dir": project, **args})
            project = graph.meta["mase"].parameters["hardware"]["project_dir"]
        found = graph.native().run_pass(name, {"project_dir": project})
        return graph, dict(found, folder=os.path.join(project, "hardware"))

    emit.__name__ = emit.__qualname__ = f"{name}_transform_pass"
    emit.__doc__ = f"The {what} of the design, which is written whole if it is not yet."
    return emit


emit_internal_rtl_transform_pass = _part("emit_internal_rtl", "modules")
emit_bram_transform_pass = _part("emit_bram", "modules with weights")
emit_cocotb_transform_pass = _part("emit_cocotb", "testbench")


def emit_vivado_project_transform_pass(graph: Any, pass_args: Optional[dict] = None) -> Tuple[Any, dict]:
    """The scripts for Vivado and Quartus beside the design, which is written whole if it is not yet."""
    graph, found = emit_internal_rtl_transform_pass(graph, pass_args)
    folder = found["folder"]
    scripts = sorted(os.path.relpath(os.path.join(at, file), folder) for at, _, files in os.walk(folder) for file in files
                     if file.endswith((".tcl", ".xdc", ".sdc", ".qsf")))
    return graph, {"files": scripts, "folder": folder}


def test(dut: Any) -> None:
    """The original's testbench for cocotb."""
    raise Error("emit_tb.test: testbenches are written in SystemVerilog here, with the design; chop.actions.simulate runs them")
