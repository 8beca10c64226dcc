# SPDX-License-Identifier: Apache-2.0
"""Passes over modules that are no graphs, functions whose operands are rounded, verification of metadata, folding of batch norms."""
import copy
import unittest

import package

package.need_torch()
import torch  # noqa: E402
from sentences import Config, SentenceClassifier  # noqa: E402
from torch import nn  # noqa: E402

import mase  # noqa: E402
from chop import MaseGraph, passes  # noqa: E402
from chop.passes.module.transforms import attention_swap_transform_pass, quantize_module_transform_pass  # noqa: E402
from chop.passes.module.transforms.gptq import run_gptq  # noqa: E402

WIDTHS = {f"{operand}_{key}": value for operand in ("data_in", "weight", "bias") for key, value in (("width", 8), ("frac_width", 4))}


def rules(**tables):
    return {"by": "type", **{name: {"config": config} for name, config in tables.items()}}


class Quantising(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.network = SentenceClassifier(Config(dropout=0.0)).eval()
        self.x = {"input_ids": torch.randint(0, 60, (3, 7)), "attention_mask": torch.ones(3, 7, dtype=torch.int64)}

    def test_arguments_stay_as_they_are(self):
        given = {"by": "type", "default": {"config": {"name": None}}, "linear": {"config": {"name": "integer", **WIDTHS}}}
        before, kinds = copy.deepcopy(given), [type(m) for m in self.network.modules()]
        one, _ = passes.quantize_module_transform_pass(self.network, given)
        two, _ = passes.quantize_module_transform_pass(self.network, given)
        self.assertEqual(given, before)
        self.assertEqual([type(m) for m in self.network.modules()], kinds)
        torch.testing.assert_close(one(**self.x)["logits"], two(**self.x)["logits"], rtol=0, atol=0)
        layer, plain = one.classifier, self.network.classifier
        x = torch.randn(4, 32)
        rounded = layer.x_quantizer
        torch.testing.assert_close(layer(x), nn.functional.linear(rounded(x), layer.w_quantizer(plain.weight), layer.b_quantizer(plain.bias)))

    def test_as_on_the_graph(self):
        given = rules(linear={"name": "block_fp", **{f"{o}_{k}": v for o in ("data_in", "weight", "bias") for k, v in (
            ("width", 6), ("exponent_width", 8), ("exponent_bias", None), ("block_size", [16]), ("rounding", "reference"))}})
        module, _ = quantize_module_transform_pass(self.network, given)
        graph = passes.quantize_transform_pass(MaseGraph(self.network, hf_input_names=list(self.x)), given)[0]
        torch.testing.assert_close(module(**self.x)["logits"], graph.model(**self.x)["logits"], rtol=1e-5, atol=1e-5)

    def test_again_from_the_float_weights(self):
        coarse, _ = quantize_module_transform_pass(self.network, rules(linear={"name": "integer", **{**WIDTHS, "weight_width": 2, "weight_frac_width": 1}}))
        fine, _ = quantize_module_transform_pass(coarse, rules(linear={"name": "integer", **WIDTHS}))
        once, _ = quantize_module_transform_pass(self.network, rules(linear={"name": "integer", **WIDTHS}))
        torch.testing.assert_close(fine(**self.x)["logits"], once(**self.x)["logits"], rtol=0, atol=0)
        _, bits = passes.calculate_avg_bits_module_analysis_pass(fine)
        self.assertEqual(bits["average_bitwidth"], 8.0)
        _, bits = passes.calculate_avg_bits_module_analysis_pass(self.network)
        self.assertEqual(bits["average_bitwidth"], 32.0)
        blocks, _ = quantize_module_transform_pass(self.network, {"by": "name", "classifier": {"config": {"name": "mxint", "weight_only": True, "weight_width": 4, "weight_block_size": 32}}})
        _, bits = passes.calculate_avg_bits_module_analysis_pass(blocks)
        weights = [m.weight.numel() for m in self.network.modules() if isinstance(m, nn.Linear)]
        head = self.network.classifier.weight.numel()
        self.assertAlmostEqual(bits["average_bitwidth"], (32.0 * (sum(weights) - head) + (4 + 8 / 32) * head) / sum(weights))

    def test_by_name_and_expression(self):
        config = {"config": {"name": "integer", **WIDTHS}}
        network, _ = quantize_module_transform_pass(self.network, {"by": "regex_name", r"bert\.layers\.\d\.attention\.(query|key)": config})
        found = [path for path, part in network.named_modules() if type(part).__name__ == "LinearInteger"]
        self.assertEqual(found, [f"bert.layers.{i}.attention.{name}" for i in (0, 1) for name in ("query", "key")])
        for wrong, said in (({"by": "name", "clasifier": config}, "classifier"), ({"by": "regex_name", "query": config}, "whole name"),
                            ({"by": "kind"}, "by"), ({"by": "type", "liner": config}, "liner"),
                            ({"by": "type", "linear": {"config": {"name": "integer", "weigth_width": 3}}}, "weigth_width"),
                            ({"by": "type", "default": {"config": {"name": None}}}, "nothing")):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(mase.Error, said):
                quantize_module_transform_pass(self.network, wrong)

    def test_gptq(self):
        ids = torch.randint(0, 60, (64, 12))
        given = {"format": "integer", "weight_config": {"weight_width": 3, "weight_frac_width": 4}, "dataset": ids, "nsamples": 64, "device": "cpu"}
        before, kept = dict(given), copy.deepcopy(self.network.state_dict())
        better = run_gptq(self.network, given)
        self.assertEqual({k: v for k, v in given.items() if k != "dataset"}, {k: v for k, v in before.items() if k != "dataset"})
        for name, value in self.network.state_dict().items():
            self.assertTrue(torch.equal(value, kept[name]), name)
        grid = mase.formats.integer(3, 4)
        for layer in (better.bert.layers[0].attention.query, better.bert.layers[1].down):
            self.assertTrue(torch.equal(grid(layer.weight.detach()), layer.weight.detach()))
        self.assertTrue(torch.equal(better.classifier.weight, self.network.classifier.weight))  # it stands behind the blocks
        plain = copy.deepcopy(self.network)
        with torch.no_grad():
            for path, part in plain.named_modules():
                if isinstance(part, nn.Linear) and ".layers." in path:
                    part.weight.copy_(grid(part.weight))
        held = {"input_ids": torch.randint(0, 60, (64, 12))}
        wanted = self.network(**held)["logits"]
        self.assertLess(float((better(**held)["logits"] - wanted).pow(2).mean()), float((plain(**held)["logits"] - wanted).pow(2).mean()))
        for wrong, said in (({"dataset": "wikitext2"}, "no such file"), ({"dataset": torch.ones(2, 3)}, "whole numbers"), ({"device": "cuda:0"}, "device"),
                            ({"formt": 1}, "formt"), ({"checkpoint_dir": "x"}, "checkpoint_dir")):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(mase.Error, said):
                run_gptq(self.network, {**given, **wrong})

    def test_shared_keys_and_values(self):
        given = {"by": "type", "SelfAttention": {"config": {"name": "mgqa", "kv_heads": 1}}}
        network, found = attention_swap_transform_pass(self.network, given)
        self.assertEqual(given, {"by": "type", "SelfAttention": {"config": {"name": "mgqa", "kv_heads": 1}}})
        self.assertEqual(sorted(found), ["bert.layers.0.attention", "bert.layers.1.attention"])
        key = network.bert.layers[0].attention.key.weight
        torch.testing.assert_close(key[:16], key[16:])
        torch.testing.assert_close(key[:16], self.network.bert.layers[0].attention.key.weight.reshape(2, 16, 32).mean(0))
        again, found = attention_swap_transform_pass(network, given)
        torch.testing.assert_close(again(**self.x)["logits"], network(**self.x)["logits"])
        self.assertLess(found["bert.layers.0.attention"]["relative_error"], 1e-6)
        for config, said in (({"name": "mla"}, "mla"), ({"name": "mgqa", "kv_heads": 3}, "divisor"), ({"name": "mgqa", "kv_heads": 1, "x": 1}, "'x'")):
            with self.subTest(config=config), self.assertRaisesRegex(mase.Error, said):
                attention_swap_transform_pass(self.network, {"by": "type", "SelfAttention": {"config": config}})


class Functions(unittest.TestCase):
    def test_operands_are_rounded(self):
        from chop.nn.quantized.functional import add_integer, matmul_integer, mult_integer, quantized_func_map, relu_integer

        torch.manual_seed(0)
        config = {"data_in_width": 6, "data_in_frac_width": 3, "weight_width": 4, "weight_frac_width": 2}
        a, b = torch.randn(3, 4), torch.randn(3, 4)
        x, w = mase.formats.integer(6, 3), mase.formats.integer(4, 2)
        torch.testing.assert_close(add_integer(a, b, config), x(a) + x(b))
        torch.testing.assert_close(mult_integer(a, b, config=config), x(a) * x(b))
        torch.testing.assert_close(matmul_integer(a, b.T, config), x(a) @ w(b.T))
        torch.testing.assert_close(relu_integer(a, config=config), torch.relu(x(a)))
        self.assertIs(quantized_func_map["add_integer"], add_integer)
        self.assertIn("sub_log", quantized_func_map)
        self.assertNotIn("add_nosuch", quantized_func_map)
        with self.assertRaisesRegex(mase.Error, "config"):
            add_integer(a, b)


class Runtime(unittest.TestCase):
    def test_figures(self):
        class Data:
            rows = [(torch.eye(3), torch.tensor([0, 1, 2])), (torch.eye(3)[[0, 0, 1]], torch.tensor([0, 1, 1]))]

            def test_dataloader(self):
                return iter(self.rows)

        network = nn.Linear(3, 3, bias=False)
        with torch.no_grad():
            network.weight.copy_(torch.eye(3))
        _, found = passes.graph.runtime_analysis_pass(network, {"data_module": Data(), "num_batches": 2, "num_GPU_warmup_batches": 1})
        self.assertAlmostEqual(found["Average Accuracy"], 5 / 6)
        # Class 0: precision 2/3, recall 1; class 1: 1 and 2/3; class 2: 1 and 1; their rows are 2, 3 and 1 of 6.
        self.assertAlmostEqual(found["Average Precision"], (2 * 2 / 3 + 3 + 1) / 6)
        self.assertAlmostEqual(found["Average Recall"], (2 + 3 * 2 / 3 + 1) / 6)
        self.assertAlmostEqual(found["Average F1 Score"], (2 * 0.8 + 3 * 0.8 + 1) / 6)
        wanted = nn.functional.cross_entropy(torch.cat([x for x, _ in Data.rows]), torch.cat([y for _, y in Data.rows]))
        self.assertAlmostEqual(found["Average Loss"], float(wanted), places=6)
        self.assertGreater(found["Average Latency"], 0)
        for wrong in ({}, {"data_module": Data(), "accelerator": "cuda"}, {"data_module": Data(), "num_batch": 2}):
            with self.subTest(wrong=wrong), self.assertRaises(mase.Error):
                passes.graph.runtime_analysis_pass(network, wrong)


class Graphs(unittest.TestCase):
    def described(self, network, x):
        graph = MaseGraph(network)
        graph, _ = passes.add_common_metadata_analysis_pass(graph, {"dummy_in": {"input": x}})
        return passes.add_software_metadata_analysis_pass(graph)[0]

    def test_verify(self):
        def made():
            return self.described(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.randn(2, 4))

        passes.verify_metadata_analysis_pass(made())
        for fault, said in ((lambda c: c["args"]["weight"].update(shape=[4, 3]), "weight"), (lambda c: c.update(mase_op="relu"), "linear"),
                            (lambda c: c["args"]["data_in_0"].update(shape=[2, 5]), "data_in_0"), (lambda c: c["results"]["data_out_0"].pop("precision"), "precision")):
            graph = made()
            fault([n for n in graph.nodes if n.name == "_0"][0].meta["mase"]["common"])
            with self.subTest(said=said), self.assertRaisesRegex(mase.Error, said):
                passes.verify_common_metadata_analysis_pass(graph)
        graph = made()
        [n for n in graph.nodes if n.name == "_0"][0].meta["mase"]["software"]["args"]["weight"] = {}
        with self.assertRaisesRegex(mase.Error, "stat"):
            passes.verify_software_metadata_analysis_pass(graph)

    def test_patch_metadata(self):
        graph, found = passes.patch_metadata_transform_pass(self.described(nn.Sequential(nn.Linear(4, 3)), torch.randn(2, 4)), {
            "precision": [8, 3], "q_config": {"weight_width": 4, "weight_frac_width": 2}})
        args = [n for n in graph.nodes if n.name == "_0"][0].meta["mase"]["common"]["args"]
        self.assertEqual([args[name]["precision"] for name in ("data_in_0", "weight", "bias")], [[8, 3], [4, 2], [8, 3]])
        self.assertIn("_0.weight", found["patched"])

    def test_batch_norms_are_folded(self):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4), nn.BatchNorm1d(4)).eval()
        for norm in (network[1], network[5]):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
            nn.init.normal_(norm.weight)
        x = torch.randn(5, 2, 6, 6)
        expected, before = network(x), copy.deepcopy(network.state_dict())
        graph, _ = passes.conv_bn_fusion_transform_pass(self.described(network, x))
        torch.testing.assert_close(graph.model(x), expected, rtol=1e-4, atol=1e-5)
        self.assertFalse(any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in graph.model.modules()))
        self.assertTrue(all(torch.equal(value, before[name]) for name, value in network.state_dict().items()))


if __name__ == "__main__":
    package.main()
