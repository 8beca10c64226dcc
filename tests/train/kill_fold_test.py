# SPDX-License-Identifier: Apache-2.0
# Twenty kills of a run that freezes and folds its batch norms half-way.
import os
import sys

sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests", "support"))
import kill_runs  # noqa: E402

OPTIONS = ["jsc-toy", "jsc-sim", "--sim-rows", "2000", "--max-epochs", "20", "--batch-size", "32",
           "--learning-rate", "1e-2", "--log-every-n-steps", "20", "--checkpoint-steps", "23"]

kill_runs.main(OPTIONS + ["--fold-bn", "--freeze-bn-epochs", "10"])
