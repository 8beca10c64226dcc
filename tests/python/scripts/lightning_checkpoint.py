# SPDX-License-Identifier: Apache-2.0
# load_model of a Lightning checkpoint that torch wrote, and of a plain state dict.
import torch
from common import network

import mase
from chop.tools.checkpoint_load import load_model

model, other = network("jsc-toy"), network("jsc-toy")
state = {f"model.{key}": value for key, value in model.state_dict().items()}
torch.save({"state_dict": state, "epoch": 3, "global_step": 10, "pytorch-lightning_version": "2.1",
            "hyper_parameters": {"a": 1}, "optimizer_states": []}, "best.ckpt")
torch.save(model.state_dict(), "plain.pt")
x = torch.randn(4, 16)
for module in (model, other):
    module.eval()
assert not torch.equal(model(x), other(x))
for name, kind in (("best.ckpt", "pl"), ("plain.pt", "pt")):
    loaded = load_model(load_name=name, load_type=kind, model=network("jsc-toy")).eval()
    assert torch.equal(loaded(x), model(x)), name
try:
    load_model(load_name="best.ckpt", load_type="pl", model=network("jsc-tiny"))
except mase.Error as error:
    assert "not those of this model" in str(error)
else:
    raise AssertionError("weights of another network were taken")
