# SPDX-License-Identifier: Apache-2.0
# Twenty kills of one of two processes that train together.
import os
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests", "support"))
import kill_runs  # noqa: E402
import mpi  # noqa: E402

OPTIONS = ["jsc-toy", "jsc-sim", "--sim-rows", "2000", "--max-epochs", "8", "--batch-size", "32",
           "--learning-rate", "1e-2", "--log-every-n-steps", "20", "--checkpoint-steps", "23"]


chance = random.Random(7)


def kill_one(process):
    # mpirun ends the others; before it has started any there is only itself.
    ranks = mpi.children(process.pid)
    try:
        os.kill(chance.choice(ranks) if ranks else process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


kill_runs.main(OPTIONS, launcher=("mpirun", "-n", "2"), kill=kill_one,
               end=lambda process, killed: mpi.end_of(process, killed)[1:])
