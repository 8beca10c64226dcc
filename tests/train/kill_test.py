# SPDX-License-Identifier: Apache-2.0
# Twenty random kill -9 moments during one run, resumed each time, end in the bits of a run that
# nobody disturbed; so does one that Ctrl-C stopped.
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests", "support"))
from kill_runs import command, compare, kill_runs  # noqa: E402

OPTIONS = ["jsc-toy", "jsc-sim", "--sim-rows", "3000", "--max-epochs", "30", "--batch-size", "16",
           "--learning-rate", "1e-2", "--seed", "7", "--log-every-n-steps", "20",
           "--checkpoint-steps", "37", "--accumulate-grad-batches", "2", "--warmup-steps", "50"]


def interrupt(calm, polite):
    # Ctrl-C finishes the step, saves and exits with 130; the resumed run ends the same.
    run = os.path.join(polite, "run")
    process = subprocess.Popen(command(polite, *OPTIONS), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    last = os.path.join(run, "software", "training_ckpts", "last.ckpt")
    while not os.path.exists(last) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    if process.returncode != 130 or b"--resume" not in error:
        sys.exit("Ctrl-C: exit %d: %s" % (process.returncode, error.decode()))
    with open(os.path.join(run, "run.json")) as file:
        if json.load(file)["status"] != "interrupted":
            sys.exit("Ctrl-C: the run record does not say so")
    subprocess.run(command(polite, "--resume", run), check=True, stdout=subprocess.DEVNULL)
    compare(calm, polite)


scratch = tempfile.mkdtemp(prefix="mase-kill-")
os.environ["MASE_DATA"] = os.path.join(scratch, "data")
try:
    kill_runs(OPTIONS, scratch)
    interrupt(os.path.join(scratch, "calm"), os.path.join(scratch, "polite"))
finally:
    shutil.rmtree(scratch, ignore_errors=True)
