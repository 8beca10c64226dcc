# SPDX-License-Identifier: Apache-2.0
"""The tutorials' calls on transformers' own modules, tokenizers and Trainer: every family that it and this torch have together as a
graph, and a classifier through training, adapters, quantising and pruning. Packages are fetched from PyPI into build/transformers,
without their torch (MASE_TRANSFORMERS names a folder that has them)."""
import os
import subprocess
import sys
import tempfile
import unittest

import package

package.need_torch()
FOLDER = os.environ.get("MASE_TRANSFORMERS") or os.path.join(package.SOURCE, "build", "transformers")
PACKAGES = ["transformers==4.46.3", "tokenizers==0.20.3", "huggingface_hub==0.26.5", "accelerate==0.34.2", "safetensors", "filelock", "fsspec",
            "packaging", "pyyaml", "regex", "requests", "tqdm", "typing_extensions", "urllib3", "certifi", "idna", "charset_normalizer", "psutil"]
if not os.path.exists(os.path.join(FOLDER, "transformers")):
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", FOLDER, *PACKAGES], capture_output=True, text=True)
    if done.returncode:
        package.skip(f"transformers cannot be fetched: {done.stderr.strip()[-200:]}")
sys.path.insert(1, FOLDER)
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")

import torch  # noqa: E402
import transformers  # noqa: E402
from sentences import write_sentences  # noqa: E402

import chop.passes as passes  # noqa: E402
from chop import MaseGraph  # noqa: E402
from chop.tools import get_tokenized_dataset, get_trainer  # noqa: E402

SMALL = {"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
FAMILIES = {
    "BertForSequenceClassification": ("BertConfig", SMALL), "BertForMaskedLM": ("BertConfig", SMALL), "BertModel": ("BertConfig", SMALL),
    "RobertaForSequenceClassification": ("RobertaConfig", SMALL),
    "DistilBertForSequenceClassification": ("DistilBertConfig", {"vocab_size": 300, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}),
    "GPT2LMHeadModel": ("GPT2Config", {"vocab_size": 300, "n_embd": 32, "n_layer": 2, "n_head": 2}),
    "OPTForCausalLM": ("OPTConfig", {"vocab_size": 300, "hidden_size": 32, "word_embed_proj_dim": 32, "num_hidden_layers": 2,
                                     "num_attention_heads": 2, "ffn_dim": 64}),
    "LlamaForCausalLM": ("LlamaConfig", {**SMALL, "num_key_value_heads": 1}),
    "Qwen2ForCausalLM": ("Qwen2Config", {**SMALL, "num_key_value_heads": 1}),
    "MistralForCausalLM": ("MistralConfig", {**SMALL, "num_key_value_heads": 1}),
    "ViTForImageClassification": ("ViTConfig", {"image_size": 16, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2,
                                                "num_attention_heads": 2, "intermediate_size": 64}),
}


class Families(unittest.TestCase):
    def test_graphs(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, (config, sizes) in FAMILIES.items():
                model = getattr(transformers, name)(getattr(transformers, config)(**sizes)).eval()
                names = ["pixel_values"] if name.startswith("ViT") else ["input_ids", "attention_mask"]
                names += ["labels"] if name != "BertModel" else []
                for wanted in (names, None):
                    with self.subTest(name=name, names=wanted):
                        mg = MaseGraph(model, hf_input_names=wanted)
                        self.assertTrue(mg.is_huggingface)
                        mg.draw(os.path.join(folder, "network.svg"))
                        mg, _ = passes.add_common_metadata_analysis_pass(mg)
                        passes.verify_common_metadata_analysis_pass(mg)
                        mg.export(os.path.join(folder, "network"))
                        again = MaseGraph.from_checkpoint(os.path.join(folder, "network"))
                        x = {node.target: node.meta["mase"]["common"]["results"]["data_out_0"]["value"] for node in mg.nodes_in}
                        with torch.no_grad():
                            expected, found = model(**x), again.model.eval()(**x)
                        for key, value in expected.items():
                            if isinstance(value, torch.Tensor) and key in found:
                                torch.testing.assert_close(found[key], value, rtol=1e-4, atol=1e-5)


class LowBits(unittest.TestCase):
    def decoder(self, tied=False):
        torch.manual_seed(0)
        config = transformers.LlamaConfig(**{**SMALL, "hidden_size": 64}, num_key_value_heads=1, tie_word_embeddings=tied)
        model = transformers.LlamaForCausalLM(config).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.normal_(1.0 if "norm" in name else 0.0, 0.2)
            model.model.embed_tokens.weight[:, 3] *= 30  # a channel that sticks out
        return model, torch.randint(0, 300, (4, 12))

    def test_rotation(self):
        from chop.passes.module.transforms.rotation import fuse_rms_norms, replace_rms_norms, rotate_llama

        for tied in (False, True):
            for function in (rotate_llama, lambda model: replace_rms_norms(fuse_rms_norms(model))):
                model, ids = self.decoder(tied)
                with torch.no_grad():
                    expected = model(input_ids=ids).logits
                    before = model.model.embed_tokens.weight.clone()
                    self.assertIs(function(model), model)
                    found = model(input_ids=ids).logits
                self.assertLess(float((found - expected).abs().max() / expected.abs().max()), 1e-4)
                if function is rotate_llama:
                    after = model.model.embed_tokens.weight
                    self.assertLess(float(after.abs().max() / after.pow(2).mean().sqrt()), 0.5 * float(before.abs().max() / before.pow(2).mean().sqrt()))

    def test_gptq(self):
        from chop.passes.module.transforms import quantize_module_transform_pass
        from chop.passes.module.transforms.gptq import run_gptq

        model, _ = self.decoder()
        ids = torch.randint(0, 300, (48, 16))
        weights = {"weight_width": 4, "weight_block_size": 32}
        better = run_gptq(model, {"model_name": "any", "format": "mxint", "weight_config": weights, "dataset": ids, "nsamples": 48, "seqlen": 16, "device": "cpu"})
        plain, _ = quantize_module_transform_pass(model, {"by": "regex_name", r"model\.layers\..*_proj": {"config": {"name": "mxint", "weight_only": True, **weights}}})
        held = torch.randint(0, 300, (32, 16))
        with torch.no_grad():
            wanted = model(input_ids=held).logits
            errors = [float((network(input_ids=held).logits - wanted).pow(2).mean()) for network in (better, plain)]
        self.assertLess(errors[0], errors[1])


class Tutorials(unittest.TestCase):
    def test_a_classifier(self):
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            write_sentences(folder, 320, 100)
            transformers.BertTokenizerFast(vocab_file="words/vocab.txt").save_pretrained("checkpoint")
            transformers.BertForSequenceClassification(transformers.BertConfig(**{**SMALL, "vocab_size": 31})).save_pretrained("checkpoint")
            dataset, tokenizer = get_tokenized_dataset(dataset="imdb", checkpoint="checkpoint", return_tokenizer=True)
            self.assertEqual(type(tokenizer).__name__, "BertTokenizerFast")
            model = transformers.AutoModelForSequenceClassification.from_pretrained("checkpoint")
            model.config.problem_type = "single_label_classification"
            mg = MaseGraph(model, hf_input_names=["input_ids", "attention_mask", "labels"])
            mg, _ = passes.init_metadata_analysis_pass(mg)
            mg, _ = passes.add_common_metadata_analysis_pass(mg)

            def trained(epochs, rate):
                trainer = get_trainer(model=mg.model, tokenized_dataset=dataset, tokenizer=tokenizer, evaluate_metric="accuracy", num_train_epochs=epochs)
                self.assertIsInstance(trainer, transformers.Trainer)
                before = trainer.evaluate()
                trainer.args.learning_rate = rate
                trainer.train()
                return before, trainer.evaluate(), trainer

            before, after, _ = trained(6, 3e-3)
            self.assertLess(before["eval_accuracy"], 0.7)
            self.assertGreater(after["eval_accuracy"], 0.85)
            mg, _ = passes.insert_lora_adapter_transform_pass(mg, pass_args={"rank": 6, "alpha": 1.0, "dropout": 0.5})
            _, adapted, trainer = trained(1, 1e-3)
            mg, _ = passes.fuse_lora_weights_transform_pass(mg)
            self.assertAlmostEqual(trainer.evaluate()["eval_loss"], adapted["eval_loss"], places=5)
            mg.export("lora")
            mg = MaseGraph.from_checkpoint("lora")
            widths = {f"{o}_{k}": v for o in ("data_in", "weight", "bias") for k, v in (("width", 8), ("frac_width", 4))}
            mg, _ = passes.quantize_transform_pass(mg, pass_args={"by": "type", "default": {"config": {"name": None}},
                                                                  "linear": {"config": {"name": "integer", **widths}}})
            rounded, recovered, _ = trained(2, 1e-3)
            self.assertGreaterEqual(recovered["eval_accuracy"], rounded["eval_accuracy"] - 0.05)
            mg.export("qat")
            mg = MaseGraph.from_checkpoint("qat")
            half = {"sparsity": 0.5, "method": "l1-norm", "scope": "local"}
            mg, _ = passes.prune_transform_pass(mg, pass_args={"weight": half, "activation": half})
            pruned, retrained, _ = trained(3, 1e-3)
            self.assertLess(retrained["eval_loss"], pruned["eval_loss"])
            self.assertEqual(int((mg.model.classifier.weight == 0).sum()), mg.model.classifier.weight.numel() // 2)
            os.chdir("/")


if __name__ == "__main__":
    package.main()
