# SPDX-License-Identifier: Apache-2.0
"""Graphs, quantised ones too, through pickle, deepcopy and torch.save: network and metadata come back."""
import copy
import pickle

import torch

import chop.passes as passes
from chop.dataset import get_dataset_info
from chop.ir import MaseGraph
from chop.models import get_model

x = torch.randn(4, 16)
mg = MaseGraph(get_model("jsc-tiny", task="cls", dataset_info=get_dataset_info("jsc"), pretrained=False))
mg, _ = passes.init_metadata_analysis_pass(mg)
mg, _ = passes.add_common_metadata_analysis_pass(mg, {"dummy_in": {"x": x}})
again = pickle.loads(pickle.dumps(mg))
assert torch.equal(again.model(x), mg.model(x))
for a, b in zip(mg.fx_graph.nodes, again.fx_graph.nodes):
    assert b.meta["mase"].parameters["common"]["mase_op"] == a.meta["mase"].parameters["common"]["mase_op"]
config = {"config": {"name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4,
                     "bias_width": 8, "bias_frac_width": 4}}
again, _ = passes.quantize_transform_pass(again, {"by": "type", "default": {"config": {"name": None}}, "linear": config})
for one in (pickle.loads(pickle.dumps(again)), copy.deepcopy(again)):
    assert torch.equal(one.model(x), again.model(x)) and "Integer" in str(one.model)
torch.save(again.model, "model.pt")
loaded = torch.load("model.pt", **({"weights_only": False} if not torch.__version__.startswith("1.") else {}))
assert torch.equal(loaded(x), again.model(x))
