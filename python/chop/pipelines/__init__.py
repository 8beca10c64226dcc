# SPDX-License-Identifier: Apache-2.0
"""Several passes, one after another, with arguments by function name."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple


class AutoPipelineForGraphCompression:
    """Metadata, quantise, prune, in this order; a pass without arguments in `pass_args` is left out."""

    def __init__(self, pass_list: Optional[List[Callable]] = None):
        from chop.passes import graph as passes

        self.passes = pass_list or [passes.init_metadata_analysis_pass, passes.add_common_metadata_analysis_pass,
                                    passes.quantize_transform_pass, passes.prune_transform_pass]
        self.pass_outputs: Dict[str, Any] = {}

    def __call__(self, mg: Any, pass_args: Optional[Dict[str, Any]] = None, skip_passes: Tuple = ()) -> Tuple[Any, dict]:
        args = pass_args or {}
        for function in self.passes:
            name = function.__name__
            needed = name in ("quantize_transform_pass", "prune_transform_pass")
            if function in skip_passes or (needed and name not in args):
                continue
            mg, self.pass_outputs[name] = function(mg, args.get(name))
        return mg, self.pass_outputs


class CompressionPipeline(AutoPipelineForGraphCompression):
    pass
