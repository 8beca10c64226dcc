# SPDX-License-Identifier: Apache-2.0
"""Small scripts in the styles of MASE's users, each run as a user would: with the launcher's runner."""
import glob
import io
import contextlib
import os
import runpy
import shutil
import sys
import tempfile
import traceback

import package

package.need_torch()
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts")
sys.path.insert(1, here)
failed = []
for script in sorted(glob.glob(os.path.join(here, "*.py"))):
    name = os.path.basename(script)
    if name == "common.py":
        continue
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    sys.modules.pop("common", None)  # which seeds torch: no script depends on those before it
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            runpy.run_path(script, run_name="__main__")
        print("ran", name)
    except BaseException:
        failed.append(name)
        print("FAILED", name, out.getvalue()[-2000:], traceback.format_exc(), sep="\n")
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
sys.exit(1 if failed else 0)
