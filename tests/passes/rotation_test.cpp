// SPDX-License-Identifier: Apache-2.0
// rotate: matrices that are orthogonal, the weights of another implementation, the same outputs
// from every family of networks that can be rotated, and reasons from those that cannot.
#include <cmath>

#include "mase/ir/evaluate.h"
#include "mase/models/hf.h"
#include "mase/passes/format_error.h"
#include "mase/passes/pass.h"
#include "mase/passes/rotation.h"
#include "mase/run/network.h"
#include "passes/networks.h"

namespace mase::rotation_test {
namespace {

double from_orthogonal(const Matrix& q, int64_t n) {
  double worst = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double dot = 0;
      for (int64_t c = 0; c < n; ++c)
        dot += q[static_cast<size_t>(i * n + c)] * q[static_cast<size_t>(j * n + c)];
      worst = std::max(worst, std::fabs(dot - (i == j)));
    }
  return worst;
}

TEST(Rotation, MatricesAreOrthogonalAndKeepTheMeanWhereAsked) {
  for (const int64_t n : {1, 2, 3, 16, 24, 36, 64})
    for (const bool hadamard : {true, false})
      for (const bool mean : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {} {}", n, hadamard, mean));
        const Matrix q = drawn_rotation(n, {hadamard, mean}, 3, "test");
        ASSERT_EQ(q.size(), static_cast<size_t>(n * n));
        EXPECT_LT(from_orthogonal(q, n), 1e-12);
        EXPECT_EQ(q, drawn_rotation(n, {hadamard, mean}, 3, "test"));
        if (n > 2) {
          EXPECT_NE(q, drawn_rotation(n, {hadamard, mean}, 4, "test"));
        }
        for (int64_t j = 0; j < n && mean; ++j) {
          double sum = 0;
          for (int64_t i = 0; i < n; ++i) sum += q[static_cast<size_t>(i * n + j)];
          EXPECT_NEAR(sum, 1, 1e-12);
        }
        // Every entry of a Hadamard matrix has the same magnitude.
        const bool even = hadamard && !mean && n == 16;
        for (size_t i = 0; even && i < q.size(); ++i) EXPECT_NEAR(std::fabs(q[i]), 0.25, 1e-12);
      }
}

Matrix doubles(const Tensor& tensor) {
  const Tensor as = tensor.to(DType::f64);
  return {as.data<double>(), as.data<double>() + as.numel()};
}

Graph folder_network(const std::string& path) { return graph_of_file(test::golden_path(path)); }

TEST(Rotation, HasTheWeightsOfTheReference) {
  std::map<std::string, Tensor> golden;
  for (const auto& [name, tensor] :
       load_safetensors(test::golden_path("ptq/quarot_llama_outlier.safetensors")))
    golden[name] = tensor;
  Graph graph = folder_network("ptq/llama_outlier");
  Dict left;
  const std::vector<RotationStream> streams = rotation_streams(graph, left);
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].layers.size(), 4u);
  EXPECT_EQ(streams[0].norms.size(), 5u);
  EXPECT_FALSE(streams[0].takes_mean);
  rotate_stream(graph, streams[0], doubles(golden.at("rotation_R")));
  const std::vector<RotationHeads> heads = rotation_heads(graph, left);
  ASSERT_EQ(heads.size(), 2u);
  Matrix each = doubles(golden.at("hadamard16"));
  if (from_orthogonal(each, 16) > 1e-6)
    for (double& value : each) value /= 4;
  for (const RotationHeads& one : heads) rotate_heads(graph, one, each);
  int compared = 0;
  for (const auto& [name, tensor] : state_dict(graph)) {
    const auto wanted = golden.find(name);
    if (wanted == golden.end()) {  // norms, whose gains are 1
      for (int64_t i = 0; i < tensor.numel(); ++i) EXPECT_EQ(tensor.item(i), 1) << name;
      continue;
    }
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      largest = std::max(largest, std::fabs(wanted->second.item(i)));
      worst = std::max(worst, std::fabs(wanted->second.item(i) - tensor.item(i)));
    }
    EXPECT_LT(worst, 2e-6 * largest) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 16);
}

Tensor drawn_tokens(int64_t rows, int64_t length, int64_t vocabulary) {
  Random random(5, "tokens");
  Tensor ids({rows, length});
  for (int64_t i = 0; i < ids.numel(); ++i)
    ids.mutable_data<float>()[i] =
        static_cast<float>(random.below(static_cast<uint64_t>(vocabulary)));
  return ids;
}

TEST(Rotation, NetworksComputeWhatTheyDid) {
  // Rotations that each family takes: gpt2's values come out of one layer with queries and keys,
  // and norms of encoders stand behind their sums.
  const std::map<std::string, size_t> wanted = {
      {"llama_bf16", 2}, {"mistral", 2},  {"qwen3", 2},         {"gpt2", 1},
      {"opt", 2},        {"bert_cls", 1}, {"distilbert_cls", 1}};
  for (const auto& [name, turned] : wanted)
    for (const char* kind : {"hadamard", "orthogonal"}) {
      SCOPED_TRACE(name + std::string(" ") + kind);
      Graph graph = folder_network("language/" + name);
      const Graph before = graph;
      const Shape one = graph.node(graph.placeholders().front()).sample_shape;
      PassContext context;
      if (graph.placeholders().size() == 1) context.samples = drawn_tokens(24, one[0], 250);
      const PassResult result = run_pass(graph, "rotate", Dict{{"kind", kind}}, context);
      EXPECT_TRUE(result.changed);
      EXPECT_EQ(result.data["rotations"].as_dict().size(), turned);
      EXPECT_LT(result.data["change_without_formats"].as_double(), 1e-5);
      // Weights were turned indeed, and a network made anew for other lengths is the same.
      EXPECT_NE(state_dict(before).size(), 0u);
      double moved = 0;
      for (const auto& [key, tensor] : state_dict(before))
        if (const Tensor* now = graph.tensor(key)) moved += now->same_bits(tensor) ? 0 : 1;
      EXPECT_GE(moved, 4);
      if (graph.placeholders().size() > 1) continue;
      const Tensor ids = drawn_tokens(2, 9, 250);
      EXPECT_LT(largest_change(resized_hf_network(before, {.shapes = {{9}}}),
                               resized_hf_network(graph, {.shapes = {{9}}}), {ids}),
                1e-5);
    }
}

TEST(Rotation, OutliersSpread) {
  Graph graph = folder_network("ptq/llama_outlier");
  PassContext context;
  context.samples = drawn_tokens(24, graph.node(graph.placeholders().front()).sample_shape[0], 250);
  Graph quantized = graph;
  run_pass(quantized, "quantize",
           parse_toml("by = \"type\"\n[linear.config]\nname = \"scale_integer\"\n"
                      "weight_width = 4\nweight_only = true\n",
                      "t"),
           context);
  const Graph reference = graph;
  const double before = output_format_error(reference, quantized, {context.samples});
  const PassResult result = run_pass(quantized, "rotate", Dict{}, context);
  for (const auto& [name, turn] : result.data["rotations"].as_dict()) {
    if (!turn["kept"].as_bool()) continue;
    EXPECT_LE(turn["heldout_after"].as_double(), turn["heldout_before"].as_double()) << name;
  }
  EXPECT_LE(output_format_error(reference, quantized, {context.samples}), 1.05 * before);
}

TEST(Rotation, NothingToRotateIsSaid) {
  test::GoldenNetwork golden = test::golden_network("jsc-tiny");
  std::string said;
  PassContext context;
  context.print = [&](const std::string& text) { said += text; };
  const PassResult result = run_pass(golden.graph, "rotate", Dict{}, context);
  EXPECT_FALSE(result.changed);
  EXPECT_NE(said.find("nothing can be rotated"), std::string::npos);
  // A pruned layer keeps its zeros.
  Graph graph = folder_network("language/llama_bf16");
  Module& layer = graph.modules().at("model.layers.0.mlp.down_proj");
  Tensor mask(layer.find("weight")->shape());
  layer.masks.emplace_back("weight", mask);
  Dict left;
  EXPECT_TRUE(rotation_streams(graph, left).empty());
  EXPECT_NE(to_json(Value(left)).find("is pruned"), std::string::npos);
}

}  // namespace
}  // namespace mase::rotation_test
