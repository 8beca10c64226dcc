# SPDX-License-Identifier: Apache-2.0
from chop.ir.graph.mase_graph import MaseGraph
from chop.ir.graph.mase_metadata import MaseMetadata

__all__ = ["MaseGraph", "MaseMetadata"]
