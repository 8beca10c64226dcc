# SPDX-License-Identifier: Apache-2.0
# A sweep that is killed and started again at once: it waits for what its children still write, never
# mixes two runs in one folder, and never counts a run as done that is not.
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests", "support"))
from kill_runs import CH, tensors  # noqa: E402


def sweep():
    return [CH, "sweep", "train", "jsc-tiny", "jsc-sim", "--sim-rows", "1000", "--max-epochs", "30",
            "--batch-size", "16", "--vary", "learning_rate=1e-2,1e-3", "--project", "killed", "--jobs", "2"]


def runs(folder):
    return os.path.join(folder, "mase_output", "killed", "runs")


def check(calm, folder):
    """Every run is the one of the undisturbed sweep, to the bit, and says that it is finished."""
    names = sorted(os.listdir(runs(folder)))
    assert names == ["learning_rate=1e-2", "learning_rate=1e-3"], names
    state = json.load(open(os.path.join(folder, "mase_output", "killed", "sweep.json")))
    for run in state["runs"]:
        record = json.load(open(os.path.join(runs(folder), run["name"], "run.json")))
        assert run["status"] == "finished" and record["status"] == "finished", (run, record["status"])
        assert record["command"][1:] == run["words"]
        software = os.path.join(run["name"], "software")
        rows = open(os.path.join(runs(folder), software, "metrics.csv")).read().splitlines()
        epochs = [int(row.split(",")[0]) for row in rows[1:] if row.split(",")[5]]
        assert epochs == list(range(30)), epochs  # one run's rows, each once
        for name in ("best.ckpt", "last.ckpt"):
            file = os.path.join(software, "training_ckpts", name)
            assert tensors(os.path.join(runs(calm), file)) == tensors(os.path.join(runs(folder), file)), file


def main():
    folder = tempfile.mkdtemp()
    environment = dict(os.environ, MASE_DATA=folder + "/data")
    try:
        calm = os.path.join(folder, "calm")
        os.mkdir(calm)
        began = time.monotonic()
        subprocess.run(sweep(), cwd=calm, env=environment, stdout=subprocess.DEVNULL, check=True)
        duration = time.monotonic() - began
        # As of a sweep that was killed while it wrote its first file.
        os.makedirs(runs(folder))
        open(os.path.join(folder, "mase_output", "killed", "sweep.json.tmp-ab12cd"), "w").close()
        # Started again at once each time, and anew where it was quicker than the kill.
        chance = random.Random(11)
        with open(os.path.join(os.environ["MASE_BUILD"], "CMakeCache.txt")) as cache:
            moments = 20 if "MASE_SANITIZE:STRING=\n" in cache.read() else 8  # each takes seconds under sanitizers
        kills = 0
        while kills < moments:
            process = subprocess.Popen(sweep(), cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, duration))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
            else:
                assert process.returncode == 0, process.returncode
                check(calm, folder)
                shutil.rmtree(os.path.join(folder, "mase_output"))
        last = subprocess.run(sweep(), cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert last.returncode == 0, last.stdout + last.stderr
        check(calm, folder)
        # A run whose folder says that it failed is no finished one, whatever the state file says.
        state_path = os.path.join(folder, "mase_output", "killed", "sweep.json")
        record_path = os.path.join(runs(folder), "learning_rate=1e-3", "run.json")
        record = json.load(open(record_path))
        record["status"] = "failed"
        json.dump(record, open(record_path, "w"))
        again = subprocess.run(sweep(), cwd=folder, env=environment, capture_output=True, text=True,
                               timeout=300)
        assert again.returncode == 0 and "(1 of them done before)" in again.stdout, again.stdout + again.stderr
        assert json.load(open(record_path))["status"] == "finished"
        assert os.path.exists(state_path)
    finally:
        shutil.rmtree(folder)
    return 0


sys.exit(main())
