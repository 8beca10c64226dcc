# SPDX-License-Identifier: Apache-2.0
# Losses, figures and the monitored one through the program: flags and tables reach the record they
# belong to, runs measure what they say, and what nobody reads is refused.
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile

CH = os.environ["MASE_CH"]
scratch = tempfile.mkdtemp(prefix="mase-losses-")
os.environ["MASE_DATA"] = os.path.join(scratch, "data")
JETS = ["jsc-toy", "jsc-sim", "--sim-rows", "3000", "--max-epochs", "3", "--learning-rate", "1e-2"]


def train(name, *words, code=0):
    result = subprocess.run([CH, "train", *words, "--project-dir", scratch, "--project", name],
                            capture_output=True, text=True)
    if result.returncode != code:
        sys.exit("%s: exit %d\n%s%s" % (name, result.returncode, result.stdout, result.stderr))
    return result.stdout + result.stderr


def rows(name):
    with open(os.path.join(scratch, name, "software", "metrics.csv")) as file:
        return [row for row in csv.DictReader(file) if row["val_loss_epoch"]]


def record(name):
    with open(os.path.join(scratch, name, "run.json")) as file:
        return json.load(file)


def check(right, what):
    if not right:
        sys.exit(what)


def write(name, text):
    with open(os.path.join(scratch, name), "w") as file:
        file.write(text)
    return os.path.join(scratch, name)


try:
    train("plain", *JETS)
    plain = rows("plain")
    check(float(plain[-1]["val_acc_epoch"]) > 0.4, "cross-entropy does not learn")
    check(record("plain")["best"]["monitor"] == "val_loss_epoch", "the loss is not monitored")
    for column in ("train_acc_epoch", "train_loss_epoch"):
        check(all(row[column] for row in plain), "no " + column)

    # Least squares on classes: there is a loss, and it falls.
    train("mse", *JETS, "--loss", "mse")
    mse = [float(row["val_loss_epoch"]) for row in rows("mse")]
    check(0 < mse[-1] < mse[0] and float(rows("mse")[-1]["val_acc_epoch"]) > 0.4, "mse: %s" % mse)

    # The option of a loss as flag and as key.
    train("flag", *JETS, "--loss", "cross_entropy", "--loss-label-smoothing", "0.2")
    table = write("table.toml", '[loss]\nname = "cross_entropy"\nlabel_smoothing = 0.2\n')
    train("table", *JETS, "--config", table)
    check(rows("flag")[-1]["val_loss_epoch"] == rows("table")[-1]["val_loss_epoch"],
          "flag and table differ")
    check(rows("flag")[-1]["val_loss_epoch"] != plain[-1]["val_loss_epoch"], "nothing is smoothed")
    check("--loss" in train("lost", *JETS, "--loss-delta", "2", code=2), "an option of no loss")
    train("typo", *JETS, "--loss", "hubert", code=2)

    train("monitored", *JETS, "--monitor", "accuracy", "--metrics", "balanced_accuracy")
    best = record("monitored")["best"]
    accuracies = [float(row["val_acc_epoch"]) for row in rows("monitored")]
    check(best["monitor"] == "val_acc_epoch" and best["epoch"] == accuracies.index(max(accuracies)),
          "the best epoch is not the most accurate one: %s %s" % (best, accuracies))
    check(float(rows("monitored")[0]["val_balanced_acc_epoch"]) > 0, "no balanced accuracy")

    # Numbers have their own figures.
    write("line.csv", "a,b,y\n" + "".join("%g,%g,%g\n" % (i / 100, i % 7 / 7, i / 50 + 0.25)
                                          for i in range(300)))
    write("line.toml", 'seq_blocks = [{type = "Linear", out_features = 1}]\n')
    train("numbers", os.path.join(scratch, "line.toml"), os.path.join(scratch, "line.csv"),
          "--target", "y", "--learning-rate", "0.1", "--max-epochs", "5", "--batch-size", "32")
    last = rows("numbers")[-1]
    for figure in ("val_mae_epoch", "val_rmse_epoch", "val_r2_epoch"):
        check(last[figure], "no " + figure)
    check(abs(float(last["val_rmse_epoch"]) ** 2 / float(last["val_loss_epoch"]) - 1) < 1e-4,
          "the root of the mse is another figure: %s" % last)

    said = train("large", *JETS, "--batch-size", "100000000000")
    check("batches of" in said, "a batch larger than the data is not told of:\n" + said)
finally:
    shutil.rmtree(scratch, ignore_errors=True)
