// SPDX-License-Identifier: Apache-2.0
// Quantised networks in integers: equal to the engine on every row for every kind of format, and
// refused with the node's name where they cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/hardware/optimize/optimize.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"
#include "support/support.h"

namespace mase::test::lower_graph_test {
namespace {

Graph quantised(const std::string& model, const std::string& table, bool fuse = true) {
  Graph graph = make_model(model);
  PassContext context;
  const Graph original = graph;
  context.original = &original;
  const Value config = parse_toml(
      (fuse ? std::string("[passes.fuse_batch_norm]\n") : std::string()) + table, "config");
  run_passes(graph, pass_calls(config["passes"], "passes"), context);
  return graph;
}

std::string linear_table(const std::string& keys) {
  return "[passes.quantize]\nby = \"type\"\n[passes.quantize.default.config]\nname = \"NA\"\n"
         "[passes.quantize.linear.config]\n" +
         keys;
}

std::string integer_table(int width, int frac, const std::string& more = "") {
  std::string keys = "name = \"integer\"\n";
  for (const char* operand : {"data_in", "weight", "bias"})
    keys += fmt::format("{0}_width = {1}\n{0}_frac_width = {2}\n", operand, width, frac);
  return linear_table(keys + more);
}

// Rows with extremes and ties.
Tensor rows_for(const Graph& graph, int64_t count) {
  const int64_t features = element_count(graph.node(graph.placeholders()[0]).sample_shape);
  Tensor rows({count, features});
  Random random(3, "rows");
  for (int64_t i = 0; i < rows.numel(); ++i) {
    const uint64_t kind = random.below(4);
    rows.mutable_data<float>()[i] =
        kind == 0   ? static_cast<float>(static_cast<int64_t>(random.below(64)) - 32) / 16
        : kind == 1 ? static_cast<float>(random.normal() * 100)
                    : static_cast<float>(random.normal());
  }
  return rows;
}

void expect_equal(const Graph& graph) {
  const LoweredNetwork lowered = lower(graph);
  const Tensor x = rows_for(graph, 600);
  // Inputs and outputs of one run: a batch norm in front is single precision.
  std::map<NodeId, std::vector<float>> seen;
  std::vector<NodeId> nodes = {graph.outputs()[0]};
  for (const LoweredNetwork::Source& source : lowered.sources) nodes.push_back(source.node);
  run_observed(graph, {x}, nodes, 64, [&](NodeId node, const Tensor& part) {
    seen[node].insert(seen[node].end(), part.data<float>(), part.data<float>() + part.numel());
  });
  std::vector<Tensor> values;
  for (const LoweredNetwork::Source& source : lowered.sources)
    values.push_back(
        Tensor::of({600, static_cast<int64_t>(seen[source.node].size()) / 600}, seen[source.node]));
  const std::vector<int64_t> codes = input_codes(lowered, values);
  const std::vector<float>& engine = seen[graph.outputs()[0]];
  const Optimized optimized = optimize(lowered.graph);
  for (const IntegerGraph* integers : {&lowered.graph, &optimized.graph}) {
    const std::vector<double> mine = output_values(*integers, IntegerProgram(*integers).run(codes));
    ASSERT_EQ(mine.size(), engine.size());
    for (size_t i = 0; i < mine.size(); ++i)
      ASSERT_EQ(mine[i], static_cast<double>(engine[i])) << "value " << i;
  }
}

TEST(lower_graph, integer_formats) {
  for (const char* model : {"jsc-tiny", "jsc-toy"})
    for (const auto& [width, frac] : std::vector<std::pair<int, int>>{{8, 4}, {6, 3}, {4, 2}})
      expect_equal(quantised(model, integer_table(width, frac)));
}

TEST(lower_graph, every_rounding_and_wrap) {
  for (const std::string& rounding : rounding_names())
    for (const char* overflow : {"saturate", "wrap"})
      if (rounding != "stochastic")
        expect_equal(quantised(
            "jsc-toy", integer_table(6, 3,
                                     fmt::format("data_in_rounding = \"{}\"\ndata_in_overflow = "
                                                 "\"{}\"\n",
                                                 rounding, overflow))));
}

TEST(lower_graph, weights_of_other_formats) {
  expect_equal(quantised("jsc-tiny", linear_table("name = \"minifloat_ieee\"\n"
                                                  "data_in_width = 6\ndata_in_exponent_width = 3\n"
                                                  "weight_width = 6\nweight_exponent_width = 3\n"
                                                  "bias_width = 6\nbias_exponent_width = 3\n")));
}

std::string refusal(const Graph& graph) {
  try {
    lower(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(lower_graph, refusals_name_the_node_and_the_remedy) {
  EXPECT_THAT(refusal(make_model("jsc-toy")), testing::HasSubstr("never rounded"));
  EXPECT_THAT(refusal(quantised("jsc-toy", integer_table(8, 4), false)),
              testing::AllOf(testing::HasSubstr("seq_blocks_3"),
                             testing::HasSubstr("fuse_batch_norm before quantize")));
  EXPECT_THAT(refusal(quantised("jsc-tiny", linear_table("name = \"integer\"\ndata_in_width = 8\n"
                                                         "weight_width = 8\n"))),
              testing::AllOf(testing::HasSubstr("seq_blocks_2"), testing::HasSubstr("bias_width")));
}

// A Linear(8, 4) and one layer behind it whose result is rounded.
Graph with_last(const std::string& layer, const std::string& op) {
  const std::string path = temporary_folder() + "/n.toml";
  write(path, fmt::format("name = \"n\"\ninput = [8]\nseq_blocks = [{{type = \"Linear\", "
                          "out_features = 4}}, {{{}}}]\n",
                          layer));
  Graph graph = make_model(path);
  const Graph original = graph;
  PassContext context;
  context.original = &original;
  const Value config = parse_toml(
      integer_table(6, 3) + fmt::format("[passes.quantize.{}.config]\nname = \"integer\"\n"
                                        "data_in_width = 6\ndata_in_frac_width = 3\n"
                                        "data_out_width = 6\ndata_out_frac_width = 3\n",
                                        op),
      "config");
  run_passes(graph, pass_calls(config["passes"], "passes"), context);
  return graph;
}

// What an op computes of several numbers is no table of one.
TEST(lower_graph, an_op_says_itself_that_it_is_a_function_of_one_number) {
  for (const auto& [layer, op] : std::vector<std::pair<std::string, std::string>>{
           {"type = \"Softmax\", dim = 1", "softmax"},
           {"type = \"LogSoftmax\", dim = 1", "log_softmax"}})
    EXPECT_THAT(refusal(with_last(layer, op)),
                testing::AllOf(testing::HasSubstr("has no integer form"),
                               testing::HasSubstr("linear"), testing::HasSubstr("leaky_relu")))
        << op;
  for (const auto& [layer, op] : std::vector<std::pair<std::string, std::string>>{
           {"type = \"Sigmoid\"", "sigmoid"},
           {"type = \"Tanh\"", "tanh"},
           {"type = \"GELU\"", "gelu"},
           {"type = \"Softplus\"", "softplus"},
           {"type = \"LeakyReLU\", negative_slope = 0.1", "leaky_relu"}})
    expect_equal(with_last(layer, op));
}

// As Brevitas trains them, and ONNX files bring them: batch norms behind layers that are rounded.
TEST(lower_graph, networks_that_came_quantised_can_do_what_the_refusal_says) {
  Graph graph = quantised("jsc-toy", integer_table(8, 4), false);
  EXPECT_THAT(refusal(graph), testing::HasSubstr("fuse_batch_norm with quantized = true"));
  PassContext context;
  run_pass(graph, "fuse_batch_norm", Dict{{"quantized", true}}, context);
  expect_equal(graph);
}

}  // namespace
}  // namespace mase::test::lower_graph_test
