#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""LinearInteger beside the same composition in torch: one layer at batch 256, forward, and forward with
the gradients of input, weight and bias.

    ch python bench/python_layers.py

`original` is composed as MASE composes it: a function on the tape for each operand that multiplies,
rounds, clamps and divides, rounding and clamping being functions of their own. `lean` is the shortest
composition that computes the same. Both sides take turns; the best of all rounds counts."""
import argparse
import time

import torch

from mase.torch_layers import class_named

torch.set_num_threads(1)
CONFIG = {f"{operand}_{key}": value for operand in ("data_in", "weight", "bias")
          for key, value in (("width", 8), ("frac_width", 4))}
SIZES = ((16, 60), (60, 32), (32, 5), (64, 64), (256, 256))
JSC_10X = 3  # the first sizes are this network's layers


class Round(torch.autograd.function.InplaceFunction):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


class Clamp(torch.autograd.function.InplaceFunction):
    @staticmethod
    def forward(ctx, x, low, high):
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, grad):
        return grad.clone(), None, None


class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, width, frac):
        return Clamp.apply(Round.apply(x.mul(2**frac)), -2**(width - 1), 2**(width - 1) - 1).div(2**frac)

    @staticmethod
    def backward(ctx, grad):
        return grad.clone(), None, None


class Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, low, high):
        return torch.clamp(torch.round(x * scale), low, high) / scale

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None, None


class Original(torch.nn.Linear):
    def forward(self, x):
        return torch.nn.functional.linear(*(Nested.apply(v, 8, 4) for v in (x, self.weight, self.bias)))


class Lean(torch.nn.Linear):
    def forward(self, x):
        return torch.nn.functional.linear(*(Flat.apply(v, 16.0, -128.0, 127.0) for v in (x, self.weight, self.bias)))


def best(functions, rounds, repeats):
    """Microseconds of each, in turns."""
    times = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            for _ in range(repeats):
                start = time.perf_counter()
                function()
                times[i] = min(times[i], time.perf_counter() - start)
    return [1e6 * t for t in times]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    head = f"{'ours us':>10}{'original':>10}{'ratio':>8}{'lean':>9}{'ratio':>8}"
    print(f"{'batch 256':12}{'forward:':>10}{head[10:]}   {'with gradients:':>16}{head[10:]}")
    sums = [[0.0] * 3, [0.0] * 3]
    for number, (width, out) in enumerate(SIZES):
        torch.manual_seed(0)
        layers = [class_named("LinearInteger")(width, out, config=CONFIG), Original(width, out), Lean(width, out)]
        for layer in layers[1:]:
            layer.load_state_dict(layers[0].state_dict())
        x, up = torch.randn(256, width, requires_grad=True), torch.randn(256, out)

        def step(layer):
            x.grad = layer.weight.grad = layer.bias.grad = None
            layer(x).backward(up)

        for layer in layers:
            assert torch.equal(layer(x), layers[1](x))
        repeats = 300 if width < 256 else 30
        text = f"{f'{width} x {out}':12}"
        for part, times in enumerate((best([lambda m=m: m(x) for m in layers], rounds, repeats),
                                      best([lambda m=m: step(m) for m in layers], rounds, repeats))):
            text += line(times) + "   " + ("      " if part == 0 else "")
            if number < JSC_10X:
                sums[part] = [a + b for a, b in zip(sums[part], times)]
        print(text.rstrip())
    print(f"{'jsc-10x':12}{line(sums[0])}         {line(sums[1])}")


def line(times):
    ours, original, lean = times
    return f"{ours:10.1f}{original:10.1f}{original / ours:7.2f}x{lean:9.1f}{lean / ours:7.2f}x"


if __name__ == "__main__":
    main()
