// SPDX-License-Identifier: Apache-2.0
// Training with quantised operands: clipped gradients, random draws that are fresh at every step
// and the same for any number of threads, and products of the backward pass with rounded operands.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"
#include "mase/train/loss.h"
#include "support/random_tensor.h"
#include "support/support.h"

namespace mase::quantized_training_test {
namespace {

using test::random_tensor;

Graph quantized_model(const std::string& model, const std::string& pass, const Value& config) {
  Graph graph = make_model(model);
  PassContext context;
  run_pass(graph, pass, Dict{{"by", "type"}, {"linear", Dict{{"config", config}}}}, context);
  return graph;
}

struct Trained {
  std::vector<float> gradients, parameters;
  double loss = 0;
};

// A step of a training program; gradients are those of step number `step`.
Trained gradients_of(const Graph& graph, uint64_t step, int threads, uint64_t seed = 0) {
  CompileOptions options;
  options.training = true;
  options.batch_size = 64;
  options.loss = make_loss("cross_entropy");
  options.threads = threads;
  options.seed = seed;
  Program program = Program::compile(graph, options);
  const Tensor x = random_tensor({64, 16}, 1, 7);
  std::vector<int32_t> labels(64);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 5);
  Batch batch;
  batch.inputs = {x};
  batch.target = RowTensor(labels);
  batch.size = 64;
  batch.step = step;
  Trained trained;
  trained.loss = program.forward_backward(batch).loss;
  for (const ParameterView& view : program.parameters()) {
    trained.gradients.insert(trained.gradients.end(), view.gradient.begin(), view.gradient.end());
    trained.parameters.insert(trained.parameters.end(), view.value.begin(), view.value.end());
  }
  return trained;
}

TEST(QuantizedTraining, StochasticRoundingDrawsAnewEachStep) {
  const Value config = Dict{{"name", "integer"},
                            {"data_in_width", 6},
                            {"data_in_frac_width", 3},
                            {"data_in_rounding", "stochastic"},
                            {"weight_width", 6},
                            {"weight_frac_width", 4},
                            {"weight_rounding", "stochastic"}};
  const Graph graph = quantized_model("jsc-toy", "quantize", config);
  const Trained first = gradients_of(graph, 0, 1), again = gradients_of(graph, 0, 1);
  EXPECT_EQ(first.gradients, again.gradients);
  EXPECT_EQ(first.gradients, gradients_of(graph, 0, 2).gradients);
  EXPECT_NE(first.gradients, gradients_of(graph, 1, 1).gradients);
  EXPECT_EQ(gradients_of(graph, 1, 1).gradients, gradients_of(graph, 1, 2).gradients);
  EXPECT_NE(first.gradients, gradients_of(graph, 0, 1, 5).gradients);
}

// In the sweep of a batch norm as well: activations alone.
TEST(QuantizedTraining, RoundedActivationsAreDrawnAnewToo) {
  const Value config = Dict{{"name", "integer"},       {"data_in_width", 6},
                            {"data_in_frac_width", 2}, {"data_in_rounding", "stochastic"},
                            {"weight_width", 16},      {"weight_frac_width", 12}};
  const Graph graph = quantized_model("jsc-toy", "quantize", config);
  EXPECT_EQ(gradients_of(graph, 3, 1).gradients, gradients_of(graph, 3, 2).gradients);
  EXPECT_NE(gradients_of(graph, 3, 1).gradients, gradients_of(graph, 4, 1).gradients);
}

// One weight of 0.25 between 0 and 1: a quarter of the draws round up, and the weights of a layer
// are drawn apart from each other and from those of the next layer.
TEST(QuantizedTraining, DrawsAreUnbiasedAndIndependent) {
  Graph graph;
  const NodeId input = graph.add_placeholder("x", {8});
  NodeId last = input;
  for (const std::string path : {"a", "b"}) {
    Module layer = make_module(
        "linear", Value(Dict{{"in_features", 8}, {"out_features", 8}, {"bias", false}}), 0, path);
    Tensor& weight = *layer.find("weight");
    for (int64_t i = 0; i < weight.numel(); ++i) weight.mutable_data<float>()[i] = 0.25f;
    Problems problems;
    layer.quantization = parse_quantization(Value(Dict{{"name", "integer"},
                                                       {"weight_width", 4},
                                                       {"weight_frac_width", 0},
                                                       {"weight_rounding", "stochastic"}}),
                                            {.names = {"weight"}}, "config", problems);
    problems.throw_if_any();
    last = graph.add_module(path, layer, {input});
    graph.call_function("relu", {Argument::node(last)});
  }
  const std::vector<NodeId> order = graph.order();
  graph.add_output({order[1], order[3]});
  CompileOptions options;
  options.training = true;
  options.batch_size = 8;
  Program program = Program::compile(graph, options);
  Tensor identity({8, 8});
  for (int64_t i = 0; i < 8; ++i) identity.mutable_data<float>()[i * 9] = 1;
  Batch batch;
  batch.inputs = {identity};
  batch.size = 8;
  double total = 0, equal = 0;
  const int steps = 400;
  std::vector<float> a(64), b(64);
  for (int step = 0; step < steps; ++step) {
    batch.step = static_cast<uint64_t>(step);
    program.forward(batch);
    program.read_output(0, a.data());
    program.read_output(1, b.data());
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_TRUE(a[i] == 0 || a[i] == 1);
      total += a[i] + b[i];
      equal += a[i] == b[i];
    }
  }
  const double draws = 64.0 * steps;
  EXPECT_NEAR(total / (2 * draws), 0.25, 0.01);
  EXPECT_NEAR(equal / draws, 0.25 * 0.25 + 0.75 * 0.75, 0.015);  // independent, not the same draws
}

TEST(QuantizedTraining, ClippedGradientsStopAtTheRange) {
  for (const std::string ste : {"straight", "clipped"}) {
    Graph graph;
    const NodeId x = graph.add_placeholder("x", {2});
    Module layer = make_module(
        "linear", Value(Dict{{"in_features", 2}, {"out_features", 2}, {"bias", true}}), 0, "a");
    const float weights[] = {0.4f, 5.0f, -3.0f, 1.9f};
    std::copy_n(weights, 4, layer.find("weight")->mutable_data<float>());
    graph.add_output({graph.add_module("layer", layer, {x})});
    PassContext context;
    run_pass(graph, "quantize",
             Dict{{"by", "type"},
                  {"linear", Dict{{"config", Dict{{"name", "integer"},
                                                  {"data_in_width", 8},
                                                  {"data_in_frac_width", 4},
                                                  {"weight_width", 4},
                                                  {"weight_frac_width", 2},
                                                  {"weight_ste", ste}}}}}},
             context);
    CompileOptions options;
    options.training = true;
    options.batch_size = 3;
    options.loss = make_loss("mse", {}, false);
    Program program = Program::compile(graph, options);
    const float in[] = {1, 2, -1, 0.5f, 3, 1}, targets[] = {7, 7, 7, 7, 7, 7};
    Batch batch;
    batch.inputs = {RowTensor(in, 2)};
    batch.target = RowTensor(targets, 2);
    batch.size = 3;
    program.forward_backward(batch);
    const auto gradient = program.parameters()[0].gradient;
    EXPECT_NE(gradient[0], 0);
    EXPECT_EQ(gradient[3] == 0, ste == "clipped");  // the range ends at 1.75
    EXPECT_EQ(gradient[1] == 0, ste == "clipped");
    EXPECT_EQ(gradient[2] == 0, ste == "clipped");
  }
}

// Every format of the registry, at both rules of the gradient and with learned numbers: whatever
// the values, finite gradients give finite gradients.
TEST(QuantizedTraining, GradientsAreFiniteInEveryFormat) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f, -0.0f,  inf,    -inf,    std::nanf(""), 3.4e38f,
                          1.0f, -3e38f, 1e-45f, -1e-40f, 0.5f,          -7.0f};
  while (x.size() < 64) x.push_back(static_cast<float>(x.size()) * 0.1f - 3);
  const Shape shape{4, 16};
  std::vector<float> ones(64);
  for (size_t i = 0; i < ones.size(); ++i) ones[i] = i % 2 ? -1.5f : 2.5f;
  int clipped = 0, learned = 0;
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all()) {
    std::vector<Value> configs = record->ladder ? record->ladder(4) : std::vector<Value>{Dict()};
    const size_t plain = configs.size();
    for (size_t i = 0; i < plain; ++i) {
      const auto add = [&](const char* key, const char* value) {
        const Field* field = record->schema.find(key);
        if (!field || !std::count(field->choices.begin(), field->choices.end(), value)) return;
        configs.push_back(configs[i]);
        configs.back()[key] = value;
      };
      add("ste", "clipped");
      add("scale", "learned");
      add("clip", "learned");
    }
    for (const Value& config : configs) {
      const QuantizerPtr q = make_quantizer(record->name, config);
      std::vector<float> got = ones;
      if (q->has_gradient()) {
        ++clipped;
        q->gradient(x.data(), ones.data(), got.data(), shape);
        EXPECT_TRUE(config["ste"].is_string() || record->name.find("binary") != std::string::npos)
            << record->name;
      }
      if (q->learned) {
        ++learned;
        std::vector<float> number(64);
        std::vector<double> by_number(64);
        q->learned->start(x.data(), shape, number.data());
        const int64_t count = element_count(q->learned->shape(shape));
        for (const float value : {number[0], 0.0f, -1e-20f, 1e38f}) {
          std::fill(number.begin(), number.end(), value);
          std::fill(by_number.begin(), by_number.end(), 0.0);
          q->learned->gradient(x.data(), number.data(), ones.data(), got.data(), by_number.data(),
                               shape);
          std::vector<float> y(64);
          q->learned->quantize(x.data(), number.data(), y.data(), shape);
          for (int64_t i = 0; i < count; ++i)
            EXPECT_TRUE(std::isfinite(by_number[static_cast<size_t>(i)])) << python_repr(config);
          for (size_t i = 0; i < y.size(); ++i)
            EXPECT_TRUE(std::isfinite(y[i]) || std::isnan(x[i]))
                << python_repr(config) << " " << x[i];
        }
      }
      for (const float value : got)
        EXPECT_TRUE(std::isfinite(value)) << record->name << " " << python_repr(config);
    }
  }
  EXPECT_GT(clipped, 20);
  EXPECT_GT(learned, 5);
}

// MASE's training_base: the two products and the sum of the backward pass, by plain loops.
TEST(QuantizedTraining, ProductsOfTheBackwardPassTakeRoundedOperands) {
  for (const bool forward : {false, true}) {
    Graph graph;
    const int64_t n = 5, in = 4, out = 3;
    const NodeId input = graph.add_placeholder("x", {in});
    Module before =
        make_module("linear", Value(Dict{{"in_features", in}, {"out_features", in}}), 0, "before");
    for (auto& [name, tensor] : before.parameters) tensor = Tensor(tensor.shape());
    for (int64_t i = 0; i < in; ++i) before.find("weight")->mutable_data<float>()[i * (in + 1)] = 1;
    const NodeId first = graph.add_module("before", before, {input});
    Module layer =
        make_module("linear", Value(Dict{{"in_features", in}, {"out_features", out}}), 0, "layer");
    *layer.find("weight") = random_tensor({out, in}, 0.5, 11);
    graph.add_output({graph.add_module("layer", layer, {first})});
    Dict front{{"bypass", true}};
    if (forward)
      front = Dict{{"pass", "quantize"},      {"name", "integer"}, {"data_in_width", 5},
                   {"data_in_frac_width", 2}, {"weight_width", 5}, {"weight_frac_width", 3}};
    const Dict back{{"pass", "quantize"},     {"name", "integer"},
                    {"output_grad_width", 8}, {"output_grad_frac_width", 6},
                    {"data_in_width", 4},     {"data_in_frac_width", 1},
                    {"weight_width", 4},      {"weight_frac_width", 2},
                    {"bias_width", 4},        {"bias_frac_width", 2}};
    PassContext context;
    run_pass(graph, "training_base",
             Dict{{"by", "name"},
                  {"default", Dict{{"config", Dict{{"name", Value()}}}}},
                  {"layer", Dict{{"config", Dict{{"forward", front}, {"backward", back}}}}}},
             context);
    const Graph loaded = graph_from_value(graph_to_value(graph));
    EXPECT_EQ(loaded.modules().at("layer").quantization.backward.size(), 3u);
    CompileOptions options;
    options.training = true;
    options.batch_size = n;
    options.loss = make_loss("mse", {}, false);
    Program program = Program::compile(graph, options);
    const Tensor x = random_tensor({n, in}, 1, 12), targets = random_tensor({n, out}, 2, 13);
    Batch batch;
    batch.inputs = {x};
    batch.target = targets;
    batch.size = n;
    program.forward_backward(batch);
    std::vector<float> y(static_cast<size_t>(n * out));
    program.read_output(0, y.data());
    const auto rounded = [](const char* format, double value, int64_t width, int64_t frac) {
      const QuantizerPtr q =
          make_quantizer(format, Value(Dict{{"width", width}, {"frac_width", frac}}));
      float result = static_cast<float>(value);
      q->quantize(&result, &result, {1});
      return static_cast<double>(result);
    };
    const Tensor& w = *graph.modules().at("layer").find("weight");
    std::vector<double> dw(static_cast<size_t>(out * in)), db(out), dx(in);
    for (int64_t b = 0; b < n; ++b)
      for (int64_t o = 0; o < out; ++o) {
        if (forward) {
          double value = graph.modules().at("layer").find("bias")->item(o);
          for (int64_t i = 0; i < in; ++i)
            value += rounded("integer", x.item(b * in + i), 5, 2) *
                     rounded("integer", w.item(o * in + i), 5, 3);
          EXPECT_NEAR(y[static_cast<size_t>(b * out + o)], value, 1e-5);
        }
        const double g = rounded(
            "integer",
            2 * (y[static_cast<size_t>(b * out + o)] - targets.item(b * out + o)) / (n * out), 8,
            6);
        db[static_cast<size_t>(o)] += g;
        for (int64_t i = 0; i < in; ++i) {
          dw[static_cast<size_t>(o * in + i)] += g * rounded("integer", x.item(b * in + i), 4, 1);
          dx[static_cast<size_t>(i)] += g * rounded("integer", w.item(o * in + i), 4, 2);
        }
      }
    for (const ParameterView& view : program.parameters()) {
      const std::vector<double>* wanted = view.name == "layer.weight"  ? &dw
                                          : view.name == "layer.bias"  ? &db
                                          : view.name == "before.bias" ? &dx
                                                                       : nullptr;
      if (!wanted) continue;
      for (size_t i = 0; i < wanted->size(); ++i)
        EXPECT_NEAR(view.gradient[i], (*wanted)[i], 1e-5) << view.name << " " << forward;
    }
  }
}

TEST(QuantizedTraining, BackwardTablesAreChecked) {
  const auto message = [](Dict forward, Dict backward, const char* key) {
    Graph graph = make_model("jsc-tiny");
    PassContext context;
    try {
      run_pass(graph, "training_base",
               Dict{{"by", "type"},
                    {key, Dict{{"config", Dict{{"forward", std::move(forward)},
                                               {"backward", std::move(backward)}}}}}},
               context);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Dict good{{"name", "integer"}, {"output_grad_width", 8}};
  EXPECT_EQ(message({{"bypass", true}}, good, "linear"), "");
  EXPECT_NE(message({{"bypass", true}}, good, "relu").find("only layers that multiply"),
            std::string::npos);
  EXPECT_NE(message({{"bypass", true}}, {{"name", "integer"}, {"output_grad_widht", 8}}, "linear")
                .find("unknown key 'output_grad_widht'; did you mean 'output_grad_width'?"),
            std::string::npos);
  EXPECT_NE(message({{"bypass", true}}, {{"name", "integer"}, {"pass", "prune"}}, "linear")
                .find("quantize"),
            std::string::npos);
  EXPECT_NE(message({{"bypass", true}}, {{"name", "integr"}}, "linear").find("integer"),
            std::string::npos);
}

// Rounded to 16 bits, the gradients are nearly the exact ones: the option changes the numbers, not
// the rule.
TEST(QuantizedTraining, WideFormatsBackwardChangeLittle) {
  const Value back =
      Dict{{"name", "integer"},      {"output_grad_width", 24},  {"output_grad_frac_width", 22},
           {"data_in_width", 20},    {"data_in_frac_width", 14}, {"weight_width", 20},
           {"weight_frac_width", 16}};
  const Graph graph = quantized_model(
      "jsc-10x", "training_base", Dict{{"forward", Dict{{"bypass", true}}}, {"backward", back}});
  const Trained rounded = gradients_of(graph, 0, 1),
                exact = gradients_of(make_model("jsc-10x"), 0, 1);
  ASSERT_EQ(rounded.gradients.size(), exact.gradients.size());
  EXPECT_NE(rounded.gradients, exact.gradients);
  for (size_t i = 0; i < exact.gradients.size(); ++i)
    EXPECT_NEAR(rounded.gradients[i], exact.gradients[i], 1e-3);
  EXPECT_EQ(rounded.loss, exact.loss);
}

}  // namespace
}  // namespace mase::quantized_training_test
