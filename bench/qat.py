#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantisation-aware training against post-training quantisation on the built-in data, averaged
over seeds: how much of the accuracy that rounding costs does training on get back? Fixed point
(`integer`) as it is, and with learned scales (LSQ) of the same width.

    bench/qat.py [path of ch] [--width 4] [--seeds 8] [--rows 20000]
"""
import argparse
import json
import os
import subprocess
import tempfile

HEAD = """
[passes.quantize]
by = "type"
[passes.quantize.default.config]
name = "NA"
[passes.quantize.linear.config]
"""
FIXED = HEAD + """
name = "integer"
data_in_width = {width}
data_in_frac_width = {data_frac}
weight_width = {width}
weight_frac_width = {weight_frac}
bias_width = 8
bias_frac_width = 6
"""
LEARNED = HEAD + """
name = "scale_integer"
data_in_width = {width}
data_in_is_signed = false
data_in_scale = "learned"
weight_width = {width}
weight_scale = "learned"
weight_granularity = "row"
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
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--rate", default="2e-3", help="learning rate of the training after")
    options = parser.parse_args()
    options.ch = os.path.abspath(options.ch)
    total = {"float": 0.0, "ptq": 0.0, "qat": 0.0, "learned": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        keys = dict(width=options.width, data_frac=options.width - 2, weight_frac=options.width - 1)
        for name, config in (("fixed", FIXED), ("learned", LEARNED)):
            with open(os.path.join(folder, name + ".toml"), "w") as file:
                file.write(config.format(**keys))
        data = ["jsc-sim", "--sim-rows", str(options.rows), "--data-dir", folder]
        fit = ["--batch-size", "256", "--max-epochs", str(options.epochs), "--project-dir", folder]
        for seed in range(options.seeds):
            def train(project, rate, *words):
                run(options.ch, folder, "train", options.model, *data, *fit, "--learning-rate",
                    rate, "--seed", seed, "--project", project, *words)
                return f"{folder}/{project}/software/training_ckpts/best"

            best = train(f"float{seed}", "1e-2") + ".ckpt"
            run(options.ch, folder, "transform", options.model, *data, "--load", best, "--config",
                "fixed.toml", "--project-dir", folder, "--project", f"ptq{seed}")
            rounded = f"{folder}/ptq{seed}/software/transform/transformed.mz"
            files = {
                "float": best,
                "ptq": rounded,
                "qat": train(f"qat{seed}", options.rate, "--load", rounded) + ".mz",
                "learned": train(f"learned{seed}", options.rate, "--load", best, "--config",
                                 "learned.toml") + ".mz",
            }
            figures = {key: accuracy(options.ch, folder, options.model, data, "--load", path)
                       for key, path in files.items()}
            print(f"seed {seed}: " + "  ".join(f"{k} {v:.4f}" for k, v in figures.items()),
                  flush=True)
            for key, value in figures.items():
                total[key] += value / options.seeds
    lost = total["float"] - total["ptq"]
    print(f"mean: float {total['float']:.4f}  {options.width}-bit after training {total['ptq']:.4f}"
          f"  trained {total['qat']:.4f}  trained with learned scales {total['learned']:.4f}")
    worst = 1.0
    for key, what in (("qat", "training"), ("learned", "training with learned scales")):
        share = (total[key] - total["ptq"]) / lost if lost > 0 else 1.0
        worst = min(worst, share)
        print(f"{what} recovers {100 * share:.0f}% of the {lost:.4f} lost")
    return 0 if worst >= 0.5 else 1


if __name__ == "__main__":
    raise SystemExit(main())
