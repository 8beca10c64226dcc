// SPDX-License-Identifier: Apache-2.0
// quantize: what its rules mean, what the layers then compute, and what the summaries say.
#include "mase/base/text.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/compare.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/quantize_plan.h"
#include "passes/networks.h"

namespace mase::quantize_test {
namespace {

Value integer_config(int width = 8, int frac = 4) {
  Dict config{{"name", "integer"}};
  for (const char* operand : {"data_in", "weight", "bias"}) {
    config.set(fmt::format("{}_width", operand), width);
    config.set(fmt::format("{}_frac_width", operand), frac);
  }
  return Dict{{"config", config}};
}

const Value untouched(Dict{{"config", Dict{{"name", "NA"}}}});

std::string fault(const Graph& graph, const Value& args) {
  try {
    prepare_passes(graph, {{"quantize", args, "quantize"}});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Quantize, ByTypeNameAndExpression) {
  PassContext context;
  for (const auto& [args, wanted] : std::vector<std::pair<Value, std::vector<std::string>>>{
           {Dict{{"by", "type"}, {"default", untouched}, {"linear", integer_config()}},
            {"seq_blocks_2", "seq_blocks_5", "seq_blocks_8"}},
           {Dict{{"by", "name"}, {"seq_blocks_5", integer_config()}}, {"seq_blocks_5"}},
           {Dict{{"by", "name"}, {"seq_blocks.5", integer_config()}}, {"seq_blocks_5"}},
           {Dict{{"by", "regex_name"}, {"seq_blocks_[58]", integer_config()}},
            {"seq_blocks_5", "seq_blocks_8"}}}) {
    Graph graph = make_model("jsc-toy");
    const PassResult result = run_pass(graph, "quantize", args, context);
    EXPECT_TRUE(result.changed);
    EXPECT_EQ(result.data["nodes"].as_dict().keys(), wanted);
    for (const std::string& name : wanted)
      EXPECT_EQ(class_text(graph, *graph.find(name)), "LinearInteger");
  }
}

TEST(Quantize, DefaultTakesTheRest) {
  Graph graph = make_model("jsc-toy");
  PassContext context;
  run_pass(graph, "quantize",
           Dict{{"by", "type"}, {"default", integer_config()}, {"linear", integer_config(16, 8)}},
           context);
  EXPECT_EQ(class_text(graph, *graph.find("seq_blocks_1")), "ReLUInteger");
  EXPECT_EQ(format_text(graph.quantization_of(*graph.find("seq_blocks_2"))),
            "data_in integer 16/8, weight integer 16/8, bias integer 16/8");
}

TEST(Quantize, NamesMayBeMasesLongOnesAndNoneMeansUntouched) {
  Graph graph = make_model("jsc-tiny");
  PassContext context;
  const PassResult result = run_pass(graph, "quantize_transform_pass",
                                     Dict{{"by", "type"},
                                          {"default", Dict{{"config", Dict{{"name", nullptr}}}}},
                                          {"linear", Dict{{"config", Dict{{"name", "None"}}}}}},
                                     context);
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(class_text(graph, *graph.find("seq_blocks_2")), "Linear");
}

// REFERENCE: LinearInteger 8/4 and ReLUInteger 8/4 on small numbers.
TEST(Quantize, LayersComputeTheReferencesNumbers) {
  Graph graph;
  graph.name = "small";
  const NodeId x = graph.add_placeholder("x", {3});
  Module linear = make_module("linear", Dict{{"in_features", 3}, {"out_features", 2}}, 0, "fc");
  *linear.find("weight") = Tensor::of({2, 3}, {.11f, -.26f, .5f, 1.03f, -2.f, .31f});
  *linear.find("bias") = Tensor::of({2}, {.04f, -.1f});
  graph.add_output({graph.add_module("fc", linear, {x})});
  PassContext context;
  run_pass(graph, "quantize", Dict{{"by", "type"}, {"linear", integer_config()}}, context);
  const std::vector<Tensor> inputs = {Tensor::of({1, 3}, {.5f, 1.27f, -3.3f})};
  observe_nodes(graph, inputs, graph.outputs(), [](NodeId, const Tensor& y) {
    EXPECT_FLOAT_EQ(y.data<float>()[0], -1.84375f);
    EXPECT_FLOAT_EQ(y.data<float>()[1], -3.16015625f);
  });
}

TEST(Quantize, ReluTakesTheUnsignedRange) {
  Graph graph;
  graph.name = "small";
  const NodeId x = graph.add_placeholder("x", {5});
  graph.add_output({graph.call_function("relu", {Argument::node(x)})});
  PassContext context;
  run_pass(graph, "quantize", Dict{{"by", "type"}, {"relu", integer_config()}}, context);
  EXPECT_EQ(class_text(graph, *graph.find("relu")), "relu_integer");
  observe_nodes(graph, {Tensor::of({1, 5}, {-1.f, 0.03f, 7.97f, 9.f, 20.f})}, graph.outputs(),
                [](NodeId, const Tensor& y) {
                  const float wanted[] = {0, 0, 8, 9, 15.9375f};
                  for (int i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(y.data<float>()[i], wanted[i]);
                });
}

TEST(Quantize, AgainNeverCompounds) {
  test::GoldenNetwork golden = test::golden_network("jsc-10x");
  PassContext context;
  Graph once = golden.graph, twice = golden.graph;
  const Value fine(Dict{{"by", "type"}, {"linear", integer_config(8, 4)}});
  run_pass(twice, "quantize", Dict{{"by", "type"}, {"linear", integer_config(4, 2)}}, context);
  run_pass(twice, "quantize", fine, context);
  run_pass(once, "quantize", fine, context);
  std::vector<float> a, b;
  const auto keep = [](std::vector<float>& into) {
    return [&into](NodeId, const Tensor& y) {
      into.insert(into.end(), y.values<float>().begin(), y.values<float>().end());
    };
  };
  observe_nodes(once, {golden.x}, once.outputs(), keep(a));
  observe_nodes(twice, {golden.x}, twice.outputs(), keep(b));
  EXPECT_EQ(a, b);
  EXPECT_TRUE(golden.graph.modules()
                  .at("seq_blocks.2")
                  .find("weight")
                  ->same_bits(*twice.modules().at("seq_blocks.2").find("weight")));
}

TEST(Quantize, MetadataFollows) {
  Graph graph = make_model("jsc-tiny");
  PassContext context;
  context.batch_size = 8;
  ensure_metadata(graph, context);
  run_pass(graph, "quantize", Dict{{"by", "type"}, {"linear", integer_config()}}, context);
  const Value& args = graph.find("seq_blocks_2")->meta.at("common")["args"];
  EXPECT_EQ(args["data_in_0"]["type"], Value("integer"));
  EXPECT_EQ(args["data_in_0"]["precision"], Value::of(Shape{8, 4}));
  EXPECT_EQ(args["data_in_0"]["shape"], Value::of(Shape{8, 16}));
  EXPECT_EQ(graph.find("seq_blocks_1")->meta.at("common")["args"]["data_in_0"]["precision"],
            Value::of(Shape{32}));
}

TEST(Quantize, MistakesNameTheNearMisses) {
  const Graph graph = make_model("jsc-toy");
  const auto expect = [&](const Value& args, const std::string& part) {
    EXPECT_NE(fault(graph, args).find(part), std::string::npos) << fault(graph, args);
  };
  expect(Dict{{"by", "type"}, {"liner", integer_config()}}, "did you mean 'linear'?");
  expect(Dict{{"by", "type"}, {"matmul", integer_config()}}, "the network has:");
  expect(Dict{{"by", "name"}, {"seq_block_2", integer_config()}}, "did you mean 'seq_blocks_");
  expect(Dict{{"by", "type"}, {"seq_blocks_2", integer_config()}}, "set by = \"name\"");
  expect(Dict{{"by", "name"}, {"linear", integer_config()}}, "set by = \"type\"");
  expect(Dict{{"by", "regex_name"}, {"fc.*", integer_config()}}, "no node has a name that matches");
  expect(Dict{{"by", "regex_name"}, {"seq_blocks_(", integer_config()}},
         "is not a regular expression");
  expect(Dict{{"by", "regex_name"},
              {"seq_blocks_.*", integer_config()},
              {"seq_blocks_2", integer_config(4, 2)}},
         "already taken by");
  expect(Dict{{"by", "type"}}, "no rule says what to quantise");
}

TEST(Quantize, MistakesInLargeNetworksNameFewNodes) {
  Graph graph;
  graph.name = "deep";
  NodeId last = graph.add_placeholder("x", {4});
  for (int i = 0; i < 200; ++i) {
    const std::string path = fmt::format("layers.{}.projection", i);
    last = graph.add_module(
        path, make_module("linear", Dict{{"in_features", 4}, {"out_features", 4}}, 1, path),
        {last});
  }
  graph.add_output({last});
  for (const char* by : {"name", "regex_name"})
    for (const char* pattern : {"lm_head", "layers_7_projektion", "fc.*"}) {
      const std::string told = fault(graph, Dict{{"by", by}, {pattern, integer_config()}});
      EXPECT_LT(told.size(), 450u) << told;
      if (std::string(pattern) == "layers_7_projektion")
        EXPECT_NE(told.find("did you mean 'layers_7_projection'"), std::string::npos) << told;
      else
        EXPECT_NE(told.find(" and 188 more"), std::string::npos) << told;
    }
}

TEST(Quantize, SharedLayersMustAgree) {
  Graph graph;
  graph.name = "shared";
  const NodeId x = graph.add_placeholder("x", {4});
  const NodeId first = graph.add_module(
      "fc", make_module("linear", Dict{{"in_features", 4}, {"out_features", 4}}, 0, "fc"), {x});
  graph.add_output({graph.call_module("fc", {Argument::node(first)})});
  EXPECT_NE(
      fault(graph,
            Dict{{"by", "name"}, {"fc_1", integer_config(8, 4)}, {"fc", integer_config(4, 2)}})
          .find("fc"),
      std::string::npos);
  PassContext context;
  run_pass(graph, "quantize", Dict{{"by", "name"}, {"fc_1", integer_config()}}, context);
  EXPECT_EQ(class_text(graph, *graph.find("fc")), "LinearInteger");
}

TEST(Quantize, PlanGivesReasons) {
  const Graph graph = make_model("jsc-tiny");
  Problems problems;
  const std::string text = describe_quantize_plan(
      graph,
      plan_quantize(graph, Dict{{"by", "type"}, {"linear", integer_config()}}, "q", problems));
  EXPECT_TRUE(problems.empty());
  EXPECT_NE(text.find("LinearInteger"), std::string::npos);
  EXPECT_NE(text.find("no rule for op 'relu', and the default is NA"), std::string::npos);
}

TEST(Compare, FiguresOfAKnownError) {
  test::GoldenNetwork golden = test::golden_network("jsc-10x");
  Graph coarse = golden.graph;
  PassContext context;
  context.original = &golden.graph;
  context.samples = golden.x;
  context.test_x = golden.x;
  context.test_labels = golden.labels;
  run_pass(coarse, "quantize", Dict{{"by", "type"}, {"linear", integer_config(8, 4)}}, context);
  const std::vector<LayerError> errors = compare_layers(golden.graph, coarse, {golden.x});
  ASSERT_EQ(errors.size(), 3u);
  for (const LayerError& error : errors) {
    EXPECT_LE(error.weight->largest, 1.0 / 32 + 1e-6);  // half a step of 1/16
    EXPECT_GT(*error.output.sqnr_db(), 10);
    EXPECT_GT(*error.output.cosine(), 0.95);
    EXPECT_GE(*error.saturation(), 0);
  }
  const PassResult result = run_pass(coarse, "compare_graphs", Value(), context);
  EXPECT_EQ(result.data["changed"], Value(3));
  EXPECT_TRUE(result.data["accuracy"]["before"].is_number());
  // Values beyond the range show as saturation.
  Graph tight = golden.graph;
  run_pass(tight, "quantize", Dict{{"by", "type"}, {"linear", integer_config(4, 4)}}, context);
  EXPECT_GT(*compare_layers(golden.graph, tight, {golden.x})[1].saturation(), 0.01);
}

TEST(Verify, ProvesTheGridAndShowsSamples) {
  test::GoldenNetwork golden = test::golden_network("jsc-tiny");
  Graph graph = golden.graph;
  std::string text;
  PassContext context;
  context.original = &golden.graph;
  context.samples = golden.x;
  context.print = [&](const std::string& more) { text += more; };
  run_pass(graph, "quantize", Dict{{"by", "type"}, {"linear", integer_config()}}, context);
  const PassResult result = run_pass(graph, "verify_quantization", Value(), context);
  EXPECT_EQ(result.data["off_grid"], Value(0));
  for (const char* part :
       {"Original graph target: Linear(in_features=16, out_features=5, bias=True)",
        "Quantised graph target: LinearInteger(in_features=16, out_features=5, bias=True)",
        "Weights of original graph: Parameter containing:\ntensor([[", "requires_grad=True)",
        "Random input for the graph:\n tensor([", "Output of the original graph:\n tensor([",
        "Output of the quantised graph:\n tensor(["})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Verify, CatchesAFormatThatMissesItsGrid) {
  test::GoldenNetwork golden = test::golden_network("jsc-tiny");
  Graph graph = golden.graph;
  PassContext context;
  context.samples = golden.x;
  run_pass(graph, "quantize", Dict{{"by", "type"}, {"linear", integer_config()}}, context);
  Quantization& quantization = graph.modules().at("seq_blocks.2").quantization;
  Quantizer broken = *quantization.operands.at("weight");
  broken.sweep = [right = *quantization.operands.at("weight")](const float* in, float* out,
                                                               const Shape& shape) {
    right.quantize(in, out, shape);
    out[0] += 0.01f;
    return true;
  };
  quantization.operands["weight"] = std::make_shared<const Quantizer>(broken);
  EXPECT_THROW(run_pass(graph, "verify_quantization", Value(), context), Error);
}

}  // namespace
}  // namespace mase::quantize_test
