# SPDX-License-Identifier: Apache-2.0
"""Language models and classifiers of sentences through the program: GGUF files, training on running text
and on sentences, what is measured, and folders written back."""
import json
import os
import random
import re
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
WORDS = (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "the", "was", "very", "a"]
         + [chr(c) for c in range(ord("b"), ord("z") + 1)] + ["##" + chr(c) for c in range(ord("a"), ord("z") + 1)])


class LanguageModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def ch(self, *words, code=0):
        result = subprocess.run([CH, *map(str, words)], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout if code == 0 else result.stderr

    def gguf(self):
        shutil.copy(os.path.join(SOURCE, "tests/fuzz/corpus/gguf/llama"), self.path("tiny.gguf"))
        return "tiny.gguf"

    def test_gguf_files_are_networks_and_tokenizers(self):
        net = self.gguf()
        self.assertEqual(self.ch("tokenizer", "encode", net, "to be<|endoftext|>"), "6 5 7 0\n")
        self.assertEqual(self.ch("tokenizer", "decode", net, "6", "5", "7"), "to be\n")
        text = self.ch("generate", "--load", net, "--prompt", "to", "--tokens", "4", "--ids", "--ignore-end")
        ids = [int(i) for i in text.replace("to", "", 1).split()]
        self.assertEqual(len(ids), 4)
        self.write("text.txt", "to be to be to be to be to be to be\n" .replace("\n", ""))
        said = self.ch("perplexity", "--load", net, "--input", "text.txt", "--length", "8")
        self.assertIn("windows of 8", said)
        np.save(self.path("ids.npy"), np.array([[6, 5, 7, 6]]))
        self.ch("predict", "--load", net, "--input", "ids.npy", "--output", "logits.npy")
        logits = np.load(self.path("logits.npy"))
        self.assertEqual(logits.shape, (1, 4, 9))
        # The same network as a folder gives the same but for the order of sums (its weights are floats, those of
        # the file stay packed), and so does its tokenizer.
        self.ch("export", "--load", net, "--to", "llama")
        self.ch("predict", "--load", "llama", "--input", "ids.npy", "--output", "again.npy")
        np.testing.assert_allclose(np.load(self.path("again.npy")), logits, rtol=0, atol=1e-6 * np.abs(logits).max())
        self.assertEqual(self.ch("tokenizer", "encode", "llama", "to be"), "6 5 7\n")
        with open(self.path("llama/config.json")) as file:
            self.assertEqual(json.load(file)["model_type"], "llama")
        self.assertIn("is there already", self.ch("export", "--load", net, "--to", "llama", code=2))
        self.assertIn("Q4_1", self.ch("inspect", net))
        self.write("lines.txt", "to be\nbe\n")
        self.ch("predict", "--load", net, "--input", "lines.txt", "--output", "lines.npy")
        self.assertEqual(np.load(self.path("lines.npy")).shape, (2, 3, 9))

    def test_running_text_lowers_the_perplexity(self):
        shutil.copytree(os.path.join(GOLDEN, "llama_sharded"), self.path("lm"))
        rng = np.random.default_rng(1)
        words = rng.integers(3, 250, (20, 5))
        np.save(self.path("stream.npy"), np.concatenate([words[i] for i in rng.integers(0, 20, 900)]))
        data = ["running_text", "--dataset-file", "stream.npy", "--dataset-length", "15"]
        before = self.ch("test", "lm", *data, "--json", "before.json")
        self.assertIn("test_perplexity_epoch", before)
        self.ch("train", "lm", *data, "--max-epochs", "4", "--batch-size", "16", "--learning-rate", "3e-3",
                "--training-optimizer", "adamw", "--schedule", "cosine-decay", "--project-dir", "out", "--project", "lm")
        with open(self.path("out/lm/run.json")) as file:
            record = json.load(file)
        with open(self.path("before.json")) as file:
            first = json.load(file)["evaluation"]
        figures = record["evaluations"]["test"]
        self.assertAlmostEqual(np.exp(figures["loss"]), figures["perplexity"], 6)
        self.assertEqual(figures["tokens"], figures["rows"] * 14)
        self.assertLess(figures["perplexity"], first["perplexity"] / 5)
        best = "out/lm/software/training_ckpts/best.mz"
        self.ch("test", "--load", best, "--json", "after.json")
        with open(self.path("after.json")) as file:
            self.assertAlmostEqual(json.load(file)["evaluation"]["loss"], figures["loss"], 6)
        # The command that measures texts has the same figure of the same windows.
        held = np.load(self.path("stream.npy"))[:4500 // 15 * 15].reshape(-1, 15)[-30:]
        np.save(self.path("held.npy"), held)
        self.ch("export", "--load", best, "--to", "trained")
        said = self.ch("perplexity", "--load", "trained", "--input", "held.npy", "--length", "15")
        self.assertAlmostEqual(float(re.search(r"^perplexity (\S+)", said, re.M)[1]) / figures["perplexity"], 1, 4)
        self.assertIn("are no data for 'lm'", self.ch("train", "jsc-toy", "toy_tiny", "--task", "lm", code=2))

    def sentences(self):
        draw = random.Random(3)
        rows = ["text,label"]
        for _ in range(120):
            good = draw.random() < 0.5
            filler = " ".join(draw.choice(["the", "film", "was", "very", "a"]) for _ in range(draw.randint(1, 9)))
            rows.append(f"{filler} {'good' if good else 'bad'},{'POS' if good else 'NEG'}")
        return self.write("s.csv", "\n".join(rows) + "\n")

    def test_sentences_are_learnt_and_written_back(self):
        shutil.copytree(os.path.join(GOLDEN, "bert_cls"), self.path("bert"))
        # A base without a head: that of the folder has three classes.
        shutil.move(self.path("bert/model.safetensors"), self.path("all.safetensors"))
        with open(self.path("all.safetensors"), "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header, data = json.loads(file.read(size)), file.read()
        kept, new = b"", {}
        for name, entry in header.items():
            if name == "__metadata__" or name.startswith("classifier."):
                continue
            begin, end = entry["data_offsets"]
            new[name] = dict(entry, data_offsets=[len(kept), len(kept) + end - begin])
            kept += data[begin:end]
        text = json.dumps(new).encode()
        with open(self.path("bert/model.safetensors"), "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text + kept)
        with open(self.path("bert/config.json")) as file:
            config = json.load(file)
        for key in ("id2label", "label2id"):
            config.pop(key)
        config["architectures"] = ["BertForMaskedLM"]
        with open(self.path("bert/config.json"), "w") as file:
            json.dump(config, file)
        self.write("bert/vocab.txt", "\n".join(WORDS) + "\n")
        data = ["sentences", "--dataset-file", self.sentences()]
        said = self.ch("train", "bert", *data, "--max-epochs", "6", "--batch-size", "16", "--learning-rate", "1e-3",
                       "--project-dir", "out", "--project", "cls")
        with open(self.path("out/cls/run.json")) as file:
            record = json.load(file)
        self.assertGreater(record["evaluations"]["test"]["accuracy"], 0.9, said)
        best = "out/cls/software/training_ckpts/best.mz"
        self.write("in.txt", "the film was good\nbad\na very very very very good film\n")
        self.ch("predict", "--load", best, "--input", "in.txt", "--output", "all.npy")
        together = np.load(self.path("all.npy"))
        self.assertEqual(list(together.argmax(1)), [1, 0, 1])
        # Alone, and in another order.
        for place, line in enumerate(["the film was good", "bad", "a very very very very good film"]):
            self.write("one.txt", line + "\n")
            self.ch("predict", "--load", best, "--input", "one.txt", "--output", "one.npy")
            np.testing.assert_allclose(np.load(self.path("one.npy"))[0], together[place], atol=1e-6)
        # Back to a folder, whose rows are not filled up at all.
        self.ch("export", "--load", best, "--to", "written")
        self.ch("predict", "--load", "written", "--input", "in.txt", "--output", "back.npy")
        np.testing.assert_allclose(np.load(self.path("back.npy")), together, atol=1e-5)
        with open(self.path("written/config.json")) as file:
            config = json.load(file)
        self.assertEqual(config["architectures"], ["BertForSequenceClassification"])
        self.assertEqual(config["id2label"], {"0": "NEG", "1": "POS"})
        # Arrays in the order of the network's inputs.
        np.save(self.path("ids.npy"), np.array([[2, 8, 7, 9, 5, 3, 0, 0]]))
        np.save(self.path("mask.npy"), np.array([[1, 1, 1, 1, 1, 1, 0, 0]]))
        np.save(self.path("types.npy"), np.zeros((1, 8), dtype=np.int64))
        self.ch("predict", "--load", "written", "--input", "ids.npy", "mask.npy", "types.npy", "--output", "a.npy")
        np.testing.assert_allclose(np.load(self.path("a.npy"))[0], together[0], atol=1e-5)


if __name__ == "__main__":
    unittest.main()
