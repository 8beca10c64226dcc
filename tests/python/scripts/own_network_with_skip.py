# SPDX-License-Identifier: Apache-2.0
# A network of one's own with functions, a skip connection, and an operation that stays torch's.
import torch
import torch.nn.functional as F
from torch import nn

import mase
from chop import MaseGraph
from chop.passes import (add_common_metadata_analysis_pass, add_software_metadata_analysis_pass, init_metadata_analysis_pass,
                         profile_statistics_analysis_pass, quantize_transform_pass)
from chop.passes.graph.utils import get_mase_op, get_mase_type


class Net(nn.Module):
    def __init__(self, strange=False):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 5)
        self.strange = strange

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = x + F.relu(self.fc2(x))
        if self.strange:
            x = torch.cummax(x, 1)[0]
        return torch.nn.functional.relu(self.fc3(x))


x = torch.randn(8, 16)
for strange in (False, True):
    mg = MaseGraph(Net(strange))
    mg, _ = init_metadata_analysis_pass(mg)
    mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": {"x": x}})
    mg, _ = add_software_metadata_analysis_pass(mg)
    kinds = {node.name: (get_mase_type(node), get_mase_op(node)) for node in mg.fx_graph.nodes}
    assert kinds["fc1"] == ("module_related_func", "linear") and kinds["add"] == ("builtin_func", "add"), kinds
    assert kinds["relu"] == ("module_related_func", "relu")
    mg, _ = profile_statistics_analysis_pass(mg, {"by": "type", "target_activation_nodes": ["linear"],
                                                  "activation_statistics": {"range_min_max": {"dims": "all"}},
                                                  "input_generator": [{"x": x}], "num_samples": 8})
    config = {"name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4}
    mg, _ = quantize_transform_pass(mg, {"by": "type", "linear": {"config": config}, "relu": {"config": config},
                                         "add": {"config": config}})
    targets = [getattr(node.target, "__name__", node.target) for node in mg.fx_graph.nodes]
    assert "relu_integer" in targets and "add_integer" in targets, targets
    y = mg.model(x)
    y.sum().backward()
    assert all(p.grad is not None for p in mg.model.parameters())
    if strange:
        try:
            mg.native()
        except mase.Error as error:
            assert "cummax" in str(error)
        else:
            raise AssertionError("an operation that is not there was converted")
    else:
        assert torch.allclose(mg.native()(x), y.detach(), atol=1e-6)
