# SPDX-License-Identifier: Apache-2.0
"""Sentences through the encoder of a Hugging Face folder: by the folder's tokenizer, with its special
tokens, and whatever other sentences stand in the file."""
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
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "film", "bad", "very", "##ly", "the", ".", ","]


def save_safetensors(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        value = np.ascontiguousarray(value, dtype="<f4")
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


class Sentences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.bert = os.path.join(cls.folder, "bert")
        shutil.copytree(os.path.join(SOURCE, "tests/golden/hf/tiny"), cls.bert)
        cls.write("bert/vocab.txt", "\n".join(WORDS) + "\n")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def write(cls, name, text):
        with open(os.path.join(cls.folder, name), "w") as file:
            file.write(text)

    def ch(self, *words, code=0):
        result = subprocess.run([CH, *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout if code == 0 else result.stderr

    def predict(self, text, *words):
        """The outputs: of each token, and pooled."""
        self.write("in.txt", text)
        self.ch("predict", "--load", "bert", "--input", "in.txt", "--output", "out.npy", *words)
        return (np.load(os.path.join(self.folder, "out.npy")), np.load(os.path.join(self.folder, "out_1.npy")))

    def ids(self, *rows):
        np.save(os.path.join(self.folder, "ids.npy"), np.array(rows))
        self.ch("predict", "--load", "bert", "--input", "ids.npy", "--output", "ids_out.npy")
        return (np.load(os.path.join(self.folder, "ids_out.npy")), np.load(os.path.join(self.folder, "ids_out_1.npy")))

    def test_neighbours_do_not_matter(self):
        alone = self.predict("A good film.\n")
        together = self.predict("bad\nA good film.\nthe very very bad film, a very bad film\nA good film.\n")
        self.assertEqual(together[1].shape[0], 4)
        for row in (1, 3):
            np.testing.assert_allclose(together[1][row], alone[1][0], atol=1e-6, rtol=0)
            count = alone[0].shape[1]
            np.testing.assert_allclose(together[0][row, :count], alone[0][0], atol=1e-6, rtol=0)
            self.assertTrue(np.isnan(together[0][row, count:]).all())

    def test_special_tokens_and_case(self):
        wanted = self.ids([2, 5, 6, 7, 12, 3])  # [CLS] a good film . [SEP]
        got = self.predict("A Good  FILM.\n")
        for k in range(2):
            np.testing.assert_allclose(got[k], wanted[k], atol=1e-6, rtol=0)

    def test_a_vocabulary_by_name(self):
        with open(os.path.join(self.bert, "vocab.txt")) as file:
            self.write("words.txt", file.read())
        got = self.predict("a good film\n", "--vocabulary", "words.txt")
        np.testing.assert_allclose(got[1], self.ids([2, 5, 6, 7, 3])[1], atol=1e-6, rtol=0)

    def test_long_sentences_are_cut_aloud(self):
        self.write("long.txt", "very " * 30 + "\nbad\n")
        result = subprocess.run([CH, "predict", "--load", "bert", "--input", "long.txt", "--output", "long.npy"],
                                cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 of 2 sentences cut to the 16 tokens", result.stderr)
        wanted = self.ids([2] + [9] * 14 + [3])[1]
        np.testing.assert_allclose(np.load(os.path.join(self.folder, "long_1.npy"))[:1], wanted, atol=1e-6, rtol=0)

    def test_classes_have_their_names(self):
        own = os.path.join(self.folder, "classifier")
        shutil.copytree(self.bert, own)
        with open(os.path.join(own, "config.json")) as file:
            config = json.load(file)
        config["id2label"] = {"0": "no", "1": "perhaps", "2": "yes"}
        with open(os.path.join(own, "config.json"), "w") as file:
            json.dump(config, file)
        rng = np.random.default_rng(0)
        with open(os.path.join(own, "model.safetensors"), "rb") as file:
            head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            data = file.read()
        tensors = {("" if name.startswith("bert.") else "bert.") + name: np.frombuffer(
            data[value["data_offsets"][0]:value["data_offsets"][1]], "<f4").reshape(value["shape"])
            for name, value in head.items() if value.get("dtype") == "F32"}
        tensors["classifier.weight"] = rng.normal(size=(3, config["hidden_size"]))
        tensors["classifier.bias"] = rng.normal(size=3)
        save_safetensors(os.path.join(own, "model.safetensors"), tensors)
        self.write("in.txt", "a good film\nbad, very bad\nbad\n")
        lines = self.ch("predict", "--load", "classifier", "--input", "in.txt").split()
        self.assertEqual(lines[0], "no,perhaps,yes")
        self.assertEqual(len(lines), 4)
        self.write("in.txt", "bad\n")
        alone = self.ch("predict", "--load", "classifier", "--input", "in.txt").split()
        np.testing.assert_allclose([float(x) for x in alone[1].split(",")], [float(x) for x in lines[3].split(",")], atol=1e-6)

    def test_ids_without_a_vocabulary(self):
        own = os.path.join(self.folder, "bare")
        shutil.copytree(os.path.join(SOURCE, "tests/golden/hf/tiny"), own)
        self.write("in.txt", "2 5 3\n2 5 6 7 3\n")
        self.ch("predict", "--load", "bare", "--input", "in.txt", "--output", "bare.npy")
        got = np.load(os.path.join(self.folder, "bare_1.npy"))
        np.testing.assert_allclose(got[:1], self.ids([2, 5, 3])[1], atol=1e-6, rtol=0)
        np.testing.assert_allclose(got[1:], self.ids([2, 5, 6, 7, 3])[1], atol=1e-6, rtol=0)
        self.write("in.txt", "good film\n")
        self.assertIn("is no token id", self.ch("predict", "--load", "bare", "--input", "in.txt", code=2))


if __name__ == "__main__":
    unittest.main()
