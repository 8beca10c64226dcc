# SPDX-License-Identifier: Apache-2.0
"""The jet networks, trained, in every kind of format: ch emit compares the engine with the integers
on every test row of a data set, then the emitted C++ runs all of them and the SystemVerilog too, in
Verilator. The data are jsc-sim, and jets20k.csv where MASE_JETS20K names it.
MASE_HARDWARE_VARIANTS and MASE_HARDWARE_MODELS take some of them."""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

CH = os.environ["MASE_CH"]
SHAPES = {"jsc-tiny": {2: (5, 16)},
          "jsc-toy": {2: (8, 16), 5: (8, 8), 8: (5, 8)},
          "jsc-10x": {2: (60, 16), 5: (32, 60), 8: (5, 32)},
          "jsc-s": {2: (64, 16), 5: (32, 64), 7: (32, 32), 9: (32, 32), 11: (5, 32)}}
OPERANDS = ("data_in", "weight", "bias")


def same(name, **keys):
    return {"name": name} | {f"{operand}_{key}": value for operand in OPERANDS for key, value in keys.items()}


def by_channel(out, _):
    return same("integer", width=6, frac_width=3) | {
        "weight_granularity": "row", "weight_width": [random.randint(3, 7) for _ in range(out)],
        "bias_granularity": "element", "bias_width": [random.randint(4, 8) for _ in range(out)]}


def by_element(out, inputs):
    return same("integer", width=6, frac_width=3) | {
        "weight_granularity": "element", "weight_width": [random.randint(0, 4) for _ in range(out * inputs)],
        "data_in_granularity": "row", "data_in_width": [random.randint(0, 4) for _ in range(inputs)],
        "data_in_overflow": "wrap", "data_in_rounding": "half_up"}


VARIANTS = {
    "8/4": lambda o, i: same("integer", width=8, frac_width=4),
    "6/3": lambda o, i: same("integer", width=6, frac_width=3),
    "4/2": lambda o, i: same("integer", width=4, frac_width=2),
    "per_channel": by_channel,
    "per_element": by_element,
    "binary": lambda o, i: same("binary", bipolar=True),
    "ternary": lambda o, i: same("ternary", threshold=0.125) | {"data_in_threshold": 0.5},
    "power_of_two": lambda o, i: same("power_of_two", width=4, exponent_bias=5),
    "log": lambda o, i: same("log", width=4, exponent_bias=5),
    "minifloat": lambda o, i: same("minifloat_ieee", width=6, exponent_width=3),
    "mxint": lambda o, i: same("mxint", width=5, block_size=8, scale_bits=3) | {"weight_scale_bits": 4},
    "mxfp": lambda o, i: same("mxfp", exponent_width=2, frac_width=1, block_size=8, scale_bits=3),
}


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def config(model, variant):
    text = '[passes.fuse_batch_norm]\n[passes.quantize]\nby = "name"\n[passes.quantize.default.config]\nname = "NA"\n'
    for block, (out, inputs) in SHAPES[model].items():
        text += f"[passes.quantize.seq_blocks_{block}.config]\n"
        text += "".join(f"{key} = {toml(value)}\n" for key, value in VARIANTS[variant](out, inputs).items())
    return text


def ch(*arguments, folder):
    result = subprocess.run([CH, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        print(" ".join(map(str, arguments)), result.stdout[-2000:], result.stderr, sep="\n")
        sys.exit(1)
    return result.stdout


def main():
    if not shutil.which("verilator"):
        print("Verilator is not installed")
        sys.exit(77)
    random.seed(1)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mase-equality-"))
    datasets = ["jsc-sim"] + ([os.environ["MASE_JETS20K"]] if "MASE_JETS20K" in os.environ else [])
    models = os.environ.get("MASE_HARDWARE_MODELS", " ".join(SHAPES)).split()
    variants = os.environ.get("MASE_HARDWARE_VARIANTS", " ".join(VARIANTS)).split()
    try:
        for dataset in datasets:
            for model in models:
                ch("train", model, dataset, "--max-epochs", 2, "--project", model, "--project-dir", folder / "out",
                   folder=folder)
                best = folder / "out" / model / "software" / "training_ckpts" / "best.ckpt"
                for variant in variants:
                    toml_file = folder / "variant.toml"
                    toml_file.write_text(config(model, variant))
                    large = model in ("jsc-10x", "jsc-s")
                    text = ch("emit", model, "--load", best, "--config", toml_file, "--dataset", dataset,
                              "--output", folder / "design", "--quiet", "--no-prove", "--effort", 0 if large else 1,
                              folder=folder)
                    line = next(line for line in text.splitlines() if line.startswith("engine = integers"))
                    simulations = [ch("simulate", folder / "design", "--simulator", simulator, folder=folder)
                                   for simulator in ("cpp", "verilator")]
                    print(model, variant, line, *(s.strip() for s in simulations), sep="; ", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
