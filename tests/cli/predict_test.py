# SPDX-License-Identifier: Apache-2.0
"""What `ch predict` takes: archives of several arrays, several files one after another, sentences as words
or as ids; and what it says where it cannot tell what is meant."""
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
VOCABULARY = ["[PAD]", "[UNK]", "good", "bad", "film", "very"]


class Predict(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        rng = np.random.default_rng(1)
        rows = rng.normal(size=(60, 3)).astype(np.float32)
        cls.write("table.csv", "a,b,c,kind\n" + "".join(
            f"{a},{b},{c},{'red' if a > 0 else 'blue'}\n" for a, b, c in rows))
        cls.rows = rows
        cls.write("vocab.txt", "\n".join(VOCABULARY) + "\n")
        cls.write("text.txt", "good film\nvery good film\nbad film\nbad\nvery bad film\ngood\n" * 5)
        cls.write("labels.txt", "yes\nyes\nno\nno\nno\nyes\n" * 5)
        cls.write("bag.toml", 'name = "bag"\ninput = [3]\nseq_blocks = [{type = "Embedding", num_embeddings = 6, '
                  'embedding_dim = 4}, {type = "Flatten"}, {type = "Linear", out_features = 2}]\n')
        cls.ch("train", "jsc-toy", "table.csv", "--target", "kind", "--max-epochs", "1", "--project", "rows")
        cls.ch("train", "bag.toml", "tokens", "--dataset-file", "text.txt", "--dataset-vocabulary", "vocab.txt",
               "--dataset-labels", "labels.txt", "--max-epochs", "1", "--batch-size", "8", "--project", "words")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def write(cls, name, text):
        with open(os.path.join(cls.folder, name), "w") as file:
            file.write(text)

    @classmethod
    def ch(cls, *words, code=0):
        result = subprocess.run([CH, *words], cwd=cls.folder, capture_output=True, text=True)
        assert result.returncode == code, f"{words}: {result.returncode} {result.stdout} {result.stderr}"
        return result.stdout if code == 0 else result.stderr

    def predict(self, project, *inputs, code=0):
        return self.ch("predict", f"mase_output/{project}/software/training_ckpts/best.mz", "--input", *inputs,
                       code=code)

    def save(self, name, **arrays):
        np.savez(os.path.join(self.folder, name), **arrays)

    def test_archives(self):
        np.save(os.path.join(self.folder, "x.npy"), self.rows)
        wanted = self.predict("rows", "x.npy")
        self.save("only.npz", something=self.rows)
        self.save("two.npz", x=self.rows, y=np.zeros(60))
        self.save("many.npz", first=self.rows, second=self.rows * 2)
        self.save("columns.npz", a=self.rows[:, 0], b=self.rows[:, 1], c=self.rows[:, 2])
        for name in ("only.npz", "two.npz", "columns.npz"):
            self.assertEqual(self.predict("rows", name), wanted, name)
        self.assertEqual(self.predict("rows", "many.npz", "--tensor", "first"), wanted)
        self.assertNotEqual(self.predict("rows", "many.npz", "--tensor", "second"), wanted)
        self.assertIn("choose one with --tensor: first, second", self.predict("rows", "many.npz", code=2))
        self.assertIn("no 'third'", self.predict("rows", "many.npz", "--tensor", "third", code=2))

    def test_columns_of_an_archive_go_by_name(self):
        with open(os.path.join(self.folder, "table.csv")) as file:
            self.write("turned.csv", file.read().replace("a,b,c,kind", "feature_9,feature_10,b,kind"))
        self.ch("train", "jsc-toy", "turned.csv", "--target", "kind", "--max-epochs", "1", "--project", "turned")
        np.save(os.path.join(self.folder, "turned.npy"), self.rows)
        self.save("turned.npz", feature_9=self.rows[:, 0], feature_10=self.rows[:, 1], b=self.rows[:, 2])
        self.assertEqual(self.predict("turned", "turned.npz"), self.predict("turned", "turned.npy"))
        self.save("strange.npz", p=self.rows[:, 0], q=self.rows[:, 1], r=self.rows[:, 2])
        self.assertIn("feature_9", self.predict("turned", "strange.npz", code=2))

    def test_several_files(self):
        np.save(os.path.join(self.folder, "a.npy"), self.rows[:2])
        np.save(os.path.join(self.folder, "b.npy"), self.rows[2:5])
        both = self.predict("rows", "a.npy", "b.npy").split()
        alone = self.predict("rows", "a.npy").split()[1:] + self.predict("rows", "b.npy").split()[1:]
        self.assertEqual(both[0], "file,blue,red")
        self.assertEqual(both[1:], [f"{'a' if i < 2 else 'b'}.npy,{line}" for i, line in enumerate(alone)])
        # Rows that are left out leave their names out too, or keep their places.
        bad = self.rows[:2].copy()
        bad[0, 1] = np.nan
        np.save(os.path.join(self.folder, "bad.npy"), bad)
        lines = self.predict("rows", "b.npy", "bad.npy", "--drop-bad-rows").split()
        self.assertEqual([line.split(",")[0] for line in lines[1:]], ["b.npy"] * 3 + ["bad.npy"])
        lines = self.predict("rows", "b.npy", "bad.npy", "--drop-bad-rows", "--keep-places", "--classes").split()
        self.assertEqual([line.split(",")[0] for line in lines[1:]], ["b.npy"] * 3 + ["bad.npy"] * 2)
        self.assertTrue(lines[4].startswith("bad.npy,-1"), lines)

    def test_sentences(self):
        np.save(os.path.join(self.folder, "ids.npy"), np.array([[5, 2, 4], [3, 0, 0]]))
        wanted = self.predict("words", "ids.npy")
        self.write("new.txt", "very good film\nbad\n")
        self.write("numbers.txt", "5 2 4\n3 0 0\n")
        # The network's file knows the vocabulary that it was trained with.
        self.assertEqual(self.predict("words", "new.txt"), wanted)
        self.assertEqual(self.predict("words", "new.txt", "--vocabulary", "vocab.txt"), wanted)
        self.write("turned.txt", "\n".join(["[PAD]", "[UNK]", "bad", "good", "film", "very"]) + "\n")
        self.assertNotEqual(self.predict("words", "new.txt", "--vocabulary", "turned.txt"), wanted)
        # A network that knows none takes ids.
        self.ch("export", "mase_output/words/software/training_ckpts/best.mz", "--to", "words.onnx")
        ids = self.ch("predict", "words.onnx", "--input", "numbers.txt").split()[1:]
        self.assertEqual(ids, wanted.split()[1:])
        self.assertIn("'very' is no token id", self.ch("predict", "words.onnx", "--input", "new.txt", code=2))
        self.assertIn("takes no tokens", self.predict("rows", "new.txt", code=2))


if __name__ == "__main__":
    unittest.main()
