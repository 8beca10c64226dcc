# SPDX-License-Identifier: Apache-2.0
from chop.ir.graph import MaseGraph, MaseMetadata

__all__ = ["MaseGraph", "MaseMetadata"]
