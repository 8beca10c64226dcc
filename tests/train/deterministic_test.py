# SPDX-License-Identifier: Apache-2.0
# --deterministic computes with what every x86-64 machine has, says so in its checkpoints, and gives
# the same bits each time; a setting in the file does the same as the flag.
import os
import platform
import subprocess
import sys
import tempfile
import shutil

sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests", "support"))
from kill_runs import CH, tensors  # noqa: E402
import zipfile  # noqa: E402

if platform.machine() != "x86_64":
    print("skipped: not an x86-64 machine")
    sys.exit(77)

with open(os.path.join(os.environ["MASE_BUILD"], "CMakeCache.txt"), encoding="utf-8") as cache:
    if "MASE_SANITIZE:STRING=\n" not in cache.read():
        print("skipped: sanitizer builds leave SSE4 out")
        sys.exit(77)

scratch = tempfile.mkdtemp(prefix="mase-deterministic-")
os.environ["MASE_DATA"] = os.path.join(scratch, "data")
OPTIONS = ["train", "jsc-toy", "jsc-sim", "--sim-rows", "2000", "--max-epochs", "2",
           "--learning-rate", "1e-2", "--project-dir", scratch]


def run(name, *words):
    result = subprocess.run([CH, *OPTIONS, "--project", name, *words], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit("%s: exit %d\n%s" % (name, result.returncode, result.stderr))
    path = os.path.join(scratch, name, "software", "training_ckpts", "last.ckpt")
    with zipfile.ZipFile(path) as archive:
        pickle = next(archive.read(item) for item in archive.namelist() if item.endswith("data.pkl"))
    at = pickle.index(b'"instruction_set"')
    return tensors(path), pickle[at:at + 40].split(b'"')[3].decode()


try:
    first, used = run("first", "--deterministic")
    if used != "SSE4":
        sys.exit("--deterministic computed with " + used)
    config = os.path.join(scratch, "config.toml")
    with open(config, "w") as file:
        file.write("deterministic = true\n")
    again, used = run("again", "--config", config)
    if used != "SSE4" or first != again:
        sys.exit("the setting in the file is not the flag's: " + used)
    print("same bits twice; without it this machine uses " + run("fast")[1])
finally:
    shutil.rmtree(scratch, ignore_errors=True)
