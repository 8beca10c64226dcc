# SPDX-License-Identifier: Apache-2.0
"""Every reader streams: preparing a table costs less than twice its size in float32, whatever the
file's format and type. Measured as the largest resident set of `ch data info` above that for a table
of a few rows; split, scaling and summary are part of it."""
import io
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("python3-numpy is not installed")
    sys.exit(77)
try:
    import h5py
except ImportError:
    h5py = None
    print("python3-h5py is not installed: HDF5 is left out")

with open(os.path.join(os.environ["MASE_BUILD"], "CMakeCache.txt")) as cache:
    if "MASE_SANITIZE:STRING=\n" not in cache.read():
        print("memory figures mean nothing under sanitizers")
        sys.exit(77)

ROWS, WIDTH = 200000, 20
TABLE = ROWS * WIDTH * 4
# A process counts the memory of whatever started it, so ch is started by a small one.
STARTER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(usage.ru_maxrss * 1024, status)
"""


def peak(path, *words):
    answer = subprocess.run([sys.executable, "-c", STARTER, os.environ["MASE_CH"], "data", "info", path,
                             *words], capture_output=True, text=True, check=True)
    memory, status = answer.stdout.split()
    assert status == "0", (path, answer.stderr)
    return int(memory)


def numbers(rows):
    """A block repeated: making it should not take longer than reading it."""
    block = np.random.default_rng(0).normal(size=(2000, WIDTH + 1))
    return np.tile(block, (-(-rows // len(block)), 1))[:rows]


def text(rows, head, separator=","):
    block = io.StringIO()
    np.savetxt(block, numbers(min(rows, 2000)), "%.4f", separator)
    return head + block.getvalue() * max(1, rows // 2000)


def write_text(path, content):
    with open(path, "w") as file:
        file.write(content)


def csv(path, rows):
    write_text(path, text(rows, ",".join(f"c{i}" for i in range(WIDTH)) + ",y\n"))


def arff(path, rows):
    names = [f"c{i}" for i in range(WIDTH)] + ["y"]
    write_text(path, text(rows, "@relation r\n" + "".join(f"@attribute {n} real\n" for n in names)
                          + "@data\n"))


def npy(order, kind):
    return lambda path, rows: np.save(path, np.asarray(numbers(rows), kind, order))


def npz(order, kind, save=np.savez):
    def write(path, rows):
        table = np.asarray(numbers(rows), kind)
        save(path, X=np.asarray(table[:, :-1], order=order), y=table[:, -1])
    return write


def records(path, rows):
    table = numbers(rows)
    data = np.zeros(rows, [(f"c{i}" if i < WIDTH else "y", "<f8") for i in range(WIDTH + 1)])
    for i, name in enumerate(data.dtype.names):
        data[name] = table[:, i]
    with h5py.File(path, "w") as file:
        file.create_dataset("t", data=data, chunks=(min(rows, 10000),), compression="gzip",
                            compression_opts=1)


def matrix(path, rows):
    with h5py.File(path, "w") as file:
        file.create_dataset("t", data=numbers(rows), chunks=(min(rows, 10000), 7))
        file.create_dataset("names", data=np.array([f"c{i}" for i in range(WIDTH)] + ["y"], "S8"))


CASES = [("CSV", "csv", csv, "y"), ("ARFF", "arff", arff, "y"),
         ("npy, float64", "npy", npy("C", "<f8"), f"column_{WIDTH + 1}"),
         ("npy, float64, Fortran order", "npy", npy("F", "<f8"), f"column_{WIDTH + 1}"),
         ("npz, float64", "npz", npz("C", "<f8"), "y"),
         ("npz, float64, compressed, Fortran order", "npz", npz("F", "<f8", np.savez_compressed), "y")]
if h5py:
    CASES += [("HDF5, compound float64, compressed", "h5", records, "y"),
              ("HDF5, matrix float64, chunks across", "h5", matrix, "y")]

failures = 0
for name, extension, write, target in CASES:
    with tempfile.TemporaryDirectory() as folder:
        small, large = (os.path.join(folder, f"{word}.{extension}") for word in ("small", "large"))
        write(small, 100)
        write(large, ROWS)
        ratio = (peak(large, "--target", target) - peak(small, "--target", target)) / TABLE
        failures += ratio >= 2
        print(f"{name}: {ratio:.2f} times the float32 table{'' if ratio < 2 else ': too much'}")
sys.exit(1 if failures else 0)
