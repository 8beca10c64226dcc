# SPDX-License-Identifier: Apache-2.0
"""The lessons of examples/ run, scripts and notebooks."""
import contextlib
import glob
import io
import json
import os
import runpy
import sys
import tempfile
import traceback

import package

os.chdir(tempfile.mkdtemp())
examples = os.path.join(package.SOURCE, "examples")
failed = []
for script in sorted(glob.glob(os.path.join(examples, "*.py"))):
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_path(script, run_name="__main__")
        print("ran", os.path.basename(script))
    except BaseException:
        failed.append(script)
        print("FAILED", script, out.getvalue()[-3000:], traceback.format_exc(), sep="\n")
for notebook in sorted(glob.glob(os.path.join(examples, "*.ipynb"))):
    with open(notebook, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    code = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, notebook, "exec"), {"__name__": "__main__"})
        print("ran", os.path.basename(notebook))
    except BaseException:
        failed.append(notebook)
        print("FAILED", notebook, traceback.format_exc(), sep="\n")
sys.exit(1 if failed else 0)
