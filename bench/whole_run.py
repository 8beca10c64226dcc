#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A whole training run against the same loop in PyTorch, in one go on one thread: jsc-10x, 789,000
training rows, 10 epochs of batch 256, validation after each epoch, and the peak memory of ch. Then
ch alone at three sizes of data and of network: cost grows linearly in rows and in parameters.

    bench/whole_run.py [--ch build/release/bin/ch] [--rows 789000] [--rounds 3]

Both run in turns, --rounds times, and the best of each counts. PyTorch runs one epoch at a time
(each costs the same) and the figure is scaled to all of them.
"""
import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"


def make_table(path, train_rows):
    """Rows of which 20 % go to the test split and 10 % of the rest to validation."""
    rows = int(train_rows / 0.72) + 1
    random = numpy.random.default_rng(0)
    x = random.standard_normal((rows, 16), dtype=numpy.float32)
    y = (x[:, :5] + 0.5 * random.standard_normal((rows, 5), dtype=numpy.float32)).argmax(1)
    numpy.save(path, numpy.concatenate([x, y[:, None].astype(numpy.float32)], 1))


def make_network(path, width):
    """Two hidden layers of this width."""
    with open(path, "w") as file:
        file.write('name = "wide"\ninput = [16]\nseq_blocks = [\n')
        for out in (width, width, 5):
            file.write('  {type = "Linear", out_features = %d},\n  {type = "BatchNorm1d"},\n'
                       '  {type = "ReLU"},\n' % out)
        file.write("]\n")
    return path


def train(ch, model, table, folder, epochs):
    """Wall seconds of the whole command, of the loop, and the peak memory in MB."""
    command = [ch, "train", model, table, "--target", "column_17", "--max-epochs", str(epochs),
               "--batch-size", "256", "--learning-rate", "1e-3", "--project-dir", folder,
               "--project", "run"]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    if status != 0:
        sys.exit("%s failed" % " ".join(command))
    with open(os.path.join(folder, "run", "run.json")) as file:
        record = json.load(file)
    with open(os.path.join(folder, "run", "software", "metrics.csv")) as file:
        ends = [float(row["seconds"]) for row in csv.DictReader(file) if row["val_loss_epoch"]]
    record["epochs"] = [end - begin for begin, end in zip([0.0] + ends, ends)]
    shutil.rmtree(folder)
    return seconds, record["speed"]["seconds"], usage.ru_maxrss / 1024, record


def torch_seconds(table, rows, epochs):
    import torch
    torch.set_num_threads(1)
    data = torch.from_numpy(numpy.load(table))
    x, y = data[:, :16].contiguous(), data[:, 16].long()
    xt, yt, xv, yv = x[:rows], y[:rows], x[rows:rows + rows // 9], y[rows:rows + rows // 9]
    layers = [torch.nn.BatchNorm1d(16), torch.nn.ReLU()]
    for a, b in ((16, 60), (60, 32), (32, 5)):
        layers += [torch.nn.Linear(a, b), torch.nn.BatchNorm1d(b), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss()
    start = time.monotonic()
    for _ in range(epochs):
        network.train()
        order, correct = torch.randperm(rows), 0
        for at in range(0, rows, 256):
            picked = order[at:at + 256]
            labels = yt[picked]
            optimizer.zero_grad()
            logits = network(xt[picked])
            loss = loss_of(logits, labels)
            loss.backward()
            optimizer.step()
            correct += (logits.argmax(1) == labels).sum().item()
        network.eval()
        with torch.no_grad():
            for at in range(0, len(xv), 256):
                logits = network(xv[at:at + 256])
                loss_of(logits, yv[at:at + 256]).item()
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ch", default="build/release/bin/ch")
    parser.add_argument("--rows", type=int, default=789000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-torch", action="store_true")
    options = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="mase-whole-")
    os.environ["MASE_DATA"] = os.path.join(scratch, "data")
    try:
        table, folder = os.path.join(scratch, "rows.npy"), os.path.join(scratch, "out")
        make_table(table, options.rows)
        results, slow = [], []
        for _ in range(options.rounds):
            results.append(train(options.ch, "jsc-10x", table, folder, options.epochs))
            if not options.no_torch:
                slow.append(torch_seconds(table, options.rows, 1) * options.epochs)
        print("ch train, loop seconds: %s" % ", ".join("%.2f" % r[1] for r in results))
        print("PyTorch, loop seconds: %s" % ", ".join("%.1f" % s for s in slow))
        whole, loop, _, record = min(results, key=lambda r: r[1])
        print("ch train: %d training rows, %d epochs: %.2f s in the loop, %.2f s in all, %.0f MB peak"
              % (record["dataset"]["train_rows"], options.epochs, loop, whole,
                 results[0][2]))  # a child's peak begins at its parent's, which grows with PyTorch
        if slow:
            print("PyTorch: %.1f s for the loop; ratio %.1f (loop), %.1f (whole command)"
                  % (min(slow), min(slow) / loop, min(slow) / whole))
            epoch = min(seconds for result in results for seconds in result[3]["epochs"])
            theirs = min(slow) / options.epochs
            print("best epoch: ch %.3f s, PyTorch %.2f s, ratio %.1f" % (epoch, theirs, theirs / epoch))
        print("\nrows      seconds/epoch   us/row")
        for rows in (options.rows // 4, options.rows // 2, options.rows):
            make_table(table, rows)
            _, loop, _, _ = train(options.ch, "jsc-10x", table, folder, 2)
            print("%-9d %-15.3f %.3f" % (rows, loop / 2, loop / 2 / rows * 1e6))
        print("\nhidden layers  parameters  us/row  ps/row/parameter")
        make_table(table, options.rows // 8)
        for width in (64, 128, 256):
            network = make_network(os.path.join(scratch, "wide.toml"), width)
            _, loop, _, record = train(options.ch, network, table, folder, 2)
            per_row = loop / 2 / (options.rows // 8)
            parameters = record["model"]["parameters"]
            print("2 x %-10d %-11d %-7.2f %.0f" % (width, parameters, per_row * 1e6,
                                                   per_row / parameters * 1e12))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


main()
