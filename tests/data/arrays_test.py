# SPDX-License-Identifier: Apache-2.0
"""Arrays of any rank, token ids and published archives as data sets: what `ch data info` says of them
is what NumPy says, networks train on them, and damaged ones are one clear line."""
import gzip
import hashlib
import http.server
import io
import os
import pickle
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest

try:
    import numpy as np
except ImportError:
    print("python3-numpy is not installed")
    sys.exit(77)

CH = os.environ["MASE_CH"]


def image_bytes(count, seed):
    return np.random.default_rng(seed).integers(0, 256, (count, 3073), dtype=np.uint8)


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.random = np.random.default_rng(1)

    def path(self, name):
        return os.path.join(self.folder, name)

    def ch(self, *words, code=0):
        environment = dict(os.environ, XDG_CACHE_HOME=self.path("cache"))
        environment.pop("MASE_DATA", None)
        done = subprocess.run([CH, *words], cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if code == 2:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            return done.stderr
        return done.stdout

    def info(self, *words):
        text = self.ch("data", "info", *words)
        found = {key: re.search("^%s +(.*)$" % key, text, re.M).group(1)
                 for key in ("Identity", "Rows", "Task", "Sample")}
        found["notice"] = "".join(re.findall("^Notice +(.*)$", text, re.M))
        table = text.split("histogram\n", 1)[1].splitlines()[1:]
        found["table"] = [[float(word) for word in line.split()[1:5]] for line in table if line.strip()]
        return found

    def check_figures(self, row, values):
        for got, wanted in zip(row, (values.min(), values.mean(), values.std(), values.max())):
            self.assertAlmostEqual(got, wanted, delta=2e-4 * max(1, abs(wanted)))

    def test_images_with_their_test_images(self):
        x, y = self.random.integers(0, 256, (30, 28, 28), dtype=np.uint8), np.arange(30) % 10
        test_x, test_y = self.random.integers(0, 256, (10, 28, 28), dtype=np.uint8), np.arange(10)
        np.savez_compressed(self.path("digits.npz"), x_train=x, y_train=y, x_test=test_x, y_test=test_y)
        info = self.info("digits.npz")
        self.assertEqual(info["Rows"], "40 = 27 train + 3 validation + 10 test")
        self.assertEqual((info["Task"], info["Sample"]), ("classification", "[1, 28, 28]"))
        self.check_figures(info["table"][0], np.concatenate([x, test_x]).astype(float))
        out = self.ch("train", "lenet", "digits.npz", "--max-epochs", "1", "--batch-size", "9")
        self.assertIn("on 10 rows", out)

    def test_channels_behind_are_moved_to_the_front(self):
        x = self.random.integers(0, 256, (20, 6, 5, 3), dtype=np.uint8)
        np.savez(self.path("last.npz"), images=x, labels=np.arange(20) % 2, more=np.zeros(3))
        np.savez(self.path("first.npz"), images=np.ascontiguousarray(x.transpose(0, 3, 1, 2)),
                 labels=np.arange(20) % 2)
        last, first = self.info("last.npz"), self.info("first.npz")
        self.assertEqual(last["Sample"], "[3, 6, 5]")
        self.assertIn("channels were moved", last["notice"])
        self.assertIn("arrays not read: more", last["notice"])
        for channel in range(3):
            self.check_figures(last["table"][channel], x[..., channel].astype(float))
        self.assertEqual(first["table"], last["table"])

    def test_floats_of_any_rank(self):
        x = self.random.normal(3, 2, (50, 2, 3, 4)).astype(np.float32)
        y = x.reshape(50, -1)[:, :2] * 2
        np.save(self.path("x.npy"), np.asfortranarray(x))
        np.save(self.path("y.npy"), y)
        info = self.info("x.npy", "--target", "y.npy")
        self.assertEqual((info["Task"], info["Sample"]), ("regression", "[2, 3, 4]"))
        self.assertEqual(info["Rows"], "50 = 36 train + 4 validation + 10 test")
        for channel in range(2):
            self.check_figures(info["table"][channel], x[:, channel])
        np.save(self.path("short.npy"), y[:49])
        self.assertIn("49", self.ch("data", "info", "x.npy", "--target", "short.npy", code=2))
        x[7, 1, 2, 3] = np.nan
        np.save(self.path("x.npy"), x)
        self.assertIn("sample 7", self.ch("data", "info", "x.npy", "--target", "y.npy", code=2))

    def test_one_number_a_sample_and_the_other_byte_order(self):
        x = self.random.normal(3, 2, (50, 4))
        np.savez(self.path("flat.npz"), x=x[:, 0].astype("f4"), y=np.arange(50) % 2)
        self.assertEqual(self.info("flat.npz")["Sample"], "[1]")
        for kind in ("f4", "f8", "f2", "i4", "u2"):
            values = (np.abs(x) * 10).astype(kind)
            np.savez(self.path("little.npz"), x=values, y=np.arange(50) % 2)
            np.savez(self.path("big.npz"), x=values.astype(">" + kind), y=(np.arange(50) % 2).astype(">i8"))
            little, big = self.info("little.npz"), self.info("big.npz")
            self.assertEqual(big["table"], little["table"])
            self.check_figures(big["table"][1], values[:, 1].astype(float))

    def words(self):
        with open(self.path("vocab.txt"), "w") as file:
            file.write("\n".join(["[PAD]", "[UNK]", "good", "bad", "film", "##s", "un"]) + "\n")
        lines = ["good film", "bad films", "ungood film", "good good good", "bad what"] * 8
        with open(self.path("text.txt"), "w") as file:
            file.write("\n".join(lines) + "\n")
        with open(self.path("labels.txt"), "w") as file:
            file.write("\n".join("no" if "bad" in line else "yes" for line in lines) + "\n")
        return np.array([[2, 4, 0], [3, 4, 5], [1, 4, 0], [2, 2, 2], [3, 1, 0]] * 8, dtype=float)

    def test_sentences_and_their_ids(self):
        ids = self.words()
        text = ("--dataset-file", "text.txt", "--dataset-vocabulary", "vocab.txt", "--dataset-labels",
                "labels.txt")
        info = self.info("tokens", *text)
        self.assertEqual((info["Task"], info["Sample"]), ("classification", "[3]"))
        for place in range(3):
            self.check_figures(info["table"][place], ids[:, place])
        np.save(self.path("ids.npy"), ids.astype(np.int64))
        array = self.info("tokens", "--dataset-file", "ids.npy", "--dataset-vocabulary", "vocab.txt",
                          "--dataset-labels", "labels.txt")
        self.assertIn("24 of 40 samples filled up to 3 tokens", info["notice"])
        self.assertEqual(array, dict(info, notice=""))  # its identity too: the ids are the data
        for name in ("text.txt", "vocab.txt", "labels.txt"):  # as an editor on Windows writes them
            with open(self.path(name), "rb") as file:
                plain = file.read()
            with open(self.path(name), "wb") as file:
                file.write(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n"))
        self.assertEqual(self.info("tokens", *text), info)
        cut = self.info("tokens", *text, "--dataset-length", "2")
        self.assertIn("16 of 40 samples cut to 2 tokens", cut["notice"])
        with open(self.path("net.toml"), "w") as file:
            file.write("""
name = "bag"
input = [3]
seq_blocks = [
  {type = "Embedding", num_embeddings = 7, embedding_dim = 4},
  {type = "Flatten"},
  {type = "Linear", out_features = 2},
]
""")
        out = self.ch("train", "net.toml", "tokens", *text, "--max-epochs", "40", "--learning-rate", "0.05",
                      "--batch-size", "8")
        self.assertIn("test_acc_epoch 1.0", out)

    def test_bad_tokens(self):
        self.words()
        np.save(self.path("ids.npy"), np.full((40, 3), 7))
        text = ("data", "info", "tokens", "--dataset-labels", "labels.txt", "--dataset-vocabulary", "vocab.txt")
        self.assertIn("vocabulary of 7", self.ch(*text, "--dataset-file", "ids.npy", code=2))
        with open(self.path("vocab.txt"), "w") as file:
            file.write("good\nfilm\nbad\n##s\nun\n")
        self.assertIn("text.txt:3", self.ch(*text, "--dataset-file", "text.txt", code=2))
        with open(self.path("vocab.txt"), "a") as file:
            file.write("##good\nwhat\n")
        self.assertIn("[PAD]", self.ch(*text, "--dataset-file", "text.txt", code=2))
        with open(self.path("blank.txt"), "w") as file:
            file.write("yes\nno\n\n" + "yes\n" * 37)
        self.assertIn("blank.txt:3", self.ch("data", "info", "tokens", "--dataset-labels", "blank.txt", "--dataset-file", "ids.npy",
                                             code=2))
        self.assertIn("--dataset-vocabulary", self.ch("data", "info", "tokens", "--dataset-file", "text.txt",
                                                      "--dataset-labels", "labels.txt", code=2))
        self.assertIn("--dataset-labels", self.ch("data", "info", "tokens", "--dataset-file", "text.txt", code=2))

    def cifar(self, python):
        files = {}
        for i, name in enumerate(["data_batch_1", "data_batch_2", "test_batch"]):
            images = image_bytes(12, i)
            images[:, 0] %= 10
            if python:
                files[name] = pickle.dumps({b"data": images[:, 1:].copy(), b"labels": images[:, 0].tolist()}, 2)
            else:
                files[name + ".bin"] = images.tobytes()
        return files

    def archive(self, files):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, content in {"readme.html": b"x" * 700, **files}.items():
                entry = tarfile.TarInfo("cifar-10/" + name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()

    def test_archives_are_read_as_they_are(self):
        seen = []
        for python in (False, True):
            files = self.cifar(python)
            plain, packed = self.path("plain%d" % python), self.path("packed%d" % python)
            os.mkdir(plain)
            os.mkdir(packed)
            for name, content in files.items():
                with open(os.path.join(plain, name), "wb") as file:
                    file.write(content)
            archive = self.archive(files)
            place = os.path.join(packed, "cifar-10-%s.tar.gz" % ("python" if python else "binary"))
            with open(place, "wb") as file:
                file.write(archive)
            seen += [self.info("cifar10", "--data-dir", folder) for folder in (plain, packed)]
            self.assertIn("2 of 5 training files", seen[-1]["notice"])
            for bad in (archive[:len(archive) // 2], archive[:-5], gzip.compress(b"\x01" * 2000),
                        gzip.compress(gzip.decompress(archive)[:100000]), self.archive({"other": b"1"}), b""):
                with open(place, "wb") as file:
                    file.write(bad)
                self.ch("data", "info", "cifar10", "--data-dir", packed, code=2)
        for other in seen[1:]:
            self.assertEqual(other, seen[0])

    def test_a_fetched_archive_is_a_data_set(self):
        archive = self.archive(self.cifar(False))

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(archive)))
                self.end_headers()
                self.wfile.write(archive)

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        fetch = ("data", "fetch", "cifar10", "--data-dir", "data", "--address",
                 "http://127.0.0.1:%d/cifar.tar.gz" % server.server_port)
        self.assertIn("not here: ch data fetch cifar10", self.ch("data", "list", "--data-dir", "data"))
        self.ch(*fetch, code=2)  # not the published file: its checksum is known
        self.assertIn("not here: ch data fetch cifar10", self.ch("data", "list", "--data-dir", "data"))
        self.ch(*fetch, "--sha256", hashlib.sha256(archive).hexdigest())
        self.assertIn("data/cifar10/cifar-10-binary.tar.gz", self.ch("data", "list", "--data-dir", "data"))
        self.assertEqual(self.info("cifar10", "--data-dir", "data")["Sample"], "[3, 32, 32]")
        self.assertIn("4 files", self.ch("data", "fetch", "mnist", "--address", "http://127.0.0.1:1/", code=2))
        self.assertIn("binary, python", self.ch("data", "fetch", "cifar10", "--from", "openml", code=2))
        self.assertIn("known: cifar10", self.ch("data", "fetch", "jsc-sim", code=2))


if __name__ == "__main__":
    unittest.main()
