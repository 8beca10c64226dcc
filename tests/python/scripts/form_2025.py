# SPDX-License-Identifier: Apache-2.0
# The 2025/26 form: passes from chop.passes, metadata by the constructor, deepsetattr, a pipeline, checkpoints.
import copy
import random

import torch
import torch.nn as nn
from common import dummy, loader, network

import chop.passes as passes
from chop import MaseGraph
from chop.actions.accelerate_train import train as accelerate_train
from chop.actions.train import train
from chop.ir.graph import MaseGraph as FromIr
from chop.nn.modules import Identity
from chop.nn.quantized.modules import LinearInteger, LinearMinifloatIEEE
from chop.passes.module import report_trainable_parameters_analysis_pass
from chop.pipelines.compression import CompressionPipeline
from chop.tools import get_logger
from chop.tools.huggingface import get_trainer
from chop.tools.utils import deepsetattr

logger = get_logger(__name__)
logger.setLevel("INFO")
INTEGER = {f"{operand}_{key}": value for operand in ("data_in", "weight", "bias") for key, value in (("width", 8), ("frac_width", 4))}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 5)
        self.drop = Identity("any", argument="s")

    def forward(self, x):
        x = torch.flatten(x, start_dim=1, end_dim=-1)
        x = torch.nn.functional.relu(self.fc1(x))
        x = x + torch.relu(self.fc2(self.drop(x)))
        return self.fc3(x)


assert FromIr is MaseGraph
model = MLP()
mg = MaseGraph(model, skip_init_metadata=True)
assert not any("mase" in node.meta for node in mg.fx_graph.nodes)
mg = MaseGraph(model, add_metadata_args={"dummy_in": dummy()})
assert [n for n in mg.fx_graph.nodes if n.name == "fc1"][0].meta["mase"]["common"]["args"]["weight"]["shape"] == [32, 16]

mg = MaseGraph(model)
mg, _ = passes.init_metadata_analysis_pass(mg)
mg, _ = passes.add_common_metadata_analysis_pass(mg, {"dummy_in": dummy()})
mg, _ = passes.report_graph_analysis_pass(mg, pass_args={"file_name": "report.txt"})
_, _ = report_trainable_parameters_analysis_pass(mg.model)
original = copy.deepcopy(mg)
config = {"by": "type", "default": {"config": {"name": None}}, "linear": {"config": {"name": "integer", **INTEGER}}}
mg, info = passes.quantize_transform_pass(mg, pass_args=config)
mg, _ = passes.summarize_quantization_analysis_pass(mg, {"original_graph": original, "save_dir": "summary"})
passes.summarize_quantization_analysis_pass(ori_graph=original, graph=mg, save_dir="summary")
assert all(isinstance(layer, nn.Linear) for layer in (mg.model.fc1, mg.model.fc2)) and type(mg.model.fc1).__name__ == "LinearInteger"

optimizer, losses = torch.optim.AdamW(mg.model.parameters(), lr=1e-2), []
mg.model.train()
for epoch in range(2):
    for xs, ys in loader():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(mg.model(xs), ys)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
tenth = len(losses) // 10
assert sum(losses[-tenth:]) < 0.95 * sum(losses[:tenth]), (losses[:3], losses[-3:])

mg.export("trained")
x = dummy()["x"]
again = MaseGraph.from_checkpoint("trained")
torch.testing.assert_close(again.model.eval()(x), mg.model.eval()(x))

# A random choice of layers, as in the search tutorial.
random.seed(1)
trial = copy.deepcopy(original).model
for name, layer in list(trial.named_modules()):
    if isinstance(layer, nn.Linear):
        kind, keys = random.choice([(nn.Linear, {}), (LinearInteger, {"config": INTEGER}), (LinearMinifloatIEEE, {"config": {
            f"{operand}_{key}": value for operand in ("data_in", "weight", "bias")
            for key, value in (("width", 8), ("exponent_width", 4), ("exponent_bias", 7))}})])
        new = kind(in_features=layer.in_features, out_features=layer.out_features, **keys)
        new.weight.data, new.bias.data = layer.weight.data, layer.bias.data
        deepsetattr(trial, name, new)
assert len({type(getattr(trial, name)) for name in ("fc1", "fc2", "fc3")}) > 1
trial(x).sum().backward()

pipeline = CompressionPipeline()
mg, outputs = pipeline(MaseGraph(model), pass_args={
    "add_common_metadata_analysis_pass": {"dummy_in": dummy()}, "quantize_transform_pass": config,
    "prune_transform_pass": {"weight": {"sparsity": 0.5, "method": "l1-norm", "scope": "local"},
                             "activation": {"sparsity": 0.0, "method": "l1-norm", "scope": "local"}}})
assert abs(float((mg.model.fc2.weight == 0).float().mean()) - 0.5) < 0.01

small = network("jsc-tiny")
from common import data_module  # noqa: E402

before = small.state_dict()["seq_blocks.2.weight"].clone()
run = train(model=small, model_info=None, data_module=data_module, dataset_info=None, task="cls", optimizer="adam",
            learning_rate=1e-3, weight_decay=0.0, scheduler_args={"t_max": 2, "eta_min": 1e-5},
            plt_trainer_args={"max_epochs": 2, "devices": 1, "accelerator": "auto", "precision": "32", "fast_dev_run": False},
            auto_requeue=False, save_path=None, visualizer=None, load_name=None, load_type="")
assert run.epochs == 2 and not torch.equal(before, small.state_dict()["seq_blocks.2.weight"])
run = accelerate_train(small, "cls", data_module, "adam", max_epochs=1, save_path=None)
assert run.epochs == 1
for call in (lambda: get_trainer(small, None, None), lambda: accelerate_train(small, "cls", data_module, "adam", 1, num_warmup_steps=9)):
    try:
        call()
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        raise AssertionError("what is not there was not told")
