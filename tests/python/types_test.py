# SPDX-License-Identifier: Apache-2.0
"""mypy has no objection to the package and to the lessons, which see it as users do."""
import glob
import os
import subprocess
import sys
import tempfile

import package

if os.environ.get("MASE_SANITIZE"):
    package.skip("types are the same with sanitizers")
if subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True).returncode:
    package.skip("there is no mypy")
lessons = sorted(glob.glob(os.path.join(package.SOURCE, "examples", "*.py")))
with tempfile.TemporaryDirectory() as scratch:
    settings = os.path.join(scratch, "mypy.ini")
    with open(settings, "w") as file:  # torch's own declarations take most of a minute to read
        file.write("[mypy]\nignore_missing_imports = True\nwarn_unused_ignores = False\n"
                   "[mypy-torch.*]\nfollow_imports = skip\n[mypy-torch]\nfollow_imports = skip\n")
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", settings, "--cache-dir", scratch,
                           os.path.join(package.TREE, "mase"), os.path.join(package.TREE, "chop"), *lessons],
                          capture_output=True, text=True, env={**os.environ, "MYPYPATH": package.TREE})
    print(done.stdout, done.stderr)
sys.exit(done.returncode)
