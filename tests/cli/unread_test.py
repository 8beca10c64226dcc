# SPDX-License-Identifier: Apache-2.0
"""Nothing that is asked for is left unread: what no command knows is an error that names the nearest
known one, everywhere and before data are touched; what a command knows has an effect."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

CH = os.environ["MASE_CH"]
scratch = tempfile.mkdtemp(prefix="mase-unread-")
os.environ.update(HOME=scratch, MASE_DATA=os.path.join(scratch, "data"))
RULE = "".join(f"{operand}_{key}\n" for operand in ("data_in", "weight", "bias")
               for key in ("width = 8", "frac_width = 4"))
PASSES = "[passes.quantize]\nby = \"type\"\n[passes.quantize.linear.config]\nname = \"integer\"\n" + RULE
TRAIN = ["train", "jsc-toy", "jsc-sim", "--sim-rows", "300", "--max-epochs", "1"]
faults = []


def write(name, text):
    path = os.path.join(scratch, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def ch(*words, code=0):
    result = subprocess.run([CH, *words], cwd=scratch, capture_output=True, text=True)
    if result.returncode != code:
        faults.append(f"{' '.join(words)}: exit code {result.returncode}: {result.stdout[-300:]}"
                      f"{result.stderr[-300:]}")
    return result.stdout + result.stderr


def refused(wanted, *words):
    said = ch(*words, code=2)
    if wanted not in said:
        faults.append(f"{' '.join(words)}: does not say '{wanted}': {said[-300:]}")
    if "Data set" in said or "jets" in said:
        faults.append(f"{' '.join(words)}: data were loaded first")


def expect(condition, what):
    if not condition:
        faults.append(what)


def configurations(network):
    """Every command that takes a file reads all of it, or knows who does."""
    files = [("did you mean 'passes'?", write("table.toml", PASSES.replace("[passes", "[pases", 1))),
             ("did you mean 'passes'?", write("beside.toml", PASSES + "[pasess]\nx = 1\n")),
             ("did you mean 'learning_rate'?", write("key.toml", "learning_rat = 1\n" + PASSES)),
             ("did you mean 'optimizer'?", write("set.toml", PASSES + "[optimiser]\nbeta1 = 0.9\n")),
             ("did you mean 'beta1'?", write("option.toml", PASSES + "[optimizer]\nbeto1 = 0.9\n"))]
    commands = [TRAIN, ["test", "jsc-toy", "jsc-sim"], ["predict", "--load", network, "--input", "x.npy"],
                ["transform", "jsc-toy", "jsc-sim"], ["search", "jsc-toy", "jsc-sim"],
                ["emit", "--load", network], ["estimate", "--load", network],
                ["shrink", "--load", network, "--dataset", "jsc-sim"], ["bench", "train", "jsc-toy"],
                ["export", "jsc-toy", "--to", "x.onnx"], ["pass", "report_graph", "jsc-toy"],
                ["format", "sweep", "jsc-toy", "jsc-sim"],
                ["sweep", "train", "jsc-toy", "jsc-sim", "--seeds", "2"]]
    for command in commands:
        for wanted, path in files if command == TRAIN else files[:3]:
            refused(wanted, *command, "--config", path)
    refused("did you mean 'learning_rate'?", *TRAIN, "--quant-config", files[2][1])
    good = write("good.toml", PASSES)
    refused("lists passes already", *TRAIN, "--config", good, "--quant-config", good)
    refused("command line only", *TRAIN, "--config", write("seeds.toml", "seeds = 3\n"))


def words():
    refused("did you mean 'top_k_accuracy'?", *TRAIN, "--metrics", "top_k_acuracy")
    refused("did you mean 'k'?", *TRAIN, "--metrics", "top_k_accuracy:kk=3")
    refused("no single figure", *TRAIN, "--metrics", "roc")
    refused("did you mean 'accuracy'?", *TRAIN, "--monitor", "acuracy")
    refused("unknown option '-x'", "train", "-x")
    refused("--format", "quantize", "--format", "integr", "--input", "nosuch")
    refused("did you mean 'width'?", "quantize", "--format", "integer", "--set", "widht=3", "--input",
            "nosuch")
    for line in ("data list mnist", "data info leaves.csv --sha256 1", "data fetch mnist --target x",
                 "format list x", "format show e2m1 --rows 3", "format rules --only e2m1"):
        refused("takes no ", *line.split())
    for line in ("predict --target x", "predict --project x", "transform --learning-rate 1",
                 "export --val-split 0.1", "pass report_graph --threads 2"):
        refused("unknown option", *line.split())
    sweep = ["sweep", "train", "jsc-toy", "jsc-sim"]
    refused("did you mean 'jsc-toy'?", "sweep", "train", "jsc-toi", "jsc-sim", "--seeds", "2")
    refused("'x' is not a number", *sweep, "--vary", "learning_rate=1,x")
    refused("unknown choice 'sgdd'", *sweep, "--vary", "optimizer=adam,sgdd")
    refused("nothing is varied", *sweep)
    expect(not os.path.exists(os.path.join(scratch, "mase_output")), "a refused command left a folder")


def effects():
    ch(*TRAIN, "--loss", "mse", "--metrics", "top_k_accuracy:k=3", "--project", "first")
    folder = os.path.join(scratch, "mase_output", "first")
    best = os.path.join(folder, "software", "training_ckpts", "best.mz")
    with open(os.path.join(folder, "software", "metrics.csv")) as file:
        expect("val_top3_acc_epoch" in file.readline(), "--metrics top_k_accuracy:k=3 is not in metrics.csv")
    # The loss of a test is the one of the training.
    said = ch(*TRAIN, "--loss", "mse", "--project", "again")
    trained = re.search(r"test_loss_epoch ([\d.]+)", said)
    tested = re.search(r"test_loss_epoch +([\d.]+)", ch("test", "--load", best, "--no-output"))
    expect(trained and tested and abs(float(trained[1]) - float(tested[1])) < 1e-4,
           "ch test measures another loss than the training did")
    # What is typed beside a file that names its data holds.
    said = ch("test", "--load", best, "--no-output", "--sim-rows", "200")
    expect("40 test" in said or "holds other rows" in said, "--sim-rows is not read beside --load")
    said = ch("test", "--load", best, "--no-output", "--scaling", "none")
    expect("scaling = none: not used" in said, "--scaling is dropped without a word")
    said = ch("test", "--load", best, "--no-output", "--split", "validation", "--val-split", "0.5")
    whole = ch("test", "--load", best, "--no-output", "--split", "validation")
    expect(said.split("Data set")[0] != whole.split("Data set")[0], "--val-split is not read beside --load")
    # A pass run by itself takes the table of the file, and --set changes it.
    rules = write("rules.toml", 'model = "jsc-toy"\n' + PASSES)
    said = ch("pass", "quantize", "--config", rules)
    expect("weight integer 8/4" in re.sub(r"'\s+'", "", said), f"ch pass does not read [passes.quantize]: {said[-300:]}")
    said = ch("pass", "quantize", "--config", rules, "--set", "linear.config.weight_width=6")
    expect("weight integer 6/4, bias integer 8/4" in re.sub(r"'\s+'", "", said),
           f"--set does not change the file's table: {said[-300:]}")
    expect("'bath_size'" in ch("pass", "report_graph", "--config",
                               write("other.toml", 'model = "jsc-toy"\n[passes.calculate_flops]\nbath_size = 8\n'),
                               code=2), "ch pass leaves the tables of other passes unread")
    twice = write("twice.toml", 'model = "jsc-toy"\n' + 2 * '[[passes.run]]\nname = "report_graph"\n')
    expect("more than once" in ch("pass", "report_graph", "--config", twice, code=2),
           "ch pass chooses among the calls of a file")
    table = write("metrics.toml", "[metrics.top_k_accuracy]\nk = 4\n")
    ch(*TRAIN, "--config", table, "--project", "table")
    said = ch("train", "--config", os.path.join(scratch, "mase_output/table/software/config.toml"),
              "--project", "from_table")
    with open(os.path.join(scratch, "mase_output/from_table/software/metrics.csv")) as file:
        expect("val_top4_acc_epoch" in file.readline(), "[metrics.top_k_accuracy] is not kept in config.toml")
    # What concerns the terminal is free for a resumed run.
    said = ch("train", "--resume", folder, "--max-epochs", "2", "--log-level", "error")
    expect("INFO" not in said, "--log-level is not read beside --resume")


def tasks():
    rows = "".join(f"{i % 7},{i % 5},{i % 3}\n" for i in range(60))
    table = write("whole.csv", "a,b,y\n" + rows)
    network = write("net.toml", "name = \"net\"\nseq_blocks = [{type = \"Linear\"}]\n")
    common = ["train", network, table, "--target", "y", "--max-epochs", "1"]
    expect("val_acc_epoch" in ch(*common, "--project", "classes"), "whole numbers are classes")
    said = ch(*common, "--task", "regression", "--project", "numbers")
    expect("val_mae_epoch" in said, "--task regression does not make a regression of whole numbers")
    for name in ("classes", "numbers"):  # files of ours are taken by the commands they concern
        config = os.path.join(scratch, "mase_output", name, "software/config.toml")
        ch("train", "--config", config, "--project", name + "_again")
        ch("test", "--config", config, "--no-output")


try:
    words()
    ch(*TRAIN, "--project", "network")
    configurations(os.path.join(scratch, "mase_output/network/software/training_ckpts/best.mz"))
    effects()
    tasks()
finally:
    shutil.rmtree(scratch, ignore_errors=True)
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
