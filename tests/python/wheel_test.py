# SPDX-License-Identifier: Apache-2.0
"""The wheel: installed into a fresh environment it works without the source tree, and uninstalled it
leaves nothing."""
import os
import shutil
import subprocess
import sys
import tempfile

import package

if os.environ.get("MASE_SANITIZE"):
    package.skip("a wheel has no sanitizers")
if not os.path.exists(os.path.join(package.SOURCE, "build/python-tools/complete")):
    package.skip("scikit-build-core was not fetched (scripts/python_tools.sh)")

scratch = tempfile.mkdtemp()
environment = os.path.join(scratch, "environment")
clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MASE_SOURCE")}
try:
    built = subprocess.run([os.path.join(package.SOURCE, "scripts/python_wheel.sh"), os.environ["MASE_BUILD"], environment],
                           capture_output=True, text=True, env=clean)
    assert built.returncode == 0, built.stderr
    python = os.path.join(environment, "bin/python")
    code = ("import mase, chop, sys, os\n"
            "import numpy as np\n"
            f"assert mase.__file__.startswith({environment!r}), mase.__file__\n"
            "g = mase.load('jsc-tiny').quantize(linear=mase.formats.integer(8, 4))\n"
            "g.save('a.mz')\n"
            "x = np.ones((2, 16), np.float32)\n"
            "assert np.array_equal(mase.load('a.mz')(x), g(x))\n"
            "libraries = [line.split()[-1] for line in open('/proc/self/maps') if 'libmase.so' in line]\n"
            f"assert libraries and all(path.startswith({environment!r}) for path in libraries), libraries\n"
            "from chop.ir.graph.mase_graph import MaseGraph\n"
            "print('works')\n")
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, env=clean, cwd=scratch)
    assert ran.stdout.strip() == "works", ran.stderr
    site = os.path.join(environment, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
    assert os.path.exists(os.path.join(site, "mase/py.typed")) and os.path.exists(os.path.join(site, "mase/_native.pyi"))
    subprocess.run([python, "-m", "pip", "uninstall", "-y", "-q", "--disable-pip-version-check", "mase"], check=True, env=clean)
    left = [name for name in os.listdir(site) if name.startswith(("mase", "chop"))]
    assert not left, left
finally:
    shutil.rmtree(scratch, ignore_errors=True)
