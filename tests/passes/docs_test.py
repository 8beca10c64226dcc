# SPDX-License-Identifier: Apache-2.0
# Runs the commands that docs/passes.md shows and compares what they print.
import os
import subprocess
import sys

source, program = os.environ["MASE_SOURCE"], os.environ["MASE_CH"]
lines = open(os.path.join(source, "docs", "passes.md"), encoding="utf-8").read().split("\n")
failures = shown = at = 0
while at < len(lines):
    if lines[at] != "```console":
        at += 1
        continue
    end = lines.index("```", at)
    command, wanted = lines[at + 1], lines[at + 2 : end]
    assert command.startswith("$ ch "), command
    words = command[5:]
    got = subprocess.run(["bash", "-c", f'"$MASE_CH" {words}'], cwd=source, text=True,
                         capture_output=True)
    shown += 1
    if got.stdout.rstrip("\n").split("\n") != wanted:
        failures += 1
        print(f"{command}\nprints\n{got.stdout}{got.stderr}\nbut the page shows\n" + "\n".join(wanted))
    at = end
if shown < 4:
    sys.exit("docs/passes.md shows too few commands")
sys.exit(1 if failures else 0)
