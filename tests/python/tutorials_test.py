# SPDX-License-Identifier: Apache-2.0
"""What the tutorials and labs of 2025/26 do, call by call, on a hand-written encoder and local sentences: graphs of modules whose
inputs have names, adapters, quantisation and pruning with training, a search, a pipeline, a design; and the effects they show."""
import contextlib
import copy
import io
import os
import tempfile
import unittest

import package

package.need_torch()
import torch  # noqa: E402
from sentences import Config, SentenceClassifier, write_sentences  # noqa: E402
from torch import nn  # noqa: E402

import chop.passes as passes  # noqa: E402
import mase  # noqa: E402
from chop import AutoPipeline, CompressionPipeline, MaseGraph  # noqa: E402
from chop.tools import get_hf_dummy_in, get_logger, get_tokenized_dataset, get_trainer  # noqa: E402
from chop.tools.plain_trainer import PlainTrainer  # noqa: E402
from chop.tools.utils import deepsetattr  # noqa: E402

NAMES = ["input_ids", "attention_mask", "labels"]
WIDTHS = {f"{operand}_{key}": value for operand in ("data_in", "weight", "bias") for key, value in (("width", 8), ("frac_width", 4))}
INTEGER = {"by": "type", "default": {"config": {"name": None}}, "linear": {"config": {"name": "integer", **WIDTHS}}}
HALF = {"sparsity": 0.5, "method": "l1-norm", "scope": "local"}


def batch(rows=3, length=5):
    torch.manual_seed(rows)
    mask = torch.ones(rows, length, dtype=torch.int64)
    mask[-1, 3:] = 0
    return {"input_ids": torch.randint(5, 31, (rows, length)), "attention_mask": mask, "labels": torch.arange(rows) % 2}


class Tutorials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        write_sentences(cls.scratch.name)
        os.environ["MASE_DATA"] = cls.scratch.name
        os.chdir(cls.scratch.name)
        with contextlib.redirect_stdout(io.StringIO()):
            cls.dataset, cls.tokenizer = get_tokenized_dataset(dataset="imdb", checkpoint=os.path.join(cls.scratch.name, "words"),
                                                               return_tokenizer=True)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.scratch.cleanup()
        os.environ.pop("MASE_DATA")

    def setUp(self):
        torch.manual_seed(0)

    def trainer(self, model, epochs=1):
        return get_trainer(model=model, tokenized_dataset=self.dataset, tokenizer=self.tokenizer, evaluate_metric="accuracy",
                           num_train_epochs=epochs)

    def trained(self):
        """A graph that tells the sentences apart; made once."""
        if not os.path.exists("trained.pt"):
            mg = MaseGraph(SentenceClassifier(), hf_input_names=NAMES)
            trainer = PlainTrainer(mg.model, self.dataset["train"], self.dataset["test"], self.tokenizer, self.metric, num_train_epochs=3,
                                   learning_rate=5e-3)
            type(self).before = trainer.evaluate()["eval_accuracy"]
            trainer.train()
            type(self).after = trainer.evaluate()["eval_accuracy"]
            mg.export("trained")
        return MaseGraph.from_checkpoint("trained")

    @staticmethod
    def metric(found):
        return {"accuracy": float((found[0].argmax(-1) == found[1]).mean())}

    def test_1_a_graph_is_drawn_described_changed_and_kept(self):
        model = SentenceClassifier()
        mg = MaseGraph(model, hf_input_names=NAMES)
        self.assertEqual([node.target for node in mg.nodes_in], NAMES)
        mg.draw("network.svg")
        with open("network.svg") as file:
            self.assertIn("classifier", file.read())
        sentences = self.tokenizer(["the film was good", "a sad and dull story it was"], padding=True, return_tensors="pt")
        mg, _ = passes.init_metadata_analysis_pass(mg)
        mg, _ = passes.add_common_metadata_analysis_pass(mg, pass_args={"dummy_in": {**sentences, "labels": torch.tensor([1, 0])},
                                                                        "add_value": False})
        get_logger("mase_logger").setLevel("INFO")

        def dropouts():
            return [node for node in mg.fx_graph.nodes if node.op == "call_module" and "dropout" in node.target]

        self.assertEqual(len(dropouts()), 1 + 2 * 2 + 1)  # the functional ones are layers too
        for node in dropouts():
            node.replace_all_uses_with(node.args[0])
            mg.fx_graph.erase_node(node)
        self.assertEqual(dropouts(), [])
        mg.fx_graph.lint()
        mg.model.recompile()
        mg.export("tutorial_1")
        self.assertEqual(sorted(f for f in os.listdir(".") if f.startswith("tutorial_1")), ["tutorial_1.mz", "tutorial_1.pt"])
        again = MaseGraph.from_checkpoint("tutorial_1")
        x = batch(length=sentences["input_ids"].shape[1])  # the library's graph has the length of the metadata
        torch.testing.assert_close(again.model(**x)["loss"], model.eval()(**x)["loss"])
        torch.testing.assert_close(mase.load("tutorial_1.mz")(x["input_ids"], x["attention_mask"]), model(**x)["logits"].detach(), rtol=1e-4, atol=1e-5)

    def test_2_adapters(self):
        mg = self.trained()
        for parameter in mg.model.bert.embeddings.parameters():
            parameter.requires_grad = False
        mg.model.eval()
        x, before = batch(), copy.deepcopy(mg)
        expected = mg.model(**x)["logits"]
        mg, found = passes.insert_lora_adapter_transform_pass(mg, pass_args={"rank": 6, "alpha": 1.0, "dropout": 0.5})
        mg.model.eval()
        self.assertTrue(torch.equal(mg.model(**x)["logits"], expected))
        linear = [layer for layer in before.model.modules() if isinstance(layer, nn.Linear)]
        kept = sum(p.numel() for layer in before.model.modules() if isinstance(layer, nn.LayerNorm) for p in layer.parameters() if p.requires_grad)
        self.assertEqual(found["trainable"], sum(6 * (layer.in_features + layer.out_features) for layer in linear) + kept)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            from chop.passes.module import report_trainable_parameters_analysis_pass

            _, counted = report_trainable_parameters_analysis_pass(mg.model)
        self.assertEqual(counted["total"], found["trainable"])
        bias = mg.model.classifier.bias.clone()
        trainer = self.trainer(mg.model)
        trainer.train()
        self.assertTrue(torch.equal(bias, mg.model.classifier.bias))
        mg.model.eval()
        adapted = mg.model(**x)["logits"]
        self.assertGreater(float((adapted - expected).abs().max()), 1e-4)
        mg.export("tutorial_2_lora")
        torch.testing.assert_close(MaseGraph.from_checkpoint("tutorial_2_lora").model.eval()(**x)["logits"], adapted)
        mg, fused = passes.fuse_lora_weights_transform_pass(mg)
        self.assertEqual(fused["fused"], found["replaced"])
        torch.testing.assert_close(mg.model.eval()(**x)["logits"], adapted, rtol=1e-6, atol=1e-6)
        self.assertEqual([n.target for n in mg.fx_graph.nodes], [n.target for n in before.fx_graph.nodes])
        self.assertEqual({n: p.requires_grad for n, p in mg.model.named_parameters()}, {n: p.requires_grad for n, p in before.model.named_parameters()})
        for wrong, said in (({"rank": 0}, "rank"), ({"rnk": 2}, "rnk"), ({"rank": 2, "targets": ["nosuch"]}, "nosuch"), ({"base": "thawed"}, "base")):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(mase.Error, said):
                passes.insert_lora_adapter_transform_pass(self.trained(), pass_args=wrong)

    def test_3_training_recovers_what_rounding_costs(self):
        mg = self.trained()
        self.assertLess(self.before, 0.7)
        self.assertGreater(self.after, 0.9)
        coarse = {"by": "type", "default": {"config": {"name": None}}, "linear": {"config": {"name": "integer", **{
            key: (4 if key.endswith("_width") and "frac" not in key else 2) for key in WIDTHS}}}}
        exact = passes.quantize_transform_pass(copy.deepcopy(mg), pass_args=INTEGER)[0]
        self.assertGreater(self.trainer(exact.model).evaluate()["eval_accuracy"], self.after - 0.1)
        mg, _ = passes.quantize_transform_pass(mg, pass_args=coarse)
        trainer = self.trainer(mg.model, 3)
        rounded = trainer.evaluate()
        trainer.learning_rate = 2e-3
        trainer.train()
        recovered = trainer.evaluate()
        self.assertLess(recovered["eval_loss"], rounded["eval_loss"])
        self.assertGreaterEqual(recovered["eval_accuracy"], rounded["eval_accuracy"])
        mg.export("tutorial_3_qat")
        again = MaseGraph.from_checkpoint("tutorial_3_qat")
        self.assertEqual(type(again.model.classifier).__name__, "LinearInteger")
        torch.testing.assert_close(again.model.eval()(**batch())["logits"], mg.model.eval()(**batch())["logits"])

    def test_4_pruning(self):
        mg = self.trained()
        mg, found = passes.prune_transform_pass(mg, pass_args={"weight": HALF, "activation": HALF})
        for layer in (mg.model.classifier, mg.model.bert.layers._modules["0"].attention.query):
            self.assertEqual(int((layer.weight == 0).sum()), layer.weight.numel() // 2)
        again = MaseGraph.from_checkpoint("trained")
        weights = again.model.classifier.weight.detach().abs()
        largest = torch.topk(weights.flatten(), weights.numel() // 2).indices.sort().values
        self.assertTrue(torch.equal(mg.model.classifier.weight.flatten().nonzero().flatten(), largest))
        x = torch.randn(4, 32)
        inside = []
        handle = mg.model.classifier.register_forward_hook(lambda layer, inputs, y: inside.append(inputs[0]))
        mg.model.classifier(x)
        one, both = inside[0], mg.model.classifier(x[:1])
        handle.remove()
        self.assertEqual([int(row.count_nonzero()) for row in one], [16] * 4)
        torch.testing.assert_close(both, mg.model.classifier(x)[:1])  # a sample's mask does not depend on its neighbours
        pruned = self.trainer(mg.model, 3)
        before = pruned.evaluate()
        pruned.learning_rate = 2e-3
        pruned.train()
        self.assertLess(pruned.evaluate()["eval_loss"], before["eval_loss"])
        self.assertEqual(int((mg.model.classifier.weight == 0).sum()), mg.model.classifier.weight.numel() // 2)
        mg.export("tutorial_4")
        again = MaseGraph.from_checkpoint("tutorial_4")
        torch.testing.assert_close(again.model.eval()(**batch())["logits"], mg.model.eval()(**batch())["logits"])
        self.assertEqual(len(again.model.classifier._forward_pre_hooks), 1)
        with self.assertRaisesRegex(mase.Error, "sample by sample"):
            mg.native()
        mg, _ = passes.prune_detach_hook_transform_pass(mg)
        self.assertEqual(len(mg.native().inputs), 2)

    def test_5_a_pipeline(self):
        mg, outputs = CompressionPipeline()(MaseGraph(SentenceClassifier(), hf_input_names=["input_ids"]), pass_args={
            "quantize_transform_pass": INTEGER, "prune_transform_pass": {"weight": HALF, "activation": HALF}})
        self.assertEqual(len(outputs), 1)
        self.assertIn("prune_transform_pass", outputs[0])
        self.assertIn("LinearInteger", type(mg.model.classifier).__name__)
        mg.export("tutorial_5", save_format="state_dict")
        state = torch.load("tutorial_5.pt")
        self.assertTrue(any(name.endswith("classifier.parametrizations.weight.original") for name in state))

    def test_6_layers_by_choice(self):
        from chop.nn.quantized.modules import linear as layers

        kinds = {name: getattr(layers, name) for name in (
            "LinearInteger", "LinearMinifloatDenorm", "LinearMinifloatIEEE", "LinearLog", "LinearBlockFP", "LinearBlockMinifloat",
            "LinearBlockLog", "LinearBinary", "LinearBinaryScaling", "LinearBinaryResidualSign")}
        for name, kind in kinds.items():
            config = {}
            for operand in ("data_in", "weight", "bias"):
                own = {"width": 8, "frac_width": 4}
                if "Minifloat" in name and "Block" not in name:
                    own = {"width": 8, "exponent_width": 4, "exponent_bias": 7}
                elif name == "LinearLog":
                    own = {"width": 8, "exponent_bias": 7}
                elif name == "LinearBlockFP":
                    own = {"width": 8, "exponent_width": 4, "exponent_bias": None, "block_size": [16]}
                elif name == "LinearBlockMinifloat":
                    own = {"width": 8, "exponent_width": 4, "exponent_bias_width": 4, "block_size": [16]}
                elif name == "LinearBlockLog":
                    own = {"width": 8, "exponent_bias_width": 4, "block_size": [16]}
                elif "Binary" in name:
                    own = {"stochastic": False, "bipolar": True}
                config.update({f"{operand}_{key}": value for key, value in own.items()})
            if name in ("LinearBinaryScaling", "LinearBinaryResidualSign"):
                config["binary_training"] = True
            layer = kind(in_features=32, out_features=8, config=config)
            for shape in ((3, 32), (2, 3, 32), (2, 2, 3, 32)):
                with self.subTest(name=name, rank=len(shape)):
                    x = torch.randn(shape, requires_grad=True)
                    y = layer(x)
                    self.assertEqual(tuple(y.shape), shape[:-1] + (8,))
                    y.sum().backward()
                    self.assertIsNotNone(x.grad)
        model = SentenceClassifier()
        for path, layer in list(model.named_modules()):
            if isinstance(layer, nn.Linear):
                new = kinds["LinearInteger"](in_features=layer.in_features, out_features=layer.out_features, config=dict(WIDTHS))
                new.weight.data, new.bias.data = layer.weight.data, layer.bias.data
                deepsetattr(model, path, new)
        self.assertIn("eval_accuracy", self.trainer(model).evaluate())  # a module that is no graph is trained too

    def test_10_widths_of_copies(self):
        base = self.trained()
        losses = []
        for width, frac in ((4, 1), (16, 8)):
            mg = copy.deepcopy(base)
            config = {key: (frac if "frac" in key else width) for key in WIDTHS}
            mg, _ = passes.quantize_transform_pass(mg, pass_args={"by": "type", "default": {"config": {"name": None}},
                                                                  "linear": {"config": {"name": "integer", **config}}})
            losses.append(self.trainer(mg.model).evaluate()["eval_loss"])
        self.assertGreater(losses[0], losses[1])
        self.assertEqual(type(base.model.classifier).__name__, "Linear")

    def test_masks_count(self):
        mg = self.trained()
        mg.model.eval()
        alone = batch(1, 4)
        padded = {"input_ids": torch.cat([alone["input_ids"], torch.zeros(1, 3, dtype=torch.int64)], 1),
                  "attention_mask": torch.cat([torch.ones(1, 4), torch.zeros(1, 3)], 1).long(), "labels": alone["labels"]}
        alone["attention_mask"][:] = 1
        torch.testing.assert_close(mg.model(**alone)["logits"], mg.model(**padded)["logits"], rtol=1e-5, atol=1e-6)

    def test_what_cannot_be_followed_is_refused(self):
        class Fixed(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(40, 4)

            def forward(self, input_ids=None, labels=None):
                return {"logits": self.table(input_ids)[:, : int(input_ids.shape[1])].reshape(2, -1).sum(-1)}

        class Asking(Fixed):
            def forward(self, input_ids=None, labels=None):
                x = self.table(input_ids).sum(-1)
                return {"logits": x if bool(input_ids[0, 0] > 5) else -x}

        for kind, said in ((Fixed, "another size"), (Asking, "something else")):
            model = kind()
            if kind is Asking:
                with torch.no_grad():
                    model.table.weight.fill_(1.0)
            with self.subTest(kind=kind.__name__):
                try:
                    MaseGraph(model, hf_input_names=["input_ids"])
                except mase.Error as error:
                    self.assertIn(said, str(error))
                else:
                    self.assertIs(kind, Asking)  # both examples may decide alike; then the graph holds for both
        for names, said in ((["input_idz"], "input_idz"), ([], "names"), (["input_ids", "input_ids"], "once")):
            with self.subTest(names=names), self.assertRaisesRegex(mase.Error, said):
                MaseGraph(SentenceClassifier(), hf_input_names=names)

    def test_a_graph_module_is_taken_as_it_is(self):
        mg = MaseGraph(SentenceClassifier(), hf_input_names=NAMES)
        again = MaseGraph(mg.model)
        self.assertEqual([str(n) for n in again.fx_graph.nodes], [str(n) for n in mg.fx_graph.nodes])
        self.assertEqual(again.model.config.num_labels, 2)
        self.assertEqual(sorted(get_hf_dummy_in(again)), sorted(NAMES))

    def test_pipelines(self):
        seen = []

        def first(graph, pass_args=None):
            return graph, {"found": 3}

        def second(graph, pass_args=None):
            seen.append(pass_args)
            return graph, {}

        given = {"second": {"from": "self/first", "n": 1}}
        _, outputs = AutoPipeline([[first, second], [first]])("graph", given)
        self.assertEqual((seen, outputs), ([{"from": {"found": 3}, "n": 1}], [{"first": {"found": 3}, "second": {}}, {"first": {"found": 3}}]))
        self.assertEqual(given, {"second": {"from": "self/first", "n": 1}})
        _, outputs = AutoPipeline([[first, second]])("graph", {}, skip_passes=[first])
        self.assertEqual(outputs, [{"second": {}}])
        for args, said in (({"third": {}}, "third"), ({"first": {"x": "self/second"}}, "second")):
            with self.subTest(args=args), self.assertRaisesRegex(mase.Error, said):
                AutoPipeline([[first, second]])("graph", args)

    def test_rows(self):
        rows = self.dataset["train"]
        self.assertEqual((len(rows), len(self.dataset["test"])), (160, 60))
        self.assertEqual(sorted(rows.column_names), ["attention_mask", "input_ids", "label", "text", "token_type_ids"])
        self.assertEqual(rows[0]["input_ids"][0], 2)
        self.assertEqual(set(rows["label"]), {0, 1})
        self.assertEqual(rows.rename_column("label", "labels").column_names[1], "labels")
        os.makedirs("tables", exist_ok=True)
        with open("tables/train.tsv", "w") as file:
            file.write("0\tbad film\n1\tgood film\n")
        with open("tables/test.jsonl", "w") as file:
            file.write('{"sentence": "sad \\u00e9", "label": 0}\n')
        table = get_tokenized_dataset("tables", os.path.join(self.scratch.name, "words"))
        self.assertEqual([table["train"]["text"], table["train"]["label"]], [["bad film", "good film"], [0, 1]])
        for text, said in (("1\n", "rows with a text"), ("text,label\n", "rows|empty"), ("text,label\na\n", "cells")):
            os.makedirs("wrong", exist_ok=True)
            with open("wrong/train.csv", "w") as file:
                file.write(text)
            with self.subTest(text=text), self.assertRaisesRegex(mase.Error, said):
                get_tokenized_dataset("wrong", os.path.join(self.scratch.name, "words"))
        with self.assertRaisesRegex(mase.Error, "nosuch"):
            get_tokenized_dataset("nosuch", os.path.join(self.scratch.name, "words"))
        with self.assertRaisesRegex(mase.Error, "vocab.txt"):
            get_tokenized_dataset("imdb", os.path.join(self.scratch.name, "imdb"))


class Trainers(unittest.TestCase):
    def test_steps_are_those_of_torch(self):
        """Two epochs of the plain trainer beside the same steps written out."""
        from chop.tools.text_data import Rows

        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)

            def forward(self, input_ids, attention_mask):
                return self.head(self.words(input_ids).sum(1))

        class Filler:
            def pad(self, rows, return_tensors):
                return {name: torch.tensor([row[name] for row in rows]) for name in rows[0]}

        torch.manual_seed(3)
        model = Table()
        other = copy.deepcopy(model)
        rows = Rows({"input_ids": [[i % 9, (i * i) % 9] for i in range(21)], "attention_mask": [[1, 1]] * 21, "label": [i % 2 for i in range(21)]})
        trainer = PlainTrainer(model, rows, rows, Filler(), Tutorials.metric, num_train_epochs=2)
        done = trainer.train()
        self.assertEqual(done.global_step, 6)
        optimizer = torch.optim.AdamW(other.parameters(), lr=5e-5, weight_decay=0.0)
        draw, step = torch.Generator().manual_seed(42), 0
        for _ in range(2):
            order = torch.randperm(21, generator=draw)
            for part in order.split(8):
                for group in optimizer.param_groups:
                    group["lr"] = 5e-5 * (6 - step) / 6
                x, y = (torch.tensor([rows[int(i)][key] for i in part]) for key in ("input_ids", "label"))
                optimizer.zero_grad()
                nn.functional.cross_entropy(other(x, None), y).backward()
                nn.utils.clip_grad_norm_(other.parameters(), 1.0)
                optimizer.step()
                step += 1
        for a, b in zip(model.parameters(), other.parameters()):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)
        loss = nn.functional.cross_entropy(other(torch.tensor(rows["input_ids"]), None), torch.tensor(rows["label"]))
        self.assertAlmostEqual(trainer.evaluate()["eval_loss"], float(loss), places=6)


if __name__ == "__main__":
    package.main()
