# SPDX-License-Identifier: Apache-2.0
# Quantisation-aware training with torch's own optimiser.
import torch
from common import dummy, loader, network

from chop.ir.graph.mase_graph import MaseGraph
from chop.passes.graph import add_common_metadata_analysis_pass, init_metadata_analysis_pass
from chop.passes.graph.transforms import quantize_transform_pass

mg = MaseGraph(model=network("jsc-tiny"))
mg, _ = init_metadata_analysis_pass(mg, None)
mg, _ = add_common_metadata_analysis_pass(mg, {"dummy_in": dummy()})
mg, _ = quantize_transform_pass(mg, {"by": "name", "seq_blocks_2": {"config": {
    "name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 6, "weight_frac_width": 4,
    "bias_width": 8, "bias_frac_width": 4}}})
before = mg.model.seq_blocks.get_submodule("2").weight.detach().clone()
optimizer, criterion, losses = torch.optim.Adam(mg.model.parameters(), lr=1e-2), torch.nn.CrossEntropyLoss(), []
mg.model.train()
for epoch in range(3):
    for xs, ys in loader():
        optimizer.zero_grad()
        loss = criterion(mg.model(xs), ys)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
tenth = len(losses) // 10
assert sum(losses[-tenth:]) < 0.9 * sum(losses[:tenth]), (losses[:3], losses[-3:])
assert not torch.equal(before, mg.model.seq_blocks.get_submodule("2").weight)
