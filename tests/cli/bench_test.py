# SPDX-License-Identifier: Apache-2.0
"""ch bench: every mode gives figures that agree with one another, as a table and as JSON; what it
cannot measure is one line."""
import json
import os
import subprocess

CH = os.environ["MASE_CH"]


def bench(*words):
    return subprocess.run([CH, "bench", *words], capture_output=True, text=True)


for mode in ("train", "infer"):
    for model, batch in (("jsc-tiny", 64), ("lenet", 4), ("bert-tiny", 2)):
        run = bench(mode, model, "--batch-size", str(batch), "--seconds", "0.05", "--json", "-")
        assert run.returncode == 0, run.stderr
        record = json.loads(run.stdout)
        assert (record["mode"], record["model"], record["batch_size"]) == (mode, model, batch), record
        assert record["steps_per_second"] > 0
        ratio = record["samples_per_second"] / record["steps_per_second"]
        assert abs(ratio - batch) < 1e-6 * batch, record

table = bench("train", "jsc-tiny", "--seconds", "0.05")
assert table.returncode == 0 and "jsc-tiny" in table.stdout and "Steps/s" in table.stdout, table.stdout
load = bench("load", "jsc-tiny", "--seconds", "0.05")
assert load.returncode == 0, load.stderr

for words, said in ((("run", "jsc-tiny"), "train"), (("train", "jsc-tyni"), "jsc-tiny"),
                    (("train", "jsc-tiny", "--batch-size", "0"), "batch-size"),
                    (("infer", "jsc-tiny", "--seconds", "-1"), "seconds"),
                    (("infer", "jsc-tiny", "--threads", "0"), "threads")):
    run = bench(*words)
    assert run.returncode == 2 and said in run.stderr and run.stderr.count("\n") == 1, (words, run)
print("ok")
