# SPDX-License-Identifier: Apache-2.0
"""What a row gives never depends on the others: over all families of networks from folders, a batch whose rows are filled up, the same
batch in another order, and every row alone at its own length give the same numbers to 1e-6 of the largest."""
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

CH, SOURCE = os.environ["MASE_CH"], os.environ["MASE_SOURCE"]
GOLDEN = os.path.join(SOURCE, "tests/golden/language")


def folders():
    return sorted(name for name in os.listdir(GOLDEN) if os.path.exists(os.path.join(GOLDEN, name, "config.json")))


class Padding(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def tearDown(self):
        shutil.rmtree(self.folder)

    def predict(self, network, arrays):
        names = []
        for i, array in enumerate(arrays):
            names.append(os.path.join(self.folder, f"in_{i}.npy"))
            np.save(names[-1], array)
        done = subprocess.run([CH, "predict", "--load", network, "--input", *names, "--output", "out.npy"], cwd=self.folder, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(os.path.join(self.folder, "out.npy"))

    def near(self, ours, wanted):
        self.assertEqual(ours.shape, wanted.shape)
        self.assertLessEqual(np.abs(ours - wanted).max(initial=0), 1e-6 * max(1, np.abs(wanted).max(initial=0)))

    def test_a_row_never_sees_the_others(self):
        families = set()
        for name in folders():
            with open(os.path.join(GOLDEN, name, "config.json")) as file:
                config = json.load(file)
            families.add(config["model_type"])
            rng = np.random.default_rng(len(name))
            with self.subTest(folder=name):
                if config["model_type"] == "vit":
                    images = rng.normal(size=(4, config["num_channels"], config["image_size"], config["image_size"])).astype("f4")
                    whole, order = self.predict(os.path.join(GOLDEN, name), [images]), [2, 0, 3, 1]
                    self.near(self.predict(os.path.join(GOLDEN, name), [images[order]]), whole[order])
                    for row in range(4):
                        self.near(self.predict(os.path.join(GOLDEN, name), [images[row:row + 1]]), whole[row:row + 1])
                    continue
                padding = config.get("pad_token_id")
                padding = 0 if padding is None else padding
                lengths, longest = [9, 4, 13, 1, 7], 13
                ids = rng.integers(3, config["vocab_size"], (len(lengths), longest))
                mask = (np.arange(longest)[None] < np.array(lengths)[:, None]).astype(np.int64)
                ids = np.where(mask == 1, ids, padding)
                whole = self.predict(os.path.join(GOLDEN, name), [ids, mask])
                by_token = whole.ndim == 3
                order = [3, 1, 4, 0, 2]
                shuffled = self.predict(os.path.join(GOLDEN, name), [ids[order], mask[order]])
                wider = self.predict(os.path.join(GOLDEN, name), [np.pad(a, ((0, 0), (0, 6)), constant_values=p) for a, p in ((ids, padding), (mask, 0))])
                for row, length in enumerate(lengths):
                    kept = slice(0, length) if by_token else slice(None)
                    wanted = whole[row][kept]
                    self.near(shuffled[order.index(row)][kept], wanted)
                    self.near(wider[row][kept], wanted)
                    self.near(self.predict(os.path.join(GOLDEN, name), [ids[row:row + 1, :length]])[0][kept], wanted)
        # All that there are; a new one brings a folder.
        self.assertEqual(families, {"bert", "distilbert", "gpt2", "llama", "mistral", "opt", "qwen2", "qwen3", "roberta", "vit"})


if __name__ == "__main__":
    unittest.main()
