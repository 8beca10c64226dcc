# SPDX-License-Identifier: Apache-2.0
"""Bad data through the program: one line that names the file and the place, exit code 2, and nothing
written: no cache beside the file, no run folder. Then downloads from a server on loopback that cuts
and lies, and several processes that prepare the same file at once."""
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

try:
    import numpy as np
except ImportError:
    print("python3-numpy is not installed")
    sys.exit(77)
try:
    import h5py
except ImportError:
    h5py = None  # the HDF5 cases are left out

CH = os.environ["MASE_CH"]
FEATURES = ("zlogz c1_b0_mmdt c1_b1_mmdt c1_b2_mmdt c2_b1_mmdt c2_b2_mmdt d2_b1_mmdt d2_b2_mmdt "
            "d2_a1_b1_mmdt d2_a1_b2_mmdt m2_b1_mmdt m2_b2_mmdt n2_b1_mmdt n2_b2_mmdt mass_mmdt "
            "multiplicity").split()
CLASSES = "gqwzt"


def listing(folder):
    return sorted((os.path.join(at, name), os.path.getsize(os.path.join(at, name)))
                  for at, folders, files in os.walk(folder) for name in files + folders)


class Case(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name
        self.addCleanup(self.scratch.cleanup)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return name

    def ch(self, *words):
        environment = dict(os.environ, HOME=self.folder, LC_ALL="C.UTF-8")
        for name in ("MASE_DATA", "XDG_CACHE_HOME"):
            environment.pop(name, None)
        return subprocess.run([CH, *words], cwd=self.folder, env=environment, text=True,
                              capture_output=True, timeout=120)

    def train(self, file, *words):
        return self.ch("train", "jsc-tiny", file, "--max-epochs", "1", *words)

    def refused(self, said, file, *words):
        """Training is refused with this one line, and leaves no trace."""
        before = listing(self.folder)
        result = self.train(file, *words)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        line = result.stderr.rstrip("\n")
        self.assertEqual(line.count("\n"), 0, result.stderr)
        self.assertTrue(line.startswith("ch: " + ("./jsc." if file == "jsc" else file)), line)
        self.assertIn(said, line)
        self.assertEqual(listing(self.folder), before)

    def refused_jets(self, said):
        """The same for a file that is found by its name."""
        self.refused(said, "jsc", "--data-dir", ".")


def jets(rows=200):
    """The jets as text: 16 features and a class."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=(rows, 16))
    lines = [",".join(FEATURES) + ",class"]
    for i in range(rows):
        lines.append(",".join(f"{value:.6f}" for value in x[i]) + "," + CLASSES[i % 5])
    return lines


class Csv(Case):
    def test_good(self):
        self.write("jets.csv", "\n".join(jets()))
        result = self.train("jets.csv")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_missing_column(self):
        lines = jets()
        lines[0] = lines[0].replace("mass_mmdt", "mess_mmdt")
        self.write("jsc.csv", "\n".join(lines))
        self.refused_jets("ch: ./jsc.csv: there is no column 'mass_mmdt'; did you mean 'mess_mmdt'?")
        self.refused("there is no column 'kin'", self.write("a.csv", "a,kind\n1,x\n2,y\n" * 9),
                     "--target", "kin")

    def test_text_in_a_numeric_column(self):
        lines = jets()
        lines[41] = lines[41].replace(lines[41].split(",")[3], "oops", 1)
        self.refused("jets.csv:42: column 'c1_b2_mmdt': 'oops' is not a number",
                     self.write("jets.csv", "\n".join(lines)))

    def test_unknown_class(self):
        lines = jets()
        lines[7] = lines[7][:-1] + "b"
        self.refused("jets.csv:8: class 'b' is unknown; the classes are g, q, w, z, t",
                     self.write("jets.csv", "\n".join(lines)))

    def test_nan_and_infinity(self):
        for word, said in (("nan", "missing or not a number"), ("", "missing or not a number"),
                           ("inf", "infinite"), ("-Infinity", "infinite"),
                           ("1e60", "too large for float32")):
            lines = jets()
            for row in (10, 20, 21):
                cells = lines[row].split(",")
                lines[row] = ",".join([word] + cells[1:])
            self.refused(f"jets.csv:11: column 'zlogz' is {said}; --drop-bad-rows leaves such rows "
                         "out", self.write("jets.csv", "\n".join(lines)))
        result = self.train("jets.csv", "--drop-bad-rows")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("jets.csv: 3 rows with missing or infinite values left out",
                      result.stdout + result.stderr)

    def test_predict_says_which_rows_it_left_out(self):
        lines = jets(60)
        self.write("good.csv", "\n".join(lines))
        self.assertEqual(self.train("good.csv").returncode, 0)
        best = next(os.path.join(at, name) for at, _, files in os.walk(self.folder)
                    for name in files if name == "best.mz")
        for row in (4, 17):
            lines[row] = ",".join(["nan"] + lines[row].split(",")[1:])
        self.write("bad.csv", "\n".join(lines))
        values = np.array([[float(cell) for cell in line.split(",")[:16]] for line in lines[1:]], "f4")
        np.save(self.path("bad.npy"), values)

        def predict(file, *words):
            return self.ch("predict", "--load", best, "--input", file, "--classes", *words)

        for file, places in (("bad.csv", "bad.csv:5, bad.csv:18"), ("bad.npy", "3, 16")):
            self.assertEqual(predict(file).returncode, 2)
            shorter = predict(file, "--drop-bad-rows")
            self.assertEqual(shorter.returncode, 0, shorter.stderr)
            self.assertIn(places, shorter.stderr)
            kept = predict(file, "--drop-bad-rows", "--keep-places")
            rows, whole = (text.stdout.splitlines()[1:] for text in (shorter, kept))
            self.assertEqual([row for row in whole if not row.startswith("-1,")], rows)
            self.assertEqual([i for i, row in enumerate(whole) if row.startswith("-1,")], [3, 16])

    def test_ragged(self):
        lines = jets()
        lines[100] += ",1"
        self.refused("jets.csv:101: 18 cells where 17 are expected",
                     self.write("jets.csv", "\n".join(lines)))
        lines[100] = "1,2"
        self.refused("jets.csv:101: 2 cells where 17 are expected",
                     self.write("jets.csv", "\n".join(lines)))

    def test_empty(self):
        for name in ("a.csv", "a.arff", "a.npy", "a.npz", "a.h5", "a.z"):
            self.refused("the file is empty", self.write(name, ""), "--target", "x")
        self.refused("header but no rows", self.write("a.csv", "a,b\n"), "--target", "b")

    def test_class_without_rows(self):
        self.refused("class 't' has no rows",
                     self.write("jets.csv", "\n".join(l for l in jets() if not l.endswith(",t"))))

    def test_directory(self):
        os.mkdir(self.path("jets.csv"))
        self.refused("is a folder, not a file", "jets.csv")
        os.rename(self.path("jets.csv"), self.path("jsc.csv"))
        self.refused_jets("ch: ./jsc.csv: is a folder, not a file")

    def test_names_that_cannot_be(self):
        self.refused("File name too long", "a" * 300 + ".csv", "--target", "x")
        os.mkfifo(self.path("pipe.csv"))
        self.refused("is not a regular file", "pipe.csv", "--target", "x")
        os.mkfifo(self.path("pipe.ckpt"))
        for name, said in (("pipe.ckpt", "is not a regular file"), ("b" * 300, "File name too long")):
            result = self.ch("inspect", name)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(said, result.stderr)

    def test_names_do_not_drive_the_terminal(self):
        rows = "".join(f"{i},\x1b[31mred\n{2 * i},blue\n" for i in range(30))
        self.write("a.csv", "a\x1b[2J,kind\n" + rows)
        self.write("a.toml", 'file = "a.csv"\ntarget = "kind"\nnotice = "\\u001b[1mbold"\n')
        for words in (("a.csv", "--target", "kind"), ("a.toml",)):
            result = self.ch("data", "info", *words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("\x1b", result.stdout + result.stderr)

    def test_not_a_table(self):
        self.refused("is not a NumPy array, as its name says", self.write("a.npy", "a,b\n1,2\n"))
        self.refused("is of no known table format", self.write("a.exe", "MZ"))


class Numpy(Case):
    def save(self, name, array, **options):
        np.save(self.path(name), array, **options)
        return name

    def header(self, name, shape, descr="'<f4'", data=b"\0" * 64):
        text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        return self.write(name, b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data)

    def test_lying_header(self):
        target = ("--target", "column_1")
        self.refused("the header promises 128 bytes of numbers, the file has 64",
                     self.header("a.npy", "(8, 4)"), *target)
        self.refused("the header promises 32 bytes of numbers, the file has 64",
                     self.header("a.npy", "(4, 2)"), *target)
        self.refused("too many elements", self.header("a.npy", "(99999999999, 99999999999)"), *target)
        self.refused("damaged", self.header("a.npy", "(-4, 4)"), *target)
        self.refused("damaged", self.header("a.npy", "(4, 4"), *target)
        self.refused("claims 60000 bytes and is cut short",
                     self.write("a.npy", b"\x93NUMPY\x01\x00" + (60000).to_bytes(2, "little") + b"{"))

    def test_wrong_dtype(self):
        self.refused("is of dtype '<U3', not a number",
                     self.save("a.npy", np.array([["abc"] * 3] * 9)), "--target", "column_1")
        self.refused("is of dtype '<c16', not a number",
                     self.save("a.npy", np.zeros((9, 3), complex)), "--target", "column_1")

    def test_pickled_objects(self):
        class Evil:
            def __reduce__(self):
                return os.system, ("touch evil",)
        name = self.save("a.npy", np.array([Evil()] * 9, dtype=object), allow_pickle=True)
        self.refused("holds pickled Python objects, which are refused", name, "--target", "column_1")
        np.savez(self.path("a.npz"), X=np.array([Evil()] * 9, dtype=object))
        self.refused("holds pickled Python objects, which are refused", "a.npz", "--target", "X")

    def test_zip_bomb(self):
        with zipfile.ZipFile(self.path("a.npz"), "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open("X.npy", "w") as member:
                text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (314572800,), }\n"
                member.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
                for _ in range(300):
                    member.write(b"\0" * (1 << 20))
        self.refused("would expand to", "a.npz", "--target", "X")

    def test_nan(self):
        x = np.ones((50, 3), "f4") * np.arange(50)[:, None]
        x[17, 1] = np.nan
        self.refused("a.npy: row 17: column 'column_2' is missing or not a number",
                     self.save("a.npy", x), "--target", "column_3")

    def test_one_class(self):
        x = np.ones((50, 3), "f4") * np.arange(50)[:, None]
        x[:, 2] = 1
        self.refused("there is only one class", self.save("a.npy", x), "--target", "column_3")


class Arff(Case):
    def test_unknown_class_and_words(self):
        head = "@relation r\n" + "".join(f"@attribute {name} real\n" for name in FEATURES)
        head += "@attribute class {g,q,w,z,t}\n@data\n"
        lines = jets()[1:]
        bad = lines[:5] + [lines[5][:-1] + "x"] + lines[6:]
        self.refused("jets.arff:25: attribute 'class': 'x' is not one of its categories",
                     self.write("jets.arff", head + "\n".join(bad)))
        bad = ["x" + lines[0]] + lines[1:]
        self.refused("jets.arff:20: attribute 'zlogz'", self.write("jets.arff", head + "\n".join(bad)))
        self.refused("jets.arff:1: neither @relation", self.write("jets.arff", "hello\n" + head))
        self.refused("the file ends before @data", self.write("jets.arff", head[:-6]))


@unittest.skipUnless(h5py, "python3-h5py is not installed")
class Hdf5(Case):
    def jets(self, change=None, types=None, rows=3000, names=None):
        names = names or ["j_" + name for name in FEATURES + list(CLASSES)]
        table = np.zeros(rows, [(name, (types or {}).get(name, "<f4")) for name in names])
        generator = np.random.default_rng(2)
        for name in names[:16]:
            if table.dtype[name].kind == "f":
                table[name] = generator.normal(size=rows)
        for i, name in enumerate(names[16:]):
            table[name] = np.arange(rows) % 5 == i
        if change:
            change(table)
        with h5py.File(self.path("jets.z"), "w") as file:
            file.create_dataset("t_allpar_new", data=table, chunks=(500,), compression="gzip")
        return "jets.z"

    def test_good(self):
        self.assertEqual(self.train(self.jets()).returncode, 0)

    def test_truncated(self):
        whole = self.read(self.jets())
        for share in (0.001, 0.01, 0.3, 0.7, 0.999):
            self.write("jets.z", whole[:int(share * len(whole))])
            self.refused("damaged", "jets.z")
        self.write("jets.z", whole[:1000] + b"\xff" * 4000 + whole[5000:])
        self.assertIn(self.train("jets.z").returncode, (0, 2))

    def test_missing_column(self):
        names = ["j_" + name for name in FEATURES + list(CLASSES)]
        names[4] = "j_c2_b1"
        self.jets(names=names)
        os.rename(self.path("jets.z"), self.path("jsc.z"))
        self.refused_jets("ch: ./jsc.z: there is no column 'c2_b1_mmdt'")

    def test_wrong_dtype(self):
        self.refused("column 'j_mass_mmdt' holds text, not numbers",
                     self.jets(types={"j_mass_mmdt": "S4"}))

    def test_nan(self):
        def spoil(table):
            table["j_zlogz"][1234] = np.inf
        self.refused("t_allpar_new: row 1234: column 'zlogz' is infinite", self.jets(spoil))

    def test_no_class(self):
        def spoil(table):
            for name in CLASSES:
                table["j_" + name][77] = 0
        self.refused("t_allpar_new: row 77: the row belongs to no class", self.jets(spoil))

    def test_empty_class(self):
        def spoil(table):
            table["j_g"][table["j_t"] == 1] = 1
            table["j_t"] = 0
        self.refused("class 't' has no rows", self.jets(spoil))


class Server:
    """One file over HTTP with ranges; every connection ends after `cut` bytes if that is given."""

    def __init__(self, content, cut=None):
        server = self
        self.content, self.cut, self.ranges = content, cut, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                wanted = self.headers.get("Range")
                server.ranges.append(wanted)
                start = int(wanted[len("bytes="):-1]) if wanted else 0
                rest = server.content[start:]
                self.send_response(206 if wanted else 200)
                if wanted:
                    total = len(server.content)
                    self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
                self.send_header("Content-Length", str(len(rest)))
                self.end_headers()
                self.wfile.write(rest[:server.cut])

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}/jets"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Download(Case):
    NAME = "hls4ml_lhc_jets_hlf.arff"

    def fetch(self, server, *words):
        return self.ch("data", "fetch", "jsc", "--data-dir", "d", "--address", server.address, *words)

    def test_cut_in_the_middle(self):
        content = os.urandom(300000)
        server = Server(content, cut=70000)
        self.addCleanup(server.close)
        result = self.fetch(server)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.read("d/" + self.NAME), content)
        self.assertIn(hashlib.sha256(content).hexdigest(), result.stdout)
        self.assertEqual(server.ranges, [None, "bytes=70000-", "bytes=140000-", "bytes=210000-",
                                         "bytes=280000-"])
        self.assertEqual(sorted(os.listdir(self.path("d"))), [self.NAME, self.NAME + ".json"])

    def test_the_next_run_continues(self):
        content = os.urandom(300000)
        os.mkdir(self.path("d"))
        self.write("d/" + self.NAME + ".part", content[:123456])
        server = Server(content)
        self.addCleanup(server.close)
        result = self.fetch(server)
        self.assertEqual(server.ranges, ["bytes=123456-"])
        self.assertEqual(self.read("d/" + self.NAME), content)
        self.assertIn("continued after", result.stdout)

    def test_wrong_checksum(self):
        server = Server(b"something else" * 1000)
        self.addCleanup(server.close)
        result = self.fetch(server, "--sha256", "0" * 64)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(f"it is kept as d/{self.NAME}.bad and not used", result.stderr)
        self.assertEqual(os.listdir(self.path("d")), [self.NAME + ".bad"])
        # The data set does not use it: the simulation takes its place, with a notice.
        result = self.ch("data", "info", "jsc", "--data-dir", "d", "--sim-rows", "500")
        self.assertIn("Variant     simulated", result.stdout)


class Race(Case):
    def test_several_processes_prepare_one_file(self):
        self.write("jets.csv", "\n".join(jets(20000)))
        words = [CH, "data", "info", "jets.csv"]
        cache = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, cache)
        os.environ["MASE_DATA"] = cache
        self.addCleanup(os.environ.pop, "MASE_DATA")
        running = [subprocess.Popen(words, cwd=self.folder, stdout=subprocess.PIPE, text=True)
                   for _ in range(4)]
        texts = {process.communicate()[0] for process in running}
        self.assertEqual([process.returncode for process in running], [0] * 4)
        self.assertEqual(len(texts), 1)
        self.assertEqual(os.listdir(self.folder), ["jets.csv"])
        left = os.listdir(os.path.join(cache, "prepared"))
        self.assertEqual(len(left), 1, left)
        self.assertTrue(left[0].endswith(".prepared"), left)
        self.assertEqual({subprocess.run(words, cwd=self.folder, stdout=subprocess.PIPE,
                                         text=True).stdout}, texts)


unittest.main()
