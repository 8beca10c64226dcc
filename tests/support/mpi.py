# SPDX-License-Identifier: Apache-2.0
"""Runs under mpirun: its environment, and its end."""
import os
import shutil
import subprocess
import sys
import time

MODULE = os.path.join(os.path.dirname(os.environ["MASE_CH"]), "..", "lib", "libmase_mpi.so")
if not shutil.which("mpirun") or not os.path.exists(MODULE):
    print("skipped: no mpirun, or built without MPI")
    sys.exit(77)
# OpenMPI keeps memory to its end by design; its leaks are not ours to report.
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  OMPI_MCA_rmaps_base_oversubscribe="1",
                  OMPI_MCA_btl_vader_single_copy_mechanism="none",
                  OMPI_MCA_mpi_yield_when_idle="1", OMPI_MCA_odls_base_sigkill_timeout="0",
                  OMP_NUM_THREADS="1")


def children(parent):
    """Those that run: a locked-up mpirun may leave ranks that ended unreaped for ever."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % name) as file:
                state, its_parent = file.read().rsplit(")", 1)[1].split()[:2]
            if int(its_parent) == parent and state != "Z":
                found.append(int(name))
        except (OSError, ValueError, IndexError):
            pass
    return found


def end_of(process, killed=False):
    """What it said on stdout and stderr, and whether it had to be ended: mpirun of OpenMPI 4.1 may
    lock itself up in PMIx_server_finalize when all its ranks are gone, and its exit code with it.
    Nobody waits for the exit code of a run that was killed."""
    orphaned = time.monotonic()
    while True:
        try:
            return (*process.communicate(timeout=0.05), False)
        except subprocess.TimeoutExpired:
            if children(process.pid):
                orphaned = time.monotonic()
            elif time.monotonic() - orphaned > (0.3 if killed else 4):
                if not killed:
                    print("mpirun did not end by itself")
                process.kill()
                return (*process.communicate(), True)
