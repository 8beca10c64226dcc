#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/gguf: a file with a tensor of each packed type and what the gguf package of
llama.cpp's project makes of it (pip install gguf). Blocks are drawn at random, their scales kept
finite, so that codes occur that no quantiser writes."""
import pathlib
import struct

import gguf
import numpy as np

folder = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/gguf"
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(5)
# Where in a block half-precision numbers stand.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2],
          "Q5_K": [0, 2], "Q6_K": [208]}

writer = gguf.GGUFWriter(folder / "blocks.gguf", "llama")
writer.add_block_count(1)
writer.add_array("tokenizer.ggml.tokens", ["a", "b", "\u00e9"])
writer.add_array("some.numbers", [1.5, -2.0])
writer.add_bool("some.flag", True)
expected = {}
for name, places in SCALES.items():
    kind = gguf.GGMLQuantizationType[name]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    rows = 3
    row_blocks = 512 // values
    data = rng.integers(0, 256, (rows * row_blocks, size), dtype=np.uint8)
    for place in places:
        scales = (rng.standard_normal(len(data)) * 2.0 ** rng.integers(-12, 4, len(data)))
        data[:, place:place + 2] = scales.astype(np.float16).view(np.uint8).reshape(-1, 2)
    data = data.reshape(rows, -1)
    expected[name] = gguf.quants.dequantize(data, kind).astype(np.float32)
    assert expected[name].shape == (rows, 512)
    writer.add_tensor(name, data, raw_dtype=kind)
plain = rng.standard_normal((2, 3)).astype(np.float32)
for name, kind, data in (("F32", np.float32, plain), ("F16", np.float16, plain.astype(np.float16))):
    writer.add_tensor(name, data)
    expected[name] = data.astype(np.float32)
bfloat = (plain.view(np.uint32) >> 16).astype(np.uint16)
writer.add_tensor("BF16", bfloat.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
expected["BF16"] = (bfloat.astype(np.uint32) << 16).view(np.float32)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

# safetensors, by hand: a header in JSON and the values.
import json
header, at = {}, 0
for name, values in expected.items():
    header[name] = {"dtype": "F32", "shape": list(values.shape),
                    "data_offsets": [at, at + values.nbytes]}
    at += values.nbytes
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(folder / "blocks.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for values in expected.values():
        file.write(np.ascontiguousarray(values).tobytes())
print(sum(v.size for v in expected.values()), "values")

# A whole network, small enough to be mutated (tests/fuzz/corpus/gguf).
writer = gguf.GGUFWriter(folder.parent.parent / "fuzz/corpus/gguf/llama", "llama")
writer.add_block_count(1)
writer.add_context_length(64)
writer.add_embedding_length(32)
writer.add_feed_forward_length(32)
writer.add_head_count(2)
writer.add_head_count_kv(1)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_freq_base(10000.0)
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("smollm")
tokens = ["<|endoftext|>", "t", "o", "b", "e", "\u0120", "to", "be", "\u0120b"]
writer.add_token_list(tokens)
writer.add_token_types([3] + [1] * 8)
writer.add_token_merges(["t o", "b e", "\u0120 b"])
writer.add_eos_token_id(0)
SHAPES = {"token_embd": (9, 32), "blk.0.attn_q": (32, 32), "blk.0.attn_k": (16, 32), "blk.0.attn_v": (16, 32),
          "blk.0.attn_output": (32, 32), "blk.0.ffn_gate": (32, 32), "blk.0.ffn_up": (32, 32),
          "blk.0.ffn_down": (32, 32)}
for number, (name, shape) in enumerate(SHAPES.items()):
    kind = gguf.GGMLQuantizationType[["Q8_0", "Q4_0", "Q4_1"][number % 3]]
    values = rng.standard_normal(shape).astype(np.float32)
    writer.add_tensor(name + ".weight", gguf.quants.quantize(values, kind), raw_dtype=kind)
for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
    writer.add_tensor(name + ".weight", np.ones(32, np.float32))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
