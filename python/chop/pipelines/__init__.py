# SPDX-License-Identifier: Apache-2.0
"""Groups of passes, one after another, with arguments by function name."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from mase._native import Error


class AutoPipeline:
    """Runs groups of passes. A call gives the graph and, for each group, what its passes found, by their names; an argument
    "self/PASS" is what that pass of the same group found. A list of passes that are no lists is one group."""

    def __init__(self, pass_groups: Optional[Sequence[Any]] = None, run_training: bool = False):
        if run_training:
            raise Error("run_training: training is a pass too (training_base_pass), or actions.train between two pipelines")
        groups = list(pass_groups or [])
        self.pass_groups: List[List[Callable]] = [groups] if groups and all(callable(one) for one in groups) else [list(g) for g in groups]
        self.pass_outputs: List[Dict[str, Any]] = [{} for _ in self.pass_groups]

    def needed(self, name: str, pass_args: Dict[str, Any]) -> bool:
        """Whether a pass that was given no arguments runs."""
        return True

    def _group(self, mg: Any, group: List[Callable], pass_args: Dict[str, Any], skip_passes: Sequence[Callable]) -> Tuple[Any, Dict[str, Any]]:
        found: Dict[str, Any] = {}
        for function in group:
            name = function.__name__
            if function in skip_passes or not self.needed(name, pass_args):
                continue
            args = pass_args.get(name, {})
            if isinstance(args, dict):
                args = dict(args)  # the caller keeps his
                for key, value in args.items():
                    if isinstance(value, str) and value.startswith("self/"):
                        if value[5:] not in found:
                            raise Error(f"{name}.{key}: there is no result of '{value[5:]}' before it; there are {', '.join(found) or 'none'}")
                        args[key] = found[value[5:]]
            mg, found[name] = function(mg, pass_args=args)
        return mg, found

    def __call__(self, mg: Any, pass_args: Optional[Dict[str, Any]] = None, skip_passes: Sequence[Callable] = ()) -> Tuple[Any, List[Dict[str, Any]]]:
        given = dict(pass_args or {})
        known = [function.__name__ for group in self.pass_groups for function in group]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise Error(f"pass_args: there is no pass '{unknown[0]}' in this pipeline; it has {', '.join(known)}")
        self.pass_outputs = [{} for _ in self.pass_groups]
        for place, group in enumerate(self.pass_groups):
            mg, self.pass_outputs[place] = self._group(mg, group, given, skip_passes)
        return mg, self.pass_outputs


class CompressionPipeline(AutoPipeline):
    """Metadata, quantise, prune, in this order; of quantising and pruning what `pass_args` has arguments for."""

    def __init__(self, pass_list: Optional[Sequence[Any]] = None):
        from chop.passes import graph as passes

        super().__init__(pass_list or [[passes.init_metadata_analysis_pass, passes.add_common_metadata_analysis_pass,
                                        passes.quantize_transform_pass, passes.prune_transform_pass]])

    def needed(self, name: str, pass_args: Dict[str, Any]) -> bool:
        return name in pass_args or name not in ("quantize_transform_pass", "prune_transform_pass")


AutoPipelineForGraphCompression = CompressionPipeline


class AutoPipelineForEmitVerilog(AutoPipeline):
    """From a quantised graph to a design and its project."""

    def __init__(self) -> None:
        from chop.passes import graph as passes

        super().__init__([[passes.add_hardware_metadata_analysis_pass, passes.emit_verilog_top_transform_pass,
                           passes.emit_bram_transform_pass, passes.emit_internal_rtl_transform_pass, passes.emit_cocotb_transform_pass,
                           passes.emit_vivado_project_transform_pass]])


def __getattr__(name: str) -> Any:
    from chop._layout import absent_or_missing

    return absent_or_missing("chop.pipelines", name, [key for key in globals() if not key.startswith("_")])
