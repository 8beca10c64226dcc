# SPDX-License-Identifier: Apache-2.0
"""mase.Tokenizer against the ids that Hugging Face's library gives for the same file."""
import json
import os
import unittest

import package

import mase

GOLDEN = os.path.join(package.SOURCE, "tests/golden/text")


class Tokenizers(unittest.TestCase):
    def setUp(self):
        self.tokenizer = mase.Tokenizer(os.path.join(GOLDEN, "wordpiece.tokenizer.json"))
        with open(os.path.join(GOLDEN, "strings.json")) as file:
            self.strings = json.load(file)
        with open(os.path.join(GOLDEN, "wordpiece.ids.json")) as file:
            self.wanted = json.load(file)

    def test_strings_and_back(self):
        for entry in self.wanted["encode"]:
            got = self.tokenizer.encode(self.strings[entry["i"]])
            self.assertEqual(got["ids"], entry["ids"])
            if "offsets" in entry:
                self.assertEqual([list(pair) for pair in got["offsets"]], entry["offsets"])
            self.assertEqual(self.tokenizer.decode(entry["ids"]), entry["decode"])
            self.assertEqual(self.tokenizer.decode(entry["ids"], skip_special=True), entry["decode_skip"])

    def test_pairs_and_batches(self):
        pair = self.wanted["pairs"][0]
        self.assertEqual(self.tokenizer.encode(pair["a"], pair["b"])["type_ids"], pair["type_ids"])
        batch = self.wanted["batches"][0]
        got = self.tokenizer.batch(batch["texts"], threads=2)
        self.assertEqual([row["ids"] for row in got], [row["ids"] for row in batch["out"]])
        self.assertEqual([row["attention_mask"] for row in got], [row["mask"] for row in batch["out"]])
        self.assertEqual(len(self.tokenizer.encode("to be or not to be", max_length=5)["ids"]), 5)

    def test_windows_of_pairs(self):
        with open(os.path.join(GOLDEN, "pair_windows.json")) as file:
            cases = json.load(file)
        windows = 0
        for case in cases:
            options = {key: case[key] for key in ("max_length", "stride", "strategy", "cut")}
            with self.subTest(**case):
                if "error" in case:
                    with self.assertRaises(mase.Error):
                        self.tokenizer.encode(case["a"], case["b"], **options)
                    continue
                got = self.tokenizer.encode(case["a"], case["b"], **options)
                for own, wanted in zip([got, *got["windows"]], case["rows"]):
                    self.assertEqual(own["ids"], wanted["ids"])
                    self.assertEqual(own["type_ids"], wanted["type_ids"])
                    self.assertEqual([list(pair) for pair in own["offsets"]], wanted["offsets"])
                self.assertEqual(1 + len(got["windows"]), len(case["rows"]))
                windows += len(got["windows"])
        self.assertGreater(windows, 20)

    def test_lengths_of_batches(self):
        texts = ["to be", "or not to be", "that"]
        left = self.tokenizer.batch(texts, pad="left", pad_multiple=8)
        self.assertEqual([len(row["ids"]) for row in left], [8, 8, 8])
        self.assertEqual(left[2]["attention_mask"][:5], [0, 0, 0, 0, 0])
        self.assertEqual([len(row["ids"]) for row in self.tokenizer.batch(texts, pad_to=12)], [12, 12, 12])
        pairs = self.tokenizer.batch(texts, ["a", "b", "c"])
        self.assertEqual(pairs[1]["ids"], self.tokenizer.encode(texts[1], "b")["ids"])
        for wrong in ({"stride": 1}, {"pad": "up"}, {"max_length": 6, "strategy": "both"}):
            with self.assertRaises(mase.Error):
                self.tokenizer.batch(texts, **wrong)
        with self.assertRaises(mase.Error):
            self.tokenizer.batch(texts, ["a"])

    def test_words_and_mistakes(self):
        self.assertEqual(len(self.tokenizer), 2000)
        self.assertEqual(self.tokenizer.token(self.tokenizer.id("[CLS]")), "[CLS]")
        self.assertIsNone(self.tokenizer.id("no such token"))
        with self.assertRaises(mase.Error):
            self.tokenizer.decode([2000])
        with self.assertRaises(mase.Error):
            mase.Tokenizer("nowhere")


if __name__ == "__main__":
    unittest.main()
