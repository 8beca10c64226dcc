// SPDX-License-Identifier: Apache-2.0
// The other transforms: pruning exact to the weight, fused batch-norms, dropout taken out, frozen
// layers and scales, calibration.
#include <cmath>
#include <map>

#include "mase/base/random.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/observe.h"
#include "mase/passes/pass.h"
#include "passes/networks.h"

namespace mase::transforms_test {
namespace {

std::vector<float> outputs(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<float> all;
  observe_nodes(graph, inputs, graph.outputs(), [&](NodeId, const Tensor& y) {
    all.insert(all.end(), y.values<float>().begin(), y.values<float>().end());
  });
  return all;
}

int64_t zeros(const Tensor& tensor) {
  int64_t count = 0;
  for (const float value : tensor.values<float>()) count += value == 0;
  return count;
}

Value weight_args(double sparsity, const char* method = "l1-norm", const char* scope = "local",
                  const char* granularity = "elementwise") {
  return Dict{{"weight", Dict{{"sparsity", sparsity},
                              {"method", method},
                              {"scope", scope},
                              {"granularity", granularity}}}};
}

TEST(Prune, RemovesExactlyTheShare) {
  const std::vector<float> weights = {1, -2, 3, -4, 5, -6, 7, 8};
  for (const auto& [sparsity, kept] :
       std::vector<std::pair<double, int64_t>>{{0.0, 8}, {0.25, 6}, {0.5, 4}, {0.9, 1}, {1.0, 0}}) {
    for (const char* method : {"l1-norm", "random"}) {
      Graph graph = test::one_layer(weights, 2, 4);
      PassContext context;
      run_pass(graph, "prune", weight_args(sparsity, method), context);
      const Module& module = graph.modules().at("fc");
      EXPECT_EQ(8 - zeros(*module.find("weight")), kept) << sparsity << method;
      EXPECT_EQ(module.masks.empty(), kept == 8);
    }
  }
}

TEST(Prune, BreaksTiesByIndex) {
  Graph graph = test::one_layer({1, 1, 1, 1, 1, 1, 1, 1}, 2, 4);
  PassContext context;
  run_pass(graph, "prune", weight_args(0.5), context);
  const std::vector<float> wanted = {0, 0, 0, 0, 1, 1, 1, 1};
  const auto values = graph.modules().at("fc").find("weight")->values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), wanted);
}

TEST(Prune, WholeChannelsBySumOfMagnitudes) {
  Graph graph = test::one_layer({1, -9, 1, 1, 2, 2, 2, 2, 3, 3, 0, 0, 4, 0, 0, 0}, 4, 4);
  PassContext context;
  run_pass(graph, "prune", weight_args(0.5, "l1-norm", "local", "channel"), context);
  const auto values = graph.modules().at("fc").find("weight")->values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{1, -9, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Prune, GlobalShareHoldsOverAllLayers) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Graph graph = make_model("jsc-10x", {.seed = seed});
    PassContext context;
    context.seed = seed;
    const PassResult result = run_pass(
        graph, "prune", weight_args(0.37, seed % 2 ? "random" : "l1-norm", "global"), context);
    EXPECT_EQ(result.data["weights"], Value(3040));
    EXPECT_EQ(result.data["removed"], Value(static_cast<int64_t>(std::llround(0.37 * 3040))));
  }
}

TEST(Prune, LeastWeightsGoFirst) {
  Graph graph = make_model("jsc-10x");
  const Graph before = graph;
  PassContext context;
  run_pass(graph, "prune", weight_args(0.6), context);
  for (const auto& [path, module] : graph.modules()) {
    if (module.op != "linear") continue;
    double largest_removed = 0, least_kept = INFINITY;
    const Tensor& old = *before.modules().at(path).find("weight");
    for (int64_t i = 0; i < old.numel(); ++i) {
      const double size = std::abs(old.item(i));
      if (module.masks.front().second.item(i) == 0)
        largest_removed = std::max(largest_removed, size);
      else
        least_kept = std::min(least_kept, size);
    }
    EXPECT_LE(largest_removed, least_kept);
  }
}

TEST(Prune, MasksTravelInSavedGraphs) {
  Graph graph = make_model("jsc-toy");
  PassContext context;
  run_pass(graph, "prune", weight_args(0.5), context);
  const std::string path = test::temporary_folder() + "/pruned.mz";
  save_mz(path, graph);
  const Checkpoint checkpoint = load_checkpoint(path);
  ASSERT_TRUE(checkpoint.graph);
  EXPECT_TRUE(checkpoint.graph->modules()
                  .at("seq_blocks.2")
                  .masks.at(0)
                  .second.same_bits(graph.modules().at("seq_blocks.2").masks.at(0).second));
}

TEST(Prune, InputFeaturesBecomeColumns) {
  Graph graph = test::one_layer({1, 2, 3, 4, 5, 6, 7, 8}, 2, 4);
  PassContext context;
  context.samples = Tensor::of({2, 4}, {5, 0.1f, 3, 0.2f, -5, 0.1f, 3, 0.2f});
  run_pass(graph, "prune", Dict{{"activation", Dict{{"sparsity", 0.5}}}}, context);
  const auto values = graph.modules().at("fc").find("weight")->values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{1, 0, 3, 0, 5, 0, 7, 0}));
}

TEST(FuseBatchNorm, KeepsOutputsOnTheGoldenNetworks) {
  for (const char* name : {"jsc-toy", "jsc-10x", "jsc-toy10x"}) {
    test::GoldenNetwork golden = test::golden_network(name);
    Graph fused = golden.graph;
    PassContext context;
    const PassResult result = run_pass(fused, "fuse_batch_norm", Value(), context);
    EXPECT_TRUE(result.changed);
    const std::vector<float> after = outputs(fused, {golden.x});
    for (size_t i = 0; i < after.size(); ++i)
      EXPECT_NEAR(after[i], golden.logits.data<float>()[i], 1e-4) << name;
    int norms = 0;
    for (const auto& [path, module] : fused.modules()) norms += module.op == "batch_norm1d";
    EXPECT_EQ(norms, 1) << name;  // the first one, on the input
  }
}

TEST(FuseBatchNorm, GivesABiasToALayerWithoutOne) {
  Random random(5, "fuse");
  Graph graph;
  graph.name = "nobias";
  const NodeId x = graph.add_placeholder("x", {3});
  const NodeId fc = graph.add_module(
      "fc",
      make_module("linear", Dict{{"in_features", 3}, {"out_features", 2}, {"bias", false}}, 0,
                  "fc"),
      {x});
  graph.add_output({graph.add_module(
      "bn", make_module("batch_norm1d", Dict{{"num_features", 2}}, 0, "bn"), {fc})});
  test::shake(graph, random);
  const Tensor input = Tensor::of({2, 3}, {1, 2, 3, -1, 0.5f, 2});
  const std::vector<float> before = outputs(graph, {input});
  PassContext context;
  run_pass(graph, "fuse_batch_norm", Value(), context);
  EXPECT_EQ(layer_text(graph, *graph.find("fc")),
            "Linear(in_features=3, out_features=2, bias=True)");
  const std::vector<float> after = outputs(graph, {input});
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-5);
}

TEST(RemoveDropout, IsTheSameToTheBit) {
  Graph graph = make_model("jsc-trt");
  const Graph before = graph;
  PassContext context;
  EXPECT_TRUE(run_pass(graph, "remove_dropout", Value(), context).changed);
  EXPECT_FALSE(run_pass(graph, "remove_dropout", Value(), context).changed);
  Tensor input({7, 16});
  Random random(1, "x");
  for (int64_t i = 0; i < input.numel(); ++i)
    input.mutable_data<float>()[i] = static_cast<float>(random.normal());
  EXPECT_EQ(outputs(before, {input}), outputs(graph, {input}));
}

TEST(Freeze, CountsNoFrozenParameters) {
  Graph graph = make_model("jsc-toy");
  PassContext context;
  const int64_t all = graph.parameter_count();
  const PassResult result =
      run_pass(graph, "freeze", Dict{{"target_nodes", List{Value("linear")}}}, context);
  EXPECT_EQ(result.data["trainable_parameters"], Value(all - (136 + 72 + 45)));
  run_pass(graph, "freeze", Dict{{"frozen", false}}, context);
  EXPECT_EQ(graph.parameter_count(), all);
}

// One layer of learned steps (each output its own) and a learned clip, as training leaves it.
Graph learned_layer(bool found) {
  Random random(7, "learned");
  std::vector<float> weights(12);
  for (float& weight : weights) weight = static_cast<float>(random.normal());
  Graph graph = test::one_layer(weights, 3, 4);
  const Value config(Dict{{"name", "scale_integer"},
                          {"data_in_width", 4},
                          {"data_in_clip", "learned"},
                          {"weight_width", 4},
                          {"weight_scale", "learned"},
                          {"weight_granularity", "row"}});
  PassContext context;
  run_pass(graph, "quantize", Dict{{"default", Dict{{"config", config}}}}, context);
  if (found) graph.modules().at("fc").find("data_in_clip")->mutable_data<float>()[0] = 1.7f;
  return graph;
}

Tensor drawn_rows(int64_t rows, int64_t features) {
  Tensor input({rows, features});
  Random random(2, "rows");
  for (int64_t i = 0; i < input.numel(); ++i)
    input.mutable_data<float>()[i] = static_cast<float>(random.normal());
  return input;
}

TEST(FreezeScales, WhatWasLearnedIsGiven) {
  const Graph before = learned_layer(true);
  Graph graph = before;
  PassContext context;
  EXPECT_TRUE(run_pass(graph, "freeze_scales", Value(), context).changed);
  EXPECT_FALSE(run_pass(graph, "freeze_scales", Value(), context).changed);
  const Module& module = graph.modules().at("fc");
  EXPECT_EQ(module.find("weight_scale"), nullptr);
  EXPECT_EQ(module.find("data_in_clip"), nullptr);
  EXPECT_EQ(module.quantization.config["weight_step"].as_list().size(), 3u);
  EXPECT_NEAR(module.quantization.config["data_in_step"].as_double(), 1.7 / 7, 1e-7);
  const Tensor x = drawn_rows(200, 4);
  const std::vector<float> was = outputs(before, {x}), is = outputs(graph, {x});
  for (size_t i = 0; i < was.size(); ++i) EXPECT_NEAR(was[i], is[i], 1e-5);
}

TEST(FreezeScales, OfSoManySignificantBits) {
  Graph graph = learned_layer(true);
  PassContext context;
  run_pass(graph, "freeze_scales", Dict{{"bits", 3}}, context);
  for (const Value& step : graph.modules().at("fc").quantization.config["weight_step"].as_list()) {
    int exponent = 0;
    const double mantissa = std::ldexp(std::frexp(step.as_double(), &exponent), 3);
    EXPECT_EQ(mantissa, std::floor(mantissa));
  }
}

TEST(FreezeScales, WhatTrainingHasNotFoundIsRefused) {
  Graph graph = learned_layer(false);
  PassContext context;
  EXPECT_THROW(run_pass(graph, "freeze_scales", Value(), context), Error);
}

TEST(FuseBatchNorm, ScalesTheLearnedStepsOfOutputs) {
  Graph graph = learned_layer(true);
  const NodeId fc = graph.outputs().at(0);
  graph.erase(graph.order().back());
  graph.add_output({graph.add_module(
      "bn", make_module("batch_norm1d", Dict{{"num_features", 3}}, 0, "bn"), {fc})});
  Module& norm = graph.modules().at("bn");
  *norm.find("weight") = Tensor::of({3}, {0.4f, 2.5f, 1.2f});
  *norm.find("running_var") = Tensor::of({3}, {0.2f, 3.0f, 1.0f});
  const Tensor x = drawn_rows(200, 4);
  const std::vector<float> was = outputs(graph, {x});
  PassContext context;
  run_pass(graph, "fuse_batch_norm", Dict{{"quantized", true}}, context);
  const std::vector<float> is = outputs(graph, {x});
  for (size_t i = 0; i < was.size(); ++i) EXPECT_NEAR(was[i], is[i], 1e-4);
}

double squared_distance(const Graph& graph, const test::GoldenNetwork& golden) {
  double sum = 0;
  const std::vector<float> values = outputs(graph, {golden.x});
  for (size_t i = 0; i < values.size(); ++i)
    sum += std::pow(values[i] - golden.logits.data<float>()[i], 2);
  return sum;
}

TEST(Calibrate, ItsFileIsTakenAndBeatsAGuess) {
  for (const char* method : {"min_max", "quantile", "n_sigma", "mse", "kl"}) {
    test::GoldenNetwork golden = test::golden_network("jsc-10x");
    PassContext context;
    context.samples = golden.x;
    context.save_dir = test::temporary_folder();
    run_pass(golden.graph, "calibrate", Dict{{"method", method}}, context);
    const Value file = read_toml(context.save_dir + "/calibrated.toml");
    Graph chosen = golden.graph, guessed = golden.graph;
    run_passes(chosen, pass_calls(file["passes"], "passes"), context);
    Dict config{{"name", "integer"}};
    for (const char* operand : {"data_in", "weight", "bias"}) {
      config.set(fmt::format("{}_width", operand), 8);
      config.set(fmt::format("{}_frac_width", operand), 4);
    }
    run_pass(guessed, "quantize", Dict{{"linear", Dict{{"config", config}}}}, context);
    EXPECT_LT(squared_distance(chosen, golden), squared_distance(guessed, golden)) << method;
  }
}

// Rows whose values nobody would look at any more are neither drawn nor run: so many would not fit
// any machine.
TEST(Calibrate, RowsThatChangeNothingAreNotRun) {
  const auto file = [](int64_t rows) {
    Graph graph = make_model("jsc-tiny");
    PassContext context;
    context.save_dir = test::temporary_folder();
    run_pass(graph, "calibrate",
             Dict{{"num_samples", rows}, {"data_in_granularity", "row"}, {"method", "mse"}},
             context);
    return test::read(context.save_dir + "/calibrated.toml");
  };
  EXPECT_EQ(file(int64_t{1} << 50), file(100000));
  EXPECT_NE(file(int64_t{1} << 50), file(3));
}

// A choice for every row, and for every feature, is closer than one for all of them.
TEST(Calibrate, FinerIsCloser) {
  std::map<std::string, double> distance;
  for (const char* granularity : {"tensor", "row", "element"}) {
    test::GoldenNetwork golden = test::golden_network("jsc-10x");
    PassContext context;
    context.samples = golden.x;
    context.save_dir = test::temporary_folder();
    Dict args{{"apply", true}};
    for (const char* operand : {"data_in", "weight", "bias"}) {
      args.set(fmt::format("{}_granularity", operand), granularity);
      args.set(fmt::format("{}_width", operand), 6);
    }
    run_pass(golden.graph, "calibrate", Value(args), context);
    distance[granularity] = squared_distance(golden.graph, golden);
    // Its file says the same.
    test::GoldenNetwork again = test::golden_network("jsc-10x");
    const Value file = read_toml(context.save_dir + "/calibrated.toml");
    run_passes(again.graph, pass_calls(file["passes"], "passes"), context);
    EXPECT_EQ(outputs(again.graph, {golden.x}), outputs(golden.graph, {golden.x}));
  }
  EXPECT_LT(distance["row"], distance["tensor"]);
  EXPECT_LT(distance["element"], distance["row"]);
}

}  // namespace
}  // namespace mase::transforms_test
