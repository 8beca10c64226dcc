# SPDX-License-Identifier: Apache-2.0
"""mypy has no objection to the lessons, which see the package as users do."""
import glob
import os
import subprocess
import sys
import tempfile

import package

if subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode:
    package.skip("there is no mypy")
lessons = sorted(glob.glob(os.path.join(package.SOURCE, "examples", "*.py")))
done = subprocess.run([sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports", "silent",
                       "--cache-dir", tempfile.mkdtemp(), *lessons], capture_output=True, text=True,
                      env={**os.environ, "MYPYPATH": package.TREE})
print(done.stdout, done.stderr)
sys.exit(done.returncode)
