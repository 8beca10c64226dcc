# SPDX-License-Identifier: Apache-2.0
"""Every pass that both have, natively and through chop, on the same networks: they find the same, print the same and leave the same
network."""
import contextlib
import io
import logging
import unittest

import package

package.need_torch()
import numpy  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import mase  # noqa: E402
from chop import MaseGraph, passes  # noqa: E402
from chop.passes.graph import PASSES  # noqa: E402
from mase import _native  # noqa: E402


class Skip(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(16, 12), nn.Linear(12, 12), nn.Linear(12, 5)
        self.norm = nn.BatchNorm1d(12)

    def forward(self, x):
        x = torch.nn.functional.relu(self.norm(self.first(x)))
        return self.last(x + torch.nn.functional.gelu(self.second(x)))


def networks():
    torch.manual_seed(0)
    dense = nn.Sequential(nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5), nn.ReLU())
    images = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))
    for network, x in ((dense, torch.randn(6, 16)), (images, torch.randn(6, 1, 8, 8)), (Skip(), torch.randn(6, 16))):
        for part in network.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2.0)
        yield network.eval(), x


def config(width=6, frac=3):
    return {f"{operand}_{key}": value for operand in ("data_in", "weight", "bias") for key, value in (("width", width), ("frac_width", frac))}


INTEGER = {"by": "type", "default": {"config": {"name": None}}, "linear": {"config": {"name": "integer", **config()}},
           "conv2d": {"config": {"name": "integer", **config(8, 4)}},
           "relu": {"config": {"name": "integer", "data_in_width": 8, "data_in_frac_width": 4}}}
def rules(graph):
    """Of INTEGER what the network has: the library says so if a rule means nothing, where scripts have one table for all networks."""
    ops = {node.mase_op for node in graph.nodes}
    return {key: rule for key, rule in INTEGER.items() if key in ("by", "default") or key in ops}


PRUNE = {"weight": {"sparsity": 0.4, "method": "l1-norm", "scope": "local"}}
STATISTICS = {"by": "type", "target_weight_nodes": ["linear"], "target_activation_nodes": ["linear", "relu"],
              "weight_statistics": {"variance_precise": {"device": "cpu", "dims": "all"}},
              "activation_statistics": {"range_quantile": {"device": "cpu", "dims": "all", "quantile": 0.97}}, "num_samples": 6}


class Both:
    """One network as chop has it and as the library has it, with metadata of the same input."""

    def __init__(self, network, x):
        self.x = x
        self.chop = MaseGraph(network)
        self.chop, _ = passes.add_common_metadata_analysis_pass(self.chop, {"dummy_in": {self.chop.nodes_in[0].target: x}})
        self.chop, _ = passes.add_software_metadata_analysis_pass(self.chop)
        self.native = mase.from_torch(network, x)
        for name, args in (("init_metadata", {}), ("add_common_metadata", {"batch_size": len(x)}), ("add_software_metadata", {})):
            self.native.run_pass(name, args, print=None)

    def run(self, name, args, **context):
        """What both find and print."""
        found, printed = [], []
        logger = logging.getLogger("chop")
        for side in ("chop", "native"):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                if side == "chop":
                    self.chop, info = PASSES[name](self.chop, args)
                else:
                    info = self.native.run_pass(name, {k: v for k, v in (args or {}).items() if k != "input_generator"}, **context)
            found.append(info or {})
            printed.append("\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip())
        assert logger.level <= logging.INFO
        return found, printed

    def outputs(self):
        with torch.no_grad():
            return self.chop.model(self.x), torch.from_numpy(self.native(self.x.numpy()))


class BothWays(unittest.TestCase):
    def each(self):
        return [Both(network, x) for network, x in networks()]

    def test_metadata(self):
        for both in self.each():
            for node in both.chop.fx_graph.nodes:
                theirs, ours = both.native._native.metadata(node.name).get("common", {}), node.meta["mase"]["common"]
                self.assertEqual((ours["mase_type"], ours["mase_op"]), (theirs["mase_type"], theirs["mase_op"]))
                for side in ("args", "results"):
                    if node.op in ("placeholder", "output"):
                        continue
                    for name, entry in theirs[side].items():
                        if isinstance(entry, dict):
                            for key in ("type", "precision", "shape"):
                                self.assertEqual(ours[side][name][key], entry[key], (node.name, name, key))
                    self.assertEqual({n for n, e in ours[side].items() if isinstance(e, dict)}, {n for n, e in theirs[side].items() if isinstance(e, dict)})

    def test_reports_say_the_same(self):
        for both in self.each():
            for name in ("report_graph", "report_node_type", "report_node_shape"):
                _, (ours, theirs) = both.run(name, {}, batch_size=len(both.x))
                with self.subTest(name=name):
                    self.assertEqual(ours, theirs)

    def test_quantize_and_its_summary(self):
        for both in self.each():
            import copy

            original, native = copy.deepcopy(both.chop), both.native.copy()
            both.run("quantize", rules(both.native))
            ours, theirs = both.outputs()
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
            for path, layer in both.native.modules.items():
                own = both.chop.model.get_submodule(path)
                self.assertEqual({**getattr(own, "config", {}), "name": getattr(own, "format", None)} if layer.config else None,
                                 {**layer.config, "name": layer.config["name"]} if layer.config else None)
            for node in both.chop.fx_graph.nodes:
                theirs = both.native._native.metadata(node.name).get("common", {})
                for name, entry in theirs.get("args", {}).items():
                    if isinstance(entry, dict) and node.op not in ("placeholder", "output"):
                        ours = node.meta["mase"]["common"]["args"][name]
                        self.assertEqual((ours["type"], ours["precision"]), (entry["type"], entry["precision"]), (node.name, name))
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                passes.summarize_quantization_analysis_pass(original, both.chop)
            theirs = io.StringIO()
            with contextlib.redirect_stdout(theirs):
                both.native.run_pass("summarize_quantization", {}, original=native)
            self.assertEqual([line.rstrip() for line in out.getvalue().split()], [line.rstrip() for line in theirs.getvalue().split()])

    def test_costs(self):
        for both in self.each():
            for quantised in (False, True):
                if quantised:
                    both.run("quantize", rules(both.native))
                (ours, theirs), _ = both.run("calculate_flops", {"batch_size": 6})
                self.assertEqual(ours["total_flops"], theirs["total_flops"])
                (ours, theirs), _ = both.run("calculate_flops_bitops", {"batch_size": 6})
                self.assertEqual([ours[key] for key in ("total_flops", "total_bitops", "bitops")],
                                 [theirs[key] for key in ("total_flops", "total_precision_sums", "total_bitops")])
                if not quantised:  # the lab's figure by hand: 32 bits for every input and weight of a product
                    sizes = [(node.meta["mase"]["common"]["args"]["data_in_0"]["shape"], node.meta["mase"]["common"]["args"]["weight"]["shape"])
                             for node in both.chop.fx_graph.nodes if node.meta["mase"]["common"]["mase_op"] in ("linear", "conv2d")]
                    self.assertEqual(ours["total_bitops"], sum(32 * (numpy.prod(x) + numpy.prod(w)) for x, w in sizes))
                _, ours = passes.graph.calculate_avg_bits_mg_analysis_pass(both.chop)
                cost = both.native.cost(6)
                self.assertAlmostEqual(ours["w_avg_bit"], cost.average_weight_bits, places=6)
                self.assertAlmostEqual(ours["data_avg_bit"], cost.average_activation_bits, places=6)

    def test_pruning(self):
        for both in self.each():
            for args in (PRUNE, {"weight": {**PRUNE["weight"], "scope": "global", "sparsity": 0.7}}, {"weight": {**PRUNE["weight"], "method": "random"}}):
                fresh = Both(both.chop.model, both.x)
                fresh.run("prune", args)
                for path, layer in fresh.native.modules.items():
                    if layer.mask is not None:
                        numpy.testing.assert_array_equal(layer.mask, (fresh.chop.model.get_submodule(path).parametrizations.weight[0].mask).numpy())
                ours, theirs = fresh.outputs()
                torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
                (ours, theirs), _ = fresh.run("add_pruning_metadata", {})
                for name, facts in ours.items():
                    self.assertAlmostEqual(facts["weight_sparsity"], theirs["layers"][name]["weight_sparsity"], places=6)

    def test_statistics(self):
        for both in self.each():
            name = both.chop.nodes_in[0].target
            both.run("profile_statistics", {**STATISTICS, "input_generator": iter([{name: both.x}])}, samples=both.x)
            for node in both.chop.fx_graph.nodes:
                theirs = both.native._native.metadata(node.name).get("software", {})
                ours = node.meta["mase"]["software"]
                for argument, entry in theirs.get("args", {}).items():
                    for kind, values in entry["stat"].items():
                        for key, value in values.items():
                            self.assertAlmostEqual(ours["args"][argument]["stat"][kind][key], value, places=5, msg=(node.name, argument, kind, key))
                        self.assertEqual(set(values), set(ours["args"][argument]["stat"][kind]))

    def test_adapters(self):
        for both in self.each():
            (ours, theirs), _ = both.run("insert_lora_adapter", {"rank": 2, "alpha": 3, "base": "frozen"})
            self.assertEqual(ours, theirs)
            for path in ours["replaced"]:
                numpy.testing.assert_array_equal(both.chop.model.get_submodule(path).lora_A.weight.detach().numpy(), both.native.modules[f"{path}.lora_A"]["weight"])
                change = numpy.random.default_rng(1).normal(size=both.native.modules[f"{path}.lora_B"]["weight"].shape).astype("float32")
                both.native.modules[f"{path}.lora_B"]["weight"] = change
                with torch.no_grad():
                    both.chop.model.get_submodule(path).lora_B.weight.copy_(torch.from_numpy(change))
            torch.testing.assert_close(*both.outputs(), rtol=1e-5, atol=1e-5)
            (ours, theirs), _ = both.run("fuse_lora_weights", {})
            self.assertEqual(ours["fused"], theirs["fused"])
            torch.testing.assert_close(*both.outputs(), rtol=1e-5, atol=1e-5)
            for path in ours["fused"]:
                numpy.testing.assert_allclose(both.chop.model.get_submodule(path).weight.detach().numpy(), both.native.modules[path]["weight"], rtol=1e-6, atol=1e-7)

    def test_batch_norms(self):
        for both in self.each():
            both.chop, ours = passes.conv_bn_fusion_transform_pass(both.chop)
            theirs = both.native.run_pass("fuse_batch_norm", {}, print=None)
            self.assertEqual(ours, theirs)
            torch.testing.assert_close(*both.outputs(), rtol=1e-5, atol=1e-5)

    def test_trained_parameters(self):
        for both in self.each():
            with contextlib.redirect_stdout(io.StringIO()):
                _, ours = passes.report_trainable_parameters_analysis_pass(both.chop.model)
                theirs = both.native.run_pass("report_trainable_parameters", {})
            self.assertEqual(ours["total"], theirs["trainable"])

    def test_hardware_metadata(self):
        network, x = next(networks())
        both = Both(nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 5)), x)
        rule = {**rules(both.native), "linear": {"config": {**INTEGER["linear"]["config"], "data_out_width": 8, "data_out_frac_width": 3}}}
        both.run("quantize", rule)
        (ours, theirs), _ = both.run("add_hardware_metadata", {"cycles": 16})
        self.assertEqual(ours, theirs)
        for node in both.chop.fx_graph.nodes:
            hardware = both.native._native.metadata(node.name).get("hardware", {})
            for key in ("toolchain", "module", "parallelism", "cycles", "dependence_files"):
                if hardware.get(key) is not None:
                    self.assertEqual(node.meta["mase"]["hardware"][key], hardware[key])
        _, (ours, theirs) = both.run("report_node_hardware_type", {})
        self.assertEqual(ours.splitlines()[0].strip(), theirs.splitlines()[0].strip())

    def test_nothing_is_left_out(self):
        """Every native pass is compared above, or there is a reason why it has no counterpart here."""
        compared = {"init_metadata", "add_common_metadata", "add_software_metadata", "report_graph", "report_node_type", "report_node_shape", "quantize",
                    "summarize_quantization", "calculate_flops", "calculate_flops_bitops", "prune", "add_pruning_metadata", "profile_statistics",
                    "insert_lora_adapter", "fuse_lora_weights", "fuse_batch_norm", "report_trainable_parameters", "add_hardware_metadata",
                    "report_node_hardware_type"}
        run_by_chop = {"emit_verilog_top", "emit_internal_rtl", "emit_bram", "emit_cocotb", "gptq", "rotate"}  # the native pass itself
        elsewhere = {"report_node_meta_param"}  # its text shows Python's values: labs_test
        for name in _native.passes():
            if name not in compared | run_by_chop | elsewhere:
                self.assertNotIn(name, PASSES, name)


if __name__ == "__main__":
    package.main()
