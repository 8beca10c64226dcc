# SPDX-License-Identifier: Apache-2.0
"""The tests that use torch, with PyPI's newest instead of Debian's. It brings 5 GB with it, so it is fetched,
into build/newest-torch, only where MASE_FETCH_TORCH=1 says so; MASE_TORCH_PYTHON names an interpreter that
has it already."""
import os
import subprocess
import sys

import package

if os.environ.get("MASE_SANITIZE"):
    package.skip("PyTorch is not run under sanitizers")
environment = os.path.join(package.SOURCE, "build", "newest-torch")
python = os.environ.get("MASE_TORCH_PYTHON") or os.path.join(environment, "bin", "python")
if not os.path.exists(python):
    if not os.environ.get("MASE_FETCH_TORCH"):
        package.skip("MASE_FETCH_TORCH=1 fetches PyPI's newest torch, 5 GB")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    fetched = subprocess.run([os.path.join(environment, "bin", "pip"), "install", "--quiet", "torch", "numpy", "pandas"])
    if fetched.returncode:
        package.skip("PyPI cannot be reached")
print(subprocess.run([python, "-c", "import torch; print('torch', torch.__version__)"], capture_output=True, text=True,
                     check=True).stdout.strip())
failed = []
for name in ("torch", "own_graphs", "networks", "scripts", "labs", "lessons"):
    test = os.path.join(package.SOURCE, "tests", "python", f"{name}_test.py")
    done = subprocess.run([python, test], capture_output=True, text=True)
    print(f"{name}: {'passed' if done.returncode == 0 else 'FAILED'}")
    if done.returncode:
        failed.append(name)
        print(done.stdout[-3000:], done.stderr[-3000:])
sys.exit(1 if failed else 0)
