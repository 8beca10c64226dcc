# SPDX-License-Identifier: Apache-2.0
# What is missing in a table: medians of training rows, a category of its own, sentinels, columns left out.
import csv
import os
import random
import struct
import sys
import tempfile
import zipfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from commands import ch, check, end  # noqa: E402


def write(path, rows):
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([["id", "a", "b", "colour", "class"], *rows])


def predicted(folder, path):
    ch("predict", "best.mz", "--input", path, "--output", "out.csv", folder=folder)
    with open(f"{folder}/out.csv") as got:
        return list(csv.reader(got))[1:]


with tempfile.TemporaryDirectory() as folder:
    draw = random.Random(5)
    rows = []
    for i in range(400):
        label = draw.randrange(2)
        # Whichever rows are for training, the median of a is 2.
        a = "" if i % 9 == 0 else str(draw.choices([1, 2, 3], [1, 8, 1])[0])
        b = "-999" if i % 7 == 0 else f"{draw.gauss(label, 1):.3f}"
        colour = "" if i % 5 == 0 else draw.choice(["red", "blue"] if label else ["blue", "green"])
        rows.append([f"n{i}", a, b, colour, f"k{label}"])
    write(f"{folder}/rows.csv", rows)

    said = ch("data", "info", "rows.csv", "--ignore", "id", folder=folder, code=2)
    check("--fill-missing" in said, "the error names the remedy", said)
    said = ch("data", "info", "rows.csv", "--ignore", "id", "--fill-missing", "--missing-values", "-999", folder=folder)
    check("colour=(missing)" in said and "id" not in said.split("eatures")[-1].split(), "features", said)
    with open(f"{folder}/net.toml", "w") as out:
        out.write('name = "net"\nseq_blocks = [{type = "Linear", out_features = 6}, {type = "ReLU"}, {type = "Linear"}]\n')
    said = ch("train", "net.toml", "rows.csv", "--ignore", "id", "--fill-missing", "--missing-values", "-999",
              "--max-epochs", "2", "--project", "run", folder=folder)
    check("a (45)" in said and "b (58)" in said and "colour (80)" in said, "what was missing is said", said)
    os.replace(f"{folder}/mase_output/run/software/training_ckpts/best.mz", f"{folder}/best.mz")

    # What is missing later is the median of the training rows, whatever stands around it.
    write(f"{folder}/missing.csv", [["x", "", "0.5", "red", ""], ["y", "?", "-999.0", "", ""], ["z", "1", "-999", "red", ""]])
    write(f"{folder}/filled.csv", [["x", "2", "0.5", "red", ""]])
    missing, filled = predicted(folder, "missing.csv"), predicted(folder, "filled.csv")
    check(missing[0] == filled[0] and len(missing) == 3, f"{missing} is not {filled}")
    known = sorted(float(r[2]) for r in rows if r[2] != "-999")
    near = [["z", "1", f"{v}", "red", ""] for v in (known[0], known[len(known) // 2], known[-1])]
    write(f"{folder}/near.csv", near)
    low, middle, high = (float(r[0]) for r in predicted(folder, "near.csv"))
    check(min(low, high) <= float(missing[2][0]) <= max(low, high) and
          abs(float(missing[2][0]) - middle) < 0.1 * abs(high - low) + 1e-6, "a sentinel is no number")
    # Arrays take the same medians: the checkpoint has them.
    said = ch("test", "best.mz", folder=folder)
    check("test_acc_epoch" in said, "the file knows how its data are read", said)

    # A category that no training row missed is an error that says so; other data have no missing values to fill.
    write(f"{folder}/whole.csv", [[r[0], r[1] or "2", "0.1", r[3] or "red", r[4]] for r in rows])
    ch("train", "net.toml", "whole.csv", "--ignore", "id", "--fill-missing", "--max-epochs", "1", "--project", "whole",
       folder=folder)
    said = ch("predict", "mase_output/whole/software/training_ckpts/best.mz", "--input", "missing.csv", folder=folder, code=2)
    check("missing, and was in no row" in said, "an unknown category", said)
    said = ch("train", "jsc-tiny", "jsc", "--fill-missing", folder=folder, code=2)
    check("is for tables" in said, "no table", said)
    # Arrays have gaps too: not a number.
    def npy(shape, kind, data):
        head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.ljust(117) + b"\n" + data

    values = [[draw.gauss(i % 2, 1), float("nan") if i % 9 == 0 else 2.0] for i in range(400)]
    with zipfile.ZipFile(f"{folder}/gaps.npz", "w") as archive:
        archive.writestr("x.npy", npy((400, 2), "<f4", b"".join(struct.pack("<2f", *row) for row in values)))
        archive.writestr("y.npy", npy((400,), "<i8", struct.pack("<400q", *(i % 2 for i in range(400)))))
    said = ch("train", "net.toml", "gaps.npz", "--max-epochs", "1", folder=folder, code=2)
    check("finite" in said, "gaps that nobody asked to fill", said)
    ch("train", "net.toml", "gaps.npz", "--max-epochs", "1", "--fill-missing", "--project", "gaps", folder=folder)
    for name, second in (("gap", float("nan")), ("two", 2.0)):
        with open(f"{folder}/{name}.npy", "wb") as out:
            out.write(npy((1, 2), "<f4", struct.pack("<2f", 0.5, second)))
        ch("predict", "mase_output/gaps/software/training_ckpts/best.mz", "--input", f"{name}.npy", "--output",
           f"{name}.csv", folder=folder)
    check(open(f"{folder}/gap.csv").read() == open(f"{folder}/two.csv").read(), "a gap in an array is the median")

    said = ch("data", "info", "rows.csv", "--ignore", "idd", folder=folder, code=2)
    check("'id'" in said, "the nearest column", said)

end()
