# SPDX-License-Identifier: Apache-2.0
"""Networks as people write them: torch's values from the library's graph and back, with the same state, and every
pass of lab 2 over them."""
import contextlib
import io
import os
import tempfile
import unittest

import package

package.need_torch()
import torch  # noqa: E402
from networks import NETWORKS  # noqa: E402

import mase  # noqa: E402
from chop import MaseGraph, passes  # noqa: E402
from chop.passes.graph.utils import deepcopy_mase_graph, get_mase_op  # noqa: E402

CONFIG = {"name": "integer", **{f"{operand}_{key}": value for operand in ("data_in", "weight", "bias")
                                for key, value in (("width", 8), ("frac_width", 4))}}


def outputs(y):
    y = list(y.values()) if isinstance(y, dict) else list(y) if isinstance(y, (tuple, list)) else [y]
    return [v.detach() for v in y]


def close(ours, theirs, tolerance=1e-5):
    for a, b in zip(outputs(ours), outputs(theirs)):
        torch.testing.assert_close(a, b, rtol=10 * tolerance, atol=tolerance)


def each():
    for kind, shape, tokens in NETWORKS:
        torch.manual_seed(0)
        x = torch.randint(0, tokens, (4, *shape)) if tokens else torch.randn(4, *shape)
        if tokens:
            x[:, 0] = 0  # some key must be seen
        yield kind().eval(), x


class Networks(unittest.TestCase):
    def test_there_and_back(self):
        for module, x in each():
            with self.subTest(type(module).__name__):
                self.there_and_back(module, x)

    def there_and_back(self, module, x):
        expected = module(x)
        graph = mase.from_torch(module, x[:2])  # the batch is a symbol
        close(graph(x), expected)
        back = mase.to_torch(graph).eval()
        close(back(x), expected)
        self.assertEqual(sorted(back.state_dict()), sorted(module.state_dict()))
        close(mase.from_torch(back, x)(x), graph(x))
        with tempfile.TemporaryDirectory() as folder:
            graph.save(os.path.join(folder, "a.mz"))
            for a, b in zip(outputs(mase.load(os.path.join(folder, "a.mz"))(x)), outputs(graph(x))):
                self.assertTrue(torch.equal(a, b))
        sum(y.sum() for y in self.tensors(back.train()(x)) if y.requires_grad).backward()
        self.assertTrue(all(p.grad is not None for p in back.parameters()))

    def test_passes(self):
        for module, x in each():
            with self.subTest(type(module).__name__):
                self.passes(module, x)

    def passes(self, module, x):
        with contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as folder:
            mg = MaseGraph(module, cf_args={"mask": None, "scale": 2.0} if len(x.shape) == 2 and x.is_floating_point() else None)
            name = mg.nodes_in[0].target
            mg, _ = passes.add_common_metadata_analysis_pass(mg, {"dummy_in": {name: x}})
            mg, _ = passes.add_software_metadata_analysis_pass(mg)
            close(mg.model(x), module(x))
            passes.report_node_meta_param_analysis_pass(mg)
            ops = sorted({get_mase_op(node) for node in mg.fx_graph.nodes})
            passes.profile_statistics_analysis_pass(mg, {
                "by": "type", "target_weight_nodes": ops, "target_activation_nodes": ops, "input_generator": [{name: x}],
                "weight_statistics": {"variance_precise": {}}, "activation_statistics": {"range_min_max": {}}, "num_samples": 4})
            before = deepcopy_mase_graph(mg)
            mg, _ = passes.quantize_transform_pass(mg, {"by": "type", "default": {"config": CONFIG}})
            passes.summarize_quantization_analysis_pass(before, mg)
            y = outputs(mg.model(x))[0]
            self.assertFalse(torch.equal(y, outputs(before.model(x))[0]))
            close(mg.native()(x), mg.model(x), 0.05)  # a sum in another order may round to the next number
            sum(v.sum() for v in self.tensors(mg.model(x)) if v.requires_grad).backward()
            self.assertTrue(any(p.grad is not None for p in mg.model.parameters()))
            mg.export(os.path.join(folder, "network"))
            if type(module).__name__ in ("Blocks", "Functions"):  # torch.load cannot follow all that we can
                keys = {} if torch.__version__.startswith("1.") else {"weights_only": False}
                close(torch.load(os.path.join(folder, "network.pt"), **keys)(x), mg.model(x), 0.05)
            if type(module).__name__ not in ("Functions", "Attention"):  # which have no layer with a weight of its own
                before, _ = passes.prune_transform_pass(before, {"weight": {"sparsity": 0.5, "method": "l1-norm", "scope": "local"}})
            before._repr_html_()

    def test_a_query_that_sees_nothing(self):
        """Zeros by the attention of torch 2.5 and newer, and by ours; the others see what they saw."""
        class Masked(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.heads = torch.nn.MultiheadAttention(8, 2, batch_first=True)

            def forward(self, x, hidden):
                return self.heads(x, x, x, key_padding_mask=hidden, need_weights=False)[0]

        torch.manual_seed(0)
        module, x, hidden = Masked().train(), torch.randn(3, 5, 8), torch.zeros(3, 5, dtype=torch.bool)
        hidden[1], hidden[2, 3] = True, True
        expected = module(x, hidden).detach()
        graph = mase.from_torch(module, (x, hidden))
        y = graph(x, hidden)
        self.assertTrue(torch.equal(y[1], torch.zeros(5, 8)))  # the last layer's bias, which begins with zeros
        close(y[[0, 2]], expected[[0, 2]])
        if tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 5):
            close(y, expected)
        x.requires_grad_()
        y = mase.to_torch(graph)(x, hidden)
        self.assertTrue(torch.equal(y[1].detach(), torch.zeros(5, 8)))
        y.sum().backward()
        self.assertTrue(bool(torch.isfinite(x.grad).all()))

    @staticmethod
    def tensors(y):
        return list(y.values()) if isinstance(y, dict) else list(y) if isinstance(y, (tuple, list)) else [y]

    def test_what_the_library_lacks_is_told_and_can_be_looked_at(self):
        class Foreign(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.memory = torch.nn.Linear(4, 6), torch.nn.LSTM(6, 5, batch_first=True, proj_size=2)

            def forward(self, x):
                y, _ = self.memory(self.first(x))
                return torch.cummax(y, 1)[0]

        module, x = Foreign(), torch.randn(2, 3, 4)
        with self.assertRaisesRegex(mase.Error, r"memory \(LSTM\), cummax \(cummax\)"):
            mase.from_torch(module, x)
        mg = MaseGraph(module, add_metadata_args={"dummy_in": {"x": x}})
        mg, _ = passes.quantize_transform_pass(mg, {"by": "type", "linear": {"config": CONFIG}})
        self.assertEqual(type(mg.model.first).__name__, "LinearInteger")
        mg.model(x).sum().backward()
        graph = mg.native(partial=True)
        self.assertIn("opaque", str(graph))
        self.assertTrue(mg._repr_html_().startswith("<img"))
        with self.assertRaisesRegex(mase.Error, "LSTM"):
            graph(x)


if __name__ == "__main__":
    package.main()
