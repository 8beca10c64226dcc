# SPDX-License-Identifier: Apache-2.0
# For scripts that run the program and gather what went wrong, to say all of it at the end.
import os
import subprocess
import sys

CH = os.environ["MASE_CH"]
failures = []


def ch(*words, folder=".", code=0):
    """What a command prints; another exit code than this is a failure."""
    done = subprocess.run([CH, *map(str, words)], cwd=folder, capture_output=True, text=True)
    if done.returncode != code:
        failures.append(f"{words}: exit code {done.returncode}\n{done.stdout[-800:]}{done.stderr[-800:]}")
    return done.stdout + done.stderr


def check(condition, what, text=""):
    if not condition:
        failures.append(f"{what}\n{text[-1500:]}")


def end():
    print("\n\n".join(failures))
    sys.exit(1 if failures else 0)
