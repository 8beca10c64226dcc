# SPDX-License-Identifier: Apache-2.0
# w_quantizer(weight) by hand, layers made by hand, both module paths, every format of a Linear.
import torch

import mase
from chop.nn.quantized.modules.linear import LinearInteger as LinearInteger25
from chop.passes.graph.transforms.quantize.quantized_modules.linear import (LinearBlockFP, LinearInteger, LinearLog,
                                                                            LinearMinifloatDenorm, LinearMinifloatIEEE)
from chop.passes.graph.transforms.quantize.quantizers import integer_quantizer
from chop.passes.graph.transforms.quantize.quantizers.binary import binary_quantizer

assert LinearInteger is LinearInteger25 and issubclass(LinearInteger, torch.nn.Linear)
config = {"data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4, "bias_width": 8,
          "bias_frac_width": 4}
layer = LinearInteger(3, 2, bias=True, config=config)
with torch.no_grad():
    layer.weight.copy_(torch.tensor([[.11, -.26, .5], [1.03, -2, .31]]))
    layer.bias.copy_(torch.tensor([.04, -.1]))
assert layer(torch.tensor([.5, 1.27, -3.3])).tolist() == [-1.84375, -3.16015625]
quantized = layer.w_quantizer(layer.weight)
assert torch.equal(quantized * 16, torch.round(quantized * 16)) and not torch.equal(quantized, layer.weight)
quantized.sum().backward()
assert torch.equal(layer.weight.grad, torch.ones(2, 3))
assert torch.equal(integer_quantizer(layer.weight, 8, 4), quantized)
assert layer.config is config and layer.bypass is False and layer.pruning_masks is None
assert binary_quantizer(torch.tensor([0.3, -2.0]), bipolar=True).tolist() == [1.0, -1.0]
for kind, keys in ((LinearMinifloatIEEE, ("width", "exponent_width", "exponent_bias")), (LinearMinifloatDenorm, ("width", "exponent_width", "exponent_bias")),
                   (LinearLog, ("width", "exponent_bias")), (LinearBlockFP, ("width", "exponent_width", "exponent_bias", "block_size"))):
    values = {"width": 8, "exponent_width": 4, "exponent_bias": None, "block_size": [1, 4]}
    made = kind(8, 4, config={f"{o}_{key}": values[key] for o in ("data_in", "weight", "bias") for key in keys})
    assert made(torch.randn(5, 8)).shape == (5, 4), kind
try:
    LinearInteger(3, 2, config={"data_in_width": 8, "wieght_width": 8})
except mase.Error as error:
    assert "did you mean 'weight_width'" in str(error), error
else:
    raise AssertionError("a misspelt key was taken")
