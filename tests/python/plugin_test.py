# SPDX-License-Identifier: Apache-2.0
"""ch transform --plugin FILE.py: a pass written in Python among the program's own."""
import json
import os
import subprocess
import tempfile
import unittest

import package

PLUGIN = '''
import mase

@mase.register_pass
def count_layers(graph, args):
    """How many layers of a kind there are."""
    return {"count": sum(node.mase_op == args.get("op", "relu") for node in graph)}

@mase.register_pass(transform=True)
def halve_weights(graph, args):
    for layer in graph.modules.values():
        if layer.op == "linear":
            layer["weight"] = layer["weight"] / 2
'''
CONFIG = '''
model = "jsc-toy"
[passes.halve_weights]
[passes.count_layers]
op = "linear"
'''


class Plugins(unittest.TestCase):
    def setUp(self):
        if os.environ.get("MASE_SANITIZE"):
            self.skipTest("the program brings its own sanitizers")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        for name, text in (("plugin.py", PLUGIN), ("config.toml", CONFIG), ("broken.py", "import nothing_of_this_name\n")):
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(text)

    def ch(self, *words):
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        return subprocess.run([os.environ["MASE_CH"], *words], cwd=self.folder, capture_output=True, text=True, env=clean)

    def test_transform(self):
        done = self.ch("transform", "--config", "config.toml", "--plugin", "plugin.py", "--project", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "mase_output/run/software/transform/results.json")) as file:
            results = {entry["pass"]: entry for entry in json.load(file)}
        self.assertEqual(results["count_layers"]["result"], {"count": 3})
        self.assertTrue(results["halve_weights"]["changed"])
        import mase

        halved = mase.load(os.path.join(self.folder, "mase_output/run/software/transform/transformed.mz")).state_dict()
        whole = mase.load("jsc-toy").state_dict()
        self.assertTrue((2 * halved["seq_blocks.2.weight"] == whole["seq_blocks.2.weight"]).all())

    def test_mistakes_are_one_line(self):
        for words, text in ((("--plugin", "broken.py"), "nothing_of_this_name"), (("--plugin", "missing.py"), "missing.py"),
                            ((), "count_layers"), (("--plugin", "config.toml"), "cannot be loaded")):
            done = self.ch("transform", "--config", "config.toml", *words)
            self.assertEqual(done.returncode, 2, (words, done.stderr))
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    package.main()
