# SPDX-License-Identifier: Apache-2.0
"""What a quantised network costs, with batch norms behind rounded layers and one too large to unroll."""
import warnings

import mase

graph = mase.load("jsc-tiny").quantize(linear=mase.formats.integer(8, 4))
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    cost = graph.estimate()
assert cost.luts > 0
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert mase.emit(graph, "design", prove=False).estimate.luts == cost.luts
    folded = mase.load("jsc-toy").quantize(linear=mase.formats.integer(6, 4)).estimate()
    assert any("batch norms were folded" in note for note in folded.notes)
    assert "count" in mase.load("lfc").quantize(linear=mase.formats.integer(8, 6)).estimate().method
