# SPDX-License-Identifier: Apache-2.0
"""Training, testing, predicting, transforming and searching from Python: the same figures as the
program's, results as objects, callbacks, interrupts, and two runs at once."""
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from xml.etree import ElementTree

import package
import numpy as np

import mase

OPTIONS = dict(target="kind", max_epochs=3, batch_size=16, learning_rate=0.01, progress=False)
QUANTIZE = {"quantize": {"by": "type", "linear": {"config": {
    "name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4}}}}


def run_record(folder):
    with open(os.path.join(folder, "run.json")) as file:
        return json.load(file)


class Experiments(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = self.scratch.name
        self.table = package.write_table(os.path.join(self.folder, "table.csv"))
        os.environ["MASE_DATA"] = os.path.join(self.folder, "data")

    def train(self, **options):
        return mase.train("jsc-toy", self.table, project_dir=os.path.join(self.folder, "out"), **{**OPTIONS, **options})

    def test_same_bits_as_the_program(self):
        run = self.train()
        done = subprocess.run([os.environ["MASE_CH"], "train", "jsc-toy", self.table, "--target", "kind", "--max-epochs",
                               "3", "--batch-size", "16", "--learning-rate", "0.01", "--project-dir",
                               os.path.join(self.folder, "program"), "--project", "run"], capture_output=True, text=True,
                              env={key: value for key, value in os.environ.items() if key != "LD_PRELOAD"})
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = mase.load(os.path.join(self.folder, "program/run/software/training_ckpts/best.mz")).state_dict()
        for name, array in run.graph.state_dict().items():
            np.testing.assert_array_equal(array, theirs[name], err_msg=name)
        record = run_record(os.path.join(self.folder, "program/run"))
        self.assertEqual(run.test.figures["test_acc_epoch"], record["test_acc_epoch"])

    def test_results_are_objects(self):
        run = self.train()
        self.assertEqual((run.status, run.epochs, len(run.history)), ("finished", 3, 3))
        self.assertGreater(run.test.accuracy, 0.7)
        self.assertEqual(run.test.outputs.shape, (run.test.rows, 3))
        self.assertTrue(os.path.exists(run.best_checkpoint))
        self.assertIn("val_loss_epoch", run.history[0])
        json.dumps(run.to_dict())
        self.assertIn("test_acc_epoch", run._repr_html_())
        self.assertIn("finished", repr(run))
        again = mase.test(run.graph, self.table, target="kind", progress=False)
        self.assertEqual(again.accuracy, run.test.accuracy)
        rows = mase.predict(os.path.join(run.folder, "software/training_ckpts/best.mz"), self.table)
        self.assertEqual(rows.shape, (400, 3))

    def test_several_outputs_are_a_tuple(self):
        folder = os.path.join(os.environ["MASE_SOURCE"], "tests/golden/hf/tiny")
        ids = os.path.join(self.folder, "ids.npy")
        np.save(ids, np.arange(32).reshape(2, 16))
        hidden, pooled = mase.predict(None, [ids], load=folder)
        self.assertEqual((hidden.shape, pooled.shape), ((2, 16, 12), (2, 12)))
        twice, _ = mase.predict(None, [ids, ids], load=folder)  # several files are rows one after another
        np.testing.assert_array_equal(twice, np.concatenate([hidden, hidden]))

    def test_nothing_is_written_unless_wanted(self):
        run = self.train(save=False)
        self.assertEqual(run.folder, "")
        self.assertEqual(sorted(os.listdir(self.folder)), sorted({"table.csv"} | ({"data"} & set(os.listdir(self.folder)))))

    def test_quantisation_aware_training_and_transform(self):
        run = self.train(passes=QUANTIZE)
        self.assertIn("LinearInteger", [node.class_name for node in run.graph])
        result = None

        def transform():
            nonlocal result
            result = mase.transform(run.graph, self.table, target="kind", passes=QUANTIZE, progress=False)

        text = package.printed(transform)
        self.assertIn("Quantized graph histogram", text)
        self.assertEqual(result["summarize_quantization"]["changed"], 0)  # it was quantised already
        self.assertEqual(repr(result), "<transformed by quantize, summarize_quantization>")

    def test_pages(self):
        run, other = self.train(save=True, project="one"), self.train(save=True, project="two")
        page = mase.report(run)
        self.assertIn("<script", page.html)
        self.assertIn("Accuracy on the test split", page.plain)
        shown = page._repr_html_()
        self.assertTrue(shown.startswith("<iframe sandbox='allow-scripts allow-modals'"))  # cannot reach the notebook
        self.assertNotIn("<script", shown)  # all of it is inside the attribute, escaped
        self.assertNotIn("<svg", shown)  # which a notebook that is not trusted would be shown without
        drawings = [base64.b64decode(part.split("'")[0]) for part in shown.split("data:image/svg+xml;base64,")[1:]]
        self.assertEqual(len(drawings), page.plain.count("<svg"))
        for drawing in drawings:
            root = ElementTree.fromstring(drawing)
            self.assertIn("--series-1:", root[0].text)
        self.assertEqual(len(mase.report(run, other.folder).folders), 2)
        page.save(os.path.join(self.folder, "page.html"))
        program = subprocess.run([os.environ["MASE_CH"], "report", run.folder, "--output", "program.html"], cwd=self.folder,
                                 capture_output=True, text=True, env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})
        self.assertEqual(program.returncode, 0, program.stderr)
        ours, theirs = (os.path.getsize(os.path.join(self.folder, name)) for name in ("page.html", "program.html"))
        self.assertAlmostEqual(ours, theirs, delta=200)  # but for who wrote it, and when
        for wrong in ((), (os.path.join(self.folder, "nowhere"),), (self.train(save=False),)):
            with self.assertRaises(mase.Error):
                mase.report(*wrong)

    def test_callbacks(self):
        epochs = []
        self.train(on_epoch=epochs.append, save=False)
        self.assertEqual([row["epoch"] for row in epochs], [0, 1, 2])
        for wrong, said in (((np.zeros((4, 3)), ["a"] * 4), "only one class"), ((np.zeros((4, 3)),), "expected a pair"),
                            ((np.zeros((4, 3)), [1, 2]), "one row of x for each of y")):
            with self.assertRaisesRegex(mase.Error, said):
                mase.train("jsc-tiny", wrong)
        with self.assertRaisesRegex(TypeError, "on_epoch: expected a function"):
            self.train(on_epoch=3)

        def stop(row):
            if row["epoch"] == 1:
                raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            self.train(on_epoch=stop, max_epochs=50, project="stopped")
        folder = os.path.join(self.folder, "out/stopped")
        self.assertEqual(run_record(folder)["status"], "interrupted")
        run = mase.train(resume=folder, progress=False, max_epochs=4)
        whole = self.train(max_epochs=4, save=True, project="whole", schedule="constant")
        self.assertEqual((run.status, run.epochs), ("finished", 4))
        self.assertEqual(whole.status, "finished")

    def test_interrupt_leaves_a_resumable_run(self):
        code = ("import mase, sys\n"
                f"mase.train('jsc-toy', {self.table!r}, target='kind', max_epochs=100000, batch_size=16, progress=False,\n"
                f"           project_dir={os.path.join(self.folder, 'out')!r}, project='killed',\n"
                "           on_epoch=lambda row: (print(row['epoch'], flush=True)))\n")
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", err)
        folder = os.path.join(self.folder, "out/killed")
        self.assertIn("continue with mase.train(resume=", err)
        self.assertEqual(run_record(folder)["status"], "interrupted")
        run = mase.train(resume=folder, max_epochs=1, progress=False)
        self.assertEqual(run.status, "finished")

    def test_two_at_once(self):
        alone = self.train(project="a").graph.state_dict()
        results = {}

        def work(name, seed):
            results[name] = self.train(project=name, seed=seed).graph.state_dict()

        threads = [threading.Thread(target=work, args=(f"t{i}", i % 2)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in ("t0", "t2"):
            for key, array in alone.items():
                np.testing.assert_array_equal(array, results[name][key])

    def test_search(self):
        run = self.train()
        space = {"search_space": {"name": "graph/quantize/mixed_precision_ptq", "setup": {"by": "type"},
                                  "seed": {"linear": {"config": {"name": ["integer"], "data_in_width": [8],
                                                                 "data_in_frac_width": ["NA"], "weight_width": [4, 8],
                                                                 "weight_frac_width": ["NA"]}}}},
                 "strategy": {"name": "optuna", "setup": {"sampler": "brute-force"},
                              "metrics": {"accuracy": {"scale": 1.0, "direction": "maximize"},
                                          "average_bitwidth": {"scale": 0.2, "direction": "minimize"}}}}
        found = mase.search(run.graph, self.table, target="kind", search=space, progress=False)
        self.assertIn(found.status, ("finished", "space_exhausted"))
        self.assertEqual(len(found.trials), 8)  # two widths for each of three layers
        self.assertTrue(found.networks and found.networks[0].parameter_count)
        self.assertIn("number", str(found))
        json.dumps(found.to_dict())

    def test_search_is_the_commands(self):
        """The same files under the same names, a page, options of the command, the second level."""
        run = self.train()
        options = dict(target="kind", space="bits=4,8", objective="accuracy,bitops", progress=False, save=True,
                       project_dir=self.folder, project="found")
        found = mase.search(run.graph, self.table, **options)
        results = os.path.join(found.folder, "software", "search_ckpts")
        for entry in found.best.values():
            for ending in ("toml", "mz"):
                self.assertTrue(os.path.exists(os.path.join(results, f"best_{entry['number']}.{ending}")))
        for name in ("search.json", "log.json", "best.json", "study.db"):
            self.assertTrue(os.path.exists(os.path.join(results, name)), name)
        self.assertEqual([row["number"] for row in found.test], [entry["number"] for entry in found.best.values()])
        self.assertIn('id="front"', mase.report(found).html)
        with open(os.path.join(found.folder, "run.json")) as record:
            self.assertEqual(json.load(record)["status"], "finished")
        space = {"search_space": {"setup": {"by": "type"},
                                  "seed": {"linear": {"config": {"name": ["integer"], "data_in_width": [8],
                                                                 "data_in_frac_width": ["NA"], "weight_width": [3, 6],
                                                                 "weight_frac_width": ["NA"]}}}},
                 "strategy": {"sw_runner": {"basic_train": {"max_epochs": 1, "front_only": True}},
                              "metrics": {"loss": {"direction": "minimize"}}}}
        found = mase.search(run.graph, self.table, target="kind", search=space, progress=False, save=True,
                            project_dir=self.folder, project="two")
        self.assertEqual(len(found.trained), 1)
        self.assertTrue(os.path.exists(os.path.join(found.folder, "software", "search_ckpts", "trained.json")))
        # A function of Python is a figure; what it raises fails that trial.
        seen = []

        @mase.register_figure(name="python_figure", higher_is_better=True)
        def figure(graph):
            """Parameters, but for every second network."""
            seen.append(graph.parameter_count)
            if len(seen) % 2 == 0:
                raise ValueError("not this one")
            return graph.parameter_count

        found = mase.search(run.graph, self.table, target="kind", space="bits=4,8", objective="accuracy,python_figure",
                            sampler="grid", n_trials=6, progress=False)
        self.assertEqual([t["state"] for t in found.trials], ["COMPLETE", "FAIL"] * 3)
        self.assertIn("not this one", found.trials[1]["user_attributes"]["failure"])
        self.assertEqual(found.trials[0]["values"][1], seen[0])
        with self.assertRaises(mase.Error):
            mase.register_figure(lambda graph: 1.0, name="bitops")
        # A search that fails says so, whenever.
        with self.assertRaises(mase.Error):
            mase.search(run.graph, self.table, **dict(options, storage="mongodb://x"))
        with self.assertRaises(mase.Error):
            mase.search(run.graph, self.table, **dict(options, n_trails=3))

    def test_hardware(self):
        run = self.train()
        wide = {"name": "integer", "data_in_width": 6, "data_in_frac_width": 3, "weight_width": 4, "weight_frac_width": 3,
                "bias_width": 6, "bias_frac_width": 3}
        graph = run.graph.copy()
        graph.run_pass("fuse_batch_norm", print=None)
        graph = graph.quantize(linear=wide, relu={"name": "integer", "data_in_width": 8, "data_in_frac_width": 4})
        cost = mase.estimate(graph)
        self.assertGreater(cost.luts, 0)
        design = mase.emit(graph, os.path.join(self.folder, "design"), rows=100, prove=False)
        self.assertTrue(design.equal and os.path.exists(os.path.join(design.folder, "manifest.json")))
        self.assertEqual(design.estimate.luts, cost.luts)
        with self.assertRaises(mase.Error):
            mase.estimate(run.graph)  # it is not quantised
        with self.assertRaises(mase.Error):
            mase.emit(graph, self.folder, prove=False)  # a folder of something else is not replaced

    def test_data(self):
        data = mase.load_dataset(self.table, target="kind", progress=False)
        self.assertEqual((data.train.x.dtype, data.train.y.dtype), (np.float32, np.int32))
        self.assertEqual(sorted(data.class_names), ["blue", "green", "red"])
        self.assertEqual(len(data.train) + len(data.validation) + len(data.test), 400)
        with self.assertRaises(ValueError):
            data.train.x[0, 0] = 1

    def test_arrays_are_data(self):
        draw = np.random.default_rng(0)
        x = draw.normal(size=(300, 16))
        for y, figure in (((x[:, 0] > 0).astype(np.int64), "accuracy"), (x[:, 0] > 0, "accuracy"), (x[:, 0], "loss")):
            run = mase.train("jsc-tiny", (x, y), max_epochs=2, batch_size=32, save=False, progress=False)
            self.assertEqual(run.status, "finished")
            evaluation = mase.test(run.graph, (x, y), progress=False)
            self.assertTrue(np.isfinite(getattr(evaluation, figure)))
        for wrong in ((x, np.zeros(4, int)), (x.astype(complex), np.zeros(300, int)), (x, ["a"] * 300)):
            with self.assertRaises(mase.Error):
                mase.train("jsc-tiny", wrong, max_epochs=1, save=False, progress=False)

    def test_arrays_mean_the_same_everywhere(self):
        draw = np.random.default_rng(1)
        y = draw.integers(0, 3, 500)
        x = (np.eye(3)[y] + draw.normal(size=(500, 3)) * 0.3) * 100 + 50
        run = mase.train("jsc-toy", (x, y), max_epochs=8, batch_size=32, learning_rate=1e-2, save=False, progress=False)
        tested = mase.test(run.graph, (x, y), progress=False)
        self.assertEqual(tested.rows, 500)
        outputs = mase.predict(run.graph, x)
        np.testing.assert_array_equal(outputs, tested.outputs)
        self.assertEqual(tested.accuracy, float((outputs.argmax(1) == y).mean()))
        self.assertGreater(tested.accuracy, 0.8)
        raw = mase.predict(run.graph, x, preprocess=False)
        np.testing.assert_array_equal(raw, run.graph(x))
        self.assertGreater(np.abs(raw - outputs).max(), 1)
        # Through a file, and after quantising.
        path = os.path.join(self.folder, "arrays.mz")
        run.graph.save(path)
        np.testing.assert_array_equal(mase.predict(path, x), outputs)
        self.assertEqual(mase.test(path, (x, y), progress=False).rows, 500)
        quantized = run.graph.quantize(linear=mase.formats.integer(16, 8))
        self.assertGreater((mase.predict(quantized, x).argmax(1) == y).mean(), 0.8)
        # Splits that are named are those of the training; one row is enough to test.
        sizes = {split: mase.test(run.graph, (x, y), split=split, progress=False).rows for split in ("train", "val", "test", "all")}
        self.assertEqual(sizes, {"train": 360, "val": 40, "test": 100, "all": 500})
        self.assertEqual(mase.test(run.graph, (x[:1], y[:1]), progress=False).rows, 1)
        with self.assertRaisesRegex(mase.Error, "3"):
            mase.test(run.graph, (x[:, :2], y), progress=False)
        with self.assertRaisesRegex(mase.Error, "split"):
            mase.test(run.graph, (x, y), split=None, progress=False)

    def test_options_are_in_signatures(self):
        import inspect

        for function in (mase.train, mase.test, mase.transform, mase.search):
            parameters = inspect.signature(function).parameters
            self.assertEqual((parameters["max_epochs"].default, parameters["learning_rate"].annotation), (20, float))
            self.assertIn("batch_size: ", function.__doc__)
        given = {name: p.default for name, p in inspect.signature(mase.train).parameters.items()
                 if p.kind is p.KEYWORD_ONLY and name in ("max_steps", "batch_size", "seed")}
        self.train(save=False, **given)
        graph = mase.load("jsc-toy")
        self.assertEqual(graph.prune(0.5).state_dict().keys(), graph.pruned(0.5).state_dict().keys())
        for name in ("nodes", "modules", "name", "parameter_count", "copy", "prune"):
            self.assertTrue(getattr(mase.Graph, name).__doc__, name)

    def test_words_as_classes(self):
        draw = np.random.default_rng(2)
        number = draw.integers(0, 3, 300)
        x, y = np.eye(3)[number] + draw.normal(size=(300, 3)) * 0.2, np.array(["red", "green", "blue"])[number]
        run = mase.train("jsc-toy", (x, y), max_epochs=8, batch_size=32, learning_rate=1e-2, save=False, progress=False)
        tested = mase.test(run.graph, (x, y.astype(object)), progress=False)
        self.assertGreater(tested.accuracy, 0.9)
        self.assertEqual(tested.record["classes"], ["blue", "green", "red"])
        # Other words first, and only some of them: classes go by name.
        some = y != "blue"
        part = mase.test(run.graph, (x[some], y[some]), progress=False)
        self.assertEqual(part.accuracy, float((np.asarray(tested.record["classes"])[mase.predict(run.graph, x[some]).argmax(1)] == y[some]).mean()))
        for wrong in (["violet"] * 300, [1.5, "red"] * 150, [None] * 300):
            with self.assertRaises(mase.Error):
                mase.test(run.graph, (x, np.array(wrong, dtype=object)), progress=False)

    def test_a_network_of_a_table_takes_arrays(self):
        run = self.train(save=False)
        data = mase.load_dataset(self.table, target="kind", scaling="none", progress=False)
        x = np.concatenate([data.train.x, data.validation.x, data.test.x])
        y = np.concatenate([data.train.y, data.validation.y, data.test.y])
        whole = mase.test(run.graph, self.table, target="kind", split="all", progress=False)
        self.assertEqual((whole.rows, whole.split), (400, "all"))
        self.assertIn("all_acc_epoch", whole.figures)
        arrays = mase.test(run.graph, (x, np.asarray(data.class_names)[y]), progress=False)
        self.assertAlmostEqual(arrays.accuracy, whole.accuracy, 12)
        numbers = mase.test(run.graph, (x, y), progress=False)  # places in the network's classes
        self.assertEqual(numbers.record["classes"], arrays.record["classes"])
        further = mase.train(run.graph, (x, np.asarray(data.class_names)[y]), max_epochs=1, save=False, progress=False)
        self.assertEqual(further.status, "finished")
        frame = data.to_dataframe()
        self.assertEqual((len(frame), set(frame["split"])), (400, {"train", "validation", "test"}))
        self.assertEqual(len(arrays.to_dataframe()), 3)
        self.assertFalse(hasattr(further, "test"))

    def test_mistakes(self):
        with self.assertRaisesRegex(mase.Error, "did you mean 'max_epochs'"):
            self.train(max_epoch=3)
        with self.assertRaisesRegex(mase.Error, "unknown data set"):
            mase.train("jsc-tiny", "jcs", progress=False)
        with self.assertRaises(mase.Error):
            mase.train(resume=self.folder)
        folder = self.train(save=True, project="own").folder
        with self.assertRaisesRegex(mase.Error, "keeps its own 'learning_rate'"):
            mase.train(resume=folder, learning_rate=1e-3, progress=False)
        with self.assertRaisesRegex(mase.Error, "did you mean 'max_epochs'"):
            mase.train(resume=folder, max_epoch=9, progress=False)
        with self.assertRaisesRegex(mase.Error, "keeps its own network"):
            mase.train("jsc-toy", resume=folder, progress=False)
        self.assertEqual(mase.train(resume=folder, progress=False).status, "finished")
        with self.assertRaisesRegex(mase.Error, "mase.test"):
            self.train(save=False).test
        with self.assertRaises(mase.Error):
            mase.test("jsc-toy", self.table, target="kind", split="tset", progress=False)


if __name__ == "__main__":
    package.main()
