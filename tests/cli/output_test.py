# SPDX-License-Identifier: Apache-2.0
"""The program and the system around it: output that cannot be written, streams that are closed, no
HOME, pipes and devices in the place of files, files that shrink while they are read."""
import os
import struct
import subprocess
import tempfile
import time
import unittest

CH = os.environ["MASE_CH"]


class Output(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name
        self.addCleanup(self.scratch.cleanup)

    def run_ch(self, *words, **options):
        environment = dict(os.environ, MASE_DATA=os.path.join(self.folder, "data"))
        environment.update(options.pop("env", {}))
        return subprocess.run([CH, *words], cwd=self.folder, env=environment, text=True, timeout=300,
                              stderr=options.pop("stderr", subprocess.PIPE), **options)

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_a_full_disk_is_an_error(self):
        for words in (["reference"], ["--version"], ["--help"], ["summary", "jsc-tiny"]):
            with open("/dev/full", "w") as full:
                result = self.run_ch(*words, stdout=full)
            self.assertEqual(result.returncode, 1, words)
            self.assertEqual(result.stderr, "ch: cannot write the output: No space left on device\n")

    def test_a_closed_output_is_an_error(self):
        result = subprocess.run(["bash", "-c", '"$0" reference >&-', CH], text=True,
                                capture_output=True)
        self.assertEqual(result.returncode, 1)
        self.assertTrue(result.stderr.startswith("ch: cannot write the output"), result.stderr)
        result = subprocess.run(["bash", "-c", '"$0" reference | true; exit ${PIPESTATUS[0]}', CH],
                                text=True, capture_output=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write the output", result.stderr)

    def test_a_closed_stream_does_not_become_a_file(self):
        command = ('"$0" pass quantize jsc-tiny --set linear.config.name=integer '
                   '--set linear.config.data_in_width=8 --set linear.config.data_in_frac_width=4 '
                   '--set linear.config.weight_width=8 --set linear.config.weight_frac_width=4 '
                   '--set linear.config.bias_width=8 --set linear.config.bias_frac_width=4 '
                   '--save a.mz <&- >&-')
        subprocess.run(["bash", "-c", command, CH], cwd=self.folder, capture_output=True)
        with open(self.path("a.mz"), "rb") as file:
            self.assertEqual(file.read(4), b"PK\x03\x04")

    def test_a_dead_stderr_does_not_stop_a_training(self):
        words = ["train", "jsc-tiny", "jsc-sim", "--sim-rows", "500", "--max-epochs", "1"]
        for redirect in ("2>&-", "2>/dev/full"):
            result = subprocess.run(["bash", "-c", f'"$0" "$@" {redirect}', CH, *words],
                                    cwd=self.folder, stdout=subprocess.PIPE, text=True,
                                    env=dict(os.environ, MASE_DATA=self.path("data")))
            self.assertEqual(result.returncode, 0, redirect)

    def test_works_without_a_home(self):
        for home in ({}, {"HOME": "/nonexistent"}):
            # What tells a sanitizer about threads stays.
            kept = {key: os.environ[key] for key in ("OMP_TOOL_LIBRARIES", "TSAN_OPTIONS") if key in os.environ}
            environment = {"PATH": os.environ["PATH"], **kept, **home}
            result = subprocess.run([CH, "data", "info", "jsc-sim", "--sim-rows", "300"],
                                    cwd=self.folder, env=environment, text=True, capture_output=True)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_only_regular_files_are_read(self):
        os.mkfifo(self.path("pipe"))
        os.symlink("/dev/zero", self.path("zero.csv"))
        os.mkdir(self.path("folder.toml"))
        commands = []
        for name in ("pipe", "zero.csv", "folder.toml", "/dev/zero", "/dev/stdin"):
            commands += [["inspect", name], ["data", "info", name, "--target", "x"],
                         ["summary", name], ["transform", "jsc-tiny", "--config", name],
                         ["train", "jsc-tiny", "jsc-sim", "--sim-rows", "300", "--config", name],
                         ["quantize", name, "--format", "integer"]]
        for words in commands:
            result = self.run_ch(*words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            self.assertEqual(result.returncode, 2, (words, result.stderr))
            self.assertEqual(result.stderr.count("\n"), 1, (words, result.stderr))

    def test_quotes_in_paths(self):
        folder = self.path("it's a \"quoted\" folder")
        os.mkdir(folder)
        words = ["train", "jsc-tiny", "jsc-sim", "--sim-rows", "500", "--max-epochs", "1",
                 "--project-dir", folder]
        result = self.run_ch(*words, stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_ch("report", folder, "--output", os.path.join(folder, "a'b.html"),
                             stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_file_that_shrinks_is_one_line(self):
        size = 320 << 20  # larger files than this program reads at once
        header = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (size // 4, size)
        path = self.path("big.safetensors")
        named = 0
        for delay in (0.02, 0.05, 0.1, 0.2, 0.4):
            with open(path, "wb") as file:
                file.write(struct.pack("<Q", len(header)) + header)
                file.truncate(8 + len(header) + size)
            process = subprocess.Popen([CH, "inspect", path], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            time.sleep(delay)
            os.truncate(path, 4096)
            _, said = process.communicate(timeout=300)
            self.assertIn(process.returncode, (0, 2), said)
            named += "became shorter while it was read" in said
        print(f"{named} of 5 files shrank while they were read")


unittest.main()
