# SPDX-License-Identifier: Apache-2.0
# A sweep that is killed and started again at once: it waits for what its children still write, never
# mixes two runs in one folder, and never counts a run as done that is not.
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ch = os.environ["MASE_CH"]


def sweep(folder, epochs):
    return [ch, "sweep", "train", "jsc-tiny", "jsc-sim", "--sim-rows", "1000", "--max-epochs", str(epochs),
            "--batch-size", "16", "--vary", "learning_rate=1e-2,1e-3", "--project", "killed", "--jobs", "2"]


def runs(folder):
    return os.path.join(folder, "mase_output", "killed", "runs")


def main():
    folder = tempfile.mkdtemp()
    environment = dict(os.environ, MASE_DATA=folder + "/data")
    try:
        for pause in (0.0, 0.05, 0.2, 0.5):
            shutil.rmtree(os.path.join(folder, "mase_output"), ignore_errors=True)
            first = subprocess.Popen(sweep(folder, 60), cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            for _ in range(600):
                if os.path.isdir(runs(folder)) and len(os.listdir(runs(folder))) == 2:
                    break
                time.sleep(0.02)
            time.sleep(pause)
            first.send_signal(signal.SIGKILL)
            first.wait()
            second = subprocess.run(sweep(folder, 60), cwd=folder, env=environment, capture_output=True, text=True,
                                    timeout=300)
            assert second.returncode == 0, second.stdout + second.stderr
            names = sorted(os.listdir(runs(folder)))
            assert names == ["learning_rate=1e-2", "learning_rate=1e-3"], names
            state = json.load(open(os.path.join(folder, "mase_output", "killed", "sweep.json")))
            for run in state["runs"]:
                record = json.load(open(os.path.join(runs(folder), run["name"], "run.json")))
                assert run["status"] == "finished" and record["status"] == "finished", (run, record["status"])
                assert record["command"][1:] == run["words"]
                rows = open(os.path.join(runs(folder), run["name"], "software", "metrics.csv")).read().splitlines()
                epochs = [int(row.split(",")[0]) for row in rows[1:] if row.split(",")[5]]
                assert epochs == list(range(60)), epochs  # one run's rows, each once
        # A run whose folder says that it failed is no finished one, whatever the state file says.
        state_path = os.path.join(folder, "mase_output", "killed", "sweep.json")
        record_path = os.path.join(runs(folder), "learning_rate=1e-3", "run.json")
        record = json.load(open(record_path))
        record["status"] = "failed"
        json.dump(record, open(record_path, "w"))
        again = subprocess.run(sweep(folder, 60), cwd=folder, env=environment, capture_output=True, text=True,
                               timeout=300)
        assert again.returncode == 0 and "(1 of them done before)" in again.stdout, again.stdout + again.stderr
        assert json.load(open(record_path))["status"] == "finished"
        assert os.path.exists(state_path)
    finally:
        shutil.rmtree(folder)
    return 0


sys.exit(main())
