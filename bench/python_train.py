#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""mase.train beside ch train, and what importing the package takes.

    ch python bench/python_train.py build/release/bin/ch

Both train the same network on the same data and write the same run folder, in turns, each in a process of its
own; the best of all rounds counts. `loop` is the training itself as both report it; `whole` is from the call
to its return (mase.train, NumPy imported before) or of the process (ch train)."""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

# Checkpoints are synced after each epoch, and a disk takes as long for that as it likes.
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
CALL = """
import sys, time
import mase, numpy
start = time.perf_counter()
run = mase.train(sys.argv[1], "jsc-sim", max_epochs=int(sys.argv[2]), batch_size=256, project_dir=sys.argv[3])
print(time.perf_counter() - start)
"""
IMPORT = "import time; s = time.perf_counter(); import mase; print(time.perf_counter() - s)"


def speed(folder):
    """Seconds of the loop: rows by rows per second, from the run's own record."""
    with open(glob.glob(os.path.join(folder, "*", "run.json"))[0]) as file:
        return json.load(file)["speed"]["seconds"]


def timed(command):
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="the ch to compare with")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=30)
    args = parser.parse_args()
    print(f"{'jsc-sim, batch 256':20}{'ch loop':>9}{'mase loop':>11}{'ratio':>8}{'ch whole':>10}{'mase whole':>12}{'ratio':>8}")
    for network in ("jsc-tiny", "jsc-10x"):
        best = {}
        for _ in range(args.rounds):
            for side in ("ch", "mase"):
                with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
                    if side == "ch":
                        whole, _ = timed([args.program, "train", network, "jsc-sim", "--max-epochs", str(args.epochs),
                                          "--batch-size", "256", "--project-dir", folder])
                    else:
                        whole = float(timed([sys.executable, "-c", CALL, network, str(args.epochs), folder])[1].splitlines()[-1])
                    times = speed(folder), whole
                best[side] = tuple(map(min, best.get(side, times), times))
        ch, ours = best["ch"], best["mase"]
        print(f"{network:20}{ch[0]:9.3f}{ours[0]:11.3f}{ours[0] / ch[0]:8.3f}{ch[1]:10.3f}{ours[1]:12.3f}{ours[1] / ch[1]:8.3f}")
    imports, bare, whole = [], [], []
    for _ in range(2 * args.rounds):
        bare.append(timed([sys.executable, "-c", "pass"])[0])
        seconds, text = timed([sys.executable, "-c", IMPORT])
        whole.append(seconds)
        imports.append(float(text))
    print(f"import mase: {min(imports):.3f} s; the process {min(whole):.3f} s, without the import {min(bare):.3f} s")


if __name__ == "__main__":
    main()
