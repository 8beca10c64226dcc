#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fake-quantising in ch against the same rule composed of PyTorch tensor operations, one core.

    bench/formats_pytorch.py [path of ch] [--rounds N]

Both sides round arrays of the same two sizes, one that stays in the caches and one that does not,
format by format in turns; the best round of each counts, in processor time of the one thread.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    print("PyTorch is not installed (Debian: python3-torch); nothing to compare")
    sys.exit(77)

torch.set_num_threads(1)
COLUMNS, IN_CACHE, IN_MEMORY = 64, 1 << 13, 1 << 23  # values; as ch format speed


def fixed_point(x):
    return torch.clamp(torch.round(x * 16.0), -128, 127) / 16.0


def small_float(x, mantissa=3, emin=-6, largest=448.0):
    exponent = torch.clamp(torch.floor(torch.log2(x.abs() + 1e-45)), min=emin)
    step = torch.exp2(exponent - mantissa)
    return torch.clamp(torch.round(x / step) * step, -largest, largest)


def scale_integer(x):
    scale = x.abs().amax(1, keepdim=True) / 127
    return torch.clamp(torch.round(x / scale), -127, 127) * scale


def blocks(x, block, top, element):
    b = x.reshape(-1, block)
    scale = torch.exp2(torch.floor(torch.log2(b.abs().amax(1, keepdim=True) + 1e-38)) - top)
    return (element(b / scale) * scale).reshape(x.shape)


def whole(limit):
    return lambda x: torch.clamp(torch.round(x), -limit, limit)


RULES = {
    "integer": fixed_point,
    "float": lambda x: small_float(x, 3, -6, 480.0),
    "e4m3": small_float,
    "bfloat16": lambda x: small_float(x, 7, -126, 3.3895e38),
    "minifloat_ieee": lambda x: small_float(x, 3, -6, 480.0),
    "log": lambda x: small_float(x, 0, -63, 2.0**64),
    "scale_integer": scale_integer,
    "block_fp": lambda x: blocks(x, 16, 6, whole(127)),
    "block_minifloat": lambda x: blocks(x, 16, 8, lambda e: small_float(e, 3, -6, 480.0)),
    "block_log": lambda x: blocks(x, 16, 64, lambda e: small_float(e, 0, -63, 2.0**64)),
    "mxint": lambda x: blocks(x, 32, 6, whole(127)),
    "mxfp": lambda x: blocks(x, 32, 8, small_float),
}


def torch_speed(rule, x, seconds):
    best, end = 0.0, time.thread_time() + seconds
    repeat = max(1, (1 << 18) // x.numel())
    while True:
        start = time.thread_time()
        for _ in range(repeat):
            rule(x)
        now = time.thread_time()
        best = max(best, x.numel() * repeat / (now - start))
        if now > end:
            return best


def ch_speed(ch, name):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "speed.json")
        subprocess.run([ch, "format", "speed", "--only", name, "--json", path], check=True,
                       stdout=subprocess.DEVNULL)
        with open(path) as file:
            return json.load(file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ch", nargs="?", default=os.environ.get("MASE_CH", "ch"))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    small = torch.randn(IN_CACHE // COLUMNS, COLUMNS)
    large = torch.randn(IN_MEMORY // COLUMNS, COLUMNS)
    print("                |          in cache            |         from memory          |   time\n"
          "format          |      ch  PyTorch      ratio  |      ch  PyTorch      ratio  | / copy's"
          "    [Gvalue/s]")
    for name, rule in RULES.items():
        best = {"ch": [0, 0], "torch": [0, 0], "copy": 0}
        for _ in range(options.rounds):
            speeds = ch_speed(options.ch, name)
            for i, key in enumerate(("in_cache", "in_memory")):
                best["ch"][i] = max(best["ch"][i], speeds[name][key])
            best["copy"] = max(best["copy"], speeds["copy"]["in_memory"])
            best["torch"][0] = max(best["torch"][0], torch_speed(rule, small, 0.05))
            best["torch"][1] = max(best["torch"][1], torch_speed(rule, large, 0.2))
        cells = "".join(
            f"|{best['ch'][i] / 1e9:8.2f} {best['torch'][i] / 1e9:8.3f} "
            f"{best['ch'][i] / best['torch'][i]:9.1f}x  " for i in (0, 1))
        print(f"{name:16}{cells}| {best['copy'] / best['ch'][1]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
