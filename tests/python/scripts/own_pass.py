# SPDX-License-Identifier: Apache-2.0
# Lab 4: a pass of one's own that puts wider layers into the graph with setattr.
import torch
from common import dummy, network
from torch import nn

from chop.ir.graph.mase_graph import MaseGraph
from chop.passes.graph import PASSES, init_metadata_analysis_pass, register_pass, report_graph_analysis_pass
from chop.passes.graph.utils import get_parent_name

mg = MaseGraph(model=network("jsc-toy"))
mg, _ = init_metadata_analysis_pass(mg, None)


def instantiate_linear(in_features, out_features, bias):
    return nn.Linear(in_features=in_features, out_features=out_features, bias=bias is not None)


def redefine_linear_transform_pass(graph, pass_args=None):
    main_config = pass_args.pop("config")
    default = main_config.pop("default", None)
    i = 0
    for node in graph.fx_graph.nodes:
        i += 1
        config = main_config.get(node.name, default)["config"]
        name = config.get("name", None)
        if name is not None:
            ori_module = graph.modules[node.target]
            in_features, out_features, bias = ori_module.in_features, ori_module.out_features, ori_module.bias
            if name == "output_only":
                out_features = out_features * config["channel_multiplier"]
            elif name == "input_only":
                in_features = in_features * config["channel_multiplier"]
            new_module = instantiate_linear(in_features, out_features, bias)
            parent_name, name = get_parent_name(node.target)
            setattr(graph.modules[parent_name], name, new_module)
    return graph, {}


multiplier = 2
config = {"default": {"config": {"name": None}},
          "seq_blocks_5": {"config": {"name": "output_only", "channel_multiplier": multiplier}},
          "seq_blocks_8": {"config": {"name": "input_only", "channel_multiplier": multiplier}}}
setattr(mg.modules["seq_blocks"], "6", nn.BatchNorm1d(16))
mg, _ = redefine_linear_transform_pass(graph=mg, pass_args={"config": config})
_ = report_graph_analysis_pass(mg, {"file_name": "graph.txt"})
assert "Linear(in_features=8, out_features=16, bias=True)" in open("graph.txt").read()
assert mg.model(dummy()["x"]).shape == torch.Size([8, 5])
register_pass(redefine_linear_transform_pass)
assert "redefine_linear" in PASSES and PASSES["redefine_linear"] is redefine_linear_transform_pass
