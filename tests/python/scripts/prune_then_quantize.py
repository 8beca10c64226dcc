# SPDX-License-Identifier: Apache-2.0
"""A convolutional network of one's own, pruned, quantised, trained on; the other way round, exported and taken up again."""
import copy

import torch
from torch import nn

import chop.passes as passes
from chop.ir import MaseGraph


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.bn, self.p, self.l = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.MaxPool2d(2), nn.Linear(128, 10)

    def forward(self, x):
        return self.l(torch.flatten(self.p(torch.relu(self.bn(self.c(x)))), 1))


def graph():
    mg = MaseGraph(Net())
    mg, _ = passes.init_metadata_analysis_pass(mg)
    return passes.add_common_metadata_analysis_pass(mg, {"dummy_in": {"x": x}})[0]


def prune(mg, sparsity, method, scope):
    return passes.prune_transform_pass(mg, {"weight": {"sparsity": sparsity, "method": method, "scope": scope},
                                            "activation": {"sparsity": 0.2, "method": method, "scope": "local"}})[0]


torch.manual_seed(0)
x = torch.randn(4, 1, 8, 8)
integer = {"config": {"name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4,
                      "bias_width": 8, "bias_frac_width": 4}}
mg = prune(graph(), 0.5, "l1-norm", "local")
mg, _ = passes.quantize_transform_pass(mg, {"by": "type", "default": {"config": {"name": None}}, "linear": integer, "conv2d": integer})
optimizer = torch.optim.Adam(mg.model.parameters(), 1e-3)
for _ in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(mg.model(x), torch.tensor([0, 1, 2, 3])).backward()
    optimizer.step()
assert (mg.model.l.get_quantized_weight() == 0).float().mean() >= 0.49

keys = {f"{operand}_{key}": value for operand in ("data_in", "weight", "bias")
        for key, value in (("width", 8), ("exponent_width", 4), ("exponent_bias", 7))}
mg, _ = passes.quantize_transform_pass(graph(), {"by": "name", "default": {"config": {"name": None}},
                                                 "l": {"config": {"name": "minifloat_ieee", **keys}}})
mg = prune(mg, 0.25, "random", "global")
mg.model.eval()
assert torch.equal(copy.deepcopy(mg.model)(x), mg.model(x))
mg.export("pruned")
again = MaseGraph.from_checkpoint("pruned")
again.model.eval()
assert torch.equal(again.model(x), mg.model(x))
