# SPDX-License-Identifier: Apache-2.0
"""`ch python` and `ch notebook`: scripts, Python's own options, standard input, Jupyter or a word about it."""
import os
import subprocess
import tempfile
import unittest

import package

SCRIPT = """
import sys
from pathlib import Path
machop_path = Path(".").resolve().parent.parent / "machop"
assert machop_path.exists()
sys.path.insert(0, str(machop_path))
import chop, mase
print(*(Path(p.__file__).resolve().parent.parent for p in (mase, chop)), *sys.argv[1:], sep="|")
"""


class Launcher(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = os.path.realpath(self.scratch.name)
        os.symlink(package.TREE, os.path.join(self.folder, "python"))
        with open(os.path.join(self.folder, "script.py"), "w") as file:
            file.write(SCRIPT)
        with open(os.path.join(self.folder, ".python-built"), "w"):  # newer than all sources: nothing is built here
            pass

    def ch(self, *args, stdin="", **variables):
        """What the launcher does once the program is there."""
        launch = f"set -euo pipefail; root={package.SOURCE!r} build=.; source {package.SOURCE!r}/scripts/python.sh"
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        done = subprocess.run(["bash", "-c", launch, "ch", *args], input=stdin, capture_output=True, text=True, cwd=self.folder,
                              env={**environment, **variables})
        return done.returncode, done.stdout, done.stderr

    def test_scripts(self):
        tree = os.path.realpath(package.TREE)
        for before in ((), ("-u",), ("-X", "utf8", "-B")):
            code, out, err = self.ch("python", *before, "script.py", "a b", "-c", "")
            self.assertEqual((code, out), (0, f"{tree}|{tree}|a b|-c|\n"), err)
        self.assertEqual(self.ch("python", "nowhere.py"), (2, "", "ch: nowhere.py: there is no such script\n"))
        with open(os.path.join(self.folder, "bad.py"), "w") as file:
            file.write("import mase\nmase.load('jsc-tyni')\n")
        code, _, err = self.ch("python", "bad.py")
        self.assertEqual(code, 1)
        self.assertIn("did you mean", err.splitlines()[-1])
        self.assertNotIn("runpy", err)  # the trace begins in the script

    def test_programs_in_other_folders_find_the_package(self):
        ask = "import os, subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', 'import mase, chop'], cwd='/').returncode)"
        self.assertEqual(self.ch("python", "-c", ask), (0, "", ""))

    def test_what_python_does_itself(self):
        ask = "import sys, mase; print(len(mase.models()) > 5, sys.argv)"
        for args, stdin, argv in ((("-c", ask, "x"), "", ["-c", "x"]), (("-", "x"), ask, ["-", "x"]), ((), ask, [""])):
            code, out, err = self.ch("python", *args, stdin=stdin)
            self.assertEqual((code, out), (0, f"True {argv}\n"), err)
        code, out, _ = self.ch("python", "-m", "json.tool", stdin="[1]")
        self.assertEqual((code, out), (0, "[\n    1\n]\n"))
        self.assertRegex(self.ch("python", "--version")[1], r"^Python 3")

    def test_an_active_environment(self):
        environment = os.path.join(self.folder, "environment")
        python = os.path.join(environment, "bin", "python")
        os.makedirs(os.path.dirname(python))
        os.symlink("/usr/bin/python3", python)
        ask = ("python", "-c", "import sys, mase; print(sys.executable)")
        self.assertEqual(self.ch(*ask, VIRTUAL_ENV=environment), (0, python + "\n", ""))
        os.remove(python)
        with open(python, "w") as file:  # of another Python
            file.write("#!/bin/bash\necho .cpython-399-x86_64-linux-gnu.so\n")
        os.chmod(python, 0o755)
        code, out, err = self.ch(*ask, VIRTUAL_ENV=environment)
        self.assertEqual((code, out, err.count("\n")), (0, "/usr/bin/python3\n", 1), err)
        self.assertIn("cannot load the package", err)

    def test_notebook(self):
        tools = os.path.join(self.folder, "tools")
        os.mkdir(tools)
        jupyter, path = os.path.join(tools, "jupyter"), f"{tools}:/usr/bin:/bin"

        def stub(text):
            with open(jupyter, "w") as file:
                file.write("#!/bin/bash\n" + text)
            os.chmod(jupyter, 0o755)

        stub("exit 1\n")
        code, out, err = self.ch("notebook", PATH=path)
        self.assertEqual((code, out, err.count("\n")), (2, "", 1), err)
        self.assertIn("Jupyter is not installed", err)
        stub('[[ $1 == notebook ]] || exit 1\necho "$PYTHONPATH" "$@"\n')
        self.assertEqual(self.ch("notebook", "--port", "1", PATH=path)[:2],
                         (0, f"{self.folder}/python notebook --port 1\n"))


if __name__ == "__main__":
    package.main()
