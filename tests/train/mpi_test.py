# SPDX-License-Identifier: Apache-2.0
# Data-parallel runs under mpirun against one process: the same loss curve to 1e-5, only rank 0
# prints and writes, and a resumed run goes on.
import csv
import os
import shutil
import subprocess
import sys
import tempfile

CH = os.environ["MASE_CH"]
MODULE = os.path.join(os.path.dirname(CH), "..", "lib", "libmase_mpi.so")
if not shutil.which("mpirun") or not os.path.exists(MODULE):
    print("skipped: no mpirun, or built without MPI")
    sys.exit(77)

linked = subprocess.run(["ldd", CH], capture_output=True, text=True).stdout
if "libmpi" in linked:
    sys.exit("ch itself depends on MPI")

scratch = tempfile.mkdtemp(prefix="mase-mpi-")
# OpenMPI keeps memory to its end by design; its leaks are not ours to report.
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
os.environ.update(MASE_DATA=os.path.join(scratch, "data"), OMPI_ALLOW_RUN_AS_ROOT="1",
                  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                  OMPI_MCA_btl_vader_single_copy_mechanism="none", OMP_NUM_THREADS="1")
OPTIONS = ["train", "jsc-toy", "jsc-sim", "--sim-rows", "3000", "--max-epochs", "3",
           "--batch-size", "96", "--learning-rate", "1e-2", "--log-every-n-steps", "1",
           "--project-dir", scratch]


def run(words, processes):
    launcher = [] if processes == 1 else ["mpirun", "-n", str(processes)]
    result = subprocess.run(launcher + [CH] + words, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit("%s: exit %d\n%s%s" % (words, result.returncode, result.stdout, result.stderr))
    return result.stdout


def curve(name):
    with open(os.path.join(scratch, name, "software", "metrics.csv")) as file:
        return [(row["epoch"], row["step"], row["train_loss_step"] or row["val_loss_epoch"])
                for row in csv.DictReader(file)]


try:
    run(OPTIONS + ["--project", "one"], 1)
    for processes in (2, 3):
        name = "n%d" % processes
        out = run(OPTIONS + ["--project", name], processes)
        if out.count("Epoch 2: 100%") != 1:
            sys.exit("not exactly one process prints:\n" + out)
        wanted, got = curve("one"), curve(name)
        if len(wanted) != len(got):
            sys.exit("%d rows, not %d" % (len(got), len(wanted)))
        worst = 0
        for (e1, s1, loss1), (e2, s2, loss2) in zip(wanted, got):
            if (e1, s1) != (e2, s2):
                sys.exit("rows differ: %s %s" % ((e1, s1), (e2, s2)))
            worst = max(worst, abs(float(loss1) - float(loss2)))
        print("%d processes: largest difference %.1e" % (processes, worst))
        if worst > 1e-5:
            sys.exit("the loss curve differs by %g" % worst)
    run(OPTIONS + ["--project", "unsynced", "--no-sync-bn"], 2)
    if curve("unsynced") == curve("one"):
        sys.exit("--no-sync-bn changed nothing")
    # A mistake ends all processes.
    bad = subprocess.run(["mpirun", "-n", "2", CH, "train", "jsc-toy", "nowhere.csv"],
                         capture_output=True, text=True, timeout=120)
    if bad.returncode == 0 or "nowhere.csv" not in bad.stderr:
        sys.exit("a mistake under mpirun: exit %d\n%s" % (bad.returncode, bad.stderr))
finally:
    shutil.rmtree(scratch, ignore_errors=True)
