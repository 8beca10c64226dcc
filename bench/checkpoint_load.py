# SPDX-License-Identifier: Apache-2.0
"""How long a large checkpoint takes to open, against torch.load in the same run.

    python3 bench/checkpoint_load.py [--ch build/release/bin/ch] [--folder /tmp] [--rounds 5]

Writes a 1 GB checkpoint of 400 tensors and a 2 GB one with PyTorch, opens them in turn with
torch.load and with ch, and prints the best of the rounds. `ch inspect --stats no` opens the file and
checks every tensor; with statistics it also reads every byte. Memory is the growth of the largest
resident set over opening a tiny file.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    print("python3-torch is not installed: nothing to compare with")
    sys.exit(77)


def make(path, tensors, megabytes):
    each = megabytes * 2**20 // 4 // tensors // 256
    state = {f"model.layers.{i}.weight": torch.rand(each, 256) for i in range(tensors)}
    torch.save({"pytorch-lightning_version": "2.1.0", "epoch": 1, "state_dict": state}, path)


# A process counts the memory of whatever started it, so ch is started by a small one.
STARTER = """
import os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss / 1024, status)
"""


def run(ch, *words):
    answer = subprocess.run([sys.executable, "-c", STARTER, ch, "inspect", *words],
                            capture_output=True, text=True, check=True)
    seconds, memory, status = answer.stdout.split()
    assert status == "0", words
    return float(seconds), float(memory)


def load(path):
    start = time.perf_counter()
    torch.load(path, map_location="cpu")
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ch", default="build/release/bin/ch")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    tiny = os.path.join(options.folder, "mase_bench_tiny.ckpt")
    make(tiny, 1, 1)
    base = min(run(options.ch, tiny, "--stats", "no")[1] for _ in range(3))
    for megabytes, tensors in ((1024, 400), (2048, 400)):
        path = os.path.join(options.folder, f"mase_bench_{megabytes}.ckpt")
        try:
            make(path, tensors, megabytes)
            rows = []
            for _ in range(options.rounds):  # in turn, so that a busy machine slows all alike
                rows.append((load(path), run(options.ch, path, "--stats", "no"), run(options.ch, path)))
            torch_time = min(row[0] for row in rows)
            opened, memory = min(row[1] for row in rows)
            read, _ = min(row[2] for row in rows)
            print(f"{megabytes} MB, {tensors} tensors: torch.load {torch_time:.3f} s; "
                  f"ch opens in {opened:.3f} s ({opened / torch_time:.2f}x, {memory - base:.1f} MB more "
                  f"than for a 1 MB file), reads every byte for statistics in {read:.3f} s")
        finally:
            if os.path.exists(path):
                os.remove(path)
    os.remove(tiny)


main()
