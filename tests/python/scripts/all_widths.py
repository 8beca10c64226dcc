# SPDX-License-Identifier: Apache-2.0
"""Every class of lab 3 in every width that a search draws, forwards and backwards."""
import torch

from chop.nn.quantized.modules.linear import (LinearBinary, LinearBinaryResidualSign, LinearBinaryScaling, LinearBlockFP, LinearBlockLog,
                                              LinearBlockMinifloat, LinearInteger, LinearLog, LinearMinifloatDenorm, LinearMinifloatIEEE)


def config_of(kind, width, frac, exponent):
    name, config = kind.__name__, {}
    for operand in ("data_in", "weight", "bias"):
        keys = {"width": width}
        if name == "LinearInteger":
            keys["frac_width"] = frac
        elif name.startswith("LinearMinifloat"):
            keys.update(exponent_width=exponent, exponent_bias=2 ** (exponent - 1) - 1)
        elif name == "LinearLog":
            keys["exponent_bias"] = 7
        elif name == "LinearBlockFP":
            keys.update(exponent_width=exponent, exponent_bias=None, block_size=[1, 16])
        elif name == "LinearBlockMinifloat":
            keys.update(exponent_width=exponent, exponent_bias_width=8, block_size=[1, 16])
        elif name == "LinearBlockLog":
            keys.update(exponent_bias_width=8, block_size=[1, 16])
        else:
            keys.update(stochastic=False, bipolar=True)
        config.update({f"{operand}_{key}": value for key, value in keys.items()})
    if "Binary" in name:
        config["binary_training"] = True
    return config


for kind in (LinearInteger, LinearMinifloatDenorm, LinearMinifloatIEEE, LinearLog, LinearBlockFP, LinearBlockMinifloat, LinearBlockLog,
             LinearBinary, LinearBinaryScaling, LinearBinaryResidualSign):
    for width in (8, 16, 24, 32):
        for exponent in (2, 4, 8):
            layer = kind(in_features=32, out_features=8, config=config_of(kind, width, width // 2, exponent))
            x = torch.randn(2, 5, 32, requires_grad=True)
            y = layer(x)
            y.sum().backward()
            assert torch.isfinite(y).all() and layer.weight.grad is not None, (kind.__name__, width, exponent)
