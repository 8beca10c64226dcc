# SPDX-License-Identifier: Apache-2.0
"""As random_designs.py, with what that leaves out: small floats, powers of two, blocks and signs in the place of fixed point,
convolutions, and every style and target. The models are written from the formats' definitions (docs/formats.md) in exact
fractions and share nothing with the library."""
import math
import os
import sys
from fractions import Fraction

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import random
import random_designs
from random_designs import ACTIVATIONS, Format, Network

STYLES = [[], ["--target", "xcup"], ["--argmax"], ["--levels", "4"], ["--levels", "6", "--valid", "--target", "xcup"],
          ["--style", "stream", "--cycles", "1"], ["--style", "stream", "--cycles", "8"], ["--style", "lut"]]


def exponent_of(x):
    """floor(log2(x)) of a positive fraction."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2)**guess <= x else guess - 1


def nearest_even(x):
    below = math.floor(x)
    rest = x - below
    return below + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1))


def to_grid(x, step):
    return nearest_even(x / step) * step


class Float:
    """Mantissa bits behind a leading one, exponents from `least` on, below that the same step; saturates."""

    def __init__(self, mantissa, least, largest):
        self.mantissa, self.least, self.largest = mantissa, least, largest

    def rounded(self, x):
        if x == 0:
            return x
        exponent = max(exponent_of(abs(x)), self.least)
        value = min(to_grid(abs(x), Fraction(2)**(exponent - self.mantissa)), self.largest)
        return value if x > 0 else -value

    def rounded_all(self, values):
        return [self.rounded(x) for x in values]


class Blocks:
    """Blocks of so many values whose exponent is that of their largest."""

    def __init__(self, size, bits, carries, least, most):
        self.size, self.bits, self.carries, self.least, self.most = size, bits, carries, least, most

    def rounded_all(self, values):
        result = []
        for first in range(0, len(values), self.size):
            block = values[first:first + self.size]
            largest = max(abs(x) for x in block)
            # Whole numbers of so many bits and a sign; the largest has them all.
            top = 2**self.bits - 1
            point = (exponent_of(largest) if largest else -1000) - (self.bits - 1)
            point = min(max(point, self.least), self.most)
            if self.carries and largest and nearest_even(largest / Fraction(2)**point) > top:
                point = min(point + 1, self.most)
            step = Fraction(2)**point
            result += [max(min(nearest_even(x / step), top), -top) * step for x in block]
        return result


class Signs:
    def rounded_all(self, values):
        return [Fraction(1) if x >= 0 else Fraction(-1) for x in values]


def family(draw):
    """(name, maker of an operand's format and its keys)."""
    name = draw.choice(["minifloat_ieee", "minifloat_denorm", "power_of_two", "block_fp", "mxint", "binary"])

    def operand():
        if name == "binary":
            return Signs(), {"bipolar": True, "stochastic": False}
        if name == "block_fp":
            width, size = draw.randint(2, 7), draw.choice([1, 2, 4])
            exponent = draw.choice([2, 3, 4, 4, 8])
            bias = 2**(exponent - 1) - 1
            return (Blocks(size, width - 1, True, -bias - (width - 1), min(2**exponent - 1 - bias, 128) - (width - 1)),
                    {"width": width, "exponent_width": exponent, "block_size": [1, size]})
        if name == "mxint":
            width, size = draw.randint(2, 7), draw.choice([1, 2, 4])
            scale = draw.choice([2, 3, 4, 4, 8])
            most = 2**(scale - 1) - 1
            return (Blocks(size, width - 1, False, -most - (width - 2), most - (width - 2)),
                    {"width": width, "block_size": size, "scale_bits": scale})
        if name == "power_of_two":
            width = draw.randint(2, 4)
            bias = 2**(width - 2) - 1
            return Float(0, 1 - bias, Fraction(2)**(2**(width - 1) - 1 - bias)), {"width": width}
        exponent = draw.randint(2, 3)
        width = exponent + 1 + draw.randint(1, 3)
        mantissa, bias = width - exponent - 1, 2**(exponent - 1) - 1
        top = 2**exponent - 1 - bias
        keys = {"width": width, "exponent_width": exponent}
        if name == "minifloat_ieee":
            return Float(mantissa, 1 - bias, (2 - Fraction(1, 2**mantissa)) * Fraction(2)**top), keys
        return Float(mantissa - 1, -bias - 1, (1 - Fraction(1, 2**mantissa)) * Fraction(2)**top), keys

    return name, operand


def toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


class Any(Network):
    """Perceptrons in these formats."""

    def __init__(self, seed):
        draw = random.Random(f"formats {seed}")
        self.draw, self.style = draw, draw.choice(STYLES)
        small = "lut" in self.style
        sizes = [draw.randint(1, 3 if small else 5)]
        self.layers, self.blocks, self.tables = [], [], []
        for _ in range(draw.randint(1, 2)):
            sizes.append(draw.randint(1, 3 if small else 4))
            place = len(self.blocks)
            name, operand = family(draw)
            bias = draw.random() < 0.7
            formats, lines = {}, [f'name = "{name}"']
            for which in ("data_in", "weight", "bias") + (("data_out",) if draw.random() < 0.3 else ()):
                formats[which], keys = operand()
                lines += [f"{which}_{key} = {toml(value)}" for key, value in keys.items()]
            self.blocks.append(f'{{type = "Linear", out_features = {sizes[-1]}, bias = {str(bias).lower()}}}')
            activation = draw.choice(list(ACTIVATIONS))
            if activation:
                self.blocks.append(activation)
            weights = [[self.number() for _ in range(sizes[-2])] for _ in range(sizes[-1])]
            biases = [self.number() for _ in range(sizes[-1])] if bias else None
            self.layers.append((place, formats, weights, biases, ACTIVATIONS[activation]))
            self.tables.append((place, lines))
        self.inputs = sizes[0]

    def config(self):
        lines = ["[passes.quantize]", 'by = "name"', "[passes.quantize.default.config]", 'name = "NA"']
        for place, own in self.tables:
            lines += [f'[passes.quantize."seq_blocks.{place}".config]'] + own
        return lines

    def outputs(self, row):
        for _, formats, weights, biases, activation in self.layers:
            row = formats["data_in"].rounded_all(row)
            rounded = [formats["weight"].rounded_all([Fraction(w) for w in neuron]) for neuron in weights]
            sums = [sum((w * x for w, x in zip(neuron, row)), Fraction(0)) for neuron in rounded]
            if biases is not None:
                sums = [a + b for a, b in zip(sums, formats["bias"].rounded_all([Fraction(b) for b in biases]))]
            if "data_out" in formats:
                sums = formats["data_out"].rounded_all(sums)
            row = [activation(total) for total in sums]
        if "--argmax" in self.style:
            return [Fraction(max(range(len(row)), key=lambda i: (row[i], -i)))]
        return row

    def given(self, ports):
        """An input row: values that the first layer's format has, as codes of the ports."""
        values = []
        for port in ports:
            code = self.draw.choice([port["lowest"], port["highest"], self.draw.randint(port["lowest"], port["highest"])])
            values.append(Fraction(code) / Fraction(2)**port["fraction_bits"])
        values = self.layers[0][1]["data_in"].rounded_all(values)
        codes = [value * Fraction(2)**port["fraction_bits"] for value, port in zip(values, ports)]
        if any(code.denominator != 1 or not port["lowest"] <= code <= port["highest"] for code, port in zip(codes, ports)):
            return None, None
        return values, [int(code) for code in codes]


class Planes(Any):
    """A convolution or two over a small plane in fixed point, a pool perhaps, and a linear layer."""

    def __init__(self, seed):
        draw = random.Random(f"planes {seed}")
        self.draw = draw
        self.style = draw.choice([[], ["--target", "xcup"], ["--levels", "8"], ["--style", "stream", "--cycles", "4"],
                                  ["--style", "stream", "--cycles", "64"]])
        self.channels, self.height, self.width = draw.randint(1, 2), draw.randint(3, 5), draw.randint(3, 5)
        self.inputs = self.channels * self.height * self.width
        widths = draw.choice([[2, 3], [3, 4, 5], [4, 6]])
        self.blocks, self.steps, self.tables, self.layers = [], [], [], []
        shape = (self.channels, self.height, self.width)
        for _ in range(draw.randint(1, 2)):
            kernel, stride, padding = draw.randint(1, min(3, *shape[1:])), draw.choice([1, 1, 2]), draw.choice([0, 0, 1])
            out = draw.randint(1, 2)
            formats = self.formats(widths)
            weights = [[[[self.number() for _ in range(kernel)] for _ in range(kernel)] for _ in range(shape[0])] for _ in range(out)]
            biases = [self.number() for _ in range(out)]
            self.add("Conv2d", f"out_channels = {out}, kernel_size = {kernel}, stride = {stride}, padding = {padding}", formats,
                     ("conv", formats, weights, biases, kernel, stride, padding))
            shape = (out, *((size + 2 * padding - kernel) // stride + 1 for size in shape[1:]))
            self.blocks.append('{type = "ReLU"}')
            self.steps.append(("relu",))
            if min(shape[1:]) >= 2 and draw.random() < 0.3:
                self.blocks.append('{type = "MaxPool2d", kernel_size = 2}')
                self.steps.append(("pool",))
                shape = (shape[0], shape[1] // 2, shape[2] // 2)
        self.blocks.append('{type = "Flatten"}')
        self.steps.append(("flatten",))
        count, out = shape[0] * shape[1] * shape[2], draw.randint(1, 3)
        formats = self.formats(widths)
        weights = [[self.number() for _ in range(count)] for _ in range(out)]
        biases = [self.number() for _ in range(out)]
        self.add("Linear", f"out_features = {out}", formats, ("linear", formats, weights, biases))

    def formats(self, widths):
        formats = {which: Format.drawn(self.draw, widths) for which in ("data_in", "weight", "bias")}
        for form in formats.values():
            form.frac = self.draw.randint(0, form.width)
        return formats

    def add(self, kind, keys, formats, step):
        lines = ['name = "integer"']
        for which, form in formats.items():
            lines += form.lines(which)
        self.tables.append((len(self.blocks), lines))
        self.layers.append((len(self.blocks), formats, step[2], step[3], None))
        self.blocks.append(f'{{type = "{kind}", {keys}}}')
        self.steps.append(step)

    def outputs(self, row):
        rows = iter(row)
        plane = [[[next(rows) for _ in range(self.width)] for _ in range(self.height)] for _ in range(self.channels)]
        for step in self.steps:
            if step[0] == "relu":
                plane = [[[max(x, Fraction(0)) for x in line] for line in one] for one in plane]
            elif step[0] == "pool":
                plane = [[[max(one[2 * i + a][2 * j + b] for a in (0, 1) for b in (0, 1)) for j in range(len(one[0]) // 2)]
                          for i in range(len(one) // 2)] for one in plane]
            elif step[0] == "flatten":
                plane = [x for one in plane for line in one for x in line]
            elif step[0] == "conv":
                plane = self.convolved(plane, *step[1:])
            else:
                _, formats, weights, biases = step
                values = [formats["data_in"].rounded(x) for x in plane]
                plane = [sum((formats["weight"].rounded(Fraction(w)) * x for w, x in zip(neuron, values)), Fraction(0)) +
                         formats["bias"].rounded(Fraction(b)) for neuron, b in zip(weights, biases)]
        return plane

    @staticmethod
    def convolved(plane, formats, weights, biases, kernel, stride, padding):
        height, width = len(plane[0]), len(plane[0][0])
        x = [[[formats["data_in"].rounded(v) for v in line] for line in one] for one in plane]

        def at(c, i, j):
            return x[c][i][j] if 0 <= i < height and 0 <= j < width else Fraction(0)

        w = [[[[formats["weight"].rounded(Fraction(v)) for v in line] for line in one] for one in filter] for filter in weights]
        result = []
        for filter, bias in zip(w, biases):
            result.append([[sum((filter[c][a][b] * at(c, i * stride + a - padding, j * stride + b - padding)
                                 for c in range(len(x)) for a in range(kernel) for b in range(kernel)), Fraction(0)) +
                            formats["bias"].rounded(Fraction(bias))
                            for j in range((width + 2 * padding - kernel) // stride + 1)]
                           for i in range((height + 2 * padding - kernel) // stride + 1)])
        return result

    def given(self, ports):
        codes = [self.draw.randint(port["lowest"], port["highest"]) for port in ports]
        values = [Fraction(0)] * self.inputs
        for code, port in zip(codes, ports):  # a stream has the channels of a position side by side
            values[int(port["name"].rsplit("_", 1)[1])] = Fraction(code) / Fraction(2)**port["fraction_bits"]
        return values, codes

    def input_shape(self):
        return f"[{self.channels}, {self.height}, {self.width}]"


def network(seed):
    return Planes(seed) if seed % 3 == 0 else Any(seed)


def trials(seeds, rows=40):
    random_designs.trials(seeds, lambda seed: random_designs.trial(seed, rows, network(seed)))
