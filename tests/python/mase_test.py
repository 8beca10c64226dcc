# SPDX-License-Identifier: Apache-2.0
"""The package mase: formats, graphs, passes, checkpoints, errors, and arrays that are not what was
expected."""
import base64
import copy
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import package
import numpy as np

import mase
from mase import formats


class Formats(unittest.TestCase):
    def test_rounds_as_the_reference_says(self):
        q = formats.integer(8, 4)
        x = np.array([0.03125, 0.09375, 0.15625, -0.09375, 7.96, 8, -8.04, np.inf, -np.inf], np.float32)
        np.testing.assert_array_equal(q(x), np.array([0, 0.125, 0.125, -0.125, 7.9375, 7.9375, -8, 7.9375, -8], np.float32))
        self.assertEqual(q.range, (-8.0, 7.9375))
        self.assertEqual((q.bits(), q.code_bits, q.precision), (8.0, 8, [8, 4]))
        self.assertEqual(len(q.values()), 256)

    def test_every_format_rounds_to_what_it_decodes(self):
        x = np.random.default_rng(0).normal(size=(8, 32)).astype(np.float32)
        needed = {"width": 8, "frac_width": 4, "exponent_width": 4, "exponent_bias_width": 8, "block_size": [1, 16],
                  "exponent_bits": 4, "frac_bits": 3, "mantissa_width": 3}
        for name in formats.names():
            keys = {option["name"] for option in mase._native.formats()[name]["options"]}
            q = getattr(formats, name)(**{key: value for key, value in needed.items()
                                           if key in keys and (key != "block_size" or name.startswith("block"))})
            once = q(x)
            self.assertEqual(once.shape, x.shape, name)
            if q.code_bits:
                np.testing.assert_array_equal(q.decode(q.codes(x)), once, err_msg=name)
            self.assertEqual(pickle.loads(pickle.dumps(q)), q)
            self.assertIn(name, formats.describe(name))

    def test_as_many_bits_as_a_word(self):
        """Formats of more exponents than single precision has: every power of two that it holds is there."""
        draw = np.random.default_rng(0)
        x = (draw.normal(size=4096) * 10 ** draw.uniform(-30, 30, 4096)).astype(np.float32)
        power = 2.0 ** np.floor(np.log2(np.abs(x.astype(np.float64))))
        nearest = (np.sign(x) * np.where(np.abs(x) < 1.5 * power, power, 2 * power)).astype(np.float32)
        for width in (12, 13, 16, 32):
            np.testing.assert_array_equal(formats.log(width)(x), nearest)
            self.assertTrue(np.isfinite(formats.log(width, rounding="reference")(x)).all())
            self.assertEqual(formats.log(width).bits((3,)), width)
        for width in (9, 10, 12, 16, 32):
            np.testing.assert_array_equal(formats.block_log(width, 8, block_size=[16])(x), nearest)
            self.assertTrue(np.isfinite(formats.block_log(width, 8, block_size=[16], rounding="reference")(x)).all())
        for width, exponent in ((9, 8), (12, 8), (16, 10), (23, 11)):
            mantissa, place = np.frexp(x.astype(np.float64))
            bits = width - exponent
            wanted = np.ldexp(np.round(mantissa * 2.0 ** bits), place - bits).astype(np.float32)
            np.testing.assert_array_equal(formats.block_minifloat(width, exponent, 8, block_size=[16])(x), wanted)
            self.assertTrue(np.isfinite(formats.block_minifloat(width, exponent, 8, block_size=[16], rounding="reference")(x)).all())
        top = np.array([3.4e38, -3.4e38, 1.0], np.float32)
        for q in (formats.log(16), formats.block_log(16, 8), formats.block_log(9, 8)):
            np.testing.assert_array_equal(q(top), np.array([2.0 ** 127, -2.0 ** 127, 1.0], np.float32))

    def test_widths_beyond_single_precision(self):
        """Against the definitions in double precision: blocks whose exponents differ, so that small values lose bits."""
        draw = np.random.default_rng(0)
        x = (draw.normal(size=(64, 32)) * np.exp2(draw.integers(-12, 4, (64, 32)))).astype(np.float32)
        x[3], x[5, :4] = 0, [1, -1, 0.5, 2]
        blocks = x.astype(np.float64).reshape(-1, 16)
        largest = np.abs(blocks).max(axis=1, keepdims=True)
        above = np.where(largest > 0, np.floor(np.log2(np.where(largest > 0, largest, 1))), 0) + 1
        for width in (8, 12, 22, 23, 24, 25, 28, 32):
            step = np.exp2(above - (width - 1))
            step = np.where(np.abs(np.rint(blocks / step)).max(axis=1, keepdims=True) >= 2.0 ** (width - 1), 2 * step, step)
            wanted = (np.rint(blocks / step) * step).astype(np.float32).reshape(x.shape)
            q = formats.block_fp(width, 8, block_size=[1, 16])
            np.testing.assert_array_equal(q(x), wanted)
            self.assertEqual(q.bits((64, 32)), width + 8 / 16)
            self.assertTrue(np.isfinite(formats.block_fp(width, 8, block_size=[1, 16], rounding="reference")(x)).all())
        for width, exponent in ((8, 4), (12, 5), (23, 4), (24, 4), (24, 7), (28, 3), (32, 4), (32, 7)):
            mantissa, top = width - exponent - 1, 2 ** exponent - 1
            # The largest bias at which the block's maximum, rounded, still fits.
            bias = np.full_like(largest, 255)
            for _ in range(400):
                step = np.exp2(np.maximum(above - 1, 1 - bias) - mantissa)
                too_large = (np.rint(largest / step) * step > (2 - 2.0 ** -mantissa) * np.exp2(top - bias)) & (bias > 0)
                bias = bias - too_large
            own = np.floor(np.log2(np.where(blocks == 0, 1, np.abs(blocks))))
            step = np.exp2(np.maximum(own, 1 - bias) - mantissa)
            wanted = (np.rint(blocks / step) * step).astype(np.float32).reshape(x.shape)
            np.testing.assert_array_equal(formats.block_minifloat(width, exponent, 8, block_size=[1, 16])(x), wanted)

    def test_words_without_room(self):
        """MASE's rule has numbers where the exponent takes all bits; ours has none and says which key gives them."""
        x = np.array([0.3, -1.5, 2.0, 0.0], np.float32)
        for make in (formats.minifloat_ieee, formats.minifloat_denorm):
            with self.assertRaisesRegex(mase.Error, 'rounding = "reference"'):
                make(8, 8)
            q = make(8, 8, rounding="reference")
            self.assertEqual(q.bits((4,)), 8)
            self.assertTrue(np.isfinite(q(x)).all())
        # -1 bits of mantissa: its limits cross, and torch's clamp takes the upper one.
        np.testing.assert_array_equal(formats.minifloat_denorm(8, 8, rounding="reference")(x), np.float32([-0.5, 2, -2, 0]))
        np.testing.assert_array_equal(formats.minifloat_ieee(8, 8, rounding="reference")(x), np.float32([0, 0, 0, 0]))

    def test_types_and_layouts(self):
        q = formats.integer(8, 4)
        x = np.linspace(-2, 2, 24).reshape(4, 6)
        self.assertEqual(q(x).dtype, np.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(q(np.array([1e300, -1e300])).tolist(), [7.9375, -8.0])
        for view in (x[:, ::2], x.T, x[::-1]):
            np.testing.assert_array_equal(q(view), q(np.ascontiguousarray(view)))
        fixed = x.astype(np.float32)
        fixed.flags.writeable = False
        np.testing.assert_array_equal(q(fixed), q(x).astype(np.float32))
        self.assertEqual(q([1, 2]).tolist(), [1.0, 2.0])
        self.assertEqual(q(np.float32(0.3)).shape, ())
        self.assertEqual(q(np.zeros((0, 3), np.float32)).shape, (0, 3))
        for bad in ("text", object(), [["a"]], None, {"a": 1}):
            with self.assertRaises((mase.Error, TypeError)):
                q(bad)

    def test_mistakes_are_told(self):
        with self.assertRaisesRegex(mase.Error, "did you mean 'frac_width'"):
            formats.make("integer", width=8, frac_widht=4)
        with self.assertRaises(AttributeError):
            formats.nonsense
        with self.assertRaises(TypeError):
            formats.integer(8, width=8)
        codes = formats.mxint(width=8).codes(np.ones((2, 32), np.float32))
        with self.assertRaises(mase.Error):
            formats.mxint(width=8).decode(formats.Codes(codes.codes, codes.scales, codes.exponents[:0]))
        with self.assertRaises(mase.Error):
            q = formats.integer(4, 2)
            q.decode(formats.Codes(np.array([16], np.uint32), np.zeros(0), np.zeros(0, np.int32)))


class Graphs(unittest.TestCase):
    def setUp(self):
        self.graph = mase.load("jsc-tiny", seed=3)
        self.x = np.random.default_rng(1).normal(size=(50, 16)).astype(np.float32)

    def test_what_it_holds(self):
        graph = self.graph
        self.assertEqual([node.name for node in graph], ["x"] + [f"seq_blocks_{i}" for i in range(4)] + ["output"])
        self.assertEqual(graph["seq_blocks_2"].mase_op, "linear")
        self.assertEqual(graph.parameter_count, 117)
        self.assertEqual(repr(graph.modules["seq_blocks.2"]), "Linear(in_features=16, out_features=5, bias=True)")
        self.assertEqual(graph.inputs, {"x": [16]})
        self.assertIn("call_module[target=seq_blocks.2](args = (%seq_blocks_1,), kwargs = {})", str(graph))
        shown = graph._repr_html_()
        self.assertTrue(shown.startswith("<img alt='&lt;graph jsc-tiny: 6 nodes"))
        self.assertEqual(base64.b64decode(shown.split("base64,")[1].rstrip("'>")).decode(), graph.draw())
        self.assertIn("seq_blocks", graph.summary(8))
        self.assertIn("linear", graph["seq_blocks_2"]._repr_html_().lower())

    def test_computes_what_numpy_computes(self):
        state = self.graph.state_dict()
        hidden = np.maximum(self.x / np.sqrt(1 + 1e-5), 0)
        expected = np.maximum(hidden @ state["seq_blocks.2.weight"].T + state["seq_blocks.2.bias"], 0)
        np.testing.assert_allclose(self.graph(self.x), expected, rtol=1e-5, atol=1e-6)

    def test_tensors_are_views_and_written_by_name_only(self):
        layer = self.graph.modules["seq_blocks.2"]
        with self.assertRaises(ValueError):
            layer["weight"][0, 0] = 1
        before = self.graph.copy()
        layer["weight"] = np.ones((5, 16))
        self.assertEqual(float(self.graph.modules["seq_blocks.2"]["weight"].sum()), 80)
        self.assertNotEqual(float(before.modules["seq_blocks.2"]["weight"].sum()), 80)
        with self.assertRaises(mase.Error):
            layer["weight"] = np.ones((5, 15))
        with self.assertRaises(mase.Error):
            layer["wieght"]
        array = self.graph.modules["seq_blocks.2"]["weight"]
        del self.graph, layer
        self.assertEqual(float(array.sum()), 80)  # the array keeps its memory

    def test_quantize_leaves_the_original(self):
        quantized = self.graph.quantize(linear=formats.integer(8, 4))
        self.assertEqual(quantized["seq_blocks_2"].class_name, "LinearInteger")
        self.assertEqual(self.graph["seq_blocks_2"].class_name, "Linear")
        used = quantized.modules["seq_blocks.2"].used()["weight"]
        np.testing.assert_array_equal(used, formats.integer(8, 4)(self.graph.state_dict()["seq_blocks.2.weight"]))
        self.assertEqual(quantized.cost().average_weight_bits, 8)
        self.assertEqual(quantized.modules["seq_blocks.2"].config["weight_width"], 8)

    def test_passes_print_what_the_program_prints(self):
        quantized = self.graph.quantize(linear=formats.integer(8, 4))
        text = package.printed(quantized.run_pass, "summarize_quantization", original=self.graph)
        self.assertIn("| Linear          | linear       |       1 |         1 |           0 |", text)
        report = package.printed(self.graph.run_pass, "report_graph")
        self.assertIn("{'placeholder': 1, 'get_attr': 0, 'call_function': 0, 'call_method': 0, 'call_module': 4, 'output': 1}", report)
        data = self.graph.run_pass("profile_statistics", {
            "by": "type", "target_weight_nodes": ["linear"], "weight_statistics": {"variance_precise": {}}})
        weight = self.graph.state_dict()["seq_blocks.2.weight"]
        self.assertAlmostEqual(data["weights"]["seq_blocks_2"]["weight"]["variance_precise"]["variance"],
                               float(weight.var(ddof=1)), places=6)

    def test_a_pass_that_fails_changes_nothing(self):
        before = str(self.graph), self.graph.description()
        with self.assertRaisesRegex(mase.Error, "did you mean"):
            self.graph.run_pass("quantise")
        with self.assertRaises(mase.Error):
            self.graph.quantize(liner=formats.integer(8, 4))
        with self.assertRaisesRegex(mase.Error, "which layers"):
            self.graph.quantize(formats.integer(8, 4))
        self.assertEqual(before, (str(self.graph), self.graph.description()))

    def test_files_and_copies(self):
        quantized = self.graph.quantize(linear=formats.integer(8, 4)).pruned(0.5)
        expected = quantized(self.x)
        with tempfile.TemporaryDirectory() as folder:
            quantized.save(os.path.join(folder, "a.mz"))
            np.testing.assert_array_equal(mase.load(os.path.join(folder, "a.mz"))(self.x), expected)
            mase.save_checkpoint(os.path.join(folder, "a.safetensors"), self.graph.state_dict())
            mase.save_checkpoint(os.path.join(folder, "a.ckpt"), self.graph.state_dict())
            for name in ("a.safetensors", "a.ckpt"):
                again = mase.load("jsc-tiny", os.path.join(folder, name))
                np.testing.assert_array_equal(again(self.x), self.graph(self.x))
                read = mase.read_checkpoint(os.path.join(folder, name))
                self.assertEqual(set(read), set(self.graph.state_dict()))
            with self.assertRaises(ValueError):
                read["seq_blocks.2.weight"][0, 0] = 1
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(quantized))(self.x), expected)
        np.testing.assert_array_equal(copy.deepcopy(quantized)(self.x), expected)

    def test_bad_inputs(self):
        for bad in (self.x[:, :15], self.x[0], np.zeros((0,), np.float32), np.array(3.0)):
            with self.assertRaises(mase.Error):
                self.graph(bad)
        with self.assertRaises(mase.Error):
            self.graph()
        with self.assertRaisesRegex(mase.Error, "no further 'y'"):
            self.graph(y=self.x)
        with self.assertRaisesRegex(mase.Error, "masked"):
            self.graph(np.ma.masked_less(self.x, 0))
        np.testing.assert_array_equal(self.graph(x=self.x), self.graph(self.x))
        np.testing.assert_array_equal(self.graph(self.x.astype(np.float64)), self.graph(self.x))
        np.testing.assert_array_equal(self.graph(self.x[::-2]), self.graph(self.x)[::-2])
        self.assertEqual(self.graph(self.x[:0]).shape, (0, 5))

    def test_hostile_arguments(self):
        loop = []
        loop.append(loop)
        for bad in ({"by": loop}, {"by": 1 << 70}, {3: 4}, {"by": object()}, {"by": b"type"}):
            with self.assertRaises(mase.Error):
                self.graph.run_pass("quantize", bad)
        with self.assertRaises(mase.Error):
            mase.load("no/such/file.mz")
        with self.assertRaises(mase.Error):
            mase.read_checkpoint(__file__)
        with self.assertRaises(TypeError):
            self.graph.run_pass(3)

    def test_threads(self):
        expected, failures = self.graph(self.x), []

        def work():
            for _ in range(50):
                if not np.array_equal(self.graph(self.x), expected):
                    failures.append(1)
                self.graph.copy().quantize(linear=formats.integer(8, 4))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Plugins(unittest.TestCase):
    def test_python_functions_are_passes(self):
        @mase.register_pass
        def count_relus(graph, args):
            """How many."""
            return {"relus": sum(node.mase_op == "relu" for node in graph), "args": args}

        graph = mase.load("jsc-tiny")
        self.assertEqual(graph.run_pass("count_relus", a=1), {"relus": 2, "args": {"a": 1}})
        self.assertIn("count_relus", mase.passes())
        mase.register_pass(lambda graph, args: {"nodes": len(graph)}, name="count_relus")  # a cell that is run again
        self.assertEqual(graph.run_pass("count_relus"), {"nodes": 6})
        with self.assertRaisesRegex(mase.Error, "already"):
            mase.register_pass(count_relus, name="quantize")

        @mase.register_pass(transform=True)
        def no_weights(graph, args):
            graph.modules["seq_blocks.2"]["weight"] = np.zeros((5, 16), np.float32)

        graph.run_pass("no_weights")
        self.assertEqual(float(np.abs(graph.state_dict()["seq_blocks.2.weight"]).sum()), 0)

        @mase.register_pass
        def fails(graph, args):
            raise ValueError("on purpose")

        with self.assertRaisesRegex(ValueError, "^on purpose$") as caught:  # itself, with its traceback
            graph.run_pass("fails")
        self.assertNotIsInstance(caught.exception, mase.Error)
        with self.assertRaisesRegex(mase.Error, "ValueError: on purpose$"):
            mase.transform("jsc-tiny", passes={"fails": {}}, progress=False)


class Process(unittest.TestCase):
    def run_python(self, code):
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    def test_import_needs_neither_numpy_nor_torch(self):
        result = self.run_python("import mase, chop, sys; print('numpy' in sys.modules, 'torch' in sys.modules)")
        self.assertEqual(result.stdout.split(), ["False", "False"], result.stderr)

    def test_fork_and_second_import(self):
        result = self.run_python(
            "import mase, os, sys, numpy as np\n"
            "g = mase.load('jsc-tiny'); x = np.ones((3, 16), np.float32); before = g(x)\n"
            "child = os.fork()\n"
            "if child == 0: os._exit(0 if np.array_equal(g(x), before) else 1)\n"
            "code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
            "for name in [m for m in sys.modules if m.partition('.')[0] == 'mase']: del sys.modules[name]\n"
            "import mase as again\n"
            "print(code, np.array_equal(again.load('jsc-tiny')(x), before))\n")
        self.assertEqual(result.stdout.split(), ["0", "True"], result.stderr)

    def test_a_second_interpreter_is_refused(self):
        for before in ("import mase\n", ""):  # whether the main one has it or not
            result = self.run_python(
                before +
                "try:\n    import _xxsubinterpreters as inner\n"
                "except ImportError:\n    import _interpreters as inner\n"
                "other = inner.create()\n"
                "try:\n    failed = inner.run_string(other, 'import mase')\n"
                "except Exception as error:\n    failed = error\n"
                "print('refused' if failed else 'imported')\n"
                "import mase; print(mase.load('jsc-tiny').parameter_count)\n")
            self.assertEqual(result.stdout.split(), ["refused", "117"], result.stderr)


if __name__ == "__main__":
    package.main()
