# SPDX-License-Identifier: Apache-2.0
"""Graphs are their owners': passes change no module but their own, files hold the network that was written, what is
pickled keeps its metadata, and layers that were pruned can be quantised."""
import copy
import os
import pickle
import tempfile
import unittest

import package

package.need_torch()
import torch  # noqa: E402
from torch import nn  # noqa: E402

import mase  # noqa: E402
from chop.ir.graph import MaseGraph  # noqa: E402
from chop.passes.graph import (add_common_metadata_analysis_pass, prune_transform_pass,  # noqa: E402
                               quantize_transform_pass)
from chop.passes.graph.analysis.flop_estimator.calculator.calc_modules import calculate_modules  # noqa: E402

INTEGER = {"by": "type", "linear": {"config": {"name": "integer", **{
    f"{operand}_{key}": value for operand in ("data_in", "weight", "bias") for key, value in (("width", 8), ("frac_width", 4))}}}}
HALF = {"weight": {"sparsity": 0.5, "method": "l1-norm", "scope": "local"}}


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 5))


def kinds(module):
    return [type(layer).__name__ for layer in module.modules()]


class Ownership(unittest.TestCase):
    def test_a_graph_module_stays_its_owners(self):
        module = torch.fx.symbolic_trace(network())
        before, weights = kinds(module), copy.deepcopy(module.state_dict())
        first, second = MaseGraph(module), MaseGraph(module)
        self.assertIsNot(first.model, module)
        first, _ = add_common_metadata_analysis_pass(first, {"dummy_in": {"input": torch.randn(2, 16)}})
        quantize_transform_pass(first, INTEGER)
        prune_transform_pass(first, HALF)
        with torch.no_grad():
            first.model.get_submodule("2").bias.add_(1)
        self.assertEqual(kinds(module), before)
        self.assertEqual(kinds(second.model), before)
        for name, value in module.state_dict().items():
            torch.testing.assert_close(value, weights[name], rtol=0, atol=0)
        self.assertNotIn("mase", next(iter(module.graph.nodes)).meta)

    def test_pruning_leaves_the_callers_layers(self):
        model = network()
        graph = MaseGraph(model)
        prune_transform_pass(graph, HALF)
        self.assertEqual(kinds(model), kinds(network()))
        self.assertEqual(int((model[0].weight == 0).sum()), 0)
        self.assertEqual(int((graph.model.get_submodule("0").weight == 0).sum()), 64)

    def test_pruned_then_quantised(self):
        model = network()
        x = torch.randn(4, 16)
        one = prune_transform_pass(MaseGraph(model), HALF)[0]
        one = quantize_transform_pass(one, INTEGER)[0]
        other = quantize_transform_pass(MaseGraph(model), INTEGER)[0]
        other = prune_transform_pass(other, HALF)[0]
        torch.testing.assert_close(one.model(x), other.model(x), rtol=0, atol=0)
        torch.testing.assert_close(one.model(x), torch.from_numpy(one.native()(x.numpy())), rtol=1e-6, atol=1e-6)
        self.assertEqual(int((one.model.get_submodule("0").weight == 0).sum()), 64)

    def test_masked_weights_are_rounded(self):
        torch.manual_seed(2)
        model = nn.Sequential(nn.Conv2d(2, 3, 3))
        config = {key.replace("linear", "conv2d"): value for key, value in INTEGER.items()}
        graph = MaseGraph(model)
        x = torch.randn(2, 2, 6, 6)
        graph, _ = add_common_metadata_analysis_pass(graph, {"dummy_in": {"input": x}})
        quantize_transform_pass(graph, config)
        prune_transform_pass(graph, HALF)
        layer = graph.model.get_submodule("0")
        rounded = layer.get_quantized_weight() * 16
        torch.testing.assert_close(rounded, rounded.round(), rtol=0, atol=0)
        torch.testing.assert_close(graph.model(x), torch.from_numpy(graph.native()(x.numpy())), rtol=1e-5, atol=1e-5)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()

    def test_export_leaves_no_other_network(self):
        class Strange(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(16, 3)

            def forward(self, x):
                return torch.fft.fft(self.layer(x)).real

        path = os.path.join(self.folder, "e")
        MaseGraph(network()).export(path)
        self.assertTrue(os.path.exists(path + ".mz"))
        package.printed(MaseGraph(Strange()).export, path)
        self.assertFalse(os.path.exists(path + ".mz"))
        self.assertEqual(tuple(MaseGraph.from_checkpoint(path).model(torch.zeros(1, 16)).shape), (1, 3))
        package.printed(MaseGraph(Strange()).export, path, save_format="state_dict")
        with self.assertRaisesRegex(mase.Error, "weights and no network"):
            MaseGraph.from_checkpoint(path)

    def test_pickled_graphs_keep_their_metadata(self):
        graph = MaseGraph(network())
        graph, _ = add_common_metadata_analysis_pass(graph, {"dummy_in": {"input": torch.randn(2, 16)}})
        graph, _ = quantize_transform_pass(graph, INTEGER)
        again = pickle.loads(pickle.dumps(graph))
        self.assertEqual([n.name for n in again.nodes], [n.name for n in graph.nodes])
        for old, new in zip(graph.nodes, again.nodes):
            theirs, own = old.meta["mase"].parameters["common"], new.meta["mase"].parameters["common"]
            self.assertEqual((theirs["mase_op"], theirs["args"].keys()), (own["mase_op"], own["args"].keys()))
            self.assertEqual([e.get("precision") for e in theirs["args"].values()], [e.get("precision") for e in own["args"].values()])
        linear = next(n for n in again.nodes if n.op == "call_module")
        self.assertIs(linear.meta["mase"].parameters["common"]["args"]["weight"]["value"], linear.meta["mase"].module.weight)
        self.assertIs(again.meta["mase"].parameters["common"]["nodes_in"][0], again.nodes_in[0])
        x = torch.randn(3, 16)
        torch.testing.assert_close(again.model(x), graph.model(x), rtol=0, atol=0)

    def test_a_file_that_shrinks(self):
        for end in (".ckpt", ".safetensors", ".pt"):
            path = os.path.join(self.folder, "w" + end)
            values = torch.randn(300, 300)
            mase.save_checkpoint(path, {"w": values})
            checkpoint = mase.read_checkpoint(path)
            os.truncate(path, 10)
            torch.testing.assert_close(torch.from_numpy(checkpoint["w"].copy()), values, rtol=0, atol=0)
            with self.assertRaises(mase.Error):
                mase.read_checkpoint(path)
        path = os.path.join(self.folder, "g.mz")
        graph = MaseGraph(network()).native()
        graph.save(path)
        loaded, checkpoint = mase.load(path), mase.read_checkpoint(path)
        os.truncate(path, 10)
        for name, value in graph.state_dict().items():
            self.assertTrue((loaded.state_dict()[name] == value).all())
            self.assertTrue((checkpoint[name] == value).all())

    def test_a_large_file_that_shrinks(self):
        path = os.path.join(self.folder, "large.safetensors")
        rows = (300 << 20) // 4
        header = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]},"v":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}}' % (
            rows, rows * 4, rows * 4, rows * 4 + 4)
        header += b" " * (-len(header) % 8)
        with open(path, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + rows * 4 + 4)
        checkpoint = mase.read_checkpoint(path)
        self.assertEqual(checkpoint["v"].tolist(), [0])
        os.truncate(path, 4096)
        with self.assertRaisesRegex(mase.Error, "too early"):
            checkpoint["w"]

    def test_names_that_are_no_unicode(self):
        for call in (mase.load, mase.read_checkpoint, mase.load_dataset, lambda name: mase.train("jsc-toy", name)):
            with self.assertRaisesRegex(mase.Error, "not Unicode"):
                call("\udcff")
        with self.assertRaisesRegex(mase.Error, "not Unicode"):
            mase.train("jsc-toy", "jsc-sim", optimizer={"name": "\udcff"}, progress=False)

    def test_a_file_names_no_module_to_import(self):
        from mase.torch_layers import _at_path

        with open(os.path.join(self.folder, "imported_by_a_file.py"), "w") as file:
            file.write("raise SystemExit('it ran')\n")
        import sys

        sys.path.insert(0, self.folder)
        try:
            with self.assertRaises(AttributeError):
                _at_path("imported_by_a_file.anything")
            self.assertNotIn("imported_by_a_file", sys.modules)
        finally:
            sys.path.remove(self.folder)


class Norms(unittest.TestCase):
    def test_norms_become_native(self):
        torch.manual_seed(3)
        for layer, shape in ((nn.BatchNorm1d(6), (4, 6)), (nn.BatchNorm2d(6), (4, 6, 5, 5)), (nn.LayerNorm(6), (4, 6)),
                             (nn.GroupNorm(2, 6), (4, 6, 5, 5)), (nn.InstanceNorm1d(6, affine=True), (4, 6, 7))):
            for parameter in layer.parameters():
                nn.init.normal_(parameter)
            x = torch.randn(*shape)
            layer.eval()
            graph = mase.from_torch(nn.Sequential(layer), x)
            torch.testing.assert_close(torch.from_numpy(graph(x.numpy())), layer(x), rtol=1e-4, atol=1e-5)

    def test_norms_without_bias_are_told(self):
        try:
            layer = nn.LayerNorm(6, bias=False)
        except TypeError:
            return  # this torch has none
        with self.assertRaisesRegex(mase.Error, "bias=False"):
            mase.from_torch(nn.Sequential(layer), torch.randn(2, 6))


class Counting(unittest.TestCase):
    def test_as_the_original_counts(self):
        def count(layer, *shape):
            x = torch.randn(*shape)
            return calculate_modules(layer.eval(), (x,), (layer(x),))

        linear = count(nn.Linear(16, 5), 8, 16)
        self.assertEqual([linear[key] for key in ("total_parameters", "computations", "backward_computations", "input_buffer_size",
                                                  "output_buffer_size")], [80, 640.0, 1280.0, 128, 40])
        self.assertEqual((linear["macs"], linear["parameters"]), (640, 85))
        norm = count(nn.BatchNorm2d(3), 2, 3, 8, 8)
        self.assertEqual((norm["computations"], norm["total_parameters"]), (1536, 6))
        conv = count(nn.Conv2d(3, 8, 3), 1, 3, 8, 8)
        self.assertEqual((conv["computations"], conv["backward_computations"]), (8 * 36 * 27, 2 * 192 * 27))
        self.assertEqual(count(nn.ReLU(), 8, 16)["computations"], 128)
        self.assertEqual(count(nn.Sigmoid(), 8, 16)["backward_computations"], None)


if __name__ == "__main__":
    package.main()
