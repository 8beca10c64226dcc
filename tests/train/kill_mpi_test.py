# SPDX-License-Identifier: Apache-2.0
# Twenty kills of one of two processes that train together.
import os
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests", "support"))
import kill_runs  # noqa: E402

MODULE = os.path.join(os.path.dirname(kill_runs.CH), "..", "lib", "libmase_mpi.so")
if not shutil.which("mpirun") or not os.path.exists(MODULE):
    print("skipped: no mpirun, or built without MPI")
    sys.exit(77)
# OpenMPI keeps memory to its end by design; its leaks are not ours to report.
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_rmaps_base_oversubscribe="1",
                  OMPI_MCA_btl_vader_single_copy_mechanism="none",
                  OMPI_MCA_mpi_yield_when_idle="1", OMP_NUM_THREADS="1")

OPTIONS = ["jsc-toy", "jsc-sim", "--sim-rows", "2000", "--max-epochs", "8", "--batch-size", "32",
           "--learning-rate", "1e-2", "--log-every-n-steps", "20", "--checkpoint-steps", "23"]


def children(parent):
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % name) as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == parent:
                    found.append(int(name))
        except (OSError, ValueError, IndexError):
            pass
    return found


chance = random.Random(7)


def kill_one(process):
    # mpirun ends the others; before it has started any there is only itself.
    ranks = children(process.pid)
    try:
        os.kill(chance.choice(ranks) if ranks else process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    time.sleep(0.05)


kill_runs.main(OPTIONS, launcher=("mpirun", "-n", "2"), kill=kill_one)
