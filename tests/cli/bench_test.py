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

# The program as text, stage by stage: what fusion takes is a sweep before it, none after.
stages = {stage: bench("train", "jsc-tiny", "--dump", stage) for stage in ("lower", "fuse", "differentiate", "plan")}
for stage, run in stages.items():
    assert run.returncode == 0 and "linear" in run.stdout, (stage, run)
sweeps = {stage: run.stdout.count(" = map max(a, 0)(") for stage, run in stages.items()}
assert sweeps["lower"] > sweeps["fuse"], sweeps
assert "by clamp into batch_norm" in stages["fuse"].stdout
assert "backward:" in stages["differentiate"].stdout and "linear_weights(" in stages["differentiate"].stdout
assert "arena" in stages["plan"].stdout
assert "backward:" not in bench("infer", "jsc-tiny", "--dump", "differentiate").stdout

for words, said in ((("run", "jsc-tiny"), "train"), (("train", "jsc-tyni"), "jsc-tiny"),
                    (("train", "jsc-tiny", "--batch-size", "0"), "batch-size"),
                    (("infer", "jsc-tiny", "--seconds", "-1"), "seconds"),
                    (("infer", "jsc-tiny", "--threads", "0"), "threads"),
                    (("infer", "jsc-tiny", "--dump", "parse"), "differentiate"),
                    (("infer", "jsc-tiny", "--dump", "fuse", "--json", "-"), "json"),
                    (("primitives", "--dump", "fuse"), "dump")):
    run = bench(*words)
    assert run.returncode == 2 and said in run.stderr and run.stderr.count("\n") == 1, (words, run)
print("ok")
