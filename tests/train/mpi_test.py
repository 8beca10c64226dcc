# SPDX-License-Identifier: Apache-2.0
# Data-parallel runs under mpirun against one process: the same loss curve to 1e-5, also with
# dropout, rounded and learned numbers and shards of unequal size; only rank 0 prints and writes, and
# a mistake ends all processes.
import csv
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["MASE_SOURCE"], "tests", "support"))
import mpi  # noqa: E402

CH = os.environ["MASE_CH"]
linked = subprocess.run(["ldd", CH], capture_output=True, text=True).stdout
if "libmpi" in linked:
    sys.exit("ch itself depends on MPI")

scratch = tempfile.mkdtemp(prefix="mase-mpi-")
os.environ["MASE_DATA"] = os.path.join(scratch, "data")
OPTIONS = ["train", "jsc-toy", "jsc-sim", "--sim-rows", "3000", "--max-epochs", "3",
           "--batch-size", "96", "--learning-rate", "1e-2", "--log-every-n-steps", "1",
           "--project-dir", scratch]


def start(words, processes):
    launcher = [] if processes == 1 else ["mpirun", "-n", str(processes)]
    process = subprocess.Popen(launcher + [CH] + words, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    if processes == 1:
        return (process, *process.communicate(), False)
    return (process, *mpi.end_of(process))


def run(words, processes):
    process, out, error, ended = start(words, processes)
    if process.returncode != 0 and not ended:
        sys.exit("%s: exit %d\n%s%s" % (words, process.returncode, out, error))
    return out


def curve(name):
    with open(os.path.join(scratch, name, "software", "metrics.csv")) as file:
        return [(row["epoch"], row["step"], row["train_loss_step"] or row["val_loss_epoch"])
                for row in csv.DictReader(file)]


def follows(what, words, counts, steps=None):
    run(words + ["--project", what], 1)
    for processes in counts:
        name = "%s%d" % (what, processes)
        out = run(words + ["--project", name], processes)
        if out.count("Best checkpoint:") != 1:
            sys.exit("not exactly one process prints:\n" + out)
        wanted, got = curve(what), curve(name)
        if len(wanted) != len(got):
            sys.exit("%d rows, not %d" % (len(got), len(wanted)))
        worst = 0
        for (e1, s1, loss1), (e2, s2, loss2) in list(zip(wanted, got))[:steps]:
            if (e1, s1) != (e2, s2):
                sys.exit("rows differ: %s %s" % ((e1, s1), (e2, s2)))
            worst = max(worst, abs(float(loss1) - float(loss2)))
        print("%s on %d processes: largest difference %.1e" % (what, processes, worst))
        if worst > 1e-5:
            sys.exit("%s: the loss curve differs by %g" % (what, worst))


def file_of(name, text):
    with open(os.path.join(scratch, name), "w") as file:
        file.write(text)
    return os.path.join(scratch, name)


LINEAR = """
[passes.quantize]
by = "type"
[passes.quantize.linear.config]
"""
CONFIGS = {
    "qat": """name = "integer"
data_in_width = 6
data_in_frac_width = 3
weight_width = 4
weight_frac_width = 2
""",
    "stochastic": """name = "integer"
data_in_width = 6
data_in_frac_width = 4
data_in_rounding = "stochastic"
weight_width = 6
weight_frac_width = 4
weight_rounding = "stochastic"
""",
    "lsq": """name = "scale_integer"
data_in_width = 4
data_in_scale = "learned"
weight_width = 4
weight_scale = "learned"
weight_granularity = "row"
"""}
DROPOUT = """input = [16]
seq_blocks = [{type = "Linear", out_features = 32}, {type = "ReLU"}, {type = "Dropout", p = 0.3},
              {type = "Linear", out_features = 5}]
"""

try:
    follows("one", OPTIONS, (2, 3))
    for what, config in CONFIGS.items():
        # Every process draws the same numbers. Sooner or later a value that lies within the rounding
        # of a sum of its own draw goes the other way; from there on random rounding is another run.
        follows(what, OPTIONS + ["--config", file_of(what + ".toml", LINEAR + config)], (2,),
                4 if what == "stochastic" else None)
    network = [word if word != "jsc-toy" else file_of("dropout.toml", DROPOUT) for word in OPTIONS]
    # 97 rows in a batch: shards of 48 and 49, and draws that begin in the middle of a block.
    network[network.index("96")] = "97"
    follows("dropout", network, (2,))
    run(OPTIONS + ["--project", "unsynced", "--no-sync-bn"], 2)
    if curve("unsynced") == curve("one"):
        sys.exit("--no-sync-bn changed nothing")
    # A mistake ends all processes.
    process, _, error, _ = start(["train", "jsc-toy", "nowhere.csv"], 2)
    if process.returncode == 0 or "nowhere.csv" not in error:
        sys.exit("a mistake under mpirun: exit %d\n%s" % (process.returncode, error))
finally:
    shutil.rmtree(scratch, ignore_errors=True)
