# SPDX-License-Identifier: Apache-2.0
"""Networks that nobody thought of, through ch emit and Icarus Verilog, against a model of their own: exact fractions,
written from the definition of fixed point, sharing nothing with the library. What the testbench wants is what this
model says of rows over all input codes. random_designs_test.py runs some, random_designs_long_test.py a thousand."""
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
from fractions import Fraction

CH = os.environ["MASE_CH"]
ROUNDINGS = ["nearest_even", "half_up", "half_away", "half_toward_zero", "toward_zero", "away_from_zero", "floor", "ceil"]
STYLES = [[], [], ["--argmax"], ["--levels", "3"], ["--levels", "6", "--valid"], ["--style", "stream", "--cycles", "1"],
          ["--style", "stream", "--cycles", "4"], ["--style", "stream", "--cycles", "64"], ["--style", "lut"]]


class Format:
    def __init__(self, width, frac, rounding, overflow, is_signed, narrow):
        self.width, self.frac, self.rounding, self.overflow = width, frac, rounding, overflow
        self.is_signed, self.narrow = is_signed, narrow

    @staticmethod
    def drawn(draw, widths):
        width = draw.choice(widths)
        overflow = draw.choice(["saturate", "wrap"])
        is_signed = draw.random() < 0.7
        narrow = overflow == "saturate" and is_signed and width > 1 and draw.random() < 0.25
        return Format(width, draw.randint(-3, width + 3), draw.choice(ROUNDINGS), overflow, is_signed, narrow)

    def lines(self, operand):
        words = [f"{operand}_width = {self.width}", f"{operand}_frac_width = {self.frac}",
                 f'{operand}_rounding = "{self.rounding}"', f'{operand}_overflow = "{self.overflow}"',
                 f"{operand}_is_signed = {str(self.is_signed).lower()}"]
        return words + ([f"{operand}_narrow = true"] if self.narrow else [])

    def limits(self):
        if not self.is_signed:
            return 0, 2**self.width - 1
        return -(2**(self.width - 1)) + self.narrow, 2**(self.width - 1) - 1

    def whole(self, x):
        below = math.floor(x)
        rest = x - below
        if rest == 0:
            return below
        half = Fraction(1, 2)
        up = {"nearest_even": rest > half or (rest == half and below % 2 == 1), "half_up": rest >= half,
              "half_away": rest > half or (rest == half and x > 0),
              "half_toward_zero": rest > half or (rest == half and x < 0), "toward_zero": x < 0, "away_from_zero": x > 0,
              "floor": False, "ceil": True}[self.rounding]
        return below + up

    def rounded(self, value):
        code = self.whole(value * Fraction(2)**self.frac)
        low, high = self.limits()
        if self.overflow == "saturate":
            code = min(max(code, low), high)
        else:
            code = (code - low) % 2**self.width + low
        return code / Fraction(2)**self.frac


ACTIVATIONS = {
    "": lambda x: x,
    '{type = "ReLU"}': lambda x: max(x, Fraction(0)),
    '{type = "LeakyReLU", negative_slope = 0.25}': lambda x: x if x > 0 else x / 4,
    '{type = "ReLU6"}': lambda x: min(max(x, Fraction(0)), Fraction(6)),
    '{type = "Hardtanh", min_val = -1.5, max_val = 2.0}': lambda x: min(max(x, Fraction(-3, 2)), Fraction(2)),
    '{type = "Identity"}': lambda x: x}


def flat(weights):
    """Shape and values of nested lists."""
    if not isinstance(weights, list):
        return [], [weights]
    parts = [flat(part) for part in weights]
    return [len(weights), *parts[0][0]], [value for _, values in parts for value in values]


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Network:
    def __init__(self, seed):
        draw = random.Random(seed)
        self.draw, self.style = draw, draw.choice(STYLES)
        widths = draw.choice([[1], [1, 2], [2, 3, 4], [4, 5, 6, 8], [1, 2, 3, 4, 6, 8, 12, 16]])
        if self.style[:2] == ["--style", "lut"]:
            widths = [1, 2, 3]
        sizes = [draw.randint(1, 3 if "lut" in self.style else 6)]
        self.layers, self.blocks = [], []
        for _ in range(draw.randint(1, 3)):
            sizes.append(draw.randint(1, 3 if "lut" in self.style else 5))
            place = len(self.blocks)
            bias = draw.random() < 0.8
            formats = {name: Format.drawn(draw, widths) for name in ("data_in", "weight", "bias")}
            if draw.random() < 0.4:
                formats["data_out"] = Format.drawn(draw, widths)
            self.blocks.append(f'{{type = "Linear", out_features = {sizes[-1]}, bias = {str(bias).lower()}}}')
            activation = draw.choice(list(ACTIVATIONS))
            if activation:
                self.blocks.append(activation)
            weights = [[self.number() for _ in range(sizes[-2])] for _ in range(sizes[-1])]
            biases = [self.number() for _ in range(sizes[-1])] if bias else None
            self.layers.append((place, formats, weights, biases, ACTIVATIONS[activation]))
        self.inputs = sizes[0]

    def number(self):
        kind = self.draw.randrange(6)
        if kind == 0:
            return 0.0
        if kind == 1:
            return self.draw.choice([-100.0, 100.0])
        if kind < 4:
            return self.draw.randint(-64, 64) / 16  # ties of many formats
        return single(self.draw.gauss(0, 1.5))

    def write(self, folder):
        with open(os.path.join(folder, "n.toml"), "w") as file:
            file.write(f'name = "n"\ninput = {self.input_shape()}\nseq_blocks = [{", ".join(self.blocks)}]\n')
        lines = self.config()
        tensors = {}
        for place, _, weights, biases, _ in self.layers:
            tensors[f"seq_blocks.{place}.weight"] = flat(weights)
            if biases is not None:
                tensors[f"seq_blocks.{place}.bias"] = ([len(biases)], biases)
        with open(os.path.join(folder, "q.toml"), "w") as file:
            file.write("\n".join(lines) + "\n")
        header, data = {}, b""
        for name, (shape, values) in tensors.items():
            more = struct.pack(f"<{len(values)}f", *values)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(more)]}
            data += more
        text = json.dumps(header).encode()
        with open(os.path.join(folder, "w.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)

    def input_shape(self):
        return f"[{self.inputs}]"

    def config(self):
        lines = ["[passes.quantize]", 'by = "name"', "[passes.quantize.default.config]", 'name = "NA"']
        for place, formats, _, _, _ in self.layers:
            lines += [f'[passes.quantize."seq_blocks.{place}".config]', 'name = "integer"']
            for operand, form in formats.items():
                lines += form.lines(operand)
        return lines

    def given(self, ports):
        """An input row as values, and as codes of the ports: any code of the first layer's format."""
        form = self.layers[0][1]["data_in"]
        low, high = form.limits()
        codes = [self.draw.randint(low, high) for _ in ports]
        return [code / Fraction(2)**form.frac for code in codes], codes

    def outputs(self, row):
        for _, formats, weights, biases, activation in self.layers:
            row = [formats["data_in"].rounded(x) for x in row]
            sums = []
            for index, neuron in enumerate(weights):
                total = sum(formats["weight"].rounded(Fraction(w)) * x for w, x in zip(neuron, row))
                if biases is not None:
                    total += formats["bias"].rounded(Fraction(biases[index]))
                sums.append(formats["data_out"].rounded(total) if "data_out" in formats else Fraction(total))
            row = [activation(total) for total in sums]
        if "--argmax" in self.style:
            return [Fraction(max(range(len(row)), key=lambda i: (row[i], -i)))]
        return row


def packed(ports, codes):
    bits = 0
    for port, code in zip(ports, codes):
        bits |= (code & (2**port["width"] - 1)) << port["low_bit"]
    return f"{bits:x}"


def vectors(network, manifest, rows):
    """Rows over the input codes, extremes first, with the model's outputs; and what is wrong with ports, if anything."""
    ports = manifest["inputs"]
    lines = []
    for index in range(rows):
        values, codes = network.given(ports)
        if index < 2 and type(network) is Network:
            code = network.layers[0][1]["data_in"].limits()[index]
            codes = [code] * len(ports)
            values = [code / Fraction(2)**network.layers[0][1]["data_in"].frac] * len(ports)
        if codes is None:
            return None, f"the ports {ports} do not hold an input of the first layer's format"
        results = []
        for port, value in zip(manifest["outputs"], network.outputs(values)):
            code = value * Fraction(2)**port["fraction_bits"]
            if code.denominator != 1 or not port["lowest"] <= code <= port["highest"]:
                return None, f"output {port['name']} is {value}, not within its port {port}"
            results.append(int(code))
        lines.append(packed(ports, codes) + " " + packed(manifest["outputs"], results))
    return "\n".join(lines) + "\n", ""


def run(*words, folder):
    return subprocess.run(words, cwd=folder, text=True, capture_output=True)


def trial(seed, rows=60, network=None):
    """("equal", ""), ("refused", reason) or ("wrong", what)."""
    network = network or Network(seed)
    with tempfile.TemporaryDirectory(prefix="design-") as folder:
        network.write(folder)
        emit = [CH, "emit", "n.toml", "--load", "w.safetensors", "--config", "q.toml", "--output", "d", "--quiet",
                "--rows", "40", "--no-prove", "--effort", "0", *network.style]
        said = run(*emit, folder=folder)
        floor = re.search(r"give at least --levels (\d+)", said.stderr)
        if floor:  # what can be kept, it says
            emit[emit.index("--levels") + 1] = floor.group(1)
            said = run(*emit, folder=folder)
        if said.returncode == 2 and said.stderr.count("\n") == 1 and not os.path.exists(os.path.join(folder, "d")):
            return "refused", said.stderr.strip()
        if said.returncode != 0:
            return "wrong", f"emit ends with {said.returncode}: {said.stderr}"
        with open(os.path.join(folder, "d/manifest.json")) as file:
            manifest = json.load(file)
        text, fault = vectors(network, manifest, rows)
        if fault:
            return "wrong", fault
        path = os.path.join(folder, "d/sim/vectors.hex")
        with open(path, "w") as file:
            file.write(text)
        said = run(CH, "simulate", "d", "--simulator", "iverilog", folder=folder)
        if said.returncode != 0 or f"{rows} rows, 0 mismatches" not in said.stdout:
            return "wrong", f"{network.style}: {said.stdout}{said.stderr}"
        if seed % 10 == 0:  # one bit of one row wanted otherwise is seen
            lines = text.split("\n")
            given, wanted = lines[3].split()
            lines[3] = f"{given} {int(wanted, 16) ^ 1:x}"
            with open(path, "w") as file:
                file.write("\n".join(lines))
            if "1 mismatches" not in run(CH, "simulate", "d", "--simulator", "iverilog", folder=folder).stdout:
                return "wrong", "a wrong row is not seen"
    return "equal", ""


def trials(seeds, one=trial):
    if not shutil.which("iverilog"):
        print("iverilog is not installed")
        raise SystemExit(77)
    equal, refused, wrong = 0, {}, []
    for seed in seeds:
        how, what = one(seed)
        if how == "equal":
            equal += 1
        elif how == "refused":
            reason = " ".join(word for word in what.split() if not any(c.isdigit() for c in word))
            refused[reason] = refused.get(reason, 0) + 1
        else:
            wrong.append(seed)
            print(f"seed {seed}: {what}", flush=True)
    print(f"{equal} designs equal, {sum(refused.values())} refused, {len(wrong)} wrong")
    for reason, count in sorted(refused.items(), key=lambda item: -item[1]):
        print(f"  {count} refused: {reason}")
    if wrong or equal < len(seeds) // 2:
        raise SystemExit(1)
