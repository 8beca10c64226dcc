# SPDX-License-Identifier: Apache-2.0
"""The wheel for others (make wheel): in an environment that sees neither the source tree nor a compiler, the
README's first commands run with it, in the terminal and in Python; it brings its libraries; and uninstalled
it leaves nothing."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import package

EIGHT_BITS = os.path.join(package.SOURCE, "configs/examples/hardware_8bit.toml")
# What every Linux with Python has (PEP 600's list, as far as it is used here).
EVERYWHERE = re.compile(r"^(ld-linux|libz\.|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libgcc_s\.|libstdc\+\+\.|linux-vdso)")


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = os.path.realpath(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        made = subprocess.run([os.path.join(package.SOURCE, "scripts/wheel.sh"), os.environ["MASE_BUILD"], cls.scratch],
                              capture_output=True, text=True)
        if "fetching auditwheel" in made.stderr:
            raise unittest.SkipTest("PyPI cannot be reached, which has auditwheel")
        assert made.returncode == 0, made.stderr
        [cls.wheel] = glob.glob(cls.scratch + "/mase-*.whl")
        cls.home = os.path.join(cls.scratch, "home")
        cls.environment = os.path.join(cls.scratch, "environment")
        os.makedirs(cls.home)
        # Debian's Python with its NumPy; nothing else is on the path.
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", cls.environment], check=True)
        cls.before = cls.files()
        cls.run_python("-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", cls.wheel)

    @classmethod
    def files(cls):
        return {os.path.join(folder, name) for folder, _, names in os.walk(cls.environment) for name in names if "__pycache__" not in folder}

    @classmethod
    def run_here(cls, *words):
        done = subprocess.run(words, cwd=cls.home, capture_output=True, text=True,
                              env={"PATH": cls.environment + "/bin", "HOME": cls.home, "LANG": "C.UTF-8"})
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    @classmethod
    def run_python(cls, *words):
        return cls.run_here(cls.environment + "/bin/python", *words)

    def ch(self, *words):
        return self.run_here(self.environment + "/bin/ch", *words)

    def test_1_it_is_small_and_says_where_it_runs(self):
        self.assertLess(os.path.getsize(self.wheel), 25e6)
        self.assertRegex(os.path.basename(self.wheel), r"^mase-[0-9.]+-cp3\d+-(abi3|cp3\d+)-manylinux_2_\d+_x86_64(\.manylinux\S*)?\.whl$")

    def test_2_it_brings_its_libraries(self):
        site = glob.glob(self.environment + "/lib/python3*/site-packages")[0]
        for file in [site + "/mase/bin/ch", *glob.glob(site + "/mase/_native*.so")]:
            listed = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
            for line in listed.splitlines():
                name, _, where = line.strip().partition(" => ")
                name = os.path.basename(name.split(" ")[0])
                self.assertTrue(EVERYWHERE.match(name) or os.path.realpath(where.split(" ")[0]).startswith(self.environment), (file, line))

    def test_3_in_the_terminal(self):
        self.assertTrue(self.ch("--version").startswith("ch 0."))
        self.assertIn("as it should be", self.ch("doctor"))
        self.ch("train", "jsc-toy", "jsc", "--learning-rate", "1e-2", "--max-epochs", "3", "--project", "toy")
        best = "mase_output/toy/software/training_ckpts/best.mz"
        self.assertIn("test_acc_epoch", self.ch("test", "--load", best))
        shutil.copy(EIGHT_BITS, self.home)
        self.assertIn("before", self.ch("transform", "--config", "hardware_8bit.toml", "--load", best, "--project", "eight"))
        self.ch("report", "mase_output/eight")
        self.assertIn("0 mismatches", self.ch("emit", "mase_output/eight/software/transform/transformed.mz", "--output", "design"))

    def test_4_in_python(self):
        out = self.run_python("-c", "import mase, chop\n"
                              "run = mase.train('jsc-toy', 'jsc', max_epochs=2, learning_rate=1e-2, save=False)\n"
                              "graph = run.graph.quantize(linear=mase.formats.integer(8, 4))\n"
                              "print(mase.test(graph, 'jsc').accuracy > 0.4, mase.__file__)")
        self.assertTrue(out.startswith("True " + self.environment), out)

    def test_5_manual_and_completion(self):
        self.assertTrue(os.path.exists(self.environment + "/share/man/man1/ch.1"))
        with open(self.environment + "/share/bash-completion/completions/ch", encoding="utf-8") as file:
            self.assertIn("complete -o filenames -F _ch_complete ch", file.read())

    def test_6_it_leaves_nothing(self):
        self.run_python("-m", "pip", "uninstall", "-y", "--quiet", "--disable-pip-version-check", "mase")
        self.assertEqual(sorted(self.files() - self.before), [])


if __name__ == "__main__":
    if os.environ.get("MASE_SANITIZE"):
        package.skip("a wheel has no sanitizers")
    if not os.path.exists(os.path.join(package.SOURCE, "build/python-tools/complete")):
        package.skip("scikit-build-core was not fetched (scripts/python_tools.sh)")
    package.main()
