# SPDX-License-Identifier: Apache-2.0
"""docs/figures.md names every figure of the registries and tests that exist; and what it says this test does itself:
figures recomputed in plain Python from outputs, labels, tensors and shapes."""
import csv
import glob
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

CH, SOURCE = os.environ["MASE_CH"], os.environ["MASE_SOURCE"]
failures = []


def ch(*words, folder="."):
    done = subprocess.run([CH, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        failures.append(f"{words}: exit code {done.returncode}\n{done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout + done.stderr


def same(what, shown, own, digits=1e-9):
    close = isinstance(shown, (int, float)) and abs(shown - own) <= digits * max(1, abs(own))
    if not close:
        failures.append(f"{what}: shown {shown}, recomputed {own}")


# The page: every registered figure, and tests that are there.
page = open(os.path.join(SOURCE, "docs", "figures.md")).read()
for kind in ("figure", "metric", "statistic", "importance"):
    for line in ch("--info", kind).split("\n")[4:]:
        if line and not line.startswith(" ") and f"`{line.split()[0]}`" not in page:
            failures.append(f"docs/figures.md does not name the {kind} {line.split()[0]}")
for row in re.findall(r"^\| (.*) \|$", page, re.M):
    if row.startswith(("Figure", ":--")):
        continue
    tests = row.split(" | ")[3]
    if "itself" not in tests and "`" not in tests:
        failures.append(f"no test recomputes {row}")
    for name, case in re.findall(r"`([a-z_]+/[a-z_]+)`(?: ([A-Za-z_]+\.[A-Za-z_0-9]+))?", tests):
        files = glob.glob(os.path.join(SOURCE, "tests", name + "_test.*"))
        if not files:
            failures.append(f"docs/figures.md names the test {name}, which is not there")
        elif case and f"TEST({case.replace('.', ', ')})" not in open(files[0]).read():
            failures.append(f"docs/figures.md names {case}, which {name} has not")


def best(folder, project):
    return f"{folder}/mase_output/{project}/software/training_ckpts/best.mz"


def largest(row):
    return max(range(len(row)), key=lambda k: row[k])


def classification(folder, draw):
    with open(f"{folder}/rows.csv", "w") as out:
        out.write("a,b,c,d,class\n")
        for _ in range(600):
            label = draw.randrange(3)
            out.write(",".join(f"{draw.gauss(label * (k + 1) % 3, 1.3):.4f}" for k in range(4)) + f",k{label}\n")
    said = ch("train", "net.toml", "rows.csv", "--target", "class", "--max-epochs", "4", "--project", "classes", folder=folder)
    run = json.load(open(f"{folder}/mase_output/classes/run.json"))
    epochs = [float(x) for x in re.findall(r"^Epoch .*val_acc_epoch=([0-9.]+)", said.replace("\r", "\n"), re.M)]
    metrics = [m for m in re.findall(r"val_acc_epoch ([0-9.]+)", said)]
    same("validation accuracy at the best epoch", float(metrics[0]), run["best"]["val_acc_epoch"], 1e-4)
    if epochs and max(epochs) + 1e-3 < float(metrics[0]):
        failures.append("an epoch better than all that were printed")
    speed = run["speed"]
    same("steps per second", speed["steps_per_second"] * speed["step_seconds"], round(speed["steps_per_second"] * speed["step_seconds"]), 1e-6)
    ch("test", best(folder, "classes"), "--json", "t.json", "--no-output", folder=folder)
    record = json.load(open(f"{folder}/t.json"))
    shown, outputs, labels = record["evaluation"], record["outputs"], record["labels"]
    n, classes = len(labels), 3
    taken = [largest(row) for row in outputs]
    matrix = [[sum(t == a and p == b for t, p in zip(labels, taken)) for b in range(classes)] for a in range(classes)]
    hits = sum(matrix[c][c] for c in range(classes))
    same("accuracy", shown["accuracy"], hits / n)
    if shown["confusion"] != matrix or shown["support"] != [sum(row) for row in matrix]:
        failures.append(f"confusion {shown['confusion']} is not {matrix}")
    recall = [matrix[c][c] / sum(matrix[c]) for c in range(classes)]
    predicted = [sum(matrix[r][c] for r in range(classes)) for c in range(classes)]
    precision = [matrix[c][c] / predicted[c] if predicted[c] else 0 for c in range(classes)]
    for c in range(classes):
        same("recall", shown["recall"][c], recall[c])
        same("precision", shown["precision"][c], precision[c])
        both = precision[c] + recall[c]
        same("f1", shown["f1"][c], 2 * precision[c] * recall[c] / both if both else 0)
    same("balanced accuracy", shown["balanced_accuracy"], sum(recall) / classes)
    support = [sum(row) for row in matrix]
    top = hits * n - sum(s * p for s, p in zip(support, predicted))
    below = math.sqrt(n * n - sum(p * p for p in predicted)) * math.sqrt(n * n - sum(s * s for s in support))
    same("mcc", shown["mcc"], top / below if below else 0)
    rank = [sum(v >= row[t] for v in row) for row, t in zip(outputs, labels)]
    for k, value in shown["top_k"].items():
        same(f"top {k}", value, sum(r <= int(k) for r in rank) / n)
    loss = 0.0
    for row, t in zip(outputs, labels):
        high = max(row)
        loss += high + math.log(sum(math.exp(v - high) for v in row)) - row[t]
    same("loss", shown["loss"], loss / n, 1e-5)
    for c in range(classes):
        score = []
        for row in outputs:
            high = max(row)
            score.append(math.exp(row[c] - high) / sum(math.exp(v - high) for v in row))
        ours = [s for s, t in zip(score, labels) if t == c]
        theirs = [s for s, t in zip(score, labels) if t != c]
        pairs = sum((a > b) + 0.5 * (a == b) for a in ours for b in theirs)
        same("area under the curve", shown["roc"][c]["auc"], pairs / len(ours) / len(theirs), 1e-4)
        for point in shown["roc"][c]["working_points"]:
            # The least background at which so much of the signal is taken, between two steps of the curve.
            cuts = sorted(set(score), reverse=True)
            steps = [(0.0, 0.0)] + [(sum(s >= cut for s in ours) / len(ours), sum(s >= cut for s in theirs) / len(theirs)) for cut in cuts]
            above = min(i for i, (signal, _) in enumerate(steps) if signal >= point["signal"] - 1e-12)
            below = max(0, above - 1)
            if not steps[below][1] - 1e-9 <= point["background"] <= steps[above][1] + 1e-9:
                failures.append(f"background at {point['signal']}: {point['background']} is not within {steps[below]} and {steps[above]}")


def regression(folder, draw):
    with open(f"{folder}/numbers.csv", "w") as out:
        out.write("a,b,y\n")
        for _ in range(400):
            a, b = draw.gauss(0, 1), draw.gauss(0, 1)
            out.write(f"{a:.4f},{b:.4f},{2 * a - b + draw.gauss(0, 0.5):.4f}\n")
    ch("train", "net.toml", "numbers.csv", "--target", "y", "--max-epochs", "5", "--learning-rate", "1e-2", "--project",
       "numbers", folder=folder)
    ch("test", best(folder, "numbers"), "--json", "r.json", "--split", "all", "--no-output", folder=folder)
    record = json.load(open(f"{folder}/r.json"))
    ch("predict", best(folder, "numbers"), "--input", "numbers.csv", "--output", "p.csv", folder=folder)
    given = [float(r["y"]) for r in csv.DictReader(open(f"{folder}/numbers.csv"))]
    got = [float(r[0]) for r in list(csv.reader(open(f"{folder}/p.csv")))[1:]]
    n, shown = len(given), record["evaluation"]
    errors = [a - b for a, b in zip(got, given)]
    mean = sum(given) / n
    same("mae", shown["mae"], sum(map(abs, errors)) / n, 1e-4)
    same("rmse", shown["rmse"], math.sqrt(sum(e * e for e in errors) / n), 1e-4)
    drawn = shown["predictions"]["outputs"][0]
    assert len(drawn["true"]) == len(drawn["predicted"]) == 300, "evenly spaced rows"
    pairs = {round(t, 4): p for t, p in zip(given, got)}
    for t, p in zip(drawn["true"], drawn["predicted"]):
        same("a predicted number", p, pairs[round(t, 4)], 1e-4)
    assert shown["loss_name"] == "mse"
    same("mean squared error as loss", shown["loss"], sum(e * e for e in errors) / n, 1e-4)
    same("r2", shown["r2"], 1 - sum(e * e for e in errors) / sum((g - mean) ** 2 for g in given), 1e-4)

    def correlation(x, y):
        mx, my = sum(x) / len(x), sum(y) / len(y)
        above = sum((a - mx) * (b - my) for a, b in zip(x, y))
        return above / math.sqrt(sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y))

    def ranks(values):
        order = sorted(range(len(values)), key=lambda i: values[i])
        result, at = [0.0] * len(values), 0
        while at < len(order):
            end = at
            while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
                end += 1
            for i in order[at:end + 1]:
                result[i] = (at + end) / 2
            at = end + 1
        return result

    same("pearson", shown["pearson"], correlation(got, given), 1e-4)
    same("spearman", shown["spearman"], correlation(ranks(got), ranks(given)), 1e-3)


def costs(folder):
    """A network of known shapes: 4 -> 8 -> 3, eight and six bits."""
    with open(f"{folder}/q.toml", "w") as out:
        out.write('[passes.quantize]\nby = "type"\n[passes.quantize.default.config]\nname = "NA"\n[passes.quantize.linear.config]\n'
                  'name = "integer"\ndata_in_width = 8\ndata_in_frac_width = 4\nweight_width = 6\nweight_frac_width = 4\n'
                  'bias_width = 5\nbias_frac_width = 3\n')
    said = ch("transform", best(folder, "classes"), "--config", "q.toml", "--project", "q", folder=folder)
    before, after = re.search(r"([0-9.]+) before, ([0-9.]+) after", said).groups()
    quantised = f"{folder}/mase_output/q/software/transform/transformed.mz"
    for path, accuracy in ((best(folder, "classes"), before), (quantised, after)):
        ch("test", path, "--json", "a.json", "--no-output", folder=folder)
        same("accuracy before and after", float(accuracy), json.load(open(f"{folder}/a.json"))["evaluation"]["accuracy"], 6e-5)
    said = ch("pass", "calculate_bitops", quantised, "--batch-size", "10", "--json", folder=folder)
    after = json.loads(said[said.index("{\n"):])["after"]
    inputs, macs, weights = 4 + 8, 4 * 8 + 8 * 3, 4 * 8 + 8 * 3
    same("macs", after["macs"], 10 * macs)
    same("bitops", after["bitops"], 10 * macs * 8 * 6)
    same("operand bits", after["operand_bits"], 10 * inputs * 8 + weights * 6)
    same("weight memory", after["weight_memory_bits"], weights * 6 + 11 * 5)
    same("memory of results", after["activation_memory_bits"], 10 * (8 + 8 + 3) * 32)
    same("average bits of weights", after["average_weight_bits"], 6)
    same("average bits of inputs", after["average_activation_bits"], 8)
    same("memory density", after["memory_density"], 32 * (weights + 10 * inputs) / (6 * weights + 8 * 10 * inputs))
    layers = json.loads(ch("summary", best(folder, "classes"), "--json", "-", folder=folder))
    same("parameters", sum(layer["parameters"] for layer in layers), weights + 11)
    same("multiply-adds", sum(layer["macs"] for layer in layers), macs)


def rounding(folder, draw):
    values = [struct.unpack("<f", struct.pack("<f", draw.gauss(0, 3)))[0] for _ in range(1000)]
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }"
    head += b" " * (118 - len(head) - 1) + b"\n"
    with open(f"{folder}/v.npy", "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<1000f", *values))
    said = ch("quantize", "v.npy", "--format", "integer", "--set", "width=6", "--set", "frac_width=3", folder=folder)
    row = [line for line in said.split("\n") if " integer " in line][0].split()
    rounded = [min(31, max(-32, round(v * 8))) / 8 for v in values]  # Python's round: half to even
    errors = [a - b for a, b in zip(rounded, values)]
    power = sum(e * e for e in errors)
    same("largest error", float(row[4]), max(map(abs, errors)), 1e-5)
    same("mean squared error", float(row[5]), power / 1000, 1e-5)
    same("SQNR", float(row[6]), 10 * math.log10(sum(v * v for v in values) / power), 0.006)
    same("saturated", float(row[7].rstrip("%")), 100 * sum(v > 31 / 8 or v < -4 for v in values) / 1000, 0.006)


def search(folder):
    """Intervals of the accuracy of the best trials: Wilson's formula."""
    ch("search", best(folder, "classes"), "--space", "bits=3,5", "--objective", "accuracy,bitops", "--project", "s", folder=folder)
    found = glob.glob(f"{folder}/mase_output/s/**/search.json", recursive=True)
    record = json.load(open(found[0]))
    if not record["test"]:
        failures.append("the search tested nothing")
    for one in record["test"]:
        z, n, p = 1.959963984540054, one["rows"], one["accuracy"]
        middle, wide = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        same("lower end", one["low"], (middle - wide) / (1 + z * z / n), 1e-6)
        same("upper end", one["high"], (middle + wide) / (1 + z * z / n), 1e-6)


with tempfile.TemporaryDirectory() as where:
    with open(f"{where}/net.toml", "w") as out:
        out.write('name = "net"\nseq_blocks = [{type = "Linear", out_features = 8}, {type = "ReLU"}, {type = "Linear"}]\n')
    numbers = random.Random(11)
    classification(where, numbers)
    regression(where, numbers)
    costs(where)
    rounding(where, numbers)
    search(where)

print("\n".join(failures))
sys.exit(1 if failures else 0)
