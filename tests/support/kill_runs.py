# SPDX-License-Identifier: Apache-2.0
"""Kills a training run again and again at random moments, resumes it each time, and compares what it
ends in with a run that nobody disturbed: final weights, best weights and metrics (times aside), bit
for bit."""
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


def command(folder, *words, launcher=()):
    end = [] if words[0] == "--resume" else ["--project-dir", folder, "--project", "run"]
    return [*launcher, CH, "train", *words, *end]


def tensors(path):
    # The storages of the checkpoint; the pickle itself also holds the seconds spent.
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if "/data/" in name}


def metrics(path):
    with open(path) as file:
        return [line.rsplit(",", 1)[0] for line in file]


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


def kill_itself(process):
    process.send_signal(signal.SIGKILL)


def end_by_itself(process, killed):
    """What it said on stderr, and whether it had to be ended though nobody had killed the run."""
    return process.communicate()[1], False


def start(words):
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_runs(options, scratch, launcher=(), kill=kill_itself, end=end_by_itself):
    """Leaves the undisturbed run in scratch/calm."""
    calm, rough = os.path.join(scratch, "calm"), os.path.join(scratch, "rough")
    ended = True
    while ended:
        shutil.rmtree(calm, ignore_errors=True)
        began = time.monotonic()
        process = start(command(calm, *options, launcher=launcher))
        error, ended = end(process, False)
    if process.returncode != 0:
        sys.exit("exit %d: %s" % (process.returncode, error.decode()))
    duration = time.monotonic() - began
    chance = random.Random(20240210)
    kills, attempts = 0, 0
    run = os.path.join(rough, "run")
    while True:
        attempts += 1
        words = ["--resume", run] if os.path.exists(run) else options
        began = time.monotonic()
        process = start(command(rough, *words, launcher=launcher))
        killed = False
        if kills < KILLS:
            # Mostly early moments, so that there is a run left to kill twenty times.
            moment = began + chance.uniform(0, duration * (0.3 if kills % 3 else 0.6))
            while process.poll() is None and time.monotonic() < moment:
                time.sleep(0.002)
            if process.poll() is None:
                kill(process)
                killed = True
                kills += 1
        error, ended = end(process, killed)
        if process.returncode == 0:
            if kills >= KILLS:
                break
            # Finished too early, faster than before (the machine may have been busy): the result
            # must be right, and the killing goes on afresh.
            if words == options:
                duration = min(duration, time.monotonic() - began)
            compare(calm, rough)
            shutil.rmtree(rough)
        elif not killed and not ended:
            sys.exit("exit %d: %s" % (process.returncode, error.decode()))
        if attempts > 400:
            sys.exit("no progress after 400 starts")
    compare(calm, rough)
    print("%d kills, %d starts, same weights" % (kills, attempts))


def main(options, config=None, **how):
    scratch = tempfile.mkdtemp(prefix="mase-kill-")
    os.environ["MASE_DATA"] = os.path.join(scratch, "data")
    try:
        if config:
            path = os.path.join(scratch, "config.toml")
            with open(path, "w") as file:
                file.write(config)
            options = options + ["--config", path]
        kill_runs(options, scratch, **how)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
