# SPDX-License-Identifier: Apache-2.0
# Runs the commands that the guides show in ```console blocks and compares what they print.
import glob
import os
import subprocess
import sys

source = os.environ["MASE_SOURCE"]
failures = shown = 0
for page in sorted(glob.glob(os.path.join(source, "docs/**/*.md"), recursive=True)):
    lines = open(page, encoding="utf-8").read().split("\n")
    at = 0
    while at < len(lines):
        if lines[at] != "```console":
            at += 1
            continue
        end = lines.index("```", at)
        command, wanted = lines[at + 1], lines[at + 2 : end]
        assert command.startswith("$ ch "), command
        got = subprocess.run(["bash", "-c", f'"$MASE_CH" {command[5:]}'], cwd=source, text=True,
                             capture_output=True)
        shown += 1
        if (got.stdout + got.stderr).rstrip("\n").split("\n") != wanted:
            failures += 1
            print(f"{os.path.basename(page)}: {command}\nprints\n{got.stdout}{got.stderr}\n"
                  "but the page shows\n" + "\n".join(wanted))
        at = end
if shown < 6:
    sys.exit("the guides show too few commands")
sys.exit(1 if failures else 0)
