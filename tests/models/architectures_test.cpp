// SPDX-License-Identifier: Apache-2.0
// Networks of Hugging Face folders against what the transformers library computed with them
// (tests/golden/language): whole rows, rows padded behind and in front, single rows.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/evaluate.h"
#include "mase/models/hf.h"
#include "mase/models/rope.h"
#include "support/support.h"

namespace mase::architectures_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::golden_path("language")))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

struct Folder {
  std::string path;
  Checkpoint checkpoint;
  std::map<std::string, Tensor> io;

  explicit Folder(const std::string& name)
      : path(test::golden_path("language/" + name)), checkpoint(load_checkpoint(path)) {
    for (auto& [key, tensor] : load_safetensors(path + "/io.safetensors")) io[key] = tensor;
  }

  Graph graph(const std::vector<Tensor>& inputs) const {
    HfOptions options;
    for (const Tensor& input : inputs)
      options.shapes.emplace_back(input.shape().begin() + 1, input.shape().end());
    Checkpoint own = checkpoint;
    Graph made = make_hf_network(own.contents, own.tensors, options, path);
    verify(made);
    const LoadReport report = load_into(made, own, path);
    EXPECT_EQ(report.taken.size(), own.tensors.size());
    return made;
  }
};

Tensor row_of(const Tensor& all, int64_t row) {
  Shape shape = all.shape();
  shape[0] = 1;
  Tensor one(shape, all.dtype());
  std::copy_n(all.raw() + static_cast<size_t>(row) * one.bytes(), one.bytes(), one.mutable_raw());
  return one;
}

// Where the mask is 0 nothing is said. The tolerance is relative to the largest value.
void expect_near(const Tensor& got, const Tensor& wanted, const Tensor* mask,
                 const std::string& what, double tolerance = 1e-5) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  double most = 1, worst = 0;
  for (int64_t i = 0; i < wanted.numel(); ++i) most = std::max(most, std::fabs(wanted.item(i)));
  const int64_t each = mask ? wanted.numel() / mask->numel() : 1;
  for (int64_t i = 0; i < wanted.numel(); ++i) {
    if (mask && wanted.shape().size() == 3 && mask->item(i / each) == 0) continue;
    const double error = std::fabs(got.item(i) - wanted.item(i));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  EXPECT_LE(worst, tolerance * most) << what;
}

struct Case {
  std::string expected;
  std::vector<std::string> inputs;
};

std::vector<Case> cases() {
  return {{"logits", {"input_ids"}},
          {"logits", {"pixel_values"}},
          {"logits_mask_right", {"input_ids", "mask_right"}},
          {"logits_mask_left", {"input_ids_left", "mask_left"}},
          {"logits_mask_left", {"input_ids_left", "mask_left", "position_ids_left"}},
          {"full_logits", {"input_ids", "mask_none", "token_type_ids"}},
          {"right_logits", {"input_ids_right", "mask_right", "token_type_ids"}},
          {"left_logits", {"input_ids_left", "mask_left", "token_type_ids"}},
          {"notypes_logits", {"input_ids"}}};
}

TEST(Architectures, GiveWhatTransformersGives) {
  size_t compared = 0;
  for (const std::string& name : folders()) {
    const Folder folder(name);
    for (const Case& one : cases()) {
      std::vector<Tensor> inputs;
      for (const std::string& key : one.inputs)
        if (folder.io.contains(key)) inputs.push_back(folder.io.at(key));
      const bool types = one.inputs.back() == "token_type_ids" && name != "bert_cls";
      if (!folder.io.contains(one.expected) || inputs.size() + (types ? 1 : 0) < one.inputs.size())
        continue;
      const Graph graph = folder.graph(inputs);
      const Tensor got = run(graph, inputs).at(0);
      const Tensor* mask = inputs.size() > 1 ? &inputs[1] : nullptr;
      expect_near(got, folder.io.at(one.expected), mask, name + ": " + one.expected);
      // A row alone gives what it gives among others, to the last figures.
      for (int64_t row = 0; row < got.dim(0); ++row) {
        std::vector<Tensor> alone;
        for (const Tensor& input : inputs) alone.push_back(row_of(input, row));
        const Tensor only = mask ? row_of(*mask, row) : Tensor();
        expect_near(run(graph, alone).at(0), row_of(got, row), mask ? &only : nullptr,
                    name + ": a row alone", 1e-6);
      }
      ++compared;
    }
  }
  // 7 decoders in 4 cases, bert in 4, roberta and distilbert in 3, vit in 1.
  EXPECT_EQ(compared, 39u);
}

// The ops' own double precision, which nothing was made fast in.
TEST(Architectures, ReferenceCodeAgrees) {
  for (const char* name : {"mistral", "qwen3", "opt"}) {
    const Folder folder(name);
    const std::vector<Tensor> inputs = {folder.io.at("input_ids_left"), folder.io.at("mask_left")};
    std::vector<Array> arrays;
    for (const Tensor& input : inputs) arrays.push_back(Array::from(input));
    const Array got = evaluate(folder.graph(inputs), arrays).at(0);
    expect_near(got.to_tensor(), folder.io.at("logits_mask_left"), &inputs[1], name);
  }
}

TEST(Architectures, WeightsGoBackAsTheyCame) {
  for (const std::string& name : folders()) {
    const Folder folder(name);
    const std::string first = name == "vit" ? "pixel_values" : "input_ids";
    const Graph graph = folder.graph({folder.io.at(first)});
    std::map<std::string, Tensor> back;
    for (auto& [key, tensor] : hf_tensors(graph)) back[key] = tensor;
    ASSERT_EQ(back.size(), folder.checkpoint.tensors.size()) << name;
    for (const auto& [key, tensor] : folder.checkpoint.tensors)
      EXPECT_TRUE(back.at(key).same_bits(tensor.to(DType::f32))) << name << ": " << key;
  }
}

TEST(Architectures, ADescriptionCannotClaimMoreThanThereIs) {
  const Folder folder("mistral");
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "head_dim", "num_key_value_heads"})
    for (const int64_t size : {int64_t{0}, int64_t{-1}, int64_t{1} << 24, int64_t{1} << 40}) {
      Checkpoint own = folder.checkpoint;
      own.contents[key] = size;
      EXPECT_THROW(
          {
            Graph graph = make_hf_network(own.contents, own.tensors, {}, "there");
            load_into(graph, own, "there");
          },
          Error)
          << key << " " << size;
    }
}

Value rope_config(Dict scaling) {
  return Dict{{"max_position_embeddings", 64}, {"rope_scaling", Value(std::move(scaling))}};
}

TEST(Architectures, RopeScalings) {
  const Rope plain = rope_of(Dict{{"rope_theta", 10000.0}}, 8, 16, "there");
  ASSERT_EQ(plain.frequencies.size(), 4u);
  EXPECT_FLOAT_EQ(plain.frequencies[1], 0.1f);
  const Rope slow = rope_of(rope_config({{"type", "linear"}, {"factor", 4.0}}), 8, 16, "there");
  EXPECT_FLOAT_EQ(slow.frequencies[1], 0.025f);
  // Within the length it was trained for nothing changes; beyond it the base grows.
  const auto dynamic = [](int64_t tokens) {
    return rope_of(rope_config({{"type", "dynamic"}, {"factor", 2.0}}), 8, tokens, "there");
  };
  EXPECT_EQ(dynamic(64).frequencies, plain.frequencies);
  EXPECT_NEAR(dynamic(128).frequencies[1], std::pow(10000 * std::pow(3, 8.0 / 6), -0.25), 1e-6);
  const Rope yarn = rope_of(rope_config({{"rope_type", "yarn"}, {"factor", 4.0}}), 8, 16, "there");
  EXPECT_NEAR(yarn.scale, 0.1 * std::log(4.0) + 1, 1e-12);
  EXPECT_FLOAT_EQ(yarn.frequencies[0], 1.0f);
  EXPECT_FLOAT_EQ(yarn.frequencies[3], plain.frequencies[3] / 4);
  EXPECT_THROW(rope_of(rope_config({{"type", "longrope"}}), 8, 16, "there"), Error);
  EXPECT_THROW(rope_of(rope_config({{"type", "linear"}, {"factor", -1.0}}), 8, 16, "there"), Error);
}

}  // namespace
}  // namespace mase::architectures_test
