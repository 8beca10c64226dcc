# SPDX-License-Identifier: Apache-2.0
"""From a quantised network to what it costs in hardware, and to SystemVerilog."""
from __future__ import annotations

import os
import warnings
from typing import Any, Dict, List, Optional, Union

from mase import _native
from mase.arrays import path_text
from mase.graph import Graph
from mase.record import Record, dataframe


class Estimate:
    """A model's figures, not placed ones: LUTs, levels of logic, delay, registers, per layer too."""

    def __init__(self, facts: dict):
        self._facts: Dict[str, Any] = facts
        self.luts: float = facts["luts"]
        self.luts_error: Optional[float] = facts.get("luts_error")  # how far such estimates were from Yosys
        self.method: str = facts.get("from", "")  # what was estimated
        self.notes: List[str] = facts.get("notes", [])  # how the network was changed to have exact integers
        self.levels: Optional[float] = facts.get("levels")  # None: the style's depth is not known
        self.delay_ns: Optional[float] = facts.get("delay_ns")
        self.registers: int = facts["registers"]
        self.layers: List[dict] = facts["layers"]

    def to_dict(self) -> dict:
        return self._facts

    def to_dataframe(self) -> Any:
        return dataframe(self.layers)

    def __repr__(self) -> str:
        depth = "" if self.levels is None or self.delay_ns is None else f", {self.levels:.0f} levels, {self.delay_ns:.1f} ns"
        return f"<estimate: {self.luts:.0f} LUTs{depth} (a model, not placed), {self.registers} register bits>"

    def _repr_html_(self) -> str:
        from mase.html import table

        return table(["Layer", "LUTs", "Levels", "Adders"],
                     [[l["name"], f"{l['luts']:.0f}", f"{l.get('levels') or 0:.0f}", l["adders"]] for l in self.layers])


def _told(facts: dict) -> dict:
    """The facts, when what the library has to say of the network has been said."""
    for note in facts.get("notes", []):
        warnings.warn(note, stacklevel=3)
    return facts


def estimate(graph: Graph, **options: Any) -> Estimate:
    """What a quantised graph costs in hardware, as `ch estimate` has it: batch norms behind rounded layers are folded and learned
    steps become numbers, with a warning; the integer graph is optimised, or counted where it is too large to unroll.

    Options: style, levels (of logic between registers), argmax, effort, seed.
    """
    return Estimate(_told(_native.estimate(graph._native, options)))


class Design(Record):
    """A written design: what was compared and proved about it, and what it costs."""

    folder: str
    compared: str  # the rows on which engine and integers were compared
    equal: bool  # on all of them
    reason: str  # why they were not, where that is no fault
    software: List[str]  # nodes that stay in software
    proof: str
    proved: bool
    latency: int  # clock cycles; 0: no clock
    trace: List[dict]
    notes: List[str]  # how the network was changed to have exact integers

    def __init__(self, facts: dict):
        super().__init__(facts)
        self.estimate = Estimate(facts["estimate"])

    def to_dict(self) -> dict:
        return dict(self.__dict__, estimate=self.estimate.to_dict())

    def __repr__(self) -> str:
        compared = f"engine = integers on {self.compared}" if self.equal else f"not compared: {self.reason}"
        return f"<design in {self.folder}: {compared}; {self.estimate!r}>"

    def _repr_html_(self) -> str:
        return self.estimate._repr_html_()


def emit(graph: Any, folder: Union[str, "os.PathLike[str]"] = "mase_output/hardware", *, prove: bool = True,
         **options: Any) -> Design:
    """Writes a quantised network as SystemVerilog with testbench, scripts and manifest, as `ch emit` does.

    `graph` is a Graph, or the path of a .mz. Integers and engine are compared on the test rows of
    `dataset`, or on `rows` drawn ones; where Yosys is installed the SystemVerilog is read back and proved
    (`prove`). Options: style, top, levels, argmax, effort, seed, dataset, rows, and those of the style.
    """
    import tempfile

    if not isinstance(graph, Graph):
        return Design(_told(_native.emit(path_text(graph), "", options, path_text(folder), prove)))
    with tempfile.TemporaryDirectory(prefix="mase-") as scratch:
        path = os.path.join(scratch, "graph.mz")
        graph.save(path)
        return Design(_told(_native.emit(path, graph.name, options, path_text(folder), prove)))


class Simulation(Record):
    """A simulation of a design: which simulator, how many rows, and how many of them differ from the integers."""

    simulator: str
    rows: int
    mismatches: int
    build_seconds: float
    run_seconds: float
    output: str

    def __repr__(self) -> str:
        return f"<simulation by {self.simulator}: compared {self.rows:,} rows, {self.mismatches:,} mismatches>"


def simulate(folder: Union[str, "os.PathLike[str]"], simulator: str = "auto", *, rows: Optional[int] = None,
             wave: Optional[Union[str, "os.PathLike[str]"]] = None) -> Simulation:
    """Runs the testbench of an emitted design, as `ch simulate` does; a row that differs is an error. `simulator`: auto, verilator,
    iverilog, or cpp (the C++ header instead of the SystemVerilog); `wave`: a .vcd file to write."""
    result = Simulation(_native.simulate(path_text(folder), simulator, "" if wave is None else path_text(wave), rows or 0))
    if result.mismatches:
        raise _native.Error(f"{path_text(folder)}: {result.mismatches} of {result.rows} rows differ from the interpreter: {result.output[-500:]}")
    return result
