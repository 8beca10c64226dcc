# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser: what they show, that they fetch nothing, and that ch view lives.

MASE_SCREENSHOTS=FOLDER also writes screenshots of each page, as in docs/screenshots."""
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sample_runs  # noqa: E402
import webdriver  # noqa: E402

CH = os.environ.get("MASE_CH", "build/release/bin/ch")
HOSTILE = "<img src=x onerror=window.hacked=1>"


def report(*words):
    subprocess.run([CH, "report", *words], check=True, stdout=subprocess.DEVNULL)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="mase-pages-")
        cls.browser = webdriver.Browser()
        cls.browser.size(1400, 900)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.root, ignore_errors=True)

    def show(self, path):
        """Opens a page from disk: no console message and no request but the page itself."""
        address = "file://" + path
        self.browser.open(address)
        self.quiet()
        self.assertEqual(set(self.browser.requests()), {address.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")})

    def quiet(self):
        self.assertEqual([entry["message"] for entry in self.browser.logs("browser")], [])

    def keep(self, name, height=1500):
        """Screenshots at desk and phone width, in the dark and as print; nothing is ever wider than the screen."""
        folder = os.environ.get("MASE_SCREENSHOTS")
        for label, width, phone, media, theme in (("desktop", 1400, False, "", "light"), ("phone", 400, True, "", "light"), ("dark", 1400, False, "", "dark"), ("print", 800, False, "print", "dark")):
            self.browser.size(width, height, phone)
            self.browser.devtools("Emulation.setEmulatedMedia", {"media": media})
            self.browser.run("document.documentElement.dataset.theme = arguments[0]; window.scrollTo(0, 0)", theme)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width, (name, label))
            small = self.browser.run("""return Math.min(...[...document.querySelectorAll('figure.drawn svg')].filter((s) => s.getBoundingClientRect().width).map((s) =>
                12 * s.getBoundingClientRect().width / s.viewBox.baseVal.width))""") if label != "print" else 12
            self.assertTrue(small is None or small > 9, (name, label, small))  # letters of charts, in pixels
            if label == "print":  # paper is white, also from a dark screen
                self.assertEqual(self.browser.run("return getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
            if folder:
                os.makedirs(folder, exist_ok=True)
                with open(f"{folder}/{name}-{label}.png", "wb") as file:
                    file.write(smaller(self.browser.screenshot(width, height)))
        self.browser.devtools("Emulation.setEmulatedMedia", {"media": ""})
        self.browser.run("delete document.documentElement.dataset.theme")
        self.browser.size(1400, 900)

    def points(self, chart, name):
        """The points of one curve as the chart holds them."""
        found = self.browser.run("""
            const line = [...document.querySelectorAll(arguments[0] + ' .line')].find((l) => l.querySelector('title').textContent === arguments[1]);
            return line ? [line.dataset.x, line.dataset.y] : null;""", "#" + chart, name)
        return list(zip(map(float, found[0].split()), map(float, found[1].split()))) if found else []

    def text(self, selector):
        return self.browser.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def hover(self, selector, across=0.5, down=0.5):
        """Moves the pointer over a share of an element and gives what is told there."""
        self.browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        box = self.browser.run("const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.left, b.top, b.width, b.height]", selector)
        self.browser.devtools("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": box[0] + across * box[2], "y": box[1] + down * box[3]})
        return self.browser.run("const t = document.querySelector('.tip'); return t.hidden ? '' : t.textContent")

    def drag(self, selector, start, end):
        box = self.browser.run("const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]", selector)
        at = lambda share: {"x": box[0] + share[0] * box[2], "y": box[1] + share[1] * box[3]}  # noqa: E731
        for kind, where, buttons in (("mousePressed", start, 1), ("mouseMoved", ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2), 1), ("mouseMoved", end, 1), ("mouseReleased", end, 0)):
            self.browser.devtools("Input.dispatchMouseEvent", {"type": kind, **at(where), "button": "left", "buttons": buttons, "clickCount": 1})

    def downloads(self):
        """What the page hands out as files, instead of writing them."""
        self.browser.run("""window.saved = []; const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push([blob.type, text])); return make.call(URL, blob); };
            HTMLAnchorElement.prototype.click = function () {};""")

    def test_training_page_holds_the_numbers_of_the_file(self):
        folder = self.root + "/jsc-tiny_classification_jsc_2024-01-31"
        sample_runs.training_run(folder)
        report(folder)
        self.show(folder + "/report.html")
        with open(folder + "/software/metrics.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for chart, label, column in (("chart-loss", "train, per step", "train_loss_step"), ("chart-loss", "validation, per epoch", "val_loss_epoch"),
                                     ("chart-accuracy", "train, per step", "train_acc_step"), ("chart-accuracy", "validation, per epoch", "val_acc_epoch")):
            self.assertEqual(self.points(chart, label), [(int(row["step"]), float(row[column])) for row in rows if row[column]], column)
        epochs = {}
        for row in rows:
            if row["train_loss_step"]:
                epochs.setdefault(row["epoch"], []).append(float(row["train_loss_step"]))
        # Means of what was logged say so; "epoch mean" is kept for means over all batches.
        for (_, shown), wanted in zip(self.points("chart-loss", "train, mean of logged steps"), [sum(v) / len(v) for v in epochs.values()]):
            self.assertAlmostEqual(shown, wanted, 5)
        with open(folder + "/run.json", encoding="utf-8") as file:
            run = json.load(file)
        self.assertEqual(self.text("#quality .auc"), [f"{one['auc']:.4f}" for one in run["evaluation"]["roc"]])
        self.assertEqual(self.text("#confusion td.cell small"), [str(n) for row in run["evaluation"]["confusion"] for n in row])
        self.assertEqual(self.text("#option-table .changed"), ["256", "0.001", "10", os.path.basename(folder)])
        self.assertEqual(self.text("#options summary"), ["2 options at their defaults"])
        self.assertEqual(len(self.text("#summary-table tbody tr")), 4)
        self.assertIn("jsc, synthetic (rows: train 40,000, validation 5,000, test 5,000)", self.text("#measured")[0])
        self.assertEqual(self.browser.run("return getComputedStyle(document.body).colorScheme"), "light")
        self.browser.click("#theme")
        self.assertEqual(self.browser.run("return getComputedStyle(document.body).colorScheme"), "dark")
        self.keep("training")
        self.quiet()

    def test_hover_zoom_and_downloads(self):
        folder = self.root + "/hover"
        sample_runs.training_run(folder)
        report(folder)
        self.show(folder + "/report.html")
        told = self.hover("#chart-loss svg", 0.45, 0.5)
        self.assertRegex(told, r"(train, per step|train, mean of logged steps|validation, per epoch) at [\d,.]+: [\d.]+")
        values = {f"{y:.6g}" for name in ("train, per step", "train, mean of logged steps", "validation, per epoch") for _, y in self.points("chart-loss", name)}
        self.assertIn(told.splitlines()[0].rsplit(" ", 1)[1], values)  # a number of the file, not of the picture
        before, ticks = self.browser.run("return document.querySelector('#chart-loss .line').getAttribute('d')"), self.text("#chart-loss .axes text")
        self.drag("#chart-loss svg", (0.3, 0.2), (0.5, 0.7))
        self.assertNotEqual(self.browser.run("return document.querySelector('#chart-loss .line').getAttribute('d')"), before)
        self.assertNotEqual(self.text("#chart-loss .axes text"), ticks)
        self.browser.run("document.querySelector('#chart-loss svg').dispatchEvent(new Event('dblclick'))")
        self.assertEqual(self.text("#chart-loss .axes text"), ticks)
        self.downloads()
        for button in self.browser.run("return [...document.querySelectorAll('#chart-loss .chart-tools button')].map((b) => b.textContent)"):
            self.browser.run("[...document.querySelectorAll('#chart-loss .chart-tools button')].find((b) => b.textContent === arguments[0]).click()", button)
        self.browser.wait("window.saved.length === 2")
        saved = dict(self.browser.run("return window.saved"))
        table = list(csv.reader(saved["text/csv"].splitlines()))
        self.assertEqual(table[0], ["series", "x", "y"])
        self.assertEqual([(float(x), float(y)) for name, x, y in table[1:] if name == "validation, per epoch"], self.points("chart-loss", "validation, per epoch"))
        picture = xml.dom.minidom.parseString(saved["image/svg+xml"])
        self.assertGreater(len(picture.getElementsByTagName("path")), 2)
        self.assertNotIn("var(", saved["image/svg+xml"].replace("style=\"color:var", ""))
        self.quiet()

    def test_axes_are_round_and_in_per_cent(self):
        folder = self.root + "/axes"
        sample_runs.training_run(folder, epochs=3)
        sample_runs.with_epoch_means(folder)
        report(folder)
        self.show(folder + "/report.html")
        self.assertTrue(any(text.endswith(" %") for text in self.text("#chart-accuracy .tick")))
        self.assertEqual(len(self.points("chart-loss", "train, epoch mean")), 3)
        self.assertEqual(self.points("chart-loss", "train, mean of logged steps"), [])
        self.browser.run("document.querySelectorAll('#curves details').forEach((d) => { d.open = true; })")
        self.assertEqual(self.text("#epochs th"), ["epoch", "train loss", "validation loss", "train accuracy", "validation accuracy"])
        self.assertTrue(all(cell.endswith(" %") for cell in self.text("#epochs td:last-child")))
        # Values over decades get a logarithmic axis without being asked.
        wide = self.root + "/decades"
        sample_runs.training_run(wide, rows=[f"{e},{e + 1},{0.5:.4f},{10.0 ** (2 - e):.8f},{0.5:.4f},{10.0 ** (2 - e):.8f},{0.1 ** (e + 1):.8f},{e}" for e in range(5)])
        report(wide)
        self.show(wide + "/report.html")
        self.assertIn("Loss (log)", self.text("#chart-loss .tick"))
        for tick in ("0.01", "0.1", "1", "10", "100"):
            self.assertIn(tick, self.text("#chart-loss .tick"))
        self.quiet()

    def test_roc_has_a_logarithmic_background_axis_and_rejections(self):
        folder = self.root + "/roc"
        sample_runs.training_run(folder, split="validation")
        path = folder + "/run.json"
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
        found = run["evaluation"]
        found["confusion"] = [[1000 if i == j else 0 for j in range(5)] for i in range(5)]
        tpr = [k / 100 for k in range(101)]
        found["roc"] = [{"class": "g", "auc": 0.99, "tpr": tpr, "fpr": [t ** 3 / 10 for t in tpr]}, {"class": "q", "auc": 1.0, "tpr": tpr, "fpr": [0 if t < 0.9 else t - 0.9 for t in tpr]}] + found["roc"][2:]
        sample_runs.write(path, json.dumps(run))
        report(folder)
        self.show(folder + "/report.html")
        self.assertEqual(self.text("#quality tbody tr:nth-child(1) td")[-3:], ["370", "80.0", "19.5"])  # 1 / (0.1 e^3)
        self.assertEqual(self.text("#quality tbody tr:nth-child(2) td")[-3:], ["> 4,000"] * 3)
        self.assertIn("εS = 30 %", self.text("#quality thead")[0])
        # What a run says of its whole curve counts, not what is drawn of it.
        found["roc"][0]["working_points"] = [{"signal": e, "background": b} for e, b in ((0.3, 0.004), (0.5, 0.02), (0.8, 0.08))]
        best = run["best"]["val_acc_epoch"]
        run["best"]["val_acc_epoch"] = best - 0.05  # the loss was best elsewhere
        sample_runs.write(path, json.dumps(run))
        report(folder)
        self.show(folder + "/report.html")
        self.assertEqual(self.text("#quality tbody tr:nth-child(1) td")[-3:], ["250", "50.0", "12.5"])
        tiles = dict(zip(self.text("#figures .tile-label"), self.text("#figures .tile-value")))
        self.assertEqual(tiles["Best validation accuracy"], f"{100 * best:.2f} %")
        self.assertEqual(tiles["Validation accuracy at the best epoch"], f"{100 * (best - 0.05):.2f} %")
        self.assertIn("signal efficiency (true positive rate)"[:34], " ".join(self.text("#chart-roc .tick")))
        # What was measured on the validation rows is nowhere called a test.
        self.assertNotIn("test", self.text("#evaluation h2")[0] + " ".join(self.text("#figures")))
        self.quiet()

    def test_comparison_is_honest_about_unlike_runs(self):
        root = self.root + "/unlike"
        for batch in (64, 256):
            for rate in (1e-2, 1e-3):
                for wide in (4, 8):
                    for seed in range(2):
                        if (batch, rate, wide) != (256, 1e-3, 8):
                            sample_runs.training_run(f"{root}/{batch},{rate:g},{wide},{seed}", batch_size=batch, learning_rate=rate, seed=seed, extra={"width": wide}, split="validation")
        report(root, "--output", root + ".html")
        self.show(root + ".html")
        heads = self.text("#run-table th")
        self.assertEqual(heads[:4], ["run", "best validation accuracy", "validation accuracy, best epoch", "best validation loss"])
        self.assertNotIn("test accuracy", heads)  # nothing was measured on the test rows
        cells = self.text("#effects > .charts .heat td.cell")
        self.assertEqual(sum("unbalanced" in cell for cell in cells), 3)
        self.assertTrue(all("n = " in cell for cell in cells))
        # A mean over another option is no spread over seeds.
        self.assertFalse(any("±" in cell for cell in cells), cells)
        self.assertIn("±", self.text("#setting-table")[0])
        # The colour of a run is the same in the table and in the chart.
        self.assertTrue(self.browser.run("""
            const seen = Object.fromEntries([...document.querySelectorAll('#run-table tr[data-run]')].map((r) => [r.dataset.run, r.querySelector('.swatch').style.background]));
            return [...document.querySelectorAll('#compare-loss .line')].every((l) => l.style.color === seen[l.dataset.run]);"""))
        # Repeated with the same seed, runs are no sample over seeds.
        again = self.root + "/again"
        for k in range(2):
            for rate in (1e-2, 1e-3):
                sample_runs.training_run(f"{again}/{rate:g}_{k}", learning_rate=rate, seed=3)
        report(again, "--output", again + ".html")
        self.show(again + ".html")
        self.assertNotIn("±", " ".join(self.text("#setting-table tbody")))
        self.quiet()

    def test_runs_on_different_data_are_marked(self):
        root = self.root + "/data"
        sample_runs.training_run(root + "/a", load="/very/long/path/to/first.ckpt")
        sample_runs.training_run(root + "/b", identity="fedcba9876543210", load="/very/long/path/to/second.ckpt")
        report(root, "--output", root + ".html")
        self.show(root + ".html")
        self.assertIn("not comparable", self.text("#data-notice")[0])
        self.assertIn("data set", self.text("#run-table th"))
        self.assertEqual(self.text("#run-table .winner"), [])
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('#compare-loss .line')].map((l) => l.classList.contains('dashed'))"), [False, True])
        self.assertIn("first.ckpt", self.text("#run-table")[0])
        self.assertNotIn("/very/long", self.text("#run-table")[0])
        self.quiet()

    def test_the_first_column_stays(self):
        root = self.root + "/column"
        for k in range(3):
            sample_runs.training_run(f"{root}/a_rather_long_name_of_a_run_{k}", learning_rate=1e-3 * (k + 1), epochs=2)
        report(root, "--output", root + ".html")
        self.browser.size(480, 900, True)
        self.show(root + ".html")
        moved = self.browser.run("""
            const cell = document.querySelector('#run-table tbody td'), box = document.querySelector('#run-table').parentNode, before = cell.getBoundingClientRect().left;
            box.scrollLeft = 200;
            return [box.scrollLeft, cell.getBoundingClientRect().left - before, cell.getBoundingClientRect().width];""")
        self.browser.size(1400, 900)
        self.assertGreater(moved[0], 100)
        self.assertLess(abs(moved[1]), 1)
        self.assertLess(moved[2], 260)

    def test_a_page_is_the_same_without_a_script(self):
        folder = self.root + "/plain"
        sample_runs.training_run(folder)
        report(folder)
        self.browser.devtools("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.browser.open("file://" + folder + "/report.html")
            tree = json.dumps(self.browser.devtools("Accessibility.getFullAXTree", {}))
        finally:
            self.browser.devtools("Emulation.setScriptExecutionDisabled", {"value": False})
        for words in ("Validation accuracy", "Accuracy on the test split", "Loss. train, per step ends at", "Confusion matrix", "Options that were set"):
            self.assertIn(words.lower(), tree.lower())

    def test_transform_page_leads_from_a_box_to_its_node(self):
        folder = self.root + "/jsc-toy_transform_jsc_2024-01-31"
        sample_runs.transform_run(folder)
        report(folder)
        self.show(folder + "/report.html")
        self.assertEqual(len(self.text(".node")), 19)
        # No line runs behind a box that is not one of its ends.
        self.assertEqual(self.browser.run("""
            const boxes = [...document.querySelectorAll('.node')].map((g) => { const [x, y] = g.getAttribute('transform').match(/-?[\\d.]+/g).map(Number), r = g.querySelector('.body'); return {name: g.dataset.node, x, y, w: +r.getAttribute('width'), h: +r.getAttribute('height')}; });
            const bad = [];
            for (const path of document.querySelectorAll('.edge')) for (let at = 0; at <= path.getTotalLength(); at += 3) {
              const p = path.getPointAtLength(at), box = boxes.find((b) => p.x > b.x + 1 && p.x < b.x + b.w - 1 && p.y > b.y + 1 && p.y < b.y + b.h - 1);
              if (box) { bad.push(`${path.dataset.from} to ${path.dataset.to} behind ${box.name}`); break; }
            }
            return bad;"""), [])
        self.assertEqual(self.text('.node[data-node="seq_blocks_3"] .format'), ["integer(8,4)"])
        self.assertEqual(self.text('.node[data-node="seq_blocks_3"] text.shape'), ["8 × 32"])
        self.browser.click('.node[data-node="seq_blocks_3"]')
        self.browser.wait("document.querySelector('#node-panel details[open]')")
        panel = self.text("#node-panel details[open]")[0]
        for word in ("seq_blocks_3", "LinearInteger", "seq_blocks.3", "mase_op", "linear", "precision"):
            self.assertIn(word, panel)
        # The input layer is among the histograms; what is lost is drawn as lost.
        names = self.browser.run("return [...document.querySelectorAll('.histogram')].map((e) => e.dataset.node + ' ' + e.dataset.operand)")
        self.assertEqual(names[0], "x data_in_0")
        lost = self.browser.run("return [...document.querySelectorAll('.histogram')].map((e) => e.querySelectorAll('.bar.lost').length)")
        self.assertEqual(lost[0], 0)
        self.assertGreater(lost[-1], 0)
        self.assertIn("saturated", self.text(".histogram .badge")[-1])
        self.assertEqual(self.text("#layers .bars")[0].count("dB"), 4)
        self.assertEqual(len(self.text("#before-after-table tr:has(.changed)")), 4)
        costs = dict(zip(self.text("#cost-table td:first-child"), self.text("#cost-table td:last-child")))
        self.assertEqual(costs, {"Floating-point operations (FLOPs)": "same", "Bit operations (BitOPs)": "16× less", "Weights, bits": "4× less"})
        self.assertIn("1,014,800", self.text("#cost-table")[0])
        with open(folder + "/run.json", encoding="utf-8") as file:
            drawn = json.load(file)["transform"]["histograms"]
        self.assertEqual([text.split(";")[0] for text in self.text(".histogram .small")], [f"{one['codes_used']} of 256 codes used" for one in drawn])
        self.assertTrue(all(int(count) > 20 for count in self.browser.run("return [...document.querySelectorAll('.grid-marks')].map((e) => e.dataset.marks)")))
        self.assertEqual(self.text("#figures .tile-detail")[:2], ["test split", "−0.44 points, test split"])
        self.keep("transform")
        self.quiet()

    def test_comparison_sorts_and_filters(self):
        folders = []
        for batch in (64, 256, 1024):
            for rate in (1e-2, 1e-3, 1e-5):
                for seed in range(3):
                    folders.append(f"{self.root}/sweep/batch_size={batch},learning_rate={rate:g},seed={seed}")
                    sample_runs.training_run(folders[-1], "jsc-toy", batch, rate, seed)
        report(self.root + "/sweep", "--output", self.root + "/comparison.html")
        self.show(self.root + "/comparison.html")
        heads = self.text("#run-table th")
        self.assertEqual(heads, ["run", "best validation accuracy", "validation accuracy, best epoch", "best validation loss", "test accuracy", "batch_size", "learning_rate", "seed", "time", "samples/s", "status"])
        self.assertEqual(len(self.text("#run-table .differs")), 2 * 27)
        wanted = []
        for folder in folders:
            with open(folder + "/run.json", encoding="utf-8") as file:
                wanted.append(json.load(file)["best"]["val_acc_epoch"])
        for order, sign in (("descending", True), ("ascending", False)):
            self.browser.click("#run-table th:nth-child(2) button")
            self.assertEqual(self.text("#run-table td:nth-child(2)"), [f"{100 * v:.2f} %" for v in sorted(wanted, reverse=sign)])
            self.assertEqual(self.browser.run("return document.querySelector('#run-table th:nth-child(2)').getAttribute('aria-sort')"), order)
        self.assertEqual(len(self.text("#effects > .charts .heat td.cell")), 9)
        self.assertEqual(len(self.text("#setting-table tbody tr")), 9)
        # A run that is filtered away leaves the charts.
        count = "return [...document.querySelectorAll('#compare-loss .line')].filter((l) => l.style.display !== 'none').length"
        self.assertEqual(self.browser.run(count), 27)
        for words, left in (("batch_size=64 seed=1", 3), ("", 27)):
            self.browser.run("const f = document.querySelector('#run-table-filter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))", words)
            self.assertEqual(self.browser.run("return document.querySelectorAll('#run-table tbody tr:not([hidden])').length"), left)
            self.assertEqual(self.browser.run(count), left)
        self.assertRegex(self.hover("#compare-loss svg", 0.5, 0.5), "seed=")
        self.keep("comparison")
        self.quiet()

    def test_five_hundred_runs_make_a_small_page(self):
        root = self.root + "/many"
        for k in range(500):
            sample_runs.training_run(f"{root}/run{k:03}", learning_rate=1e-3 * (k // 5 + 1), batch_size=1024, seed=k % 5, epochs=60, evaluation=False)
        report(root, "--output", root + ".html")
        size = os.path.getsize(root + ".html")
        self.show(root + ".html")
        milliseconds = self.browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd")
        print(f"500 runs of 60 epochs: {size / 1e6:.2f} MB, opened in {milliseconds:.0f} ms", file=sys.stderr)
        self.assertLess(size, 2_000_000)
        self.assertLess(milliseconds, 10_000)  # 1,000 on an idle machine; this one may be busy
        self.assertEqual(len(self.text("#run-table tbody tr")), 500)

    def test_hostile_names_stay_text(self):
        sample_runs.training_run(self.root + "/hostile/" + HOSTILE.replace("/", ""), model=HOSTILE, classes=[HOSTILE, "</script><script>window.hacked=1</script>", "w", "z", "t"])
        sample_runs.training_run(self.root + "/hostile/b", batch_size=64)
        path = self.root + "/hostile/" + HOSTILE + "/run.json"
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
        run["options"].append(sample_runs.option(HOSTILE, HOSTILE, "-->" + HOSTILE))
        run["summary"][0]["layer"] = run["status"] = run["machine"]["cpu"] = HOSTILE
        sample_runs.write(path, json.dumps(run))
        sample_runs.transform_run(self.root + "/hostile-graph", hostile=HOSTILE)
        for words, page in (([self.root + "/hostile/" + HOSTILE], "one"), ([self.root + "/hostile"], "two"), ([self.root + "/hostile-graph"], "three")):
            report(*words, "--output", f"{self.root}/{page}.html", "--title", HOSTILE)
            self.show(f"{self.root}/{page}.html")
            self.assertIsNone(self.browser.run("return window.hacked === undefined ? null : window.hacked"))
            self.assertEqual(self.browser.run("return document.images.length"), 0)
            self.assertIn(HOSTILE, self.browser.run("return document.body.textContent"))
            self.assertEqual(self.text("h1"), [HOSTILE])
        self.quiet()

    def test_a_million_steps_make_a_small_page(self):
        noise = random.Random(1)
        rows, step, spike = [], 0, 654321
        for epoch in range(300):
            for _ in range(1000000 // 300 + (epoch < 1000000 % 300)):
                step += 1
                loss = 99.5 if step == spike else 0.6 + 1 / (1 + step * 1e-5) + 0.1 * noise.random()
                rows.append(f"{epoch},{step},{0.7:.4f},{loss:.6f},,,0.001,{step * 1e-4:.3f}")
            rows.append(f"{epoch},{step},,,0.7{epoch:03},0.6{epoch:03},,{step * 1e-4:.3f}")
        folder = self.root + "/long"
        sample_runs.training_run(folder, rows=rows)
        report(folder)
        self.show(folder + "/report.html")
        points = self.points("chart-loss", "train, per step")
        self.assertLess(os.path.getsize(folder + "/report.html"), 500_000)
        self.assertEqual(max(points, key=lambda p: p[1]), (spike, 99.5))
        self.assertEqual((points[0][0], points[-1][0]), (1, step))
        self.assertEqual(len(self.points("chart-loss", "validation, per epoch")), 300)

    def test_search_hardware_and_learned_widths_are_made_of_the_same_parts(self):
        folder = self.root + "/search"
        trials = [{"number": k, "values": [0.5 + 0.01 * (k % 30), 1000.0 + 37 * k], "settings": [2 + k % 4, 2 + k % 3]} for k in range(60)]
        sample_runs.write(folder + "/run.json", json.dumps({"kind": "search", "status": "finished"}))
        sample_runs.write(folder + "/software/search_ckpts/search.json", json.dumps({
            "study": "s", "total": 60, "configurations": 12, "sampler": "tpe", "seed": 0, "rows": 512, "split": "validation", "split_rows": 1600,
            "objectives": [{"name": "accuracy", "maximise": True, "percent": True}, {"name": "luts", "maximise": False}],
            "parameters": ["a/config/weight_width", "a/config/data_in_width"], "best": [0, 29], "trials": trials,
            "best_so_far": [{"trial": [0, 20, 29], "value": [0.5, 0.7, 0.79]}, {"trial": [0], "value": [1000.0]}]}))
        report(folder)
        self.show(folder + "/report.html")
        self.assertIn("512 of 1600 validation rows", self.text("#measured")[0])
        self.assertIn("trial 29", self.hover("#front a:last-of-type circle"))
        self.browser.click('a[href="#trial-29"] circle')
        self.assertEqual(self.browser.run("return location.hash"), "#trial-29")
        self.assertEqual(self.text("#front .chart-tools button"), ["CSV", "SVG"])
        self.keep("search")
        bits = self.root + "/bits"
        sample_runs.training_run(bits, evaluation=False)
        with open(bits + "/run.json", encoding="utf-8") as file:
            run = json.load(file)
        run["front"] = [{"path": f"software/front/{k}.mz", "epoch": 10 * k, "ebops": 4000 // (k + 1), "weights": 300 - 40 * k, "val_accuracy": 0.72 - 0.01 * k, "test_accuracy": 0.715 - 0.011 * k,
                         "test_rows": 4000, "test_rows_with_overflow": k} for k in range(5)]
        sample_runs.write(bits + "/run.json", json.dumps(run))
        report(bits)
        self.show(bits + "/report.html")
        self.assertEqual(len(self.text("#front-table tbody tr")), 5)
        self.assertEqual(len(self.text("#front circle")), 10)
        self.assertEqual(self.text("#figures"), [])  # no epoch's accuracy is that of one of these networks
        self.keep("learned_widths")
        design = self.root + "/design"
        sample_runs.write(design + "/rtl/net.sv", "module net;\nendmodule\n")
        sample_runs.write(design + "/bill.json", json.dumps([{"signal": f"fc_{k}", "layer": "fc", "line": 1 + k % 2, "luts": 10.0 * k, "own_luts": 5.0, "bits": 6, "lowest": -9, "highest": 9, "inputs": 4, "adders": 3, "levels": 4} for k in range(9)]))
        sample_runs.write(design + "/manifest.json", json.dumps({"top": "net", "network": "net", "style": "unrolled", "source": "net.mz", "inputs": [{}] * 16, "outputs": [{}] * 5,
            "accuracy": {"value": 0.72, "rows": "4000 test rows of jsc"}, "compared": {"engine": "equal", "rows": "4000 rows"}, "proved": "every sum",
            "estimate": {"luts": 900, "levels": 9, "delay_ns": 9.0, "registers": 0, "layers": [{"name": "fc", "luts": 900, "levels": 9, "adders": 27}]}}))
        report(design)
        self.show(design + "/report.html")
        self.assertIn("4000 test rows of jsc", self.text("#measured")[0])
        self.browser.click("#bill a[href='#L1']")
        self.assertEqual(self.browser.run("return location.hash"), "#L1")
        self.keep("hardware")
        self.quiet()

    def test_view_lives(self):
        root = self.root + "/live"
        sample_runs.training_run(root + "/first", status="running", epochs=2)
        sample_runs.training_run(root + "/second", batch_size=64)
        server = subprocess.Popen([CH, "view", root, "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
            self.browser.open(address)
            self.browser.wait("document.querySelectorAll('#run-list tbody tr').length === 2")
            # A new run appears in the list; a transform shows its accuracy before and after.
            sample_runs.transform_run(root + "/third")
            self.browser.wait("document.querySelectorAll('#run-list tbody tr').length === 3", what="the new run in the list")
            self.keep("view", 900)
            heads = self.text("#run-list th")
            self.assertEqual(heads[:7], ["run", "validation accuracy, best epoch", "validation loss, best epoch", "test accuracy", "before", "after", "change"])
            cells = self.browser.run("return [...[...document.querySelectorAll('#run-list tbody tr')].find((r) => r.textContent.includes('third')).children].map((c) => c.textContent)")
            self.assertEqual(cells[4:7], ["74.12 %", "73.68 %", "−0.44 points"])
            # The filter keeps what has all the words.
            for word, left in (("tran", 1), ("JSC-tiny fin", 1), ("jsc", 3), ("nothing like it", 0), ("", 3)):
                self.browser.run("const f = document.querySelector('#run-list-filter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))", word)
                self.assertEqual(self.browser.run("return document.querySelectorAll('#run-list tbody tr:not([hidden])').length"), left, word)
            for name in ("first", "second"):
                self.browser.click(f"#run-list input[aria-label='compare {name}']")
            self.browser.click("#compare")
            self.browser.wait("document.querySelector('#run-table')")
            self.browser.click(".home")
            self.browser.wait("document.querySelector('#run-list')")
            self.browser.click("#run-list a[href='run?run=first']")
            # A run that is going on grows on its page.
            self.browser.wait("document.querySelector('#chart-loss')")
            self.assertEqual(len(self.points("chart-loss", "validation, per epoch")), 2)
            sample_runs.training_run(root + "/first", status="running", epochs=5)
            self.browser.wait("[...document.querySelectorAll('#chart-loss .line')].some((l) => l.dataset.x.split(' ').length === 5)", what="the new epochs")
            self.assertEqual(len(self.points("chart-loss", "validation, per epoch")), 5)
            self.assertEqual([r for r in self.browser.requests() if not r.startswith(address)], [])
            self.quiet()
            # Its folder goes: the page says so and keeps what it has; the server goes on.
            shutil.rmtree(root + "/first")
            self.browser.wait("document.querySelector('#trouble') !== null", what="the notice")
            self.assertIn("gone", self.text("#trouble")[0])
            self.assertEqual(len(self.points("chart-loss", "validation, per epoch")), 5)
            self.browser.open(address)
            self.browser.wait("document.querySelectorAll('#run-list tbody tr').length === 2")
            self.assertIsNone(server.poll())
        finally:
            server.terminate()
            self.assertEqual(server.wait(), 0)
            server.stdout.close()


def smaller(png):
    """Fewer colours where the imaging library is at hand; the picture as it is otherwise."""
    try:
        import io

        from PIL import Image
    except ImportError:
        return png
    packed = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(packed, "PNG", optimize=True)
    return packed.getvalue()


if __name__ == "__main__":
    if not (webdriver.find("chromium", "chromium-browser") and webdriver.find("chromedriver")):
        print("skipped: chromium and chromedriver are not installed")
        sys.exit(77)
    unittest.main()
