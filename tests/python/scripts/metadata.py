# SPDX-License-Identifier: Apache-2.0
# Metadata in structure and types, before and after quantising.
import torch
from common import network

from chop.ir.graph.mase_graph import MaseGraph
from chop.passes.graph import (add_common_metadata_analysis_pass, add_software_metadata_analysis_pass,
                               init_metadata_analysis_pass)
from chop.passes.graph.transforms import quantize_transform_pass

model = network("jsc-tiny")
model.train()
statistics = model.seq_blocks[0].running_mean.clone()
x = torch.randn(2, 16)
mg, _ = init_metadata_analysis_pass(MaseGraph(model=model), None)
mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": {"x": x}})
mg, _ = add_software_metadata_analysis_pass(mg, None)
assert model.training and torch.equal(model.seq_blocks[0].running_mean, statistics), "the network was changed"


def kinds(value):
    if isinstance(value, dict):
        return {key: kinds(item) if key != "value" else type(item) for key, item in value.items()}
    return value


def node(name):
    return [n for n in mg.fx_graph.nodes if n.name == name][0].meta["mase"].parameters


data = {"shape": [2, 16], "torch_dtype": torch.float32, "type": "float", "precision": [32], "value": torch.Tensor}
weight = {"type": "float", "precision": [32], "shape": [5, 16], "from": None, "value": torch.nn.Parameter}
stat = {"stat": {}}
expected = {"common": {"mase_type": "module_related_func", "mase_op": "linear",
                       "args": {"data_in_0": data, "weight": weight, "bias": dict(weight, shape=[5])},
                       "results": {"data_out_0": {"type": "float", "precision": [32], "shape": [2, 5],
                                                  "torch_dtype": torch.float32, "value": torch.Tensor}}},
            "software": {"args": {"data_in_0": stat, "weight": stat, "bias": stat}, "results": {"data_out_0": stat}}, "hardware": {}}
assert kinds(node("seq_blocks_2")) == expected, kinds(node("seq_blocks_2"))
assert list(node("seq_blocks_2")["common"]["args"]["weight"]) == ["type", "precision", "shape", "from", "value"]
norm = node("seq_blocks_0")
assert norm["common"]["mase_type"] == "module" and list(norm["common"]["args"]) == ["data_in_0", "weight", "bias"]
assert list(norm["software"]["args"]) == ["data_in_0", "weight", "bias", "running_mean", "running_var"]
for name in ("x", "output"):
    assert node(name)["common"]["args"] == {} and node(name)["hardware"] == {"is_implicit": True}
assert set(mg.meta["mase"].parameters["common"]) == {"nodes_in", "nodes_out", "args", "results"}
# An in-place layer does not overwrite what was recorded before it.
assert (node("seq_blocks_0")["common"]["results"]["data_out_0"]["value"] < 0).any()
node("seq_blocks_2")["software"]["args"]["weight"]["stat"]["kept"] = 1
mg, _ = quantize_transform_pass(mg, {"by": "type", "default": {"config": {"name": None}}, "linear": {"config": {
    "name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4,
    "bias_width": 8, "bias_frac_width": 4}}})
for name in ("data_in_0", "weight", "bias"):
    expected["common"]["args"][name] = dict(expected["common"]["args"][name], type="integer", precision=[8, 4])
expected["software"]["args"] = dict(expected["software"]["args"], weight={"stat": {"kept": 1}})
assert kinds(node("seq_blocks_2")) == expected, kinds(node("seq_blocks_2"))
