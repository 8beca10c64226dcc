#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantisation-aware training against post-training quantisation on the built-in data, averaged
over seeds: how much of the accuracy that rounding costs does training on get back?

    bench/qat.py [path of ch] [--width 4] [--seeds 3] [--rows 20000]
"""
import argparse
import json
import os
import subprocess
import tempfile

CONFIG = """
[passes.quantize]
by = "type"
[passes.quantize.default.config]
name = "NA"
[passes.quantize.linear.config]
name = "integer"
data_in_width = {width}
data_in_frac_width = {data_frac}
weight_width = {width}
weight_frac_width = {weight_frac}
bias_width = 8
bias_frac_width = 6
"""


def run(ch, folder, *words):
    command = [ch, *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(" ".join(command) + "\n" + done.stdout[-2000:] + done.stderr)


def accuracy(ch, folder, model, data, *words):
    run(ch, folder, "test", model, *data, "--json", "test.json", "--no-output", *words)
    with open(os.path.join(folder, "test.json")) as file:
        return json.load(file)["test_acc_epoch"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ch", nargs="?", default=os.environ.get("MASE_CH", "ch"))
    parser.add_argument("--model", default="jsc-10x")
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    options.ch = os.path.abspath(options.ch)
    total = {"float": 0.0, "ptq": 0.0, "qat": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "quantize.toml"), "w") as file:
            file.write(CONFIG.format(width=options.width, data_frac=options.width - 2,
                                     weight_frac=options.width - 1))
        data = ["jsc-sim", "--sim-rows", str(options.rows), "--data-dir", folder]
        fit = ["--batch-size", "256", "--max-epochs", str(options.epochs), "--project-dir", folder]
        for seed in range(options.seeds):
            run(options.ch, folder, "train", options.model, *data, *fit, "--learning-rate", "1e-2",
                "--seed", seed, "--project", f"float{seed}")
            best = f"{folder}/float{seed}/software/training_ckpts/best.ckpt"
            run(options.ch, folder, "transform", options.model, *data, "--load", best, "--config",
                "quantize.toml", "--project-dir", folder, "--project", f"ptq{seed}")
            rounded = f"{folder}/ptq{seed}/software/transform/transformed.mz"
            run(options.ch, folder, "train", options.model, *data, *fit, "--learning-rate", "5e-3",
                "--seed", seed, "--load", rounded, "--project", f"qat{seed}")
            figures = {
                "float": accuracy(options.ch, folder, options.model, data, "--load", best),
                "ptq": accuracy(options.ch, folder, options.model, data, "--load", rounded),
                "qat": accuracy(options.ch, folder, options.model, data, "--config",
                                "quantize.toml", "--load",
                                f"{folder}/qat{seed}/software/training_ckpts/best.ckpt"),
            }
            print(f"seed {seed}: " + "  ".join(f"{k} {v:.4f}" for k, v in figures.items()))
            for key, value in figures.items():
                total[key] += value / options.seeds
    lost, back = total["float"] - total["ptq"], total["qat"] - total["ptq"]
    print(f"mean: float {total['float']:.4f}  {options.width}-bit after training {total['ptq']:.4f}"
          f"  {options.width}-bit trained {total['qat']:.4f}")
    print(f"recovered {back:.4f} of {lost:.4f} lost: {100 * back / lost if lost > 0 else 100:.0f}%")
    return 0 if back >= 0.5 * lost else 1


if __name__ == "__main__":
    raise SystemExit(main())
