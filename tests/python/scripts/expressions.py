# SPDX-License-Identifier: Apache-2.0
# Rules by expression, mixed formats, bypass, and mistakes that are told before anything is changed.
from common import dummy, network

import mase
from chop.ir.graph.mase_graph import MaseGraph
from chop.passes.graph import add_common_metadata_analysis_pass, init_metadata_analysis_pass
from chop.passes.graph.transforms import quantize_transform_pass

mg, _ = init_metadata_analysis_pass(MaseGraph(model=network("jsc-toy")), None)
mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": dummy()})
integer = {"name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4}
block = {"name": "block_fp", "data_in_width": 8, "data_in_exponent_width": 8, "data_in_exponent_bias": None,
         "data_in_block_size": [1, 4], "weight_width": 8, "weight_exponent_width": 8, "weight_exponent_bias": None,
         "weight_block_size": [1, 4]}
mg, _ = quantize_transform_pass(mg, {"by": "regex_name", r"seq_blocks_[25]": {"config": block},
                                     "default": {"config": dict(integer, bypass=True)}})
names = [type(m).__name__ for m in mg.model.modules()]
assert names.count("LinearBlockFP") == 2 and names.count("LinearInteger") == 1, names
assert mg.model.seq_blocks.get_submodule("8").bypass
mg.model(dummy()["x"]).sum().backward()
for bad in ({"by": "type", "liner": {"config": integer}}, {"by": "kind"}, {"by": "type", "linear": {"config": {"name": "integr"}}},
            {"by": "name", "seq_blocks_99": {"config": integer}}, {"by": "type", "linear": integer},
            {"by": "type", "linear": {"config": dict(integer, weigth_width=3)}}):
    try:
        quantize_transform_pass(mg, bad)
    except mase.Error:
        pass
    else:
        raise AssertionError(bad)
assert names == [type(m).__name__ for m in mg.model.modules()]
