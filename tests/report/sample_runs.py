# SPDX-License-Identifier: Apache-2.0
"""Run folders with known numbers, as train and transform write them, for the page tests."""
import json
import math
import os
import random

CLASSES = ["g", "q", "w", "z", "t"]
COLUMNS = "epoch,step,train_acc_step,train_loss_step,val_acc_epoch,val_loss_epoch,learning_rate,seconds"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def metrics_rows(epochs, steps_per_epoch, log_every, rate, noise, limit=0.62):
    """A plausible run: loss falls towards `limit`, faster with a larger rate."""
    step, seconds, rows = 0, 0.0, []
    for epoch in range(epochs):
        for _ in range(steps_per_epoch):
            step += 1
            seconds += 0.002
            if step % log_every == 0:
                t = step / 400.0 * rate
                loss = limit + 0.98 * math.exp(-t) + noise.gauss(0, 0.05)
                accuracy = min(1, 0.76 - 0.5 * math.exp(-t) + noise.gauss(0, 0.03))
                learning = 1e-3 * rate * (0.5 + 0.5 * math.cos(math.pi * step / (epochs * steps_per_epoch)))
                rows.append(f"{epoch},{step},{accuracy:.6f},{loss:.6f},,,{learning:.8f},{seconds:.4f}")
        t = step / 400.0 * rate
        rows.append(f"{epoch},{step},,,{0.75 - 0.5 * math.exp(-t):.6f},{limit + 0.03 + 0.95 * math.exp(-t):.6f},,{seconds:.4f}")
    return rows


def option(name, default, effective, flag=None, config=None):
    return {"name": name, "default": default, "config": config, "flag": flag, "effective": effective}


def training_run(folder, model="jsc-tiny", batch_size=256, learning_rate=1e-3, seed=0, epochs=10, rows=None,
                 status="finished", classes=None, evaluation=True, split="test", identity="0123456789abcdef", load=None, extra=None):
    noise = random.Random(seed * 7919 + batch_size)
    classes = classes or CLASSES
    steps = max(2, 40000 // batch_size // 4)
    if rows is None:
        rate = max(0.05, min(6.0, learning_rate / 1e-3)) * (256 / batch_size) ** 0.3
        rows = metrics_rows(epochs, steps, 5, rate, noise, 0.62 + seed * 0.004)
    values = [line.split(",") for line in rows if line.split(",")[4]]
    best = max(values, key=lambda v: float(v[4])) if values else None
    run = {
        "kind": "train", "version": "0.1.0", "status": status, "seed": seed,
        "command": ["ch", "train", model, "jsc", "--batch-size", str(batch_size), "--max-epochs", str(epochs)],
        "started": "2024-01-31T10:00:00+00:00", "finished": "2024-01-31T10:00:42+00:00",
        "machine": {"cpu": "A processor", "cores": 2, "system": "Linux"},
        "model": {"name": model, "parameters": 117},
        "dataset": {"name": "jsc", "variant": "synthetic", "identity": "sha256:" + identity, "notice": "made up",
                    "train_rows": 40000, "validation_rows": 5000, "test_rows": 5000, "classes": classes},
        "options": [option("batch_size", 128, batch_size, flag=batch_size), option("learning_rate", 1e-5, learning_rate, config=learning_rate),
                    option("max_epochs", 20, epochs, flag=epochs), option("training_optimizer", "adam", "adam"),
                    option("seed", 0, seed), option("project", None, os.path.basename(folder))]
                   + ([option("load_name", None, load, flag=load)] if load else []) + [option(name, None, value, flag=value) for name, value in (extra or {}).items()],
        "summary": [
            {"layer": "seq_blocks.0", "type": "BatchNorm1d", "input_shape": [8, 16], "output_shape": [8, 16], "parameters": 32, "macs": 0},
            {"layer": "seq_blocks.1", "type": "ReLU", "input_shape": [8, 16], "output_shape": [8, 16], "parameters": 0, "macs": 0},
            {"layer": "seq_blocks.2", "type": "Linear", "input_shape": [8, 16], "output_shape": [8, 5], "parameters": 85, "macs": 640},
            {"layer": "seq_blocks.3", "type": "ReLU", "input_shape": [8, 5], "output_shape": [8, 5], "parameters": 0, "macs": 0}],
        "speed": {"seconds": 41.7, "steps_per_second": 2210.5, "samples_per_second": 565888.0},
    }
    if best:
        run["best"] = {"epoch": int(best[0]), "val_loss_epoch": float(best[5]), "val_acc_epoch": float(best[4]),
                       "path": "software/training_ckpts/best.ckpt"}
    if evaluation:
        n = len(classes)
        matrix = [[noise.randint(20, 160) for _ in range(n)] for _ in range(n)]
        for i in range(n):
            matrix[i][i] += 600
        right = sum(matrix[i][i] for i in range(n))
        curve = [i / 60 for i in range(61)]
        run["evaluation"] = {
            "split": split, "accuracy": right / sum(map(sum, matrix)), "loss": 0.71, "classes": classes, "confusion": matrix,
            "precision": [matrix[i][i] / sum(row[i] for row in matrix) for i in range(n)],
            "recall": [matrix[i][i] / sum(matrix[i]) for i in range(n)],
            "roc": [{"class": name, "auc": 0.90 + 0.015 * i, "fpr": curve, "tpr": [x ** (0.30 - 0.045 * i) for x in curve]}
                    for i, name in enumerate(classes)]}
    write(folder + "/run.json", json.dumps(run, indent=1))
    write(folder + "/software/metrics.csv", COLUMNS + "\n" + "\n".join(rows) + "\n")
    return rows


def node(name, kind, inputs, shape, target=None, op=None, cls=None, fmt=None, meta=None):
    return {"name": name, "kind": kind, "target": target or name, "op": op, "class": cls, "inputs": inputs, "shape": shape,
            "format": fmt, "meta": meta or {"common": {"mase_op": op, "args": {"data_in_0": {"shape": shape, "type": "float", "precision": [32]}}},
                                            "software": {"results": {"data_out_0": {"stat": {}}}}, "hardware": {}}}


def with_epoch_means(folder):
    """Adds train_acc_epoch and train_loss_epoch, means over all of an epoch's batches, to a run's metrics."""
    path = folder + "/software/metrics.csv"
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    rows = [lines[0] + ",train_acc_epoch,train_loss_epoch"]
    for line in lines[1:]:
        cells = line.split(",")
        ends = cells[4] != ""
        rows.append(line + (f",{float(cells[4]) + 0.02:.6f},{float(cells[5]) - 0.05:.6f}" if ends else ",,"))
    write(path, "\n".join(rows) + "\n")


def bell(mean, deviation, lowest, largest, noise, node_name, operand):
    values = sorted(noise.gauss(mean, deviation) for _ in range(4000))
    low, high, n = values[0], values[-1], 48
    counts = [0] * n
    for value in values:
        counts[min(n - 1, int((value - low) / (high - low) * n))] += 1
    return {"node": node_name, "operand": operand, "edges": [low + (high - low) * i / n for i in range(n + 1)], "counts": counts,
            "lowest": lowest, "largest": largest, "codes": 256, "codes_used": len({min(127, max(-128, round(v * 16))) for v in values}),
            "grid": [i / 16 for i in range(-128, 128)]}


def transform_run(folder, hostile="seq_blocks_0"):
    noise = random.Random(5)
    sizes = [16, 64, 32, 32, 5]
    nodes, histograms, layers, table = [node("x", "placeholder", [], [8, 16])], [], [], [
        ["Ori name", "New name", "MASE_TYPE", "Mase_OP", "Original type", "Quantized type", "Changed"]]
    histograms.append(bell(0, 1.1, -8, 7.9375, noise, "x", "data_in_0"))
    before, number = "x", 0
    for i in range(4):
        for cls, op in (("Linear", "linear"), ("BatchNorm1d", "batch_norm1d"), ("ReLU", "relu")):
            name = hostile if number == 0 else f"seq_blocks_{number}"
            quantised = op == "linear"
            nodes.append(node(name, "call_module", [before], [8, sizes[i + 1]], name.replace("seq_blocks_", "seq_blocks."), op,
                              cls + "Integer" if quantised else cls, "integer(8,4)" if quantised else None))
            table.append([name, name, "module_related_func", op, cls, cls + "Integer" if quantised else cls, quantised])
            if quantised:
                histograms.append(bell(0, 0.3, -8, 7.9375, noise, name, "weight"))
                histograms.append(bell(0.5, 1.2 + 2.4 * i, -8, 7.9375, noise, name, "data_in"))
                layers.append({"node": name, "weight_error": 0.0011 * (i + 1), "output_error": 0.013 * (i + 1) ** 1.5,
                               "sqnr_db": 41.5 - 9.1 * i, "cosine": 0.9999 - 0.002 * i, "saturation": 0.0 if i < 1 else 0.011 * i})
            before, number = name, number + 1
    # Two wide layers and an edge over all of them: lines must find a way between the boxes.
    nodes += [node(f"head_{k}", "call_module", [before], [8, 5], op="linear", cls="Linear") for k in range(3)]
    nodes.append(node("cat", "call_function", ["head_0", "head_1", "head_2", "x"], [8, 15], op="cat", cls="cat"))
    nodes.append(node("add", "call_function", ["cat", "seq_blocks_8"], [8, 5], op="add", cls="add"))
    nodes.append(node("output", "output", ["add"], [8, 5]))
    run = {"kind": "transform", "version": "0.1.0", "status": "finished", "command": ["ch", "transform", "--config", "configs/lab2.toml"],
           "started": "2024-01-31T11:00:00+00:00", "model": {"name": "jsc-toy", "parameters": 4423}, "dataset": {"name": "jsc"},
           "transform": {"nodes": nodes, "histograms": histograms, "layers": layers, "before_after": table,
                         "costs": {"before": {"flops": 67784, "bitops": 16236800, "weight_bits": 141536}, "after": {"flops": 67784, "bitops": 1014800, "weight_bits": 35384}},
                         "accuracy": {"split": "test", "before": 0.7412, "after": 0.7368}}}
    write(folder + "/run.json", json.dumps(run))
    write(folder + "/software/transform/results.json", json.dumps([
        {"pass": "profile_statistics", "seconds": 0.031, "changed": False, "result": {}},
        {"pass": "quantize", "seconds": 0.0042, "changed": True, "result": {"linear": 4}}]))


if __name__ == "__main__":
    import sys
    root = sys.argv[1]
    training_run(root + "/jsc-tiny_classification_jsc_2024-01-31")
    transform_run(root + "/jsc-toy_transform_jsc_2024-01-31")
    for batch in (64, 256, 1024):
        for rate in (1e-2, 1e-3, 1e-5):
            for seed in range(3):
                training_run(f"{root}/sweep/batch_size={batch},learning_rate={rate:g},seed={seed}", "jsc-toy", batch, rate, seed)
