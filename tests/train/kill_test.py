# SPDX-License-Identifier: Apache-2.0
# Twenty random kill -9 moments during one run, resumed each time: the final weights, the best
# weights and the metrics (times aside) are those of a run that nobody disturbed, bit for bit.
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

CH = os.environ["MASE_CH"]
KILLS = 20
OPTIONS = ["jsc-toy", "jsc-sim", "--sim-rows", "3000", "--max-epochs", "30", "--batch-size", "16",
           "--learning-rate", "1e-2", "--seed", "7", "--log-every-n-steps", "20",
           "--checkpoint-steps", "37", "--accumulate-grad-batches", "2", "--warmup-steps", "50"]


def command(folder, *words):
    return [CH, "train", *words] if words[0] == "--resume" else \
        [CH, "train", *words, "--project-dir", folder, "--project", "run"]


def tensors(path):
    # The storages of the checkpoint; the pickle itself also holds the seconds spent.
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if "/data/" in name}


def metrics(path):
    with open(path) as file:
        return [line.rsplit(",", 1)[0] for line in file]


def main():
    scratch = tempfile.mkdtemp(prefix="mase-kill-")
    os.environ["MASE_DATA"] = os.path.join(scratch, "data")
    try:
        calm, rough = os.path.join(scratch, "calm"), os.path.join(scratch, "rough")
        start = time.monotonic()
        subprocess.run(command(calm, *OPTIONS), check=True, stdout=subprocess.DEVNULL)
        duration = time.monotonic() - start
        chance = random.Random(20240210)
        kills, attempts = 0, 0
        run = os.path.join(rough, "run")
        while True:
            attempts += 1
            words = ["--resume", run] if os.path.exists(run) else OPTIONS
            process = subprocess.Popen(command(rough, *words), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE)
            if kills < KILLS:
                # Mostly early moments, so that there is a run left to kill twenty times.
                time.sleep(chance.uniform(0, duration * (0.3 if kills % 3 else 0.6)))
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
            _, error = process.communicate()
            if process.returncode == 0:
                if kills >= KILLS:
                    break
                # Finished too early: the result must be right, and the killing goes on afresh.
                compare(calm, rough)
                shutil.rmtree(rough)
            elif process.returncode != -signal.SIGKILL:
                sys.exit("exit %d: %s" % (process.returncode, error.decode()))
            if attempts > 400:
                sys.exit("no progress after 400 starts")
        compare(calm, rough)
        interrupt(calm, os.path.join(scratch, "polite"))
        print("%d kills, %d starts, same weights" % (kills, attempts))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


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


def compare(calm, rough):
    for name in ("best", "last"):
        path = os.path.join("run", "software", "training_ckpts", name + ".ckpt")
        wanted, got = (tensors(os.path.join(folder, path)) for folder in (calm, rough))
        if wanted != got:
            sys.exit("%s.ckpt differs" % name)
    path = os.path.join("run", "software", "metrics.csv")
    wanted, got = (metrics(os.path.join(folder, path)) for folder in (calm, rough))
    if wanted != got:
        sys.exit("metrics.csv differs")


main()
