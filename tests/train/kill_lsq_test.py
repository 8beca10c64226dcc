# SPDX-License-Identifier: Apache-2.0
# Twenty kills of a run that learns its ranges (LSQ and PACT).
import os
import sys

sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests", "support"))
import kill_runs  # noqa: E402

OPTIONS = ["jsc-toy", "jsc-sim", "--sim-rows", "2000", "--max-epochs", "20", "--batch-size", "32",
           "--learning-rate", "1e-2", "--log-every-n-steps", "20", "--checkpoint-steps", "23"]

kill_runs.main(OPTIONS, """
[passes.quantize]
by = "type"
[passes.quantize.linear.config]
name = "scale_integer"
data_in_width = 4
data_in_is_signed = false
data_in_clip = "learned"
weight_width = 4
weight_scale = "learned"
weight_granularity = "row"
""")
