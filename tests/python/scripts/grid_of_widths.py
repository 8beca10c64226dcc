# SPDX-License-Identifier: Apache-2.0
# Lab 3: widths of data and weights in a loop, one graph, one dict.
import copy

import torch
from common import dummy, loader, network

from chop.ir.graph.mase_graph import MaseGraph
from chop.passes.graph import add_common_metadata_analysis_pass, init_metadata_analysis_pass
from chop.passes.graph.analysis.quantization.calculate_avg_bits import calculate_avg_bits_mg_analysis_pass
from chop.passes.graph.transforms import quantize_transform_pass

mg = MaseGraph(model=network("jsc-tiny"))
mg, _ = init_metadata_analysis_pass(mg, None)
mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": dummy()})
pass_args = {"by": "type", "default": {"config": {"name": None}},
             "linear": {"config": {"name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8,
                                   "weight_frac_width": 4, "bias_width": 8, "bias_frac_width": 4}}}
search_spaces = []
for d_config in [(16, 8), (8, 6), (8, 4), (4, 2)]:
    for w_config in [(16, 8), (8, 6), (8, 4), (4, 2)]:
        config = pass_args["linear"]["config"]
        config["data_in_width"], config["data_in_frac_width"] = d_config
        config["weight_width"], config["weight_frac_width"] = w_config
        search_spaces.append(copy.deepcopy(pass_args))
outputs, x = [], next(iter(loader()))[0]
weight = mg.model.seq_blocks.get_submodule("2").weight.clone()
for config in search_spaces:
    before = copy.deepcopy(config)
    mg, _ = quantize_transform_pass(mg, config)
    assert config == before, "the caller's dict was changed"
    mg.model.eval()
    outputs.append(mg.model(x).detach())
    mg, bits = calculate_avg_bits_mg_analysis_pass(mg, {})
    assert bits == {"data_avg_bit": float(config["linear"]["config"]["data_in_width"]),
                    "w_avg_bit": float(config["linear"]["config"]["weight_width"])}, bits
assert len(outputs) == 16 and not torch.equal(outputs[0], outputs[-1])
assert torch.equal(mg.model.seq_blocks.get_submodule("2").weight, weight), "quantising again compounded"
mg, _ = quantize_transform_pass(mg, search_spaces[0])
mg.model.eval()
assert torch.equal(mg.model(x), outputs[0])
