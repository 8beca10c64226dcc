# SPDX-License-Identifier: Apache-2.0
"""ch tokenizer: what it prints, what it refuses, and that a tokenizer it learnt is the library's."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

CH, SOURCE = os.environ["MASE_CH"], os.environ["MASE_SOURCE"]
GOLDEN = os.path.join(SOURCE, "tests/golden/text")
WORDPIECE = os.path.join(GOLDEN, "wordpiece.tokenizer.json")


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def ch(self, *words, code=0):
        result = subprocess.run([CH, "tokenizer", *words], cwd=self.folder, capture_output=True)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        text = (result.stdout if code == 0 else result.stderr).decode()
        if code:
            self.assertEqual(text.count("\n"), 1, text)
        return text

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def test_encode_and_decode(self):
        self.assertEqual(self.ch("encode", WORDPIECE, "To be", "or not"), "2 91 104 3\n2 270 128 3\n")
        self.assertEqual(self.ch("encode", WORDPIECE, "To be", "--no-special"), "91 104\n")
        self.assertEqual(self.ch("encode", WORDPIECE, "To be", "or not", "--pair"), "2 91 104 3 270 128 3\n")
        self.assertEqual(self.ch("encode", WORDPIECE, "to be or not", "--max-length", "4"), "2 91 104 3\n")
        whole = json.loads(self.ch("encode", WORDPIECE, "To be", "--json"))
        self.assertEqual(whole[0]["tokens"], ["[CLS]", "to", "be", "[SEP]"])
        self.assertEqual(whole[0]["offsets"], [[0, 0], [0, 2], [3, 5], [0, 0]])
        self.assertEqual(whole[0]["special_tokens_mask"], [1, 0, 0, 1])
        self.assertEqual(self.ch("decode", WORDPIECE, "2", "91", "104", "3"), "[CLS] to be [SEP]\n")
        self.assertEqual(self.ch("decode", WORDPIECE, "2 91 104 3", "--no-special"), "to be\n")
        lines = self.write("lines.txt", "To be\n\nor not\n")
        self.assertEqual(self.ch("encode", WORDPIECE, "--input", lines), "2 91 104 3\n2 3\n2 270 128 3\n")

    def test_inspect(self):
        facts = json.loads(self.ch("inspect", WORDPIECE, "--json"))
        self.assertEqual((facts["tokens"], facts["model"], facts["special_tokens_per_sentence"]), (2000, "WordPiece", 2))
        self.assertIn("BertNormalizer", self.ch("inspect", WORDPIECE))

    def test_mistakes(self):
        self.assertIn("unknown action", self.ch("encde", WORDPIECE, "a", code=2))
        self.assertIn("nothing is given", self.ch("encode", WORDPIECE, code=2))
        self.assertIn("'x' is no token id", self.ch("decode", WORDPIECE, "x", code=2))
        self.assertIn("2000 is no id", self.ch("decode", WORDPIECE, "2000", code=2))
        self.assertIn("--size", self.ch("encode", WORDPIECE, "a", "--size", "900", code=2))
        self.assertIn("lines.txt:2: is not UTF-8",
                      self.ch("encode", WORDPIECE, "--input", self.write("lines.txt", b"a\n\xff\n"), code=2))
        self.assertIn("no 'model'", self.ch("encode", self.write("t.json", "{}"), "a", code=2))
        self.assertIn("not valid JSON", self.ch("encode", self.write("t.json", "{"), "a", code=2))
        self.assertIn("has no tokenizer", self.ch("encode", self.folder, "a", code=2))

    def test_learnt_tokens_are_the_librarys(self):
        text = os.path.join(SOURCE, "../shared/language/tokenizers/train_300k.txt")
        if not os.path.exists(text):
            self.skipTest("no file " + text)
        self.ch("train", "own.json", "--input", text, "--size", "2000")
        with open(os.path.join(self.folder, "own.json")) as file:
            own = json.load(file)["model"]
        with open(os.path.join(GOLDEN, "bpe_gpt2.tokenizer.json")) as file:
            wanted = json.load(file)["model"]
        self.assertEqual(own, wanted)

    def test_learning(self):
        text = self.write("text.txt", "low low low lower lower newest newest newest newest newest widest widest\n")
        said = json.loads(self.ch("train", "own.json", "--input", text, "--size", "265", "--json"))
        self.assertEqual((said["tokens"], said["merges"]), (265, 8))
        with open(os.path.join(self.folder, "own.json")) as file:
            merges = json.load(file)["model"]["merges"]
        # By hand: 7 times es, then est; 5 times new and low with the space before it; ties by ids.
        self.assertEqual(merges[:2], [["e", "s"], ["es", "t"]])
        ids = self.ch("encode", "own.json", "newest lowest")
        self.assertEqual(self.ch("decode", "own.json", *ids.split()), "newest lowest\n")
        self.assertIn("is no name of a tokenizer", self.ch("train", self.folder, "--input", text, code=2))
        self.assertIn("size", self.ch("train", "own.json", "--input", text, "--size", "256", code=2))


if __name__ == "__main__":
    unittest.main()
