#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The estimate of LUTs beside what Yosys makes of the same designs, of all styles and formats.

    bench/estimate_yosys.py build/release/bin/ch             # the designs that nothing was fitted to
    bench/estimate_yosys.py build/release/bin/ch --set fit   # those that the model was fitted to

Networks have drawn weights; the same ch gives the same designs. Takes some minutes.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile


def keys(name, data_in, weight, bias=None):
    """Keys of the three operands of a linear layer."""
    config = {"name": name}
    for operand, values in (("data_in", data_in), ("weight", weight), ("bias", bias or weight)):
        config.update({f"{operand}_{key}": value for key, value in values.items()})
    return config


def fixed(width, frac, weight_width, weight_frac):
    return keys("integer", {"width": width, "frac_width": frac},
                {"width": weight_width, "frac_width": weight_frac})


def same(name, **values):
    return keys(name, values, values)


TERNARY = keys("ternary", {"threshold": 0.5}, {"threshold": 0.125})
MXINT = keys("mxint", {"width": 5, "block_size": 4, "scale_bits": 3},
             {"width": 5, "block_size": 4, "scale_bits": 4})
MXFP = same("mxfp", exponent_width=2, frac_width=1, block_size=4, scale_bits=3)
FLOOR = keys("integer_floor", {"width": 6, "frac_width": 4}, {"width": 5, "frac_width": 5})

# name, widths of the layers, formats, seed, options of ch emit
FIT = [
    ("log 4, small", [8, 8, 4], same("log", width=4, exponent_bias=5), 1, []),
    ("log 5", [10, 8, 5], same("log", width=5, exponent_bias=8), 2, []),
    ("log 4", [12, 12, 6], same("log", width=4, exponent_bias=6), 3, []),
    ("4/4 stream 4", [8, 8, 4], fixed(4, 2, 4, 4), 1, ["--style", "stream", "--cycles", "4"]),
    ("6/6 stream 16", [16, 8, 4], fixed(6, 4, 6, 6), 2, ["--style", "stream", "--cycles", "16"]),
    ("8/6 stream 64", [16, 16, 5], fixed(8, 5, 6, 6), 3, ["--style", "stream", "--cycles", "64"]),
    ("3/3 stream 32", [24, 12, 4], fixed(3, 2, 3, 3), 4, ["--style", "stream", "--cycles", "32"]),
    ("5/4 stream 8", [12, 6, 6], fixed(5, 3, 4, 4), 5, ["--style", "stream", "--cycles", "8"]),
    ("4/3 levels 8", [12, 12, 5], fixed(4, 2, 3, 3), 1, ["--levels", "8"]),
    ("3/3 levels 7", [16, 16, 5], fixed(3, 2, 3, 3), 2, ["--levels", "7"]),
    ("6/5 levels 12", [12, 10, 5], fixed(6, 4, 5, 5), 3, ["--levels", "12"]),
    ("5/4 levels 10", [10, 10, 5], fixed(5, 3, 4, 4), 4, ["--levels", "10", "--valid"]),
    ("ternary", [12, 20, 6], TERNARY, 6, []),
    ("2/2", [14, 16, 5], fixed(2, 1, 2, 2), 7, []),
    ("3/2", [16, 12, 5], fixed(3, 2, 2, 2), 8, []),
    ("6/6 stream 2", [6, 8, 4], fixed(6, 4, 6, 6), 9, ["--style", "stream", "--cycles", "2"]),
    ("4/3 stream 128", [32, 16, 8], fixed(4, 2, 3, 3), 10,
     ["--style", "stream", "--cycles", "128"]),
    ("6/4 stream 1", [6, 6, 3], fixed(6, 4, 4, 4), 11, ["--style", "stream", "--cycles", "1"]),
    ("8/8 stream 16", [8, 8, 4], fixed(8, 5, 8, 8), 12, ["--style", "stream", "--cycles", "16"]),
    ("3/3 stream 8", [16, 8, 8], fixed(3, 2, 3, 3), 13, ["--style", "stream", "--cycles", "8"]),
]
HELD = [
    ("integer 4/3", [12, 10, 5], fixed(4, 2, 3, 3), 11, []),
    ("integer 6/6", [10, 8, 5], fixed(6, 4, 6, 6), 12, []),
    ("integer 8/8", [8, 8, 4], fixed(8, 5, 8, 8), 13, []),
    ("integer_floor 6/5", [12, 8, 4], FLOOR, 14, []),
    ("integer 5/4, arg-max", [16, 8, 5], fixed(5, 3, 4, 4), 15, ["--argmax"]),
    ("minifloat 6", [8, 6, 4], same("minifloat_ieee", width=6, exponent_width=3), 16, []),
    ("log 4", [10, 9, 4], same("log", width=4, exponent_bias=5), 17, []),
    ("log 5", [8, 7, 5], same("log", width=5, exponent_bias=9), 18, []),
    ("power of two 4", [10, 8, 4], same("power_of_two", width=4, exponent_bias=5), 19, []),
    ("mxint 5", [8, 8, 4], MXINT, 20, []),
    ("mxfp 2/1", [8, 8, 4], MXFP, 21, []),
    ("binary", [16, 24, 5], same("binary", bipolar=True), 22, []),
    ("ternary", [16, 24, 5], TERNARY, 23, []),
    ("integer 4/3, levels 7", [14, 10, 5], fixed(4, 2, 3, 3), 24, ["--levels", "7"]),
    ("integer 6/4, levels 12", [10, 8, 5], fixed(6, 4, 4, 4), 25, ["--levels", "12"]),
    ("integer 3/3, levels 9", [16, 14, 5], fixed(3, 2, 3, 3), 26, ["--levels", "9", "--valid"]),
    ("integer 5/5, stream 4", [8, 8, 4], fixed(5, 3, 5, 5), 27,
     ["--style", "stream", "--cycles", "4"]),
    ("integer 4/3, stream 32", [16, 16, 5], fixed(4, 2, 3, 3), 28,
     ["--style", "stream", "--cycles", "32"]),
    ("integer 8/8, stream 64", [16, 8, 5], fixed(8, 5, 8, 8), 29,
     ["--style", "stream", "--cycles", "64"]),
    ("integer 2/2, lut", [5, 8, 4], fixed(2, 1, 2, 2), 30, ["--style", "lut"]),
]


def toml_value(value):
    return json.dumps(value)


def network_text(name, widths, relu):
    text = f'name = "{name}"\ninput = [{widths[0]}]\n'
    for k, width in enumerate(widths[1:]):
        text += f'[[seq_blocks]]\ntype = "Linear"\nout_features = {width}\n'
        if relu and k + 2 < len(widths):
            text += '[[seq_blocks]]\ntype = "ReLU"\n'
    return text


def measured(ch, design, folder):
    name, widths, formats, seed, options = design
    os.makedirs(folder)
    with open(os.path.join(folder, "net.toml"), "w") as file:
        # Every sum behind a ReLU has the sign +: binary layers stand one behind another.
        file.write(network_text("net", widths, formats["name"] != "binary"))
    with open(os.path.join(folder, "q.toml"), "w") as file:
        file.write('[passes.quantize]\nby = "type"\n[passes.quantize.default.config]\nname = "NA"\n'
                   "[passes.quantize.linear.config]\n")
        file.writelines(f"{key} = {toml_value(value)}\n" for key, value in formats.items())

    def run(*command):
        done = subprocess.run([ch, *command], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr.strip()}")
        return done.stdout

    run("transform", "net.toml", "--config", "q.toml", "--project", "p", "--seed", str(seed))
    network = "mase_output/p/software/transform/transformed.mz"
    run("emit", "--load", network, "--rows", "8", "--no-prove", "--quiet", "--output", "design",
        *options)
    run("synth", "design")
    with open(os.path.join(folder, "design", "manifest.json")) as file:
        estimate = json.load(file)["estimate"]
    with open(os.path.join(folder, "design", "synthesis.json")) as file:
        synthesis = json.load(file)
    return {"name": name, "estimate": estimate["luts"], "luts": synthesis["luts"],
            "registers_estimate": estimate["registers"], "registers": synthesis["registers"],
            "levels_estimate": estimate.get("levels"), "levels": synthesis["levels"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ch", help="the program")
    parser.add_argument("--set", choices=["held", "fit"], default="held")
    parser.add_argument("--keep", help="a folder for the designs")
    parser.add_argument("--json", help="a file for the figures")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        base = arguments.keep or temporary
        print("| design | estimate | Yosys LUTs | error | levels | Yosys | register bits | Yosys |")
        print("|---|---|---|---|---|---|---|---|")
        for k, design in enumerate(HELD if arguments.set == "held" else FIT):
            row = measured(os.path.abspath(arguments.ch), design, os.path.join(base, str(k)))
            rows.append(row)
            error = row["estimate"] / max(1, row["luts"]) - 1
            levels = "" if row["levels_estimate"] is None else f"{row['levels_estimate']:.0f}"
            print(f"| {row['name']} | {row['estimate']:.0f} | {row['luts']} | {error:+.0%} | {levels} "
                  f"| {row['levels']} | {row['registers_estimate']} | {row['registers']} |",
                  flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=2)
    worst = max(abs(row["estimate"] / max(1, row["luts"]) - 1) for row in rows)
    print(f"\n{len(rows)} designs, largest error {worst:.0%}")


if __name__ == "__main__":
    main()
