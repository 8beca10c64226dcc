# SPDX-License-Identifier: Apache-2.0
# summarize_quantization in the 2024 and the 2025 form.
import os

from common import dummy, network

from chop.ir.graph.mase_graph import MaseGraph
from chop.passes.graph import (add_common_metadata_analysis_pass, init_metadata_analysis_pass,
                               report_node_meta_param_analysis_pass)
from chop.passes.graph.transforms import quantize_transform_pass, summarize_quantization_analysis_pass

model = network("jsc-tiny")


def graph():
    mg, _ = init_metadata_analysis_pass(MaseGraph(model=model), None)
    return add_common_metadata_analysis_pass(mg, {"dummy_in": dummy()})[0]


ori_mg, mg = graph(), graph()
mg, _ = quantize_transform_pass(mg, {"by": "type", "default": {"config": {"name": None}}, "linear": {"config": {
    "name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4,
    "bias_width": 8, "bias_frac_width": 4}}})
summarize_quantization_analysis_pass(ori_mg, mg, save_dir="a")
summarize_quantization_analysis_pass(mg, {"save_dir": "b", "original_graph": ori_mg})
for name in ("quantize_table.csv", "quantize_histogram.csv"):
    with open(os.path.join("a", name)) as first, open(os.path.join("b", name)) as second:
        assert first.read() == second.read()
report_node_meta_param_analysis_pass((mg, {}), None)  # a pair, and no arguments
