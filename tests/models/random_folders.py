# SPDX-License-Identifier: Apache-2.0
"""Small Hugging Face folders with drawn settings, and what transformers computes with them: for random_folders_long_test.py.
Needs transformers and torch."""
import copy
import json
import os

import numpy as np
import torch
import transformers
from safetensors.torch import load_file

ACTIVATIONS = ["gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "quick_gelu", "relu", "silu", "swish", "tanh", "relu2", "sigmoid",
               "mish", "gelu_python", "relu6", "leaky_relu", "hardswish", "laplace", "gelu_10", "linear", "gelu_accurate", "sqrtsoftplus"]
VOCABULARY = 97
HEADS = {"causal": ["ForCausalLM", "ForCausalLM", "ForCausalLM", "Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"],
         "encoder": ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]}
CLASSES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "gpt2": "GPT2", "opt": "OPT", "bert": "Bert",
           "roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert", "distilbert": "DistilBert", "vit": "ViT"}
FAMILIES = list(CLASSES)


class Draw:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def one(self, values):
        return values[int(self.random.integers(len(values)))]

    def chance(self, probability):
        return bool(self.random.random() < probability)

    def whole(self, low, high):
        return int(self.random.integers(low, high + 1))


def rope(draw, longest, width):
    kind = draw.one(["default", "default", "default", "linear", "dynamic", "yarn", "llama3", "longrope"])
    table = {"rope_type": kind, "rope_theta": draw.one([10000.0, 500000.0, 1000.0, 10000])}
    if kind == "longrope":
        table.update({name: [round(draw.random.uniform(1, 4), 3) for _ in range(width // 2)] for name in ("short_factor", "long_factor")})
        if draw.chance(0.3):
            table["attention_factor"] = 1.1
    if kind in ("linear", "dynamic", "yarn", "llama3") or draw.chance(0.5) and kind == "longrope":
        table["factor"] = draw.one([2.0, 4.0, 8.0, 1.5])
    if kind in ("llama3", "yarn", "longrope"):
        table["original_max_position_embeddings"] = draw.one([8, 16, longest])
    if kind == "llama3":
        table.update(low_freq_factor=1.0, high_freq_factor=draw.one([4.0, 2.0]))
    if kind == "yarn":
        if draw.chance(0.3):
            table["attention_factor"] = 0.8
        if draw.chance(0.3):
            table.update(beta_fast=16.0, beta_slow=2.0)
        if draw.chance(0.2):
            table.update(mscale=0.7, mscale_all_dim=0.9)
        if draw.chance(0.3):
            table["truncate"] = False
    return table


def gated(draw, family):
    """Llama and its relations."""
    heads = draw.one([1, 2, 4, 6])
    width = draw.one([16, 8, 12, 20, 24])
    settings = {"vocab_size": VOCABULARY, "num_hidden_layers": draw.whole(1, 3), "num_attention_heads": heads, "hidden_size": heads * width,
                "num_key_value_heads": draw.one([k for k in (1, 2, 3, 4, 6) if heads % k == 0]), "intermediate_size": draw.one([40, 64, 33]),
                "hidden_act": draw.one(ACTIVATIONS) if draw.chance(0.4) else "silu", "rms_norm_eps": draw.one([1e-5, 1e-6, 1e-3]),
                "max_position_embeddings": draw.one([32, 64]), "tie_word_embeddings": draw.chance(0.5)}
    if draw.chance(0.4):
        settings["head_dim"] = draw.one([8, 16, 10, 32])
    elif family == "qwen3":
        settings["head_dim"] = width
    settings["rope_parameters"] = rope(draw, settings["max_position_embeddings"], settings.get("head_dim", width))
    if family == "llama":
        settings.update(attention_bias=draw.chance(0.4), mlp_bias=draw.chance(0.4))
    if family == "qwen3":
        settings["attention_bias"] = draw.chance(0.4)
    if family == "mistral":
        settings["sliding_window"] = draw.one([None, 3, 5, 11])
    if family in ("qwen2", "qwen3") and draw.chance(0.6):
        settings.update(use_sliding_window=draw.chance(0.8), sliding_window=draw.one([2, 4, 7]),
                        max_window_layers=draw.whole(0, settings["num_hidden_layers"]))
        if settings["use_sliding_window"] and draw.chance(0.3):
            settings["layer_types"] = [draw.one(["full_attention", "sliding_attention"]) for _ in range(settings["num_hidden_layers"])]
    return settings


def gpt2(draw):
    heads = draw.one([1, 2, 4])
    return {"vocab_size": VOCABULARY, "n_embd": heads * draw.one([8, 12, 16]), "n_head": heads, "n_layer": draw.whole(1, 3),
            "n_positions": draw.one([32, 64]), "n_inner": draw.one([None, 40, 64]), "layer_norm_epsilon": draw.one([1e-5, 1e-3]),
            "activation_function": draw.one(ACTIVATIONS) if draw.chance(0.5) else "gelu_new", "scale_attn_weights": draw.chance(0.7),
            "scale_attn_by_inverse_layer_idx": draw.chance(0.4), "reorder_and_upcast_attn": draw.chance(0.3),
            "tie_word_embeddings": draw.chance(0.7)}


def opt(draw):
    heads = draw.one([1, 2, 4])
    width = heads * draw.one([8, 12, 16])
    return {"vocab_size": VOCABULARY, "hidden_size": width, "num_attention_heads": heads, "num_hidden_layers": draw.whole(1, 3),
            "ffn_dim": draw.one([40, 64]), "max_position_embeddings": draw.one([32, 64]), "do_layer_norm_before": draw.chance(0.6),
            "word_embed_proj_dim": draw.one([width, width, 20]), "enable_bias": draw.chance(0.7),
            "layer_norm_elementwise_affine": draw.chance(0.7), "_remove_final_layer_norm": draw.chance(0.3),
            "activation_function": draw.one(ACTIVATIONS) if draw.chance(0.5) else "relu", "tie_word_embeddings": draw.chance(0.7)}


def bert(draw, family):
    heads = draw.one([1, 2, 4])
    settings = {"vocab_size": VOCABULARY, "hidden_size": heads * draw.one([8, 12, 16]), "num_attention_heads": heads,
                "num_hidden_layers": draw.whole(1, 3), "intermediate_size": draw.one([40, 64]), "type_vocab_size": draw.one([1, 2, 3]),
                "hidden_act": draw.one(ACTIVATIONS) if draw.chance(0.5) else "gelu", "layer_norm_eps": draw.one([1e-12, 1e-5, 1e-3]),
                "max_position_embeddings": draw.one([40, 66]), "tie_word_embeddings": draw.chance(0.8)}
    if family != "bert":
        settings["pad_token_id"] = draw.one([1, 0, 5])
    return settings


def distilbert(draw):
    heads = draw.one([1, 2, 4])
    return {"vocab_size": VOCABULARY, "dim": heads * draw.one([8, 12, 16]), "n_heads": heads, "n_layers": draw.whole(1, 3),
            "hidden_dim": draw.one([40, 64]), "max_position_embeddings": draw.one([32, 64]), "sinusoidal_pos_embds": draw.chance(0.3),
            "activation": draw.one(["gelu", "relu", "gelu", "gelu_new", "silu"]), "tie_word_embeddings": draw.chance(0.8)}


def vit(draw):
    heads, patch = draw.one([1, 2, 4]), draw.one([4, 8, 5])
    return {"hidden_size": heads * draw.one([8, 12, 16]), "num_attention_heads": heads, "num_hidden_layers": draw.whole(1, 3),
            "intermediate_size": draw.one([40, 64]), "image_size": draw.one([patch * 2, patch * 3, patch * 3 + 2]), "patch_size": patch,
            "num_channels": draw.one([1, 3]), "qkv_bias": draw.chance(0.6), "layer_norm_eps": draw.one([1e-12, 1e-5]),
            "hidden_act": draw.one(ACTIVATIONS) if draw.chance(0.5) else "gelu", "pooler_act": draw.one(["tanh", "relu", "gelu"]),
            "pooler_output_size": draw.one([None, 10])}


def drawn_model(draw, family):
    """A model with drawn settings and weights, and the name of its class."""
    prefix = CLASSES[family]
    if family == "gpt2":
        settings, kind = gpt2(draw), "causal"
    elif family == "opt":
        settings, kind = opt(draw), "causal"
    elif family == "distilbert":
        settings, kind = distilbert(draw), "encoder"
    elif family == "vit":
        settings, kind = vit(draw), "image"
    elif family in ("bert", "roberta", "xlm-roberta", "camembert"):
        settings, kind = bert(draw, family), "encoder"
    else:
        settings, kind = gated(draw, family), "causal"
    head = draw.one(["Model", "ForImageClassification"] if kind == "image" else HEADS[kind] + (["ForPreTraining"] if family == "bert" else []))
    if family == "gpt2" and head == "ForCausalLM":
        head = "LMHeadModel"
    if kind == "causal" and head == "ForSequenceClassification":
        settings["pad_token_id"] = 3
    if head in ("ForSequenceClassification", "ForTokenClassification", "ForImageClassification"):
        settings["num_labels"] = draw.one([1, 2, 5])
    if not hasattr(transformers, prefix + head):
        head = "Model"
    config = getattr(transformers, prefix + "Config")(**settings)
    config._attn_implementation = "eager"
    torch.manual_seed(draw.whole(0, 1 << 30))
    options = {"add_pooling_layer": False} if head == "Model" and kind != "causal" and family != "distilbert" and draw.chance(0.4) else {}
    model = getattr(transformers, prefix + head)(config, **options).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() < 2:
                parameter.normal_(1.0 if "norm" in name.lower() or "ln_" in name or ".ln" in name else 0.0, 0.2)
                if name.endswith("bias"):
                    parameter.normal_(0.0, 0.1)
            else:
                parameter.normal_(0.0, 1.3 * parameter[0].numel() ** -0.5 if "embed" not in name else 0.7)
    return model, prefix + head, kind, settings


def write_model(model, folder, draw):
    """Into a folder, in one of the forms that files have; the model then holds what they say."""
    how = draw.one(["safetensors", "safetensors", "shards", "bin", "old bin", "bin shards"])
    dtype = draw.one([torch.float32, torch.float32, torch.float32, torch.bfloat16, torch.float16])
    stored = copy.deepcopy(model).to(dtype)  # rounds its frequencies too
    for own, rounded in zip(model.parameters(), stored.parameters()):
        own.data = rounded.data.to(torch.float32)
    stored.save_pretrained(folder, **({"max_shard_size": "30KB"} if how == "shards" else {}))
    if "bin" in how:
        state = load_file(os.path.join(folder, "model.safetensors"))
        os.remove(os.path.join(folder, "model.safetensors"))
        old = {"_use_new_zipfile_serialization": how != "old bin"}
        if how == "bin shards":
            names, places = list(state), {}
            for part in range(2):
                own = names[part::2]
                file = f"pytorch_model-{part + 1:05}-of-00002.bin"
                torch.save({name: state[name] for name in own}, os.path.join(folder, file))
                places.update({name: file for name in own})
            with open(os.path.join(folder, "pytorch_model.bin.index.json"), "w") as file:
                json.dump({"metadata": {"total_size": 1}, "weight_map": places}, file)
        else:
            torch.save(state, os.path.join(folder, "pytorch_model.bin"), **old)
    return f"{how} {str(dtype)[6:]}"


def outputs_of(model, **inputs):
    """The tensors that our networks give, in their order."""
    with torch.no_grad():
        given = model(**inputs)
    names = ["logits", "prediction_logits", "seq_relationship_logits", "start_logits", "end_logits", "last_hidden_state", "pooler_output"]
    found = [given[name] for name in names if name in given and given[name] is not None]
    if "prediction_logits" in given:  # ours has the head for words, and says that it leaves the other out
        found = [given["prediction_logits"]]
    if "start_logits" in given:
        found = [torch.stack([given["start_logits"], given["end_logits"]], -1)]
    return [x.float().numpy() for x in found]


def cases_of(model, kind, draw, pad):
    """name -> (arrays in the order of the network's inputs, what transformers gives, places that count)."""
    config = model.config
    if kind == "image":
        size, channels = config.image_size, config.num_channels
        x = torch.randn(draw.one([1, 3]), channels, size, size)
        return {"image": ([x.numpy()], outputs_of(model, pixel_values=x), None)}
    rows, length = draw.one([1, 2, 3]), draw.whole(2, 20)
    forbidden = [i for i in (pad, getattr(config, "pad_token_id", None)) if i is not None]
    allowed = torch.tensor([i for i in range(VOCABULARY) if i not in forbidden])
    ids = allowed[torch.randint(len(allowed), (rows, length))]
    fill = forbidden[0] if forbidden else 0
    cases = {"ids": ([ids], outputs_of(model, input_ids=ids), None)}
    lengths = torch.randint(1, length + 1, (rows,))
    right = (torch.arange(length)[None] < lengths[:, None]).long()
    left = right.flip(1)
    with_types = hasattr(config, "type_vocab_size")
    for name, mask in (("right", right), ("left", left)):
        padded = torch.where(mask == 1, ids, fill)
        inputs = {"input_ids": padded, "attention_mask": mask}
        given = [padded, mask]
        if kind == "causal" and name == "left":
            positions = (mask.cumsum(1) - 1).clamp(min=0)
            if model.config.model_type != "opt":  # which counts by the mask itself
                inputs["position_ids"] = positions
        if with_types and draw.chance(0.6):
            types = torch.randint(config.type_vocab_size, (rows, length))
            inputs["token_type_ids"] = types
            given.append(types)
        cases[name] = (given, outputs_of(model, **inputs), mask.bool())
    if model.config.model_type != "distilbert" and draw.chance(0.7):
        most = getattr(config, "max_position_embeddings", None) or config.n_positions
        positions = torch.stack([torch.randperm(most - length)[0] + torch.arange(length) for _ in range(rows)])
        mask = torch.ones_like(ids)
        inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        given = [ids, mask]
        if kind == "encoder":
            types = torch.zeros_like(ids)
            given.append(types)
        given.append(positions)
        cases["positions"] = (given, outputs_of(model, **inputs), None)
    return {name: ([x.numpy() for x in given], wanted, None if mask is None else mask.numpy())
            for name, (given, wanted, mask) in cases.items()}
