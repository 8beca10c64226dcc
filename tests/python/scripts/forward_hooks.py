# SPDX-License-Identifier: Apache-2.0
# Hooks on layers of mg.model, as third-party counters use them.
import torch
from common import dummy, network

from chop.ir.graph.mase_graph import MaseGraph
from chop.passes.graph import add_common_metadata_analysis_pass, init_metadata_analysis_pass
from chop.passes.graph.transforms import quantize_transform_pass

mg = MaseGraph(network("jsc-10x"))
mg, _ = init_metadata_analysis_pass(mg)
mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": dummy()})
mg, _ = quantize_transform_pass(mg, {"by": "type", "linear": {"config": {
    "name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4}}})
macs, shapes = [], []


def count(module, inputs, output):
    macs.append(output.numel() * module.in_features)
    shapes.append(tuple(output.shape))


handles = [m.register_forward_hook(count) for m in mg.model.modules() if isinstance(m, torch.nn.Linear)]
mg.model(dummy()["x"])
assert macs == [8 * 16 * 60, 8 * 60 * 32, 8 * 32 * 5], macs
assert shapes == [(8, 60), (8, 32), (8, 5)]
for handle in handles:
    handle.remove()
assert isinstance(mg.model, torch.fx.GraphModule)
