#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fake-quantising in ch against the same rule composed of PyTorch tensor operations, one core.

    bench/formats_pytorch.py [path of ch]
"""
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
ROWS, COLUMNS = 1 << 18, 64  # 64 MB: from memory on both sides


def integer(x):
    return torch.clamp(torch.round(x * 16.0), -128, 127) / 16.0


def small_float(x, mantissa=3, emin=-6, largest=448.0):
    exponent = torch.clamp(torch.floor(torch.log2(x.abs() + 1e-45)), min=emin)
    step = torch.exp2(exponent - mantissa)
    return torch.clamp(torch.round(x / step) * step, -largest, largest)


def block_fp(x, block=16, mantissa=7):
    b = x.reshape(-1, block)
    exponent = torch.floor(torch.log2(b.abs().amax(1, keepdim=True) + 1e-38)) + 1
    step = torch.exp2(exponent - mantissa)
    limit = 2.0**mantissa - 1
    return (torch.clamp(torch.round(b / step), -limit, limit) * step).reshape(x.shape)


def mxint(x, block=32):
    b = x.reshape(-1, block)
    step = torch.exp2(torch.floor(torch.log2(b.abs().amax(1, keepdim=True) + 1e-38)) - 6)
    return (torch.clamp(torch.round(b / step), -127, 127) * step).reshape(x.shape)


def mxfp(x, block=32):
    b = x.reshape(-1, block)
    scale = torch.exp2(torch.floor(torch.log2(b.abs().amax(1, keepdim=True) + 1e-38)) - 8)
    return (small_float(b / scale) * scale).reshape(x.shape)


def scaled_blocks(x, element, top, block=16):
    b = x.reshape(-1, block)
    scale = torch.exp2(torch.floor(torch.log2(b.abs().amax(1, keepdim=True) + 1e-38)) - top)
    return (element(b / scale) * scale).reshape(x.shape)


def scale_integer(x):
    scale = x.abs().amax(1, keepdim=True) / 127
    return torch.clamp(torch.round(x / scale), -127, 127) * scale


RULES = {
    "integer": integer,
    "e4m3": small_float,
    "float": lambda x: small_float(x, 4, -14, 63488.0),
    "bfloat16": lambda x: small_float(x, 7, -126, 3.3895e38),
    "minifloat_ieee": lambda x: small_float(x, 3, -6, 480.0),
    "log": lambda x: small_float(x, 0, -63, 2.0**64),
    "scale_integer": scale_integer,
    "block_fp": block_fp,
    "block_minifloat": lambda x: scaled_blocks(x, lambda e: small_float(e, 3, -6, 480.0), 8),
    "block_log": lambda x: scaled_blocks(x, lambda e: small_float(e, 0, -63, 2.0**64), 64),
    "mxint": mxint,
    "mxfp": mxfp,
}


def speed(rule, x):
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(4):
            rule(x)
        best = min(best, (time.perf_counter() - start) / 4)
    return x.numel() / best


def main():
    ch = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MASE_CH", "ch")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "speed.json")
        subprocess.run([ch, "format", "speed", "--json", path], check=True,
                       stdout=subprocess.DEVNULL)
        with open(path) as file:
            ours = json.load(file)
    x = torch.randn(ROWS, COLUMNS)
    print(f"{'format':16} {'ch, in cache':>14} {'ch, memory':>12} {'PyTorch':>10} {'ratio':>7}"
          "   [Gvalue/s; ratio: ch from memory / PyTorch]")
    for name, rule in RULES.items():
        torch_speed = speed(rule, x)
        print(f"{name:16} {ours[name]['in_cache'] / 1e9:14.2f} {ours[name]['in_memory'] / 1e9:12.2f}"
              f" {torch_speed / 1e9:10.3f} {ours[name]['in_memory'] / torch_speed:7.1f}")


if __name__ == "__main__":
    main()
