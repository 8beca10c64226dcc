# SPDX-License-Identifier: Apache-2.0
"""Tools that are missing, fail, or are interrupted while they run: one line, exit code 2, the design as it was,
no half-done folder, and no tool left behind. The tools are scripts that stand in for the real ones."""
import os
import signal
import subprocess
import tempfile
import time
import unittest

CH = os.environ["MASE_CH"]
FIXTURE = os.path.join(os.environ["MASE_SOURCE"], "tests/golden/hardware/w4_toy.json")


def listing(folder):
    return sorted(os.path.join(base, name) for base, _, names in os.walk(folder) for name in names)


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Tools(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        self.design = os.path.join(self.folder, "design")
        self.run_ch("emit", "--load", FIXTURE, "--output", self.design, "--no-prove", "--quiet", "--rows", "20")
        self.before = listing(self.design)

    def environment(self):
        return dict(os.environ, PATH=self.bin)

    def run_ch(self, *words, code=0):
        result = subprocess.run([CH, *words], env=self.environment(), cwd=self.folder, text=True, capture_output=True)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def tool(self, name, script):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write("#!/bin/bash\nPATH=/usr/bin:/bin\n" + script)
        os.chmod(path, 0o755)

    def refused(self, wanted, *words):
        result = self.run_ch(*words, code=2)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(wanted, result.stderr)
        self.assertEqual(listing(self.design), self.before)
        self.assertFalse(os.path.exists(os.path.join(self.design, "build")))

    def test_missing_ones(self):
        self.refused("yosys: is not installed; apt-get install yosys", "synth", self.design)
        self.refused("iverilog: is not installed; apt-get install iverilog", "simulate", self.design)
        self.refused("verilator: is not installed", "simulate", self.design, "--simulator", "verilator")
        self.refused("g++: is not installed", "simulate", self.design, "--simulator", "cpp")
        self.refused("nextpnr-ice40: is not installed", "synth", self.design, "--place", "ice40")
        said = self.run_ch("emit", "--load", FIXTURE, "--output", self.design + "2", "--quiet", "--rows", "20").stdout
        self.assertIn("not read back: yosys is not installed", said)

    def test_failing_ones(self):
        self.tool("yosys", "echo 'ERROR: no such thing'; touch stat.txt; exit 1\n")
        self.refused("no such thing", "synth", self.design)
        self.tool("yosys", "touch stat.txt; kill -SEGV $$\n")
        self.refused("ended by signal 11", "synth", self.design)

    def interrupted(self, number, to_group, *words):
        note = os.path.join(self.folder, "started")
        # A tool with a child of its own, which must go too.
        self.tool("yosys", f"touch stat.txt; sleep 60 & echo $$ $! > {note}.new; mv {note}.new {note}; wait\n")
        process = subprocess.Popen([CH, *words], env=self.environment(), cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        for _ in range(1500):
            if os.path.exists(note) or process.poll() is not None:
                break
            time.sleep(0.02)
        self.assertTrue(os.path.exists(note), "the tool was not started")
        with open(note) as file:
            tools = [int(word) for word in file.read().split()]
        os.remove(note)
        (os.killpg if to_group else os.kill)(process.pid, number)
        if number == signal.SIGKILL:  # a tool's own children are beyond reach then
            os.kill(tools.pop(), signal.SIGKILL)
        _, said = process.communicate(timeout=30)
        for _ in range(500):
            if not any(map(alive, tools)):
                break
            time.sleep(0.02)
        self.assertFalse(any(map(alive, tools)), "the tool goes on")
        return process.returncode, said

    def test_interrupted_ones(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for to_group in (False, True):
                code, said = self.interrupted(number, to_group, "synth", self.design)
                self.assertEqual(code, 2)
                self.assertEqual(said, "ch: yosys: was interrupted; nothing of it was kept\n")
                self.assertEqual(listing(self.design), self.before)
                self.assertFalse(os.path.exists(os.path.join(self.design, "build")))

    def test_an_interrupted_proof_writes_no_folder(self):
        fresh = os.path.join(self.folder, "fresh")
        code, said = self.interrupted(signal.SIGINT, True, "emit", "--load", FIXTURE, "--output", fresh, "--rows", "20")
        self.assertEqual(code, 2)
        self.assertIn("was interrupted", said)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("fresh")], [])

    def test_a_killed_program_leaves_no_tool(self):
        code, _ = self.interrupted(signal.SIGKILL, True, "synth", self.design)
        self.assertEqual(code, -signal.SIGKILL)
        self.assertFalse(os.path.exists(os.path.join(self.design, "synthesis.json")))


unittest.main()
