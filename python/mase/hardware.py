# SPDX-License-Identifier: Apache-2.0
"""From a quantised network to what it costs in hardware, and to SystemVerilog."""
from __future__ import annotations

from typing import Any, Dict, List

from mase import _native
from mase.graph import Graph, _dataframe


class Estimate:
    """A model's figures, not placed ones: LUTs, levels of logic, delay, registers, per layer too."""

    def __init__(self, facts: dict):
        self._facts: Dict[str, Any] = facts
        self.luts: float = facts["luts"]
        self.levels: float = facts["levels"]
        self.delay_ns: float = facts["delay_ns"]
        self.registers: int = facts["registers"]
        self.layers: List[dict] = facts["layers"]

    def to_dict(self) -> dict:
        return self._facts

    def to_dataframe(self) -> Any:
        return _dataframe(self.layers)

    def __repr__(self) -> str:
        return (f"<estimate: {self.luts:.0f} LUTs, {self.levels:.0f} levels, {self.delay_ns:.1f} ns "
                f"(a model, not placed), {self.registers} register bits>")

    def _repr_html_(self) -> str:
        from mase.html import table

        return table(["Layer", "LUTs", "Levels", "Adders"],
                     [[l["name"], f"{l['luts']:.0f}", f"{l['levels']:.0f}", l["adders"]] for l in self.layers])


def estimate(graph: Graph, **options: Any) -> Estimate:
    """What a quantised graph costs in hardware, from its optimised integer graph.

    Options: style, levels (of logic between registers), argmax, effort, seed.
    """
    return Estimate(_native.estimate(graph._native, options))
