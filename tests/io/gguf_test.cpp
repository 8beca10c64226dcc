// SPDX-License-Identifier: Apache-2.0
// GGUF: blocks as the gguf package unpacks them, networks as the folders they were made from,
// tokenizers as the tokenizer.json they stand for, and damaged files.
#include "mase/io/gguf/gguf_file.h"

#include <cmath>
#include <map>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/models/hf.h"
#include "mase/run/network.h"
#include "mase/text/tokenizer.h"
#include "support/gguf_written.h"
#include "support/support.h"

namespace mase::gguf_test {
namespace {

TEST(Gguf, BlocksAreThoseOfTheGgufPackageToTheBit) {
  const std::string path = test::golden_path("gguf/blocks.gguf");
  const Checkpoint file = inspect_checkpoint(path);
  const TensorTable wanted = load_safetensors(test::golden_path("gguf/blocks.safetensors"));
  std::map<std::string, Tensor> expected(wanted.begin(), wanted.end());
  ASSERT_EQ(file.tensors.size(), expected.size());
  for (const auto& [name, tensor] : file.tensors)
    EXPECT_TRUE(tensor.to(DType::f32).same_bits(expected.at(name))) << name;
  EXPECT_EQ(file.contents["number types"]["Q6_K"].as_int(), 1);
  EXPECT_EQ(file.contents["some.numbers"].as_list()[0].as_double(), 1.5);
}

TEST(Gguf, CodesWithTheirStepsAreTheNumbers) {
  const std::shared_ptr<const MappedFile> mapped =
      MappedFile::open(test::golden_path("gguf/blocks.gguf"));
  MemoryBudget budget({}, mapped->bytes().size());
  const GgufFile file(mapped->bytes(), "blocks.gguf", budget);
  int packed = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.type->unpack) continue;
    ++packed;
    const GgufCodes codes = gguf_codes(*tensor.type, tensor.bytes);
    const Tensor wide = gguf_tensor(tensor, mapped, budget, "blocks.gguf");
    const int low = tensor.type->is_signed ? -(1 << (tensor.type->bits - 1)) : 0;
    ASSERT_EQ(static_cast<int64_t>(codes.codes.size()), wide.numel());
    for (int64_t i = 0; i < wide.numel(); ++i) {
      const auto group = static_cast<size_t>(i / codes.group);
      const int code = codes.codes[static_cast<size_t>(i)];
      ASSERT_GE(code, low);
      ASSERT_LT(code, low + (1 << tensor.type->bits));
      float value = codes.steps[group] * static_cast<float>(code);
      if (!codes.offsets.empty()) value += codes.offsets[group];
      ASSERT_EQ(value, wide.data<float>()[i]) << tensor.name << " " << i;
    }
  }
  EXPECT_EQ(packed, 8);
}

// Rows of heads as llama.cpp's conversion lays them: the two halves take turns.
Tensor paired(const Tensor& tensor, int64_t heads) {
  const int64_t rows = tensor.dim(0), width = tensor.numel() / rows, half = rows / heads / 2;
  Tensor to(tensor.shape());
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t j = 0; j < half; ++j)
      for (int64_t t = 0; t < 2; ++t)
        std::copy_n(tensor.data<float>() + ((h * 2 + t) * half + j) * width, width,
                    to.mutable_data<float>() + ((h * half + j) * 2 + t) * width);
  return to;
}

struct Family {
  std::string folder, architecture;
  std::vector<std::pair<std::string, std::string>> names;  // of a folder, of GGUF
};

void settings_of(test::GgufWriter& writer, const Value& config, const std::string& architecture) {
  writer.text("general.architecture", architecture);
  const auto whole = [&](const char* gguf, const char* hf) {
    if (config[hf].is_int())
      writer.whole(architecture + "." + gguf, static_cast<uint32_t>(config[hf].as_int()));
  };
  for (const auto& [gguf, hf] : {std::pair{"block_count", "num_hidden_layers"},
                                 {"block_count", "n_layer"},
                                 {"embedding_length", "hidden_size"},
                                 {"embedding_length", "n_embd"},
                                 {"feed_forward_length", "intermediate_size"},
                                 {"attention.head_count", "n_head"},
                                 {"attention.head_count", "num_attention_heads"},
                                 {"attention.head_count_kv", "num_key_value_heads"},
                                 {"attention.key_length", "head_dim"},
                                 {"attention.value_length", "head_dim"},
                                 {"rope.dimension_count", "head_dim"},
                                 {"context_length", "max_position_embeddings"},
                                 {"context_length", "n_positions"}})
    whole(gguf, hf);
  if (architecture == "gpt2") {
    writer.whole("gpt2.feed_forward_length", static_cast<uint32_t>(4 * config["n_embd"].as_int()));
    writer.number("gpt2.attention.layer_norm_epsilon", 1e-5f);
    return;
  }
  writer.number(architecture + ".attention.layer_norm_rms_epsilon",
                static_cast<float>(config["rms_norm_eps"].as_double()));
  writer.number(architecture + ".rope.freq_base",
                static_cast<float>(config["rope_parameters"]["rope_theta"].as_double()));
}

const std::vector<std::pair<std::string, std::string>> llama_names = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"model.layers.", "blk."},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"}};
const std::vector<std::pair<std::string, std::string>> gpt2_names = {
    {"transformer.wte", "token_embd"},
    {"transformer.wpe", "position_embd"},
    {"transformer.ln_f", "output_norm"},
    {"transformer.h.", "blk."},
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"}};

TEST(Gguf, NetworksAreThoseOfTheFolders) {
  const std::string to = test::temporary_folder() + "/net.gguf";
  for (const Family& family :
       {Family{"llama_sharded", "llama", llama_names}, Family{"llama_bf16", "llama", llama_names},
        Family{"qwen3", "qwen3", llama_names}, Family{"gpt2", "gpt2", gpt2_names}}) {
    const std::string from = test::golden_path("language/" + family.folder);
    const Checkpoint folder = load_checkpoint(from);
    test::GgufWriter writer;
    settings_of(writer, folder.contents, family.architecture);
    for (auto [name, tensor] : folder.tensors) {
      Tensor values = tensor.to(DType::f32);
      const Value& heads = folder.contents["num_attention_heads"];
      if (family.architecture == "llama" && name.find("q_proj") != std::string::npos)
        values = paired(values, heads.as_int());
      if (family.architecture == "llama" && name.find("k_proj") != std::string::npos)
        values = paired(values, folder.contents["num_key_value_heads"].as_int());
      for (const char* turned : {"c_attn.weight", "c_proj.weight", "c_fc.weight"}) {
        if (!name.ends_with(turned)) continue;
        Tensor other({values.dim(1), values.dim(0)});
        for (int64_t i = 0; i < other.numel(); ++i)
          other.mutable_data<float>()[i] =
              values.data<float>()[i % values.dim(0) * values.dim(1) + i / values.dim(0)];
        values = other;
      }
      for (const auto& [own, other] : family.names) name = replace_all(name, own, other);
      writer.tensor(name, values);
    }
    writer.write(to);
    std::map<std::string, Tensor> io;
    for (auto& [key, tensor] : load_safetensors(from + "/io.safetensors")) io[key] = tensor;
    const Tensor& ids = io.at("input_ids");
    const Graph graph = graph_of_file(to, {ids.shape()});
    EXPECT_EQ(hf_config(graph)["model_type"], family.architecture);
    const Tensor got = run(graph, {ids}).at(0), &wanted = io.at("logits");
    ASSERT_EQ(got.shape(), wanted.shape());
    double most = 1;
    for (int64_t i = 0; i < wanted.numel(); ++i) most = std::max(most, std::fabs(wanted.item(i)));
    for (int64_t i = 0; i < wanted.numel(); ++i)
      ASSERT_NEAR(got.item(i), wanted.item(i), 1e-5 * most) << family.folder << " " << i;
  }
}

// The vocabulary of a tokenizer.json in GGUF's form.
void tokens_of(test::GgufWriter& writer, const Value& file) {
  const Dict& vocabulary = file["model"]["vocab"].as_dict();
  std::vector<std::string> tokens(vocabulary.size());
  for (const auto& [token, id] : vocabulary) tokens.at(static_cast<size_t>(id.as_int())) = token;
  std::vector<int32_t> kinds(tokens.size(), 1);
  for (const Value& added : file["added_tokens"].as_list())
    kinds.at(static_cast<size_t>(added["id"].as_int())) = 3;
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.list("tokenizer.ggml.token_type", 5, kinds);
}

TEST(Gguf, TokenizersAreThoseOfTheirJson) {
  const Value strings = read_json(test::golden_path("text/strings.json"));
  const std::string path = test::temporary_folder() + "/words.gguf";
  for (const auto& [name, splitter] :
       {std::pair{"bpe_gpt2", "gpt-2"}, {"bpe_metaspace", ""}, {"bpe_split_n3", "llama-bpe"}}) {
    const std::string json = test::golden_path(fmt::format("text/{}.tokenizer.json", name));
    const Value file = read_json(json);
    test::GgufWriter writer;
    tokens_of(writer, file);
    if (*splitter) {
      writer.text("tokenizer.ggml.model", "gpt2");
      writer.text("tokenizer.ggml.pre", splitter);
      std::vector<std::string> merges;
      for (const Value& merge : file["model"]["merges"].as_list())
        merges.push_back(merge.is_string() ? merge.as_string()
                                           : merge.as_list()[0].as_string() + " " +
                                                 merge.as_list()[1].as_string());
      writer.texts("tokenizer.ggml.merges", merges);
    } else {
      writer.text("tokenizer.ggml.model", "llama");
      std::vector<float> scores;
      for (size_t i = 0; i < file["model"]["vocab"].as_dict().size(); ++i)
        scores.push_back(-static_cast<float>(i));
      writer.list("tokenizer.ggml.scores", 6, scores);
      writer.whole("tokenizer.ggml.unknown_token_id", 0);
    }
    const Value& single = file["post_processor"]["single"];
    if (single.is_list() && single.as_list().size() > 1)
      writer.whole(
          "tokenizer.ggml.bos_token_id",
          static_cast<uint32_t>(file["post_processor"]["special_tokens"]
                                    [single.as_list()[0]["SpecialToken"]["id"].as_string()]["ids"]
                                        .as_list()[0]
                                        .as_int()));
    writer.write(path);
    const Tokenizer own = Tokenizer::load(path), wanted = Tokenizer::load(json);
    EXPECT_TRUE(Tokenizer::is_in(path));
    for (const Value& text : strings.as_list()) {
      const std::vector<int32_t> ids = wanted.ids(text.as_string());
      EXPECT_EQ(own.ids(text.as_string()), ids) << name << ": " << text.as_string().substr(0, 60);
      EXPECT_EQ(own.decode(ids, true), wanted.decode(ids, true)) << name;
    }
  }
}

std::string fault(const std::string& bytes) {
  const std::string path = test::temporary_folder() + "/x.gguf";
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    graph_of_file(path);
  } catch (const Error& error) {
    return std::string(error.what()).substr(path.size());
  }
  return "";
}

TEST(Gguf, WhatCannotBeIsOneLine) {
  test::GgufWriter writer;
  writer.text("general.architecture", "mamba");
  writer.tensor("token_embd.weight", Tensor({4, 8}));
  EXPECT_NE(fault(writer.bytes()).find("architecture 'mamba'; known in GGUF files: gpt2, llama"),
            std::string::npos);
  writer.text("general.architecture", "llama");
  EXPECT_NE(fault(writer.bytes()).find("'general.architecture' is there twice"), std::string::npos);
  std::string bytes = test::GgufWriter().bytes();
  EXPECT_NE(fault(bytes).find("holds no tensors"), std::string::npos);
  bytes[4] = '\1';
  EXPECT_NE(fault(bytes).find("is GGUF of version 1"), std::string::npos);
  bytes[4] = '\3';
  bytes[8] = '\x7f';  // so many tensors
  EXPECT_NE(fault(bytes).find("127 tensors cannot be in it"), std::string::npos);
  test::GgufWriter two;
  two.tensor("a", Tensor({1024}));
  const std::string whole = two.bytes();
  EXPECT_NE(fault(whole.substr(0, whole.size() - 5)).find("would lie at byte 0"),
            std::string::npos);
  std::string other = whole;
  other[other.find('a') + 4 + 4 + 5] = '\x0a';  // its dimension
  EXPECT_FALSE(fault(other).empty());
}

TEST(Gguf, EveryCutAndEveryChangedByteOfAHeadIsToldInOneLine) {
  const std::string whole = read_text_file(test::golden_path("gguf/blocks.gguf"));
  for (size_t size = 0; size < 1200; size += 3) {
    const std::string said = fault(whole.substr(0, size));
    EXPECT_FALSE(said.empty()) << size;
    EXPECT_EQ(said.find('\n'), std::string::npos);
  }
  for (size_t i = 4; i < 1200; ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x81);
    EXPECT_FALSE(fault(bytes).empty()) << i;  // it is no network anyway
  }
}

}  // namespace
}  // namespace mase::gguf_test
