# SPDX-License-Identifier: Apache-2.0
# Pruning, training with the zeros kept, and copies of graphs.
import torch
from common import dummy, loader, network

from chop.ir.graph.mase_graph import MaseGraph
from chop.passes.graph import (add_common_metadata_analysis_pass, add_pruning_metadata_analysis_pass,
                               add_software_metadata_analysis_pass, init_metadata_analysis_pass,
                               prune_detach_hook_transform_pass, prune_transform_pass)
from chop.passes.graph.utils import deepcopy_mase_graph

mg, _ = init_metadata_analysis_pass(MaseGraph(model=network("jsc-10x")))
mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": dummy()})
mg, _ = add_software_metadata_analysis_pass(mg)
whole = deepcopy_mase_graph(mg)
mg, _ = prune_transform_pass(mg, {"weight": {"sparsity": 0.5, "method": "l1-norm", "scope": "local", "granularity": "elementwise"},
                                  "activation": {"sparsity": 0.0, "method": "random", "scope": "local", "granularity": "elementwise"}})
layer = mg.model.seq_blocks.get_submodule("5")
zeros = layer.weight == 0
assert zeros.float().mean().item() == 0.5
_, found = add_pruning_metadata_analysis_pass(mg, {"dummy_in": dummy(), "add_value": False})
assert found["seq_blocks_5"]["weight_sparsity"] == 0.5
optimizer = torch.optim.SGD(mg.model.parameters(), lr=0.1)
for _, (xs, ys) in zip(range(20), loader()):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(mg.model(xs), ys).backward()
    optimizer.step()
assert torch.equal(layer.weight == 0, zeros)
mg.model.eval()
x = dummy()["x"]
assert torch.allclose(mg.native()(x), mg.model(x).detach(), atol=1e-5)
mg, _ = prune_detach_hook_transform_pass(mg)
assert "seq_blocks.5.weight" in mg.model.state_dict() and torch.equal(mg.model.seq_blocks.get_submodule("5").weight == 0, zeros)
assert not (whole.model.seq_blocks.get_submodule("5").weight == 0).any()
node = [n for n in whole.fx_graph.nodes if n.name == "seq_blocks_5"][0]
assert node.meta["mase"].module is whole.model.seq_blocks.get_submodule("5")
assert node.meta["mase"].parameters["common"]["args"]["weight"]["value"] is whole.model.seq_blocks.get_submodule("5").weight
