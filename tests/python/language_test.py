# SPDX-License-Identifier: Apache-2.0
"""Language models from Python: texts, perplexity, tokenizers of networks, training on running text."""
import os
import shutil
import tempfile
import unittest

import package
import numpy as np

import mase

GOLDEN = os.path.join(package.SOURCE, "tests/golden/language")


class Language(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.gguf = os.path.join(self.scratch.name, "tiny.gguf")
        shutil.copy(os.path.join(package.SOURCE, "tests/fuzz/corpus/gguf/llama"), self.gguf)

    def test_texts_and_perplexity(self):
        network = mase.load(self.gguf)
        self.assertEqual(network.tokenizer.encode("to be")["ids"], [6, 5, 7])
        self.assertEqual(network.copy().tokenizer.decode([6, 5, 7]), "to be")
        ids = mase.generate(network, [6, 8], tokens=5, ignore_end=True)
        self.assertEqual(len(ids), 5)
        seen = []
        self.assertEqual(mase.generate(self.gguf, [6, 8], tokens=5, ignore_end=True, each=seen.append), ids)
        self.assertEqual(seen, ids)
        self.assertEqual(mase.generate(network, [6, 8], tokens=5, each=lambda token: False), ids[:1])
        self.assertIsInstance(mase.generate(network, "to", tokens=2), str)
        drawn = [mase.generate(network, [6], tokens=8, temperature=2.0, seed=seed, ignore_end=True) for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

        def broken(token):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            mase.generate(network, [6], each=broken)
        text = "to be to be to be to be"
        measured = mase.perplexity(network, text, length=6)
        self.assertAlmostEqual(float(measured), np.exp(measured.loss), 6)
        path = os.path.join(self.scratch.name, "text.txt")
        with open(path, "w") as file:
            file.write(text)
        self.assertEqual(float(mase.perplexity(network, file=path, length=6)), float(measured))
        with self.assertRaises(mase.Error):
            mase.perplexity(network)
        with self.assertRaises(mase.Error):
            mase.generate("jsc-tiny", [1])
        with self.assertRaises(mase.Error):
            mase.load("jsc-tiny").tokenizer

    def test_training(self):
        rng = np.random.default_rng(1)
        words = rng.integers(3, 250, (10, 5))
        stream = os.path.join(self.scratch.name, "stream.npy")
        np.save(stream, np.concatenate([words[i] for i in rng.integers(0, 10, 300)]))
        run = mase.train(os.path.join(GOLDEN, "gpt2"), "running_text", task="lm", dataset_file=stream, dataset_length=10,
                         max_epochs=2, learning_rate=3e-3, batch_size=16, progress=False, save=False)
        self.assertLess(run.history[-1]["val_perplexity_epoch"], 100)
        self.assertLess(float(mase.perplexity(run.graph, np.load(stream)[:400], length=10)), 100)


if __name__ == "__main__":
    unittest.main()
