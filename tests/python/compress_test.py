# SPDX-License-Identifier: Apache-2.0
"""mase.compress: the table of ch compress, its networks as graphs, and errors that name what is wrong."""
import json
import os
import subprocess
import tempfile
import unittest

import package
import numpy as np

import mase


class Compress(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.table = package.write_table(os.path.join(self.folder, "table.csv"))
        os.environ["MASE_DATA"] = os.path.join(self.folder, "data")
        self.trained = mase.train("jsc-toy", self.table, target="kind", max_epochs=3, batch_size=16, learning_rate=0.01,
                              project_dir=os.path.join(self.folder, "out"), progress=False)

    def compress(self, **options):
        given = dict(formats=["group_integer:width=3", "nf4"], methods=["rtn", "gptq"], calibration_rows=16, progress=False)
        return mase.compress(self.trained.best_checkpoint, self.table, target="kind", **{**given, **options})

    def test_rows_are_those_of_the_program(self):
        result = self.compress()
        self.assertEqual([(row["format"], row["method"]) for row in result.rows],
                         [(f, m) for f in ("group_integer:width=3", "nf4") for m in ("rtn", "gptq")])
        done = subprocess.run([os.environ["MASE_CH"], "compress", "--load", self.trained.best_checkpoint, self.table, "--target", "kind",
                               "--formats", "group_integer:width=3", "nf4", "--methods", "rtn", "gptq", "--calibration-rows", "16",
                               "--project-dir", os.path.join(self.folder, "out"), "--project", "table"],
                              capture_output=True, text=True, cwd=self.folder,
                              env={key: value for key, value in os.environ.items() if key != "LD_PRELOAD"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(self.folder, "out/table/software/compress/compress.json")) as file:
            theirs = json.load(file)
        for ours, other in zip(result.rows, theirs["rows"]):
            for key in ("format", "method", "bits", "bytes", "value", "difference", "front"):
                self.assertEqual(ours[key], other[key], key)
        self.assertIn("group_integer:width=3", str(result))
        self.assertIn(result.rows[0]["format"], result._repr_html_())

    def test_networks_of_the_front(self):
        result = self.compress()
        self.assertEqual(sorted(result.networks), sorted(i for i, row in enumerate(result.rows) if row["front"]))
        for place, graph in result.networks.items():
            figures = mase.test(graph, self.table, target="kind", progress=False)
            self.assertEqual(figures.accuracy, result.rows[place]["value"])
        self.assertEqual([row["bits"] for row in result.front], sorted(row["bits"] for row in result.front))
        graph = mase.load(self.trained.best_checkpoint)
        rows = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
        held = mase.compress(graph, (rows, np.arange(40) % 3), formats=["nf4"], methods=["rtn"], progress=False)
        self.assertEqual(len(held.rows), 1)

    def test_mistakes(self):
        with self.assertRaisesRegex(mase.Error, "did you mean 'gptq'"):
            self.compress(methods=["gtpq"])
        with self.assertRaisesRegex(mase.Error, "unknown format 'nf5'"):
            self.compress(formats=["nf5"])
        with self.assertRaisesRegex(mase.Error, "calibration"):
            self.compress(input="a.txt")


if __name__ == "__main__":
    unittest.main()
