# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: the package of this build first in line, or a word and
exit code 77 where it was not built; a table to train on; output that was printed."""
import contextlib
import glob
import io
import os
import random
import sys
import unittest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small networks on a machine that runs other tests too
TREE = os.path.join(os.environ["MASE_BUILD"], "python")
SOURCE = os.environ["MASE_SOURCE"]


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


if os.environ.get("MASE_SANITIZE") == "thread":
    skip("the thread sanitizer cannot be loaded into Python")
if not glob.glob(os.path.join(TREE, "mase", "_native*.so")):
    skip("the Python package was not built (nanobind from PyPI, python3-dev)")
sys.path.insert(0, TREE)
os.environ["PYTHONPATH"] = TREE
try:
    import numpy  # noqa: F401
except ImportError:
    skip("there is no NumPy")


def need_torch():
    try:
        import torch  # noqa: F401
    except ImportError:
        skip("there is no PyTorch")


def write_table(path, rows=400, seed=1):
    """Three features and three kinds that can be told apart; takes milliseconds to train on."""
    draw = random.Random(seed)
    with open(path, "w") as file:
        file.write("a,b,c,kind\n")
        for _ in range(rows):
            kind = draw.randrange(3)
            values = [4 * draw.gauss(0, 1) + (20 if f == kind else 0) for f in range(3)]
            file.write(",".join(f"{v:.4f}" for v in values) + "," + ["red", "green", "blue"][kind] + "\n")
    return path


def printed(function, *args, **keys):
    """What a call wrote to standard output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*args, **keys)
    return out.getvalue()


def main():
    unittest.main(argv=[sys.argv[0]], verbosity=1)
