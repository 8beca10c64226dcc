// SPDX-License-Identifier: Apache-2.0
// A rounded attention layer is what its parts would be, written as layers of their own: in the
// reference, in programs, in files and in what it costs.
#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/learned.h"
#include "mase/ir/serialize.h"
#include "mase/passes/costs.h"
#include "mase/passes/pass.h"
#include "mase/train/loss.h"
#include "support/random_tensor.h"
#include "support/support.h"

namespace mase::multihead_attention_test {
namespace {

using test::random_tensor;

constexpr int64_t width = 32, heads = 4, positions = 12, samples = 5;

Quantization quantization_of(const std::string& op, const Value& config) {
  Problems problems;
  const Quantization result =
      parse_quantization(config, operand_rules(find_op(op)), "config", problems);
  problems.throw_if_any();
  return result;
}

// One key for each operand, as the format names it.
Dict config_of(const std::string& format, const std::vector<std::string>& operands,
               const Dict& keys) {
  Dict config{{"name", format}};
  for (const std::string& operand : operands)
    for (const auto& [key, value] : keys) config.set(operand + "_" + key, value);
  return config;
}

Module attention(bool causal, bool bias = true, bool batch_first = true) {
  Module module = make_module("multihead_attention",
                              Dict{{"embed_dim", width},
                                   {"num_heads", heads},
                                   {"bias", bias},
                                   {"batch_first", batch_first},
                                   {"is_causal", causal}},
                              3, "attention");
  uint64_t seed = 1;
  for (auto& [name, tensor] : module.parameters)
    tensor = random_tensor(tensor.shape(), 0.3, seed++);
  return module;
}

Graph whole(const Module& module, int result = 0) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {positions, width});
  const NodeId node = graph.add_module("attention", module, {x, x, x});
  graph.add_output({graph.result_of(node, result)});
  return graph;
}

// The same numbers as four linear layers around scaled_dot_product_attention.
Graph in_parts(const Module& module, const Value& first, const Value& inside, const Value& last) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {positions, width});
  const auto layer = [&](const std::string& path, const std::string& weight,
                         const std::string& bias, int64_t begin, const Value& config,
                         NodeId input) {
    Module linear =
        make_module("linear", Dict{{"in_features", width}, {"out_features", width}}, 0, path);
    for (const auto& [to, from] : {std::pair{"weight", weight}, {"bias", bias}}) {
      float* values = linear.find(to)->mutable_data<float>();
      const int64_t row = linear.find(to)->numel() / width;
      for (int64_t i = 0; i < linear.find(to)->numel(); ++i)
        values[i] = module.find(from)->data<float>()[begin * row + i];
    }
    linear.quantization = quantization_of("linear", config);
    return graph.add_module(path, linear, {input});
  };
  const auto number = [](int64_t value) { return Argument::literal(value); };
  std::vector<Argument> parts;
  for (int64_t i = 0; i < 3; ++i) {
    NodeId y =
        layer(fmt::format("part{}", i), "in_proj_weight", "in_proj_bias", i * width, first, x);
    y = graph.call_method("view", {Argument::node(y), number(-1), number(positions), number(heads),
                                   number(width / heads)});
    y = graph.call_method("permute",
                          {Argument::node(y), number(0), number(2), number(1), number(3)});
    parts.push_back(Argument::node(y));
  }
  NodeId y =
      graph.call_function("scaled_dot_product_attention", parts,
                          {{"is_causal", Argument::literal(module.attributes["is_causal"])}});
  graph.node(y).quantization = quantization_of("scaled_dot_product_attention", inside);
  y = graph.call_method("permute", {Argument::node(y), number(0), number(2), number(1), number(3)});
  y = graph.call_method("reshape",
                        {Argument::node(y), number(-1), number(positions), number(width)});
  graph.add_output({layer("last", "out_proj.weight", "out_proj.bias", 0, last, y)});
  verify(graph);
  return graph;
}

std::vector<float> run(const Graph& graph, const Tensor& x, int threads = 1) {
  CompileOptions options;
  options.batch_size = x.shape()[0];
  options.threads = threads;
  Program program = Program::compile(graph, options);
  EXPECT_EQ(program.dump().find("  call "), std::string::npos) << program.dump();
  Batch batch;
  batch.inputs.emplace_back(x);
  batch.size = x.shape()[0];
  program.forward(batch);
  const Shape shape = infer_shapes(graph, batch.size)[static_cast<size_t>(graph.outputs()[0])];
  std::vector<float> result(static_cast<size_t>(element_count(shape)));
  program.read_output(0, result.data());
  return result;
}

struct Numbers {
  std::string format;
  Dict keys;
};
const Numbers formats[] = {
    {"integer", {{"width", 8}, {"frac_width", 5}}},
    {"integer", {{"width", 4}, {"frac_width", 2}}},
    {"minifloat_ieee", {{"width", 8}, {"exponent_width", 4}, {"exponent_bias", 7}}},
    {"block_fp", {{"width", 8}, {"exponent_width", 8}, {"block_size", List{1, 16}}}},
    {"log", {{"width", 8}, {"exponent_bias", 7}}},
    {"bfloat16", {}},
};

TEST(MultiheadAttention, RoundedItIsWhatItsPartsWouldBe) {
  const Tensor x = random_tensor({samples, positions, width}, 1, 9);
  for (const bool causal : {false, true})
    for (const Numbers& numbers : formats) {
      if (!Registry<FormatRecord>::instance().find(numbers.format)) continue;
      SCOPED_TRACE(numbers.format + (causal ? ", causal" : ""));
      const auto config = [&](const std::vector<std::string>& operands) {
        return Value(config_of(numbers.format, operands, numbers.keys));
      };
      Module module = attention(causal);
      Value own = config({"data_in", "weight", "bias", "projected", "attended"});
      const bool named = numbers.keys.empty();  // such a format rounds what it must, no more
      module.quantization = quantization_of("multihead_attention", own);
      EXPECT_EQ(module.quantization.operands.size(), named ? 3u : 7u);
      const Value none = Dict{{"name", "NA"}};
      const Graph joint = whole(module);
      const Graph parts = in_parts(module, config({"data_in", "weight", "bias"}),
                                   named ? none : config({"data_in"}),
                                   named ? none : config({"data_in", "weight", "bias"}));
      if (named) {  // the last layer's input stays in float there
        verify(joint);
        run(joint, x);
        continue;
      }
      EXPECT_EQ(evaluate(joint, {Array::from(x)})[0].data,
                evaluate(parts, {Array::from(x)})[0].data);
      EXPECT_EQ(run(joint, x), run(parts, x));
      EXPECT_EQ(run(joint, x), run(joint, x, 2));
    }
}

TEST(MultiheadAttention, ProgramsHaveItsReferencesNumbers) {
  const Tensor x = random_tensor({samples, positions, width}, 1, 9);
  for (const bool causal : {false, true})
    for (const bool bias : {false, true})
      for (const int result : {0, 1}) {
        const Graph graph = whole(attention(causal, bias), result);
        const std::vector<double> wanted = evaluate(graph, {Array::from(x)})[0].data;
        const std::vector<float> got = run(graph, x);
        ASSERT_EQ(got.size(), wanted.size());
        for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-5);
      }
}

TEST(MultiheadAttention, WithTheBatchInSecondPlaceItIsRoundedToo) {
  Module module = attention(true, true, false);
  module.quantization = quantization_of(
      "multihead_attention",
      Value(config_of("integer", {"data_in", "weight", "bias", "projected", "attended"},
                      {{"width", 8}, {"frac_width", 5}})));
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {positions, width});
  const NodeId node = graph.add_module("attention", module, {x, x, x});
  graph.add_output({graph.result_of(node, 0)});
  const Tensor input = random_tensor({samples, positions, width}, 1, 9);
  CompileOptions options;
  options.batch_size = samples;
  Program program = Program::compile(graph, options);
  Batch batch;
  batch.inputs.emplace_back(input);
  batch.size = samples;
  program.forward(batch);
  const Array wanted = evaluate(graph, {Array::from(input)})[0];
  std::vector<float> got(wanted.data.size());
  program.read_output(0, got.data());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted.data[i], 1e-5);
}

// Its own code passes all gradients through what is rounded inside. A format that clips them is not
// trained wrongly there, but not at all.
TEST(MultiheadAttention, WithTheBatchInSecondPlaceClippedGradientsAreRefused) {
  for (const bool batch_first : {true, false}) {
    Module module = attention(false, true, batch_first);
    module.quantization =
        quantization_of("multihead_attention",
                        Value(config_of("integer", {"data_in", "weight", "projected"},
                                        {{"width", 8}, {"frac_width", 5}, {"ste", "clipped"}})));
    Graph graph;
    const NodeId x = graph.add_placeholder("x", {positions, width});
    graph.add_output({graph.result_of(graph.add_module("attention", module, {x, x, x}), 0)});
    CompileOptions options;
    options.batch_size = samples;
    Program::compile(graph, options);
    options.training = true;
    options.loss = make_loss("mse", Dict{}, false);
    if (batch_first)
      EXPECT_NO_THROW(Program::compile(graph, options));
    else
      EXPECT_THROW(Program::compile(graph, options), Error);
  }
}

TEST(MultiheadAttention, OnePartsKeyWinsOverTheKeyForAll) {
  Dict config = config_of("integer", {"data_in", "weight"}, {{"width", 8}, {"frac_width", 5}});
  config.set("out_proj.weight_width", 3);
  config.set("out_proj.weight_frac_width", List(static_cast<size_t>(width), Value(1)));
  config.set("out_proj.weight_granularity", "row");
  const Quantization parsed = quantization_of("multihead_attention", config);
  EXPECT_EQ(parsed.operands.size(), 3u);
  EXPECT_EQ(parsed.find("in_proj_weight")->bits_per_value({3 * width, width}), 8);
  EXPECT_EQ(parsed.find("out_proj.weight")->bits_per_value({width, width}), 3);
  EXPECT_EQ(parsed.find("in_proj_bias"), nullptr);
  Module module = attention(false);
  module.quantization = parsed;
  verify(whole(module));
}

TEST(MultiheadAttention, MistakesAreToldOnceAndAsTheyWereWritten) {
  Problems problems;
  Dict config = config_of("integer", {"data_in", "weight"}, {{"width", 8}, {"frac_width", 5}});
  config.set("weight_width", "eight");
  parse_quantization(config, operand_rules(find_op("multihead_attention")), "config", problems);
  ASSERT_EQ(problems.errors().size(), 1u);
  EXPECT_EQ(problems.errors()[0].place(), "config.weight_width");
  Problems missing;
  parse_quantization(Dict{{"name", "integer"}, {"data_in_width", 8}, {"data_in_frac_width", 4}},
                     operand_rules(find_op("multihead_attention")), "config", missing);
  ASSERT_EQ(missing.errors().size(), 1u);
  EXPECT_EQ(missing.errors()[0].cause(), "no key for operand 'weight'");
}

TEST(MultiheadAttention, FilesKeepItsFormats) {
  Module module = attention(false);
  module.quantization = quantization_of(
      "multihead_attention", Value(config_of("integer", {"data_in", "weight", "attended"},
                                             {{"width", 8}, {"frac_width", 5}})));
  const Graph graph = whole(module);
  const Graph again = graph_from_value(
      graph_to_value(graph),
      [&](const std::string& name, const Shape&, DType) { return *graph.tensor(name); });
  const Quantization& kept = again.modules().at("attention").quantization;
  ASSERT_EQ(kept.operands.size(), 4u);
  EXPECT_TRUE(kept.find("attended"));
  EXPECT_TRUE(kept.find("out_proj.weight"));
  const Tensor x = random_tensor({samples, positions, width}, 1, 9);
  EXPECT_EQ(run(graph, x), run(again, x));
}

// Each weight learns a step of its own, under its own name.
TEST(MultiheadAttention, LearnsOneNumberForEachPart) {
  Module module = attention(false);
  module.quantization = quantization_of(
      "multihead_attention", Value(config_of("scale_integer", {"data_in", "weight", "attended"},
                                             {{"width", 4}, {"scale", "learned"}})));
  fit_learned_parameters(module);
  for (const char* name :
       {"data_in_scale", "in_proj_weight_scale", "out_proj.weight_scale", "attended_scale"})
    EXPECT_TRUE(module.find(name)) << name;
  const Graph graph = whole(module);
  verify(graph);
  CompileOptions options;
  options.batch_size = samples;
  options.training = true;
  options.loss = make_loss("mse", Dict{}, false);
  Program program = Program::compile(graph, options);
  EXPECT_EQ(program.dump().find("  call "), std::string::npos) << program.dump();
}

TEST(MultiheadAttention, CostsAreThoseOfItsParts) {
  Module module = attention(false);
  const Dict eight{{"width", 8}, {"frac_width", 5}};
  Dict config = config_of("integer", {"data_in", "weight", "projected", "attended"}, eight);
  config.set("out_proj.weight_width", 4);
  module.quantization = quantization_of("multihead_attention", config);
  const NetworkCost cost = network_cost(whole(module), 2);
  const LayerCost& layer = cost.layers.front();
  const double projection = positions * width * width, inner = positions * positions * width;
  EXPECT_EQ(layer.macs, 2 * (4 * projection + 2 * inner));
  // Shares of attention are in float: 32 bits.
  const double bits = 3 * projection * 8 * 8 + inner * 8 * 8 + inner * 32 * 8 + projection * 8 * 4;
  EXPECT_EQ(layer.bitops, 2 * bits);
  EXPECT_EQ(layer.weights, 4 * width * width);
  EXPECT_EQ(layer.weight_bits, 7);  // three quarters of 8 and one of 4
  EXPECT_EQ(layer.activations,
            2 * (4 + 1 + 2) * positions * width + 2 * heads * positions * positions);
  EXPECT_EQ(layer.weight_memory, 3 * width * width * 8 + width * width * 4 + 4 * width * 32);
}

TEST(MultiheadAttention, IsPrunedAndCalibrated) {
  Graph graph = whole(attention(false));
  PassContext context;
  run_pass(graph, "prune", Dict{{"weight", Dict{{"sparsity", 0.5}}}}, context);
  for (const char* name : {"in_proj_weight", "out_proj.weight"}) {
    const Tensor& weight = *graph.modules().at("attention").find(name);
    int64_t zeros = 0;
    for (int64_t i = 0; i < weight.numel(); ++i) zeros += weight.item(i) == 0;
    EXPECT_EQ(zeros, weight.numel() / 2) << name;
  }
  EXPECT_EQ(graph.modules().at("attention").masks.size(), 2u);
  EXPECT_THROW(
      run_pass(graph, "prune",
               Dict{{"weight", Dict{{"sparsity", 0.5}, {"granularity", "channel"}}}}, context),
      Error);
  context.save_dir = test::temporary_folder();
  run_pass(graph, "calibrate", Dict{{"apply", true}, {"weight_granularity", "row"}}, context);
  const Quantization& chosen = graph.modules().at("attention").quantization;
  for (const char* name :
       {"data_in", "in_proj_weight", "out_proj.weight", "in_proj_bias", "out_proj.bias"})
    EXPECT_TRUE(chosen.find(name)) << name;
}

}  // namespace
}  // namespace mase::multihead_attention_test
