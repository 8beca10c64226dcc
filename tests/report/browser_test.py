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
        cls.browser.size(1280, 900)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.root, ignore_errors=True)

    def show(self, path):
        """Opens a page from disk: no console message and no request but the page itself."""
        address = "file://" + path
        self.browser.open(address)
        self.browser.wait("document.querySelector('main section') !== null")
        self.quiet()
        self.assertEqual(set(self.browser.requests()), {address.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")})

    def quiet(self):
        self.assertEqual([entry["message"] for entry in self.browser.logs("browser")], [])

    def keep(self, name):
        folder = os.environ.get("MASE_SCREENSHOTS")
        if not folder:
            return
        os.makedirs(folder, exist_ok=True)
        for label, width, height, phone in (("desktop", 1280, 1500, False), ("phone", 390, 1500, True)):
            self.browser.size(width, height, phone)
            self.browser.run("window.scrollTo(0, 0); window.dispatchEvent(new Event('afterprint'))")  # draws the page again
            self.browser.wait("[...document.querySelectorAll('.chart')].every(c => c.chart && c.chart.width <= innerWidth)")
            with open(f"{folder}/{name}-{label}.png", "wb") as file:
                file.write(smaller(self.browser.screenshot(width, height)))
        self.browser.size(1280, 900)

    def series(self, chart, label):
        """The points of one curve as the chart holds them."""
        self.browser.wait(f"document.querySelector('#{chart}') && document.querySelector('#{chart}').chart")
        return self.browser.run("""
            const plot = document.querySelector(arguments[0]).chart;
            const at = plot.series.findIndex((one) => one.label === arguments[1]);
            const points = [];
            plot.data[0].forEach((x, i) => { const y = plot.data[at][i]; if (y !== undefined && y !== null) points.push([x, y]); });
            return points;""", "#" + chart, label)

    def text(self, selector):
        return self.browser.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector)

    def test_training_page_holds_the_numbers_of_the_file(self):
        folder = self.root + "/jsc-tiny_classification_jsc_2024-01-31"
        sample_runs.training_run(folder)
        report(folder)
        self.show(folder + "/report.html")
        with open(folder + "/software/metrics.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for chart, label, column in (("chart-loss", "train, per step", "train_loss_step"), ("chart-loss", "validation, per epoch", "val_loss_epoch"),
                                     ("chart-accuracy", "train, per step", "train_acc_step"), ("chart-accuracy", "validation, per epoch", "val_acc_epoch"),
                                     ("chart-rate", "learning rate", "learning_rate")):
            wanted = [[int(row["step"]), float(row[column])] for row in rows if row[column]]
            self.assertEqual(self.series(chart, label), wanted, column)
        epochs = {}
        for row in rows:
            if row["train_loss_step"]:
                epochs.setdefault(row["epoch"], []).append(float(row["train_loss_step"]))
        means = [sum(values) / len(values) for values in epochs.values()]
        # Means of what was logged say so; "epoch mean" is kept for means over all batches.
        for (_, shown), wanted in zip(self.series("chart-loss", "train, mean of logged steps"), means):
            self.assertAlmostEqual(shown, wanted, 12)
        with open(folder + "/run.json", encoding="utf-8") as file:
            run = json.load(file)
        self.assertEqual(self.text("#quality .auc"), [f"{one['auc']:.4f}" for one in run["evaluation"]["roc"]])
        self.browser.click("#evaluation .choice button:last-of-type")
        self.assertEqual(self.text("#confusion td.cell"), [str(n) for row in run["evaluation"]["confusion"] for n in row])
        self.assertEqual(self.text("#option-table .changed"), ["256", "0.001", "10", os.path.basename(folder)])
        self.assertEqual(self.text("#options summary"), ["2 options at their defaults"])
        self.assertEqual(len(self.text("#summary-table tbody tr")), 5)
        # Another unit along the x axis: the last step is the end of the last epoch.
        self.browser.click("#curves .choice button:nth-of-type(2)")
        self.assertEqual(self.series("chart-loss", "validation, per epoch")[-1][0], 10)
        self.browser.click("#curves .choice button:nth-of-type(1)")
        self.assertEqual(self.browser.run("return document.documentElement.dataset.theme"), "light")
        self.keep("training")
        self.browser.click("#theme")
        self.assertEqual(self.browser.run("return document.documentElement.dataset.theme"), "dark")
        self.keep("training-dark")
        self.quiet()

    def test_nothing_is_wider_than_a_phone(self):
        folder = self.root + "/phone"
        sample_runs.training_run(folder)
        report(folder)
        self.browser.size(390, 844, True)
        self.show(folder + "/report.html")
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 390)
        self.browser.size(1280, 900)

    def edges_through_boxes(self):
        """Edges of the graph that run behind a box that is not one of their ends."""
        return self.browser.run("""
            const boxes = [...document.querySelectorAll('.node')].map((g) => { const [x, y] = g.getAttribute('transform').match(/-?[\\d.]+/g).map(Number), r = g.querySelector('.body'); return {name: g.dataset.node, x, y, w: +r.getAttribute('width'), h: +r.getAttribute('height')}; });
            const bad = [];
            for (const path of document.querySelectorAll('.edge')) for (let at = 0; at <= path.getTotalLength(); at += 3) {
              const p = path.getPointAtLength(at), box = boxes.find((b) => p.x > b.x + 1 && p.x < b.x + b.w - 1 && p.y > b.y + 1 && p.y < b.y + b.h - 1);
              if (box) { bad.push(`${path.dataset.from} to ${path.dataset.to} behind ${box.name}`); break; }
            }
            return bad;""")

    def tick_texts(self, chart):
        """Texts along the x and the y axis of a line chart."""
        self.browser.wait(f"document.querySelector('#{chart}') && document.querySelector('#{chart}').chart")
        return self.browser.run("const c = document.querySelector(arguments[0]).chart; return c.axes.map((a) => a._values.filter((v) => v))", "#" + chart)

    def test_axes_are_round_whole_and_in_per_cent(self):
        folder = self.root + "/axes"
        sample_runs.training_run(folder, epochs=3)
        sample_runs.with_epoch_means(folder)
        report(folder)
        self.show(folder + "/report.html")
        self.assertEqual(self.tick_texts("chart-accuracy")[1][0][-2:], " %")
        self.browser.click("#curves .choice button:nth-of-type(2)")
        self.assertEqual(self.tick_texts("chart-loss")[0], ["1", "2", "3"])
        self.assertEqual(len(self.series("chart-loss", "train, epoch mean")), 3)
        self.assertEqual(len(self.series("chart-accuracy", "train, epoch mean")), 3)
        self.assertEqual(self.browser.run("return document.querySelector('#chart-loss').chart.series.filter((one) => one.label.includes('logged')).length"), 0)
        self.browser.run("document.querySelectorAll('#curves details').forEach((d) => { d.open = true; })")
        self.assertEqual(self.text("#epochs th"), ["epoch", "train loss", "validation loss", "train accuracy", "validation accuracy"])
        self.assertTrue(all(cell.endswith(" %") for cell in self.text("#epochs td:last-child")))
        # Values over decades get a logarithmic axis without being asked.
        wide = self.root + "/decades"
        sample_runs.training_run(wide, rows=[f"{e},{e + 1},{0.5:.4f},{10.0 ** (2 - e):.8f},{0.5:.4f},{10.0 ** (2 - e):.8f},{0.1 ** (e + 1):.8f},{e}" for e in range(5)])
        report(wide)
        self.show(wide + "/report.html")
        self.assertIn("log axis", self.text("#chart-loss figcaption")[0])
        self.assertIn("log axis", self.text("#chart-rate figcaption")[0])
        self.assertEqual(self.tick_texts("chart-loss")[1], ["0.01", "0.1", "1", "10", "100"])
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
        cells = self.text("#quality tbody tr:nth-child(1) td")
        self.assertEqual(cells[-3:], ["370", "80.0", "19.5"])  # 1 / (0.1 e^3)
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
        texts = self.text(".roc text")
        for word in ("0.1 %", "1 %", "10 %", "100 %", "signal efficiency (true positive rate)", "background efficiency (false positive rate)"):
            self.assertIn(word, texts)
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
        cells = self.text(".heat:nth-of-type(4) td.cell")  # batch size and rate: the third option is missing in one cell
        self.assertEqual(sum("unbalanced" in cell for cell in self.text(".heat td.cell")), 3)
        self.assertTrue(all("n = " in cell for cell in self.text(".heat td.cell")))
        # A mean over another option is no spread over seeds.
        self.assertFalse(any("±" in cell for cell in self.text(".heat td.cell")), cells)
        self.assertIn("±", self.text("#setting-table")[0])
        # The colour of a run is the same in the table and in the chart.
        self.browser.wait("document.querySelector('#compare-loss').chart")
        self.assertTrue(self.browser.run("""
            const seen = Object.fromEntries([...document.querySelectorAll('#run-table tbody tr')].map((r) => [r.querySelector('.run-name').textContent, r.querySelector('.swatch').style.background]));
            const probe = document.createElement('i');
            return document.querySelector('#compare-loss').chart.series.slice(1).every((s) => { probe.style.background = s._stroke || s.stroke(); return probe.style.background === seen[s.label]; });"""))
        # Repeated with the same seed, runs are no sample over seeds.
        again = self.root + "/again"
        for k in range(2):
            for rate in (1e-2, 1e-3):
                sample_runs.training_run(f"{again}/{rate:g}_{k}", learning_rate=rate, seed=3)
        report(again, "--output", again + ".html")
        self.show(again + ".html")
        self.assertNotIn("±", " ".join(self.text("#setting-table tbody") + self.text(".effect")))
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
        self.browser.wait("document.querySelector('#compare-loss').chart")
        self.assertEqual(self.browser.run("return document.querySelector('#compare-loss').chart.series.slice(1).map((s) => !!s.dash)"), [False, True])
        table = self.text("#run-table")[0]
        self.assertIn("first.ckpt", table)
        self.assertNotIn("/very/long", table)
        # One chart of effects is as wide as one of several.
        self.assertLess(self.browser.run("return Math.max(0, ...[...document.querySelectorAll('.effect')].map((e) => e.getBoundingClientRect().width))"), 460)
        self.quiet()

    def test_the_palette_does_not_repeat(self):
        root = self.root + "/many"
        for k in range(30):
            sample_runs.training_run(f"{root}/run{k:02}", learning_rate=1e-3 * (k + 1), epochs=2)
        report(root, "--output", root + ".html")
        self.show(root + ".html")
        self.browser.click("#curves .choice button:nth-of-type(1)")
        self.assertEqual(len(set(self.browser.run("return [...document.querySelectorAll('#run-table .swatch')].map((e) => e.style.background)"))), 30)

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
        self.browser.size(1280, 900)
        self.assertGreater(moved[0], 100)
        self.assertLess(abs(moved[1]), 1)
        self.assertLess(moved[2], 260)

    def test_a_page_says_its_figures_without_a_script(self):
        folder = self.root + "/plain"
        sample_runs.training_run(folder)
        report(folder)
        self.browser.devtools("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.browser.open("file://" + folder + "/report.html")
            tree = json.dumps(self.browser.devtools("Accessibility.getFullAXTree", {}))
        finally:
            self.browser.devtools("Emulation.setScriptExecutionDisabled", {"value": False})
        for words in ("validation accuracy at the best epoch", "accuracy (test)", "Loss. train, logged steps ends at"):
            self.assertIn(words, tree)

    def test_transform_page_shows_a_node_when_it_is_clicked(self):
        folder = self.root + "/jsc-toy_transform_jsc_2024-01-31"
        sample_runs.transform_run(folder)
        report(folder)
        self.show(folder + "/report.html")
        self.assertEqual(len(self.text(".node")), 19)
        self.assertEqual(self.edges_through_boxes(), [])
        self.assertEqual(self.text('.node[data-node="seq_blocks_3"] .format'), ["integer(8,4)"])
        self.assertEqual(self.text('.node[data-node="seq_blocks_3"] text.shape'), ["8 × 32"])
        self.browser.click('.node[data-node="seq_blocks_3"]')
        panel = self.text("#node-panel")[0]
        for word in ("seq_blocks_3", "LinearInteger", "seq_blocks.3", "mase_op", "linear", "precision"):
            self.assertIn(word, panel)
        before = self.browser.run("return document.querySelector('.graph > g').getAttribute('transform')")
        self.browser.click(".graph-tools button")
        self.assertNotEqual(before, self.browser.run("return document.querySelector('.graph > g').getAttribute('transform')"))
        self.browser.click(".graph-tools button:last-child")
        # The input layer is among the histograms; what is lost is drawn as lost.
        names = self.browser.run("return [...document.querySelectorAll('.histogram')].map((e) => e.dataset.node + ' ' + e.dataset.operand)")
        self.assertEqual(names[0], "x data_in_0")
        lost = self.browser.run("return [...document.querySelectorAll('.histogram')].map((e) => e.querySelectorAll('.bar.lost').length)")
        self.assertEqual(lost[0], 0)
        self.assertGreater(lost[-1], 0)
        self.assertIn("saturated", self.text(".histogram .badge")[-1])
        self.assertEqual(self.text("#layers .half:first-child .bar-value"), ["41.5 dB", "32.4 dB", "23.3 dB", "14.2 dB"])
        self.assertEqual(len(self.text("#before-after-table .changed-row")), 4)
        costs = dict(zip(self.text("#cost-table td:first-child"), self.text("#cost-table td:last-child")))
        self.assertEqual(costs, {"Floating-point operations (FLOPs)": "same", "Bit operations (BitOPs)": "16× less", "Weights, bits": "4× less"})
        self.assertIn("1,014,800", self.text("#cost-table")[0])
        # The format's own numbers are drawn, and how many of them occur is said.
        with open(folder + "/run.json", encoding="utf-8") as file:
            drawn = json.load(file)["transform"]["histograms"]
        self.assertEqual([text.split(";")[0] for text in self.text(".histogram .small")], [f"{one['codes_used']} of 256 codes used" for one in drawn])
        self.assertTrue(all(int(count) > 20 for count in self.browser.run("return [...document.querySelectorAll('.grid-marks')].map((e) => e.dataset.marks)")))
        self.assertEqual(self.text("#figures .tile-detail")[:2], ["test split", "−0.44 points, test split"])
        self.keep("transform")
        self.quiet()

    def test_comparison_sorts_and_compares(self):
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
        column = heads.index("best validation accuracy") + 1
        self.browser.click(f"#run-table th:nth-child({column}) button")
        self.assertEqual(self.text(f"#run-table td:nth-child({column})"), [f"{100 * v:.2f} %" for v in sorted(wanted, reverse=True)])
        self.assertEqual(self.browser.run("return document.querySelector(arguments[0]).getAttribute('aria-sort')", f"#run-table th:nth-child({column})"), "descending")
        self.browser.click(f"#run-table th:nth-child({column}) button")
        self.assertEqual(self.text(f"#run-table td:nth-child({column})"), [f"{100 * v:.2f} %" for v in sorted(wanted)])
        self.assertEqual(len(self.text(".effect")), 2)
        self.assertEqual(len(self.text(".heat td.cell")), 9)
        self.assertEqual(len(self.text("#setting-table tbody tr")), 9)
        # Curves lie over each other; a run that is switched off leaves the chart.
        count = "return document.querySelector('#compare-loss').chart.series.length - 1"
        self.browser.wait("document.querySelector('#compare-loss').chart")
        self.assertEqual(self.browser.run(count), 27)
        self.browser.click("#run-table tbody tr:first-child input")
        self.browser.wait("document.querySelector('#compare-loss').chart")
        self.assertEqual(self.browser.run(count), 26)
        self.browser.click("#run-table tbody tr:first-child input")
        self.keep("comparison")
        self.quiet()

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
        self.browser.run("document.querySelector('.node[data-node]').dispatchEvent(new Event('click'))")
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
        size = os.path.getsize(folder + "/report.html")
        self.show(folder + "/report.html")
        points = self.series("chart-loss", "train, per step")
        milliseconds = self.browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd")
        print(f"1,000,000 steps, 300 epochs: {size / 1e6:.2f} MB, opened in {milliseconds:.0f} ms", file=sys.stderr)
        self.assertLess(size, 3_000_000)
        self.assertLess(milliseconds, 20_000)  # 2,000 on an idle machine; this one may be busy
        self.assertEqual(max(points, key=lambda p: p[1]), [spike, 99.5])
        self.assertEqual(points[0][0], 1)
        self.assertEqual(points[-1][0], step)
        self.assertEqual(len(self.series("chart-loss", "validation, per epoch")), 300)

    def test_view_lives(self):
        root = self.root + "/live"
        sample_runs.training_run(root + "/first", status="running", epochs=2)
        sample_runs.training_run(root + "/second", batch_size=64)
        server = subprocess.Popen([CH, "view", root, "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            address = next(word for word in server.stdout.readline().split() if word.startswith("http"))
            self.browser.open(address)
            self.browser.wait("document.querySelectorAll('#run-list tbody tr').length === 2")
            self.keep("view")
            # A new run appears in the list; a transform shows its accuracy before and after.
            sample_runs.transform_run(root + "/third")
            self.browser.wait("document.querySelectorAll('#run-list tbody tr').length === 3", what="the new run in the list")
            heads = self.text("#run-list th")
            self.assertEqual(heads[:7], ["run", "validation accuracy, best epoch", "validation loss, best epoch", "test accuracy", "before", "after", "change"])
            cells = self.browser.run("return [...[...document.querySelectorAll('#run-list tbody tr')].find((r) => r.textContent.includes('third')).children].map((c) => c.textContent)")
            self.assertEqual(cells[4:7], ["74.12 %", "73.68 %", "−0.44 points"])
            # The filter keeps what has all the words.
            for word, left in (("tran", 1), ("JSC-tiny fin", 1), ("jsc", 3), ("nothing like it", 0)):
                self.browser.run("const f = document.querySelector('#filter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))", word)
                self.assertEqual(len(self.text("#run-list tbody tr")), left, word)
            self.browser.run("const f = document.querySelector('#filter'); f.value = ''; f.dispatchEvent(new Event('input'))")
            for name in ("first", "second"):
                self.browser.click(f"#run-list input[aria-label='compare {name}']")
            self.browser.click("#compare")
            self.browser.wait("document.querySelector('#run-table')")
            # A run that is going on grows on its page.
            self.browser.open(address + "run?run=first")
            self.assertEqual(len(self.series("chart-loss", "validation, per epoch")), 2)
            rows = sample_runs.training_run(root + "/first", status="running", epochs=5)
            self.browser.wait("document.querySelector('#chart-loss').chart && document.querySelector('#chart-loss').chart.data[0].slice(-1)[0] >= arguments[0]", int(rows[-1].split(",")[1]), what="the new epochs")
            self.assertEqual(len(self.series("chart-loss", "validation, per epoch")), 5)
            self.assertEqual([r for r in self.browser.requests() if not r.startswith(address)], [])
            self.quiet()
            # Its folder goes: the page says so and keeps what it has; the server goes on.
            shutil.rmtree(root + "/first")
            self.browser.wait("document.querySelector('.trouble') !== null", what="the notice")
            self.assertIn("gone", self.text(".trouble")[0])
            self.assertEqual(len(self.series("chart-loss", "validation, per epoch")), 5)
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
