# SPDX-License-Identifier: Apache-2.0
"""torch and the library: quantised layers against the original's formulas written in torch, both ways of
the bridge, tensors that are not what was expected."""
import copy
import gc
import io
import os
import tempfile
import unittest
import warnings

import package

package.need_torch()
import numpy as np  # noqa: E402
import torch  # noqa: E402

import mase  # noqa: E402
from mase import formats  # noqa: E402
from mase.torch_layers import class_named, op_records, quantized_class  # noqa: E402

CONFIG = {"data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4, "bias_width": 8,
          "bias_frac_width": 4}


class Original(torch.autograd.Function):
    """MASE's integer quantizer: straight through, saturated values included."""

    @staticmethod
    def forward(ctx, x, width, frac):
        return torch.clamp(torch.round(x * 2**frac), -2**(width - 1), 2**(width - 1) - 1) / 2**frac

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


class Layers(unittest.TestCase):
    def pair(self, rows, width_in, width_out, seed=0):
        torch.manual_seed(seed)
        layer = class_named("LinearInteger")(width_in, width_out, config=CONFIG)
        with torch.no_grad():
            layer.weight.mul_(20)  # some values saturate
        x = (6 * torch.randn(rows, width_in)).requires_grad_()
        return layer, x

    def test_linear_integer_is_the_original(self):
        # Multiplied as integers where sums stay below 2^24 (all but the last two), otherwise in float.
        for rows, width_in, width_out in ((1, 1, 1), (7, 16, 5), (256, 60, 32), (5, 7, 17), (3, 61, 130), (9, 1030, 33), (0, 4, 3)):
            layer, x = self.pair(rows, width_in, width_out)
            grad = torch.randn(rows, width_out)
            y = layer(x)
            y.backward(grad)
            other = x.detach().clone().requires_grad_()
            weight, bias = (p.detach().clone().requires_grad_() for p in (layer.weight, layer.bias))
            expected = torch.nn.functional.linear(Original.apply(other, 8, 4), Original.apply(weight, 8, 4),
                                                  Original.apply(bias, 8, 4))
            expected.backward(grad)
            for ours, theirs in ((y, expected), (x.grad, other.grad), (layer.weight.grad, weight.grad), (layer.bias.grad, bias.grad)):
                torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-4)
            self.assertTrue(torch.equal(y, expected))

    def test_linear_integer_of_unusual_tensors(self):
        layer, _ = self.pair(1, 16, 5)

        def composed(x):
            weight, bias = Original.apply(layer.weight, 8, 4), Original.apply(layer.bias, 8, 4)
            return torch.nn.functional.linear(Original.apply(x, 8, 4), weight, bias)

        spoilt = torch.randn(4, 16)
        spoilt[1, 3], spoilt[2, 0] = float("nan"), float("inf")
        for x in (spoilt, torch.randn(16), torch.randn(2, 3, 16), torch.randn(16, 4).t(), torch.randn(8, 16)[::2]):
            torch.testing.assert_close(layer(x), composed(x), equal_nan=True)
        torch.set_default_dtype(torch.float64)  # what a script may have done
        try:
            x = torch.randn(4, 16, dtype=torch.float32, requires_grad=True)
            layer(x).sum().backward()
            self.assertIs(x.grad.dtype, torch.float32)
        finally:
            torch.set_default_dtype(torch.float32)
        for bad in (torch.randn(4, 15), torch.randn(4, 16, dtype=torch.float64)):
            with self.assertRaises(RuntimeError):
                layer(bad)
        layer.weight.data = torch.randn(5, 32)[:, ::2]
        x = torch.randn(3, 16)
        torch.testing.assert_close(layer(x), composed(x))
        layer.x_quantizer, layer.w_quantizer = (lambda v: v), (lambda v: 2 * v)  # anything that can be called
        torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, 2 * layer.weight, Original.apply(layer.bias, 8, 4)))
        total = class_named("LinearInteger")(16, 5, config=CONFIG)(x).sum()
        total.backward()
        with self.assertRaises(RuntimeError):
            total.backward()

    def test_golden(self):
        """Forward and straight-through backward of MASE's own layer."""
        golden = mase.read_checkpoint(os.path.join(package.SOURCE, "tests/golden/torch/qlinear_ste.safetensors")).to_torch()
        minifloat = {"width": 8, "exponent_width": 4, "rounding": "reference"}
        for case, name, keys in (("c0", "LinearInteger", {"width": 8, "frac_width": 4}),
                                 ("c1", "LinearInteger", {"width": 4, "frac_width": 2}), ("c2", "LinearMinifloatIEEE", minifloat)):
            x, w, b, go, y, gx, gw, gb = (golden[f"{case}.{part}"] for part in "x w b go y gx gw gb".split())
            layer = class_named(name)(x.shape[1], w.shape[0],
                                      config={f"{o}_{k}": v for o in ("data_in", "weight", "bias") for k, v in keys.items()})
            layer.load_state_dict({"weight": w, "bias": b})
            x.requires_grad_()
            out = layer(x)
            out.backward(go)
            for ours, theirs in ((out, y), (x.grad, gx), (layer.weight.grad, gw), (layer.bias.grad, gb)):
                torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6, msg=f"{case} {name}")

    def test_every_layer_in_every_format_that_needs_no_keys_of_its_own(self):
        integer = {"data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4}
        inputs = {"conv1d": (2, 3, 9), "conv2d": (2, 3, 9, 9), "conv_transpose1d": (2, 3, 9), "conv_transpose2d": (2, 3, 9, 9),
                  "batch_norm2d": (2, 3, 9, 9), "instance_norm1d": (2, 3, 9), "instance_norm2d": (2, 3, 9, 9), "group_norm": (2, 3, 9)}
        arguments = {"linear": (9, 4), "conv1d": (3, 4, 3), "conv2d": (3, 4, 3), "conv_transpose1d": (3, 4, 3),
                     "conv_transpose2d": (3, 4, 3), "batch_norm1d": (9,), "batch_norm2d": (3,), "layer_norm": (9,), "rms_norm": (9,),
                     "group_norm": (3, 3), "instance_norm1d": (3,), "instance_norm2d": (3,)}
        made = 0
        for op, record in op_records().items():
            base = getattr(torch.nn, record["class_name"], None) if record["class_name"] else None
            if base is None or not record["operands"] or "pool" in op or "softmax" in op or op in ("embedding", "position_embedding", "upsample", "multihead_attention"):
                continue
            operands = record["operands"]
            config = {k: v for k, v in integer.items() if any(k.startswith(o + "_") for o in operands)}
            if op.startswith("instance_norm"):
                config = {k: v for k, v in config.items() if k.startswith("data_in")}
            layer = quantized_class(op, "integer")(*arguments.get(op, ()), config=config)
            plain = base(*arguments.get(op, ()))
            plain.load_state_dict(layer.state_dict())
            x = torch.randn(*inputs.get(op, (4, 9)))
            layer.eval(), plain.eval()
            rounded = layer.x_quantizer(x) if layer.x_quantizer is not None else x
            with torch.no_grad():
                if layer.w_quantizer is not None and getattr(plain, "weight", None) is not None:
                    plain.weight.copy_(layer.w_quantizer(plain.weight))
                torch.testing.assert_close(layer(x), plain(rounded), msg=op)
            self.assertIsInstance(layer, base)
            made += 1
        self.assertGreater(made, 20)

    def test_attention(self):
        """With its operands rounded by hand it is torch's own; the library's has the same numbers, with masks too."""
        torch.manual_seed(0)
        config = {f"{o}_{k}": v for o in ("data_in", "weight", "bias") for k, v in (("width", 8), ("frac_width", 5))}
        inner = {f"{o}_{k}": v for o in ("projected", "attended", "data_out") for k, v in (("width", 6), ("frac_width", 3))}
        for batch_first in (True, False):
            plain = torch.nn.MultiheadAttention(16, 4, batch_first=batch_first)
            x = torch.randn(3, 7, 16)
            layer = quantized_class("multihead_attention", "integer").from_layer(plain, config)
            self.assertEqual(sorted(layer.state_dict()), sorted(plain.state_dict()))
            integer = layer.quantizers["in_proj_weight"]
            by_hand = torch.nn.MultiheadAttention(16, 4, batch_first=batch_first)
            by_hand.load_state_dict({name: integer(value) for name, value in plain.state_dict().items()})
            rounded = integer(x)
            for ours, theirs in zip(layer(x, x, x), by_hand(rounded, rounded, rounded)):
                torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
            hidden = torch.ones(7, 7, dtype=torch.bool).triu(1) if batch_first else torch.ones(3, 3, dtype=torch.bool).triu(1)
            for ours, theirs in zip(layer(x, x, x, attn_mask=hidden), by_hand(rounded, rounded, rounded, attn_mask=hidden)):
                torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
            layer(x, x, x)[0].sum().backward()
            self.assertTrue(all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters()))

        class Masked(torch.nn.Module):
            def __init__(self, mask):
                super().__init__()
                self.heads = quantized_class("multihead_attention", "integer").from_layer(
                    torch.nn.MultiheadAttention(16, 4, batch_first=True), {**config, **inner})
                self.mask = mask

            def forward(self, x):
                mask = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1) if self.mask else None
                return self.heads(x, x, x, attn_mask=mask, need_weights=False)[0]

        for mask in (False, True):
            module, x = Masked(mask).eval(), torch.randn(3, 7, 16)
            graph = mase.from_torch(module, x)
            ours = graph(x)
            # A sum in another order may round to the next number, inside and at the end.
            self.assertLessEqual((ours - module(x)).abs().max().item(), 2 * 2 ** -3)
            self.assertGreater(torch.eq(ours, module(x)).float().mean().item(), 0.98)
            if not mask:
                torch.testing.assert_close(mase.to_torch(graph)(x), module(x))
                pruned = graph.pruned(0.5)
                back = mase.to_torch(pruned)
                torch.testing.assert_close(back(x), pruned(x), rtol=0, atol=2 * 2 ** -3)
                self.assertEqual(sorted(mase.from_torch(back, x).modules["heads"].masks), ["in_proj_weight", "out_proj.weight"])

    def test_products_in_every_format(self):
        needed = {"width": 8, "frac_width": 4, "exponent_width": 4, "exponent_bias_width": 8, "block_size": [1, 4],
                  "mantissa_width": 3}
        torch.manual_seed(3)
        for name, record in mase._native.formats().items():
            keys = {option["name"] for option in record["options"]}
            config = {f"{operand}_{key}": value for operand in ("data_in", "weight") for key, value in needed.items()
                      if key in keys and (key != "block_size" or name.startswith("block"))}
            for op, arguments, shape in (("linear", (8, 4), (3, 8)), ("conv1d", (4, 4, 3), (2, 4, 9)), ("conv2d", (4, 4, 3), (2, 4, 9, 9))):
                with self.subTest(op=op, format=name):
                    layer = quantized_class(op, name)(*arguments, config=config)
                    plain = getattr(torch.nn, op_records()[op]["class_name"])(*arguments)
                    x = torch.randn(*shape, requires_grad=True)
                    with torch.no_grad():
                        plain.bias.copy_(layer.bias)
                        plain.weight.copy_(layer.w_quantizer(layer.weight))
                        if "stochastic" not in name:
                            torch.testing.assert_close(layer(x), plain(layer.x_quantizer(x)), rtol=1e-4, atol=1e-4)
                    layer(x).sum().backward()
                    self.assertTrue(torch.isfinite(x.grad).all() and torch.isfinite(layer.weight.grad).all())

    def test_formats_on_tensors(self):
        q = formats.integer(8, 4)
        x = torch.randn(4, 6, requires_grad=True)
        q(x).sum().backward()
        self.assertTrue(torch.equal(x.grad, torch.ones(4, 6)))
        self.assertTrue(torch.equal(q(x.detach().t()), q(x.detach()).t()))
        np.testing.assert_array_equal(q(x.detach()).numpy(), q(x.detach().numpy()))
        self.assertEqual(q(x.double()).dtype, torch.float64)
        self.assertEqual(q(x.half()).dtype, torch.float16)
        self.assertEqual(q(torch.zeros(0, 3)).shape, (0, 3))
        y = q(torch.randn(1000))
        gc.collect()
        self.assertTrue(torch.isfinite(y).all())

    def test_copies_and_files(self):
        layer, x = self.pair(3, 4, 2)
        self.assertTrue(torch.equal(copy.deepcopy(layer)(x), layer(x)))
        file = io.BytesIO()
        torch.save(layer, file)
        file.seek(0)
        keys = {"weights_only": False} if "weights_only" in torch.load.__code__.co_varnames else {}
        self.assertTrue(torch.equal(torch.load(file, **keys)(x), layer(x)))

    def test_jit_sees_what_is_computed(self):
        layer, x = self.pair(4, 8, 3)
        convolution = class_named("Conv2dInteger")(2, 3, 3, config=CONFIG)
        for module, example, other in ((layer, x.detach(), 30 * torch.randn(9, 8)),
                                       (convolution, torch.randn(1, 2, 5, 5), torch.randn(3, 2, 6, 6))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch's, about shapes that the trace fixes
                traced = torch.jit.trace(module, example)
            self.assertTrue(torch.equal(traced(other), module(other)))
            module(other).sum().backward()
            expected, module.weight.grad = module.weight.grad, None
            traced(other).sum().backward()
            self.assertTrue(torch.equal(module.weight.grad, expected))
        small = formats.minifloat_ieee(width=8, exponent_width=4)

        def rounding(x):
            return small(x)

        with self.assertRaisesRegex(mase.Error, "torch.jit"):
            torch.jit.trace(rounding, x.detach())

    def test_shapes_without_values(self):
        layer = class_named("LinearInteger")(8, 4, config=CONFIG, device="meta")
        self.assertEqual(layer(torch.randn(2, 8, device="meta")).shape, (2, 4))


class Bridge(unittest.TestCase):
    def test_modules_are_those_of_torch(self):
        from chop.ir.graph.mase_graph import MaseGraph

        shared = torch.nn.Linear(4, 4)
        mg = MaseGraph(torch.nn.Sequential(shared, torch.nn.Sequential(torch.nn.ReLU(), shared), torch.nn.ReLU()))
        mg.model.register_module("nothing", None)
        self.assertEqual(list(mg.modules.items()), list(mg.model.named_modules()))

    def test_metadata_as_arrays(self):
        from chop import passes
        from chop.ir.graph.mase_graph import MaseGraph
        from chop.tools.utils import to_numpy_if_tensor

        mg = MaseGraph(torch.nn.Sequential(torch.nn.Linear(4, 4)), add_metadata_args={"dummy_in": {"input": torch.zeros(2, 4)}})
        mg, _ = passes.metadata_value_type_cast_transform_pass(mg, {"fn": to_numpy_if_tensor})
        entry = [node for node in mg.fx_graph.nodes if node.op == "call_module"][0].meta["mase"]["common"]["args"]["data_in_0"]
        self.assertIsInstance(entry["value"], np.ndarray)
        self.assertIs(entry["torch_dtype"], torch.float32)

    def test_mistakes_with_graphs_are_told(self):
        from chop import passes
        from chop.ir.graph.mase_graph import MaseGraph

        class Branch(torch.nn.Module):
            def forward(self, x):
                return x if x.sum() > 0 else -x

        class Rounds(torch.nn.Module):
            def forward(self, x):
                return formats.integer(8, 4)(x)

        with self.assertRaisesRegex(mase.Error, "Branch: torch.fx cannot trace it"):
            MaseGraph(Branch())
        with self.assertRaisesRegex(mase.Error, "rounds values itself"):
            MaseGraph(Rounds())
        mg = MaseGraph(torch.nn.Sequential(torch.nn.Linear(4, 4)))
        with self.assertRaisesRegex(mase.Error, "expected a dict"):
            passes.add_common_metadata_analysis_pass(mg, {"dummy_in": torch.zeros(2, 4)})
        with self.assertRaisesRegex(mase.Error, "nothing says what"):
            passes.quantize_transform_pass(mg)

    def test_there_and_back(self):
        torch.manual_seed(1)
        for name in ("jsc-tiny", "jsc-10x", "toy_convnet", "resnet18-cifar"):
            graph = mase.load(name)
            module = mase.to_torch(graph).eval()
            x = torch.randn(2, *next(iter(graph.inputs.values())))
            again = mase.from_torch(module, x)
            self.assertEqual(list(module.state_dict()), list(graph.state_dict()), name)
            self.assertEqual(str(again), str(graph))
            self.assertTrue(torch.equal(again(x), graph(x)), name)
            torch.testing.assert_close(module(x).detach(), graph(x), rtol=1e-4, atol=1e-5)

    def test_quantised_graphs_train_in_torch_and_come_back(self):
        graph = mase.load("jsc-10x").quantize(linear=formats.integer(8, 4), relu=formats.integer(8, 4)).pruned(0.3)
        module = mase.to_torch(graph)
        x, y = torch.randn(64, 16), torch.randint(0, 5, (64,))
        optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0])
        module.eval()
        back = mase.from_torch(module)
        torch.testing.assert_close(back(x), module(x).detach(), rtol=1e-5, atol=1e-6)
        self.assertEqual(back["seq_blocks_2"].class_name, "LinearInteger")
        self.assertAlmostEqual(float((back.modules["seq_blocks.5"]["weight"] == 0).mean()), 0.3, places=2)

    def test_sizes_and_constants(self):
        """What people write: x.view(x.size(0), -1), x.shape[0], functions by other names, tensors of their own."""
        class Network(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = torch.nn.Linear(12, 8), torch.nn.Linear(8, 5)
                self.gain = torch.nn.Parameter(torch.full((8,), 1.5))
                self.inner = torch.nn.Module()
                self.inner.register_buffer("shift", torch.arange(8.0))

            def forward(self, x):
                h = self.first(x.view(x.size(0), -1))
                h = torch.relu(h) * self.gain + self.inner.shift
                h = h.view(h.shape[0], 8)
                return torch.log_softmax(self.last(h.reshape(-1, h.size()[1])), dim=-1)

        module = Network().eval()
        x = torch.randn(6, 3, 4)
        graph = mase.from_torch(module, x[:2])
        for rows in (6, 1):  # the batch is a symbol
            torch.testing.assert_close(graph(x[:rows]), module(x[:rows]).detach())
        back = mase.to_torch(graph).eval()
        self.assertEqual(sorted(back.state_dict()), sorted(module.state_dict()))
        torch.testing.assert_close(back(x), module(x))
        with tempfile.TemporaryDirectory() as folder:
            graph.save(os.path.join(folder, "a.mz"))
            np.testing.assert_array_equal(mase.load(os.path.join(folder, "a.mz"))(x.numpy()), graph(x.numpy()))

    def test_a_graph_with_what_the_library_lacks_is_exported_by_torch(self):
        from chop.ir.graph.mase_graph import MaseGraph

        class Network(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 4)

            def forward(self, x):
                return torch.linalg.norm(self.layer(x), dim=1)

        mg = MaseGraph(Network())
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "net")
            self.assertIn("net.mz was not written", package.printed(mg.export, name))
            x = torch.randn(3, 4)
            torch.testing.assert_close(MaseGraph.from_checkpoint(name).model(x), mg.model(x))

    def test_weights_are_shared_on_the_way_in(self):
        layer = torch.nn.Sequential(torch.nn.Linear(4, 2))
        graph = mase.from_torch(layer)
        x = torch.randn(3, 4)
        with torch.no_grad():
            layer[0].weight.zero_()
        torch.testing.assert_close(graph(x), layer(x).detach())
        del layer
        gc.collect()
        self.assertTrue(torch.isfinite(graph(x)).all())

    def test_what_cannot_be_converted_is_named(self):
        class Odd(torch.nn.Module):
            def forward(self, x):
                return torch.cummax(x, 1)[0]

        with self.assertRaisesRegex(mase.Error, "cummax"):
            mase.from_torch(Odd(), torch.zeros(1, 4))
        with self.assertRaisesRegex(mase.Error, "float64"):
            mase.from_torch(torch.nn.Sequential(torch.nn.Linear(4, 2)).double(), torch.zeros(1, 4))
        with self.assertRaisesRegex(mase.Error, "give an example"):
            mase.from_torch(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3)))


if __name__ == "__main__":
    package.main()
