#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/hf: a tiny BERT as Hugging Face saves it, and what PyTorch computes with it.
Needs python3-torch; the tests only read the files."""
import json
import pathlib
import struct

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
config = {"model_type": "bert", "vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 2,
          "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 16,
          "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12}
width, heads = config["hidden_size"], config["num_attention_heads"]
tensors = {}


def add(name, *shape):
    tensors[name] = torch.randn(*shape) * 0.3
    return tensors[name]


def linear(x, name, out, inner):
    return F.linear(x, add(name + ".weight", out, inner), add(name + ".bias", out))


def norm(x, name):
    weight, bias = add(name + ".weight", width), add(name + ".bias", width)
    return F.layer_norm(x, (width,), weight + 1, bias, 1e-12)


ids = torch.randint(0, config["vocab_size"], (3, 7))
words = add("embeddings.word_embeddings.weight", config["vocab_size"], width)
places = add("embeddings.position_embeddings.weight", config["max_position_embeddings"], width)
kinds = add("embeddings.token_type_embeddings.weight", 2, width)
x = norm(words[ids] + places[: ids.shape[1]] + kinds[0], "embeddings.LayerNorm")
tensors["embeddings.LayerNorm.weight"] += 1
for i in range(config["num_hidden_layers"]):
    layer = f"encoder.layer.{i}."

    def split(t):
        return t.reshape(3, 7, heads, width // heads).transpose(1, 2)

    q, k, v = (split(linear(x, f"{layer}attention.self.{part}", width, width))
               for part in ("query", "key", "value"))
    weights = torch.softmax(q @ k.transpose(-1, -2) / (width // heads) ** 0.5, -1)
    y = (weights @ v).transpose(1, 2).reshape(3, 7, width)
    y = linear(y, layer + "attention.output.dense", width, width)
    x = norm(y + x, layer + "attention.output.LayerNorm")
    tensors[layer + "attention.output.LayerNorm.weight"] += 1
    y = F.gelu(linear(x, layer + "intermediate.dense", config["intermediate_size"], width))
    y = linear(y, layer + "output.dense", width, config["intermediate_size"])
    x = norm(y + x, layer + "output.LayerNorm")
    tensors[layer + "output.LayerNorm.weight"] += 1
pooled = torch.tanh(linear(x[:, 0], "pooler.dense", width, width))


def save(path, table):
    kinds = {torch.float32: "F32", torch.int64: "I64"}
    header, data = {}, b""
    for name, tensor in table.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


folder = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "hf"
(folder / "tiny").mkdir(parents=True, exist_ok=True)
(folder / "tiny" / "config.json").write_text(json.dumps(config, indent=2) + "\n")
tensors["embeddings.position_ids"] = torch.arange(16).reshape(1, 16)
save(folder / "tiny" / "model.safetensors", tensors)
save(folder / "expected.safetensors", {"ids": ids, "last_hidden_state": x, "pooler_output": pooled})
print(f"{sum(t.numel() for t in tensors.values())} numbers")
