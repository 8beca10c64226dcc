# SPDX-License-Identifier: Apache-2.0
"""ONNX files through the program: several inputs and outputs, layers that were written in parts, and
what a user sees of what is not read."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("python3-numpy is not installed")
    sys.exit(77)

CH = os.environ["MASE_CH"]
GOLDEN = os.path.join(os.environ["MASE_SOURCE"], "tests/golden/onnx")


class OnnxCommands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def ch(self, *arguments, code=0):
        result = subprocess.run([CH, *arguments], cwd=self.folder, text=True, capture_output=True)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout if code == 0 else result.stderr

    def golden(self, name, file="model.onnx"):
        return os.path.join(GOLDEN, name, file)

    def test_two_inputs_and_two_outputs(self):
        name = "f29_two_inputs_two_outputs"
        inputs = [self.golden(name, f"input_{i}.npy") for i in range(2)]
        self.ch("predict", self.golden(name), "--input", *inputs, "--output", "out.npy")
        for i, file in enumerate(("out.npy", "out_1.npy")):
            np.testing.assert_array_equal(np.load(self.path(file)),
                                          np.load(self.golden(name, f"output_{i}.npy")))
        # In the graph's order: the other way round the difference has the other sign.
        self.ch("predict", self.golden(name), "--input", *reversed(inputs), "--output", "turned.npy")
        np.testing.assert_array_equal(np.load(self.path("turned.npy")),
                                      -np.load(self.golden(name, "output_0.npy")))

    def test_outputs_that_are_no_rows(self):
        """The batch behind other dimensions, and results without a value."""
        for name in ("f41_batch_in_the_middle", "f43_no_columns"):
            self.ch("predict", self.golden(name), "--input", self.golden(name, "input_0.npy"), "--output", f"{name}.npy")
            expected = np.load(self.golden(name, "output_0.npy"))
            np.testing.assert_allclose(np.load(self.path(f"{name}.npy")).reshape(expected.shape), expected, atol=1e-6)

    def test_a_written_file_says_how_inputs_are_scaled(self):
        with open(self.path("table.csv"), "w") as file:
            file.write("a,b,c,kind\n" + "".join(f"{i},{i % 7},{1000 + i % 5},{'red' if i % 2 else 'blue'}\n"
                                                for i in range(60)))
        self.ch("train", "jsc-toy", "table.csv", "--target", "kind", "--max-epochs", "1", "--project", "run")
        best = self.path("mase_output/run/software/training_ckpts/best.mz")
        self.ch("export", best, "--to", "net.onnx")
        facts = json.loads(self.ch("inspect", "net.onnx", "--json"))
        said = json.dumps(facts)
        self.assertIn("mase.preprocessing", said)
        imported = self.ch("import", "net.onnx", "--output", "net.mz")
        line = [one for one in imported.splitlines() if one.startswith("mase.preprocessing: ")]
        told = json.loads(line[0].split(": ", 1)[1])
        self.assertEqual((told["rule"], told["per"]), ("x = (raw - offset) / scale", "feature"))
        self.assertEqual(told["features"], ["a", "b", "c"])
        self.assertIn('mase.classes: ["blue","red"]', imported)
        # By this rule the file gives what the network of ours gives for raw rows.
        raw = np.array([[3, 1, 1002], [50, 6, 1000]], dtype=np.float32)
        np.save(self.path("raw.npy"), raw)
        scaled = (raw - np.float32(told["offset"])) / np.float32(told["scale"])
        np.save(self.path("scaled.npy"), scaled.astype(np.float32))
        self.ch("predict", best, "--input", "raw.npy", "--output", "ours.npy")
        self.ch("predict", "net.onnx", "--input", "scaled.npy", "--output", "theirs.npy", "--no-preprocess")
        np.testing.assert_allclose(np.load(self.path("ours.npy")), np.load(self.path("theirs.npy")), atol=1e-5)
        # We do so ourselves, as with the file that was exported: scaled once, classes by name.
        ours = self.ch("predict", best, "--input", "raw.npy")
        self.assertEqual(ours.splitlines()[0], "blue,red")
        self.assertEqual(self.ch("predict", "net.onnx", "--input", "raw.npy"), ours)
        self.assertEqual(self.ch("predict", "net.mz", "--input", "raw.npy"), ours)
        figures = []
        for file in (best, "net.onnx"):
            self.ch("test", file, "table.csv", "--target", "kind", "--json", "figures.json", "--no-output")
            with open(self.path("figures.json")) as written:
                figures.append(json.load(written)["evaluation"])
        self.assertEqual(*((one["accuracy"], round(one["loss"], 6)) for one in figures))
        with open(self.path("net.onnx"), "rb") as written:
            self.assertNotIn(b"table.csv", written.read())

    def test_too_few_inputs(self):
        name = "f29_two_inputs_two_outputs"
        error = self.ch("predict", self.golden(name), "--input", self.golden(name, "input_0.npy"),
                        "--output", "out.npy", code=2)
        self.assertIn("2", error)
        self.assertFalse(os.path.exists(self.path("out.npy")))

    def test_second_outputs_of_quantised_operators(self):
        name = "o19_quantised_operators"
        inputs = [self.golden(name, f"input_{i}.npy") for i in range(2)]
        self.ch("predict", self.golden(name), "--input", *inputs, "--output", "out.npy")
        # onnxruntime takes softmax from a table of integers: a step of the result at most.
        np.testing.assert_allclose(np.load(self.path("out_1.npy")),
                                   np.load(self.golden(name, "output_1.npy")), atol=1.001 / 256)

    def test_open_sizes(self):
        """Taken from the inputs; elsewhere they are said, and what is not said is asked for."""
        name = "f35_open_sizes"
        self.ch("predict", self.golden(name), "--input", self.golden(name, "input_0.npy"),
                "--output", "out.npy")
        for i, file in enumerate(("out.npy", "out_1.npy")):
            np.testing.assert_allclose(np.load(self.path(file)),
                                       np.load(self.golden(name, f"output_{i}.npy")), atol=1e-5)
        error = self.ch("import", self.golden(name), "--output", "net.mz", code=2)
        self.assertIn("has no fixed size", error)
        self.assertIn("--input-shape", error)
        self.ch("import", self.golden(name), "--input-shape", "3,32,48", "--output", "net.mz")
        self.ch("predict", "--load", "net.mz", "--input", self.golden(name, "input_0.npy"),
                "--output", "again.npy")
        np.testing.assert_array_equal(np.load(self.path("again.npy")), np.load(self.path("out.npy")))
        self.assertIn("[1, 8, 16, 24]", self.ch("summary", self.golden(name), "--input-shape", "3,32,48"))
        self.assertIn("has the size 3", self.ch("import", self.golden(name), "--input-shape", "4,32,48",
                                                code=2))

    def test_rotary_positions_are_a_layer_again(self):
        self.assertIn("rotary_embedding", self.ch("summary", self.golden("f21_rotary_halves")))

    def test_channels_last_operators_are_layers(self):
        text = self.ch("summary", self.golden("q21_channels_last"))
        for layer in ("Conv2d", "BatchNorm2d", "max_pool2d"):
            self.assertIn(layer, text)

    def test_an_operator_that_is_not_read_is_named(self):
        """A model of one node, byte by byte: onnx is not needed to run this test."""
        def field(number, content):
            return bytes([number << 3 | 2, len(content)]) + content

        def sized(name, *sizes):
            shape = b"".join(field(1, bytes([1 << 3, size])) for size in sizes)
            tensor = bytes([1 << 3, 1]) + field(2, shape)
            return field(1, name) + field(2, field(1, tensor))

        node = b"".join(field(1, name) for name in (b"x", b"x", b"x"))
        node += field(2, b"y") + field(3, b"size") + field(4, b"Det")
        graph = field(1, node) + field(2, b"g")
        graph += field(11, sized(b"x", 2, 3, 4)) + field(12, sized(b"y", 2, 1, 3, 2))
        model = bytes([1 << 3, 8])
        length = len(graph)
        model += bytes([7 << 3 | 2, length & 127 | 128, length >> 7]) + graph
        model += field(8, bytes([2 << 3, 17]))
        with open(self.path("det.onnx"), "wb") as file:
            file.write(model)
        error = self.ch("import", "det.onnx", "--output", "net.mz", code=2)
        self.assertIn("node 'size' (Det): there is no such operator here (domain 'ai.onnx', operator set 17)",
                      error)
        self.assertFalse(os.path.exists(self.path("net.mz")))
        self.ch("import", "det.onnx", "--partial", "--output", "net.mz")
        self.assertIn("Det", self.ch("inspect", "det.onnx"))


if __name__ == "__main__":
    unittest.main()
