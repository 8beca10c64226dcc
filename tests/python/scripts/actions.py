# SPDX-License-Identifier: Apache-2.0
# actions.train and actions.test with their fourteen arguments as a dict, and a search.
import os

import torch
from common import data_module, network

import chop.actions as actions
from chop.models import get_model_info

model = network("jsc-tiny")
before = model.seq_blocks[2].weight.detach().clone()
args = {"model": model, "model_info": get_model_info("jsc-tiny"), "data_module": data_module,
        "dataset_info": data_module.dataset_info, "task": "cls", "optimizer": "adam", "learning_rate": 1e-2,
        "weight_decay": 0, "plt_trainer_args": {"max_epochs": 2, "max_steps": -1, "devices": 1, "accelerator": "cpu"},
        "auto_requeue": False, "save_path": "out/run", "visualizer": None, "load_name": None, "load_type": None}
run = actions.train(**args)
assert run.status == "finished" and os.path.exists("out/run/software/training_ckpts/best.ckpt")
assert not torch.equal(before, model.seq_blocks[2].weight)
result = actions.test(**args)
assert abs(result.accuracy - run.test.accuracy) < 1e-9 and result.accuracy > 0.3
model.eval()
xs, ys = zip(*data_module.test_dataloader())
accuracy = (model(torch.cat(xs)).argmax(1) == torch.cat(ys)).double().mean().item()
assert abs(accuracy - result.accuracy) < 5e-3, (accuracy, result.accuracy)
found = actions.search(model, get_model_info("jsc-tiny"), "cls", data_module.dataset_info, data_module, {"search": {
    "search_space": {"name": "graph/quantize/mixed_precision_ptq", "setup": {"by": "name"}, "seed": {
        "default": {"config": {"name": [None]}},
        "seq_blocks_2": {"config": {"name": ["integer"], "data_in_width": [4, 8], "data_in_frac_width": [None],
                                    "weight_width": [2, 8], "weight_frac_width": [None]}}}},
    "strategy": {"name": "optuna", "setup": {"sampler": "brute-force"},
                 "metrics": {"accuracy": {"scale": 1.0, "direction": "maximize"},
                             "average_bitwidth": {"scale": 0.2, "direction": "minimize"}}}}}, None, "auto")
assert len(found.trials) == 4, found
