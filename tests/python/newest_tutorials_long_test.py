# SPDX-License-Identifier: Apache-2.0
"""The calls of tutorials 1 to 6 and 10, in their order and with their arguments, on PyPI's newest transformers and torch: names of
checkpoints and data sets are the tutorials' own, which are folders here. Checked are the effects that the tutorials show.
MASE_TRANSFORMERS_PYTHON names a Python that has transformers, torch, accelerate, optuna and dill."""
import os
import subprocess
import sys
import tempfile
import unittest

python = os.environ.get("MASE_TRANSFORMERS_PYTHON")
if python and os.path.abspath(python) != sys.executable and "MASE_AGAIN" not in os.environ:
    sys.exit(subprocess.run([python, sys.argv[0]], env={**os.environ, "MASE_AGAIN": "1"}).returncode)
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false", HF_HUB_DISABLE_PROGRESS_BARS="1")
import package  # noqa: E402

package.need_torch()
try:
    import accelerate  # noqa: F401
    import dill
    import optuna
    import transformers
except ImportError as missing:
    package.skip(str(missing))
import random  # noqa: E402
from copy import deepcopy  # noqa: E402
from pathlib import Path  # noqa: E402

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
from optuna.samplers import RandomSampler  # noqa: E402
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer  # noqa: E402

import chop.passes as passes  # noqa: E402
from chop import MaseGraph  # noqa: E402
from chop.nn.modules import Identity  # noqa: E402
from chop.nn.quantized.modules.linear import (  # noqa: E402
    LinearBinary, LinearBinaryResidualSign, LinearBinaryScaling, LinearBlockFP, LinearBlockLog, LinearBlockMinifloat, LinearInteger, LinearLog,
    LinearMinifloatDenorm, LinearMinifloatIEEE)
from chop.passes.module import report_trainable_parameters_analysis_pass  # noqa: E402
from chop.pipelines import CompressionPipeline  # noqa: E402
from chop.tools import get_logger, get_tokenized_dataset, get_trainer  # noqa: E402
from chop.tools.utils import deepsetattr  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)
transformers.utils.logging.disable_progress_bar()
GOOD, BAD = ["great", "lovely", "bright", "fine"], ["awful", "dull", "broken", "poor"]
PLAIN = ["the", "film", "was", "a", "story", "about", "people", "and", "it", "went", "on", "for", "long", ",", "."]
SHOWN = "ai may take over world one day this is why you should learn ad ##ls".split()  # tutorial 1's sentences are of one length
QUANTIZATION = {"by": "type", "default": {"config": {"name": None}},
                "linear": {"config": {"name": "integer", "data_in_width": 8, "data_in_frac_width": 4, "weight_width": 8, "weight_frac_width": 4,
                                      "bias_width": 8, "bias_frac_width": 4}}}
PRUNING = {"weight": {"sparsity": 0.5, "method": "l1-norm", "scope": "local"},
           "activation": {"sparsity": 0.5, "method": "l1-norm", "scope": "local"}}


def write_hub(rows):
    """Folders with the names that the tutorials fetch, and reviews in the layout of IMDb's archive."""
    draw = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = list(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PLAIN, *GOOD, *BAD, *SHOWN, *letters, *("##" + c for c in letters)]))
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(words), hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512,
                                     initializer_range=0.05)
    for name in ("prajjwal1/bert-tiny", "DeepWokLab/bert-tiny", "bert-base-uncased"):
        transformers.BertForMaskedLM(config).save_pretrained(name)
        transformers.BertTokenizerFast(vocab={word: i for i, word in enumerate(words)}).save_pretrained(name)
        Path(name, "vocab.txt").write_text("\n".join(words) + "\n")
    for split, count in (("train", rows), ("test", rows // 4)):
        for kind, own in (("pos", GOOD), ("neg", BAD)):
            os.makedirs(f"data/imdb/{split}/{kind}")
            for i in range(count // 2):
                text = [draw.choice(PLAIN) for _ in range(draw.randint(4, 30))]
                other = BAD if own is GOOD else GOOD
                for word in [draw.choice(own) for _ in range(3)] + [draw.choice(other) for _ in range(draw.randint(0, 1))]:
                    text.insert(draw.randrange(len(text)), word)
                Path(f"data/imdb/{split}/{kind}/{i}.txt").write_text(" ".join(text))


class Tutorials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        os.chdir(cls.scratch.name)
        os.environ.update(HOME=cls.scratch.name, MASE_DATA=os.path.join(cls.scratch.name, "data"))
        write_hub(480)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.scratch.cleanup()

    def setUp(self):
        torch.manual_seed(0)

    def data(self, checkpoint="bert-base-uncased"):
        dataset, tokenizer = get_tokenized_dataset(dataset="imdb", checkpoint=checkpoint, return_tokenizer=True)
        self.assertEqual((len(dataset["train"]), len(dataset["test"])), (480, 120))
        return dataset, tokenizer

    def graph(self, checkpoint="prajjwal1/bert-tiny"):
        model = AutoModelForSequenceClassification.from_pretrained(checkpoint)
        model.config.problem_type = "single_label_classification"
        mg = MaseGraph(model, hf_input_names=["input_ids", "attention_mask", "labels"])
        mg, _ = passes.init_metadata_analysis_pass(mg)
        mg, _ = passes.add_common_metadata_analysis_pass(mg)
        return mg

    @staticmethod
    def trainer(model, dataset, tokenizer, **more):
        return get_trainer(model=model, tokenized_dataset=dataset, tokenizer=tokenizer, evaluate_metric="accuracy", **more)

    def learn(self, trainer, epochs=8):
        """One epoch of the tutorial's 25,000 rows is more steps than several of these few."""
        trainer.args.learning_rate, trainer.args.num_train_epochs = 1e-3, epochs
        trainer.train()
        return trainer.evaluate()["eval_accuracy"]

    def test_1_introduction(self):
        model = AutoModel.from_pretrained("prajjwal1/bert-tiny")
        for mg in (MaseGraph(AutoModelForSequenceClassification.from_pretrained("prajjwal1/bert-tiny")), MaseGraph(model)):
            mg.draw("bert-base-uncased.svg")
            tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
            dummy_input = tokenizer(["AI may take over the world one day", "This is why you should learn ADLS"], return_tensors="pt")
            mg, _ = passes.init_metadata_analysis_pass(mg)
            mg, _ = passes.add_common_metadata_analysis_pass(mg, pass_args={"dummy_in": dummy_input, "add_value": False})
            logger = get_logger("mase_logger")
            logger.setLevel("INFO")

            def count(mg, pass_args={}):
                return mg, {"dropout_count": sum(node.op == "call_module" and "dropout" in node.target for node in mg.fx_graph.nodes)}

            self.assertGreater(count(mg)[1]["dropout_count"], 0)
            for node in mg.fx_graph.nodes:
                if node.op == "call_module" and "dropout" in node.target:
                    node.replace_all_uses_with(node.args[0])
                    mg.fx_graph.erase_node(node)
            self.assertEqual(count(mg)[1]["dropout_count"], 0)
            mg.export(f"{Path.home()}/tutorial_1")
            new_mg = MaseGraph.from_checkpoint(f"{Path.home()}/tutorial_1")
            self.assertEqual(count(new_mg)[1]["dropout_count"], 0)
            inputs = {key: dummy_input[key] for key in ("input_ids", "attention_mask") if key in [n.target for n in new_mg.fx_graph.nodes]}
            with torch.no_grad():
                for key, value in mg.model.eval()(**inputs).items():
                    if isinstance(value, torch.Tensor):
                        torch.testing.assert_close(new_mg.model.eval()(**inputs)[key], value)

    def test_2_to_4_adapters_quantising_pruning(self):
        dataset, tokenizer = self.data("DeepWokLab/bert-tiny")
        mg = self.graph("DeepWokLab/bert-tiny")
        _, report = report_trainable_parameters_analysis_pass(mg.model)
        for param in mg.model.bert.embeddings.parameters():
            param.requires_grad = False
        trainer = self.trainer(mg.model, dataset, tokenizer)
        self.assertIsInstance(trainer, transformers.Trainer)
        before = trainer.evaluate()["eval_accuracy"]
        self.assertLess(abs(before - 0.5), 0.2)
        tuned = self.learn(trainer)
        self.assertGreater(tuned, 0.85)
        mg.export(f"{Path.home()}/tutorial_2_sft")
        kept = {name: value.clone() for name, value in mg.model.state_dict().items()}
        mg, _ = passes.insert_lora_adapter_transform_pass(mg, pass_args={"rank": 6, "alpha": 1.0, "dropout": 0.5})
        self.assertEqual(self.trainer(mg.model, dataset, tokenizer).evaluate()["eval_accuracy"], tuned)  # B is zero
        trainer = self.trainer(mg.model, dataset, tokenizer, num_train_epochs=1)
        trainer.train()
        adapted = trainer.evaluate()
        self.assertGreaterEqual(adapted["eval_accuracy"], tuned - 0.05)
        trained = {name for name, value in mg.model.named_parameters() if value.requires_grad}
        adapted_layers = {name.rsplit(".", 2)[0] for name in trained if "lora_" in name}
        self.assertIn("bert.encoder.layer.0.attention.self.query", adapted_layers)
        for name in trained - {name for name in trained if "lora_" in name}:
            self.assertFalse(any(name.startswith(layer + ".") for layer in adapted_layers), name)
        mg, _ = passes.fuse_lora_weights_transform_pass(mg)
        self.assertAlmostEqual(trainer.evaluate()["eval_loss"], adapted["eval_loss"], places=5)
        self.assertEqual(set(mg.model.state_dict()), set(kept))
        for name, value in mg.model.state_dict().items():
            if name.endswith(".bias") and name[:-5] in adapted_layers:
                torch.testing.assert_close(value, kept[name])
        mg.export(f"{Path.home()}/tutorial_2_lora")

        # Tutorial 3
        mg = MaseGraph.from_checkpoint(f"{Path.home()}/tutorial_2_lora")
        start = self.trainer(mg.model, dataset, tokenizer).evaluate()["eval_accuracy"]
        self.assertEqual(start, adapted["eval_accuracy"])
        mg, _ = passes.quantize_transform_pass(mg, pass_args=QUANTIZATION)
        trainer = self.trainer(mg.model, dataset, tokenizer)
        rounded = trainer.evaluate()["eval_accuracy"]
        mg.export(f"{Path.home()}/tutorial_3_ptq")
        for parameter in mg.model.parameters():
            parameter.requires_grad = True
        aware = self.learn(trainer, 2)
        self.assertGreaterEqual(aware, min(rounded, start - 0.03))
        mg.export(f"{Path.home()}/tutorial_3_qat")

        # Tutorial 4
        mg = MaseGraph.from_checkpoint(f"{Path.home()}/tutorial_3_qat")
        self.assertEqual(self.trainer(mg.model, dataset, tokenizer).evaluate()["eval_accuracy"], aware)
        mg, _ = passes.prune_transform_pass(mg, pass_args=PRUNING)
        trainer = self.trainer(mg.model, dataset, tokenizer, num_train_epochs=5)
        pruned = trainer.evaluate()["eval_accuracy"]
        retrained = self.learn(trainer, 5)
        self.assertGreaterEqual(retrained, pruned)
        self.assertGreater(retrained, 0.8)
        weight = mg.model.classifier.weight
        self.assertEqual(int((weight == 0).sum()), weight.numel() // 2)

    def test_5_architecture_search(self):
        dataset, tokenizer = self.data()
        search_space = {"num_layers": [2, 4, 8], "num_heads": [2, 4, 8, 16], "hidden_size": [128, 192, 256, 384, 512],
                        "intermediate_size": [512, 768, 1024, 1536, 2048], "linear_layer_choices": [nn.Linear, Identity]}

        def construct_model(trial):
            config = AutoConfig.from_pretrained("prajjwal1/bert-tiny")
            for param in ["num_layers", "num_heads", "hidden_size", "intermediate_size"]:
                idx = trial.suggest_int(param, 0, len(search_space[param]) - 1)
                setattr(config, param, search_space[param][idx])
            trial_model = AutoModelForSequenceClassification.from_config(config)
            for name, layer in trial_model.named_modules():
                if isinstance(layer, nn.Linear) and layer.in_features == layer.out_features:
                    new_layer_cls = trial.suggest_categorical(f"{name}_type", search_space["linear_layer_choices"])
                    if new_layer_cls == Identity:
                        deepsetattr(trial_model, name, Identity())
            return trial_model

        def objective(trial):
            model = construct_model(trial)
            trainer = self.trainer(model, dataset, tokenizer, num_train_epochs=1)
            trainer.train()
            eval_results = trainer.evaluate()
            trial.set_user_attr("model", model)
            return eval_results["eval_accuracy"]

        study = optuna.create_study(direction="maximize", study_name="bert-tiny-nas-study", sampler=RandomSampler(seed=1))
        study.optimize(objective, n_trials=1, timeout=60 * 60 * 24)
        model = study.best_trial.user_attrs["model"].cpu()
        with open(f"{Path.home()}/tutorial_5_best_model.pkl", "wb") as f:
            dill.dump(model, f)
        with open(f"{Path.home()}/tutorial_5_best_model.pkl", "rb") as f:
            base_model = dill.load(f)
        mg = MaseGraph(base_model)
        pipe = CompressionPipeline()
        mg, _ = pipe(mg, pass_args={"quantize_transform_pass": QUANTIZATION, "prune_transform_pass": PRUNING})
        mg.export(f"{Path.home()}/tutorial_5_nas_compressed", save_format="state_dict")

    def test_6_mixed_precision(self):
        dataset, tokenizer = self.data()
        base_model = AutoModelForSequenceClassification.from_pretrained("prajjwal1/bert-tiny")
        search_space = {"linear_layer_choices": [torch.nn.Linear, LinearInteger, LinearMinifloatDenorm, LinearMinifloatIEEE, LinearLog,
                                                 LinearBlockFP, LinearBlockMinifloat, LinearBlockLog, LinearBinary, LinearBinaryScaling,
                                                 LinearBinaryResidualSign]}
        three = ("data_in", "weight", "bias")
        settings = {
            LinearInteger: {f"{o}_{k}": v for o in three for k, v in (("width", 8), ("frac_width", 4))},
            LinearMinifloatDenorm: {f"{o}_{k}": v for o in three for k, v in (("width", 8), ("exponent_width", 4), ("exponent_bias", 7))},
            LinearMinifloatIEEE: {f"{o}_{k}": v for o in three for k, v in (("width", 8), ("exponent_width", 4), ("exponent_bias", 7))},
            LinearLog: {f"{o}_{k}": v for o in three for k, v in (("width", 8), ("exponent_bias", 5))},
            LinearBlockFP: {f"{o}_{k}": v for o in three for k, v in (("width", 8), ("exponent_width", 4), ("exponent_bias", 7), ("block_size", [16]))},
            LinearBlockMinifloat: {f"{o}_{k}": v for o in three for k, v in (("width", 8), ("exponent_width", 4), ("exponent_bias_width", 4),
                                                                             ("block_size", [16]))},
            LinearBlockLog: {f"{o}_{k}": v for o in three for k, v in (("width", 8), ("exponent_bias_width", 4), ("block_size", [16]))},
            LinearBinary: {f"{o}_{k}": v for o in three for k, v in (("stochastic", False), ("bipolar", True))},
            LinearBinaryScaling: {**{f"{o}_{k}": v for o in three for k, v in (("stochastic", False), ("bipolar", True))}, "binary_training": True},
            LinearBinaryResidualSign: {**{f"{o}_{k}": v for o in three for k, v in (("stochastic", False), ("bipolar", True))},
                                       "binary_training": True, "data_in_residual_sign": True, "data_in_levels": 2},
        }
        for wanted in search_space["linear_layer_choices"]:
            with self.subTest(layer=wanted.__name__):
                trial_model = deepcopy(base_model)
                for name, layer in trial_model.named_modules():
                    if not isinstance(layer, torch.nn.Linear):
                        continue
                    kwargs = {"in_features": layer.in_features, "out_features": layer.out_features}
                    if wanted == torch.nn.Linear:
                        continue
                    new_layer = wanted(**kwargs, config=settings[wanted])
                    new_layer.weight.data = layer.weight.data
                    if layer.bias is not None:
                        new_layer.bias.data = layer.bias.data
                    deepsetattr(trial_model, name, new_layer)
                trainer = self.trainer(trial_model, dataset, tokenizer, num_train_epochs=1)
                trainer.args.max_steps = 4
                trainer.train()
                self.assertTrue(0 <= trainer.evaluate()["eval_accuracy"] <= 1)

    def test_10_mixed_precision_of_a_graph(self):
        dataset, tokenizer = self.data()
        mg = self.graph()
        best = {}

        def objective(trial):
            own = deepcopy(mg)
            width, frac = trial.suggest_categorical("widths", ["8,4", "16,8", "4,2"]).split(",")
            config = {"by": "type", "default": {"config": {"name": None}},
                      "linear": {"config": {"name": "integer", **{f"{o}_{k}": int(v) for o in ("data_in", "weight", "bias")
                                                                   for k, v in (("width", width), ("frac_width", frac))}}}}
            own, _ = passes.quantize_transform_pass(own, pass_args=config)
            best[width] = self.trainer(own.model, dataset, tokenizer).evaluate()["eval_loss"]
            return best[width]

        untouched = {name: value.clone() for name, value in mg.model.state_dict().items()}
        study = optuna.create_study(direction="minimize", sampler=optuna.samplers.GridSampler({"widths": ["8,4", "16,8", "4,2"]}))
        study.optimize(objective, n_trials=3)
        self.assertEqual(len(best), 3)
        for name, value in mg.model.state_dict().items():
            self.assertTrue(torch.equal(value, untouched[name]))


if __name__ == "__main__":
    print("transformers", transformers.__version__, "torch", torch.__version__)
    package.main()
