// SPDX-License-Identifier: Apache-2.0
// Numbers that quantisers learn: LSQ's step and PACT's clip get the gradients of their papers
// inside programs, start where they should, survive being written to a graph, and stay finite.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/formats/kernels/learned.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/learned.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"
#include "mase/train/loss.h"
#include "support/random_tensor.h"
#include "support/support.h"

namespace mase::learned_test {
namespace {

using test::random_tensor;

constexpr int64_t batch_size = 6, width_in = 5, width_out = 3;

// x => a linear layer that changes nothing => the quantised layer: the bias of the first one gets
// the sum over the batch of the gradient by the second one's input.
Graph two_layers(const Value& config) {
  Graph graph;
  const NodeId input = graph.add_placeholder("x", {width_in});
  Module before = make_module(
      "linear", Value(Dict{{"in_features", width_in}, {"out_features", width_in}}), 0, "before");
  for (auto& [name, tensor] : before.parameters) tensor = Tensor(tensor.shape());
  for (int64_t i = 0; i < width_in; ++i)
    before.find("weight")->mutable_data<float>()[i * (width_in + 1)] = 1;
  const NodeId x = graph.add_module("before", before, {input});
  Module layer = make_module(
      "linear", Value(Dict{{"in_features", width_in}, {"out_features", width_out}}), 0, "layer");
  *layer.find("weight") = random_tensor({width_out, width_in}, 0.4, 1);
  *layer.find("bias") = random_tensor({width_out}, 0.4, 2);
  Problems problems;
  layer.quantization = parse_quantization(
      config, {.names = {"data_in", "weight", "bias", "data_out"}}, "config", problems);
  problems.throw_if_any();
  fit_learned_parameters(layer);
  graph.add_output({graph.add_module("layer", layer, {x})});
  verify(graph);
  return graph;
}

struct Result {
  std::map<std::string, std::vector<float>> value, gradient;
  std::vector<float> output;
};

Result step(const Graph& graph, const Tensor& x, const Tensor& targets, bool training = true) {
  CompileOptions options;
  options.training = training;
  options.batch_size = batch_size + 3;  // rows have padding
  options.loss = make_loss("mse", {}, false);
  Program program = Program::compile(graph, options);
  Batch batch;
  batch.inputs = {x};
  batch.target = targets;
  batch.size = batch_size;
  if (training)
    program.forward_backward(batch);
  else
    program.forward(batch);
  Result result;
  for (const ParameterView& view : program.parameters()) {
    result.value[view.name].assign(view.value.begin(), view.value.end());
    result.gradient[view.name].assign(view.gradient.begin(), view.gradient.end());
  }
  result.output.resize(static_cast<size_t>(batch_size * width_out));
  program.read_output(0, result.output.data());
  return result;
}

// The formulas of the papers, one value at a time.
struct Formula {
  bool clip;
  double low, high;  // codes

  double quantize(double x, double number) const {
    const double s = clip ? number / high : number;
    return std::clamp(std::nearbyint(x / s), low, high) * s;
  }
  double by_x(double x, double number) const {
    const double s = clip ? number / high : number;
    return x / s > low && x / s < high ? 1 : 0;
  }
  double by_number(double x, double number) const {
    if (clip) return x >= number ? 1 : low < 0 && x <= -number ? -1 : 0;
    const double v = x / number;
    return v <= low ? low : v >= high ? high : std::nearbyint(v) - v;
  }
};

void check_against(const Formula& data, const Formula& weight, const Value& config,
                   double data_share, double weight_share, double shrink = 1) {
  Graph graph = two_layers(config);
  if (shrink != 1) {  // numbers that were found, so that values lie beyond them on both sides
    Module& layer = graph.modules().at("layer");
    layer.find("data_in_clip")->mutable_data<float>()[0] = static_cast<float>(shrink);
    layer.find("weight_clip")->mutable_data<float>()[0] *= static_cast<float>(shrink);
  }
  const Tensor x = random_tensor({batch_size, width_in}, 1.5, 3);
  const Tensor targets = random_tensor({batch_size, width_out}, 1, 4);
  const Result got = step(graph, x, targets);
  const std::string key = data.clip ? "layer.data_in_clip" : "layer.data_in_scale";
  const std::string weight_key = weight.clip ? "layer.weight_clip" : "layer.weight_scale";
  const double a = got.value.at(key).at(0), s = got.value.at(weight_key).at(0);
  ASSERT_GT(a, 0);
  ASSERT_GT(s, 0);
  const std::vector<float>& w = got.value.at("layer.weight");
  const std::vector<float>& b = got.value.at("layer.bias");
  std::vector<double> by_x(width_in), by_w(w.size());
  double by_a = 0, by_s = 0;
  for (int64_t n = 0; n < batch_size; ++n)
    for (int64_t o = 0; o < width_out; ++o) {
      double y = b[static_cast<size_t>(o)];
      for (int64_t i = 0; i < width_in; ++i)
        y += data.quantize(x.item(n * width_in + i), a) *
             weight.quantize(w[static_cast<size_t>(o * width_in + i)], s);
      EXPECT_NEAR(got.output[static_cast<size_t>(n * width_out + o)], y, 1e-5);
      const double g =
          2 * (y - targets.item(n * width_out + o)) / static_cast<double>(batch_size * width_out);
      for (int64_t i = 0; i < width_in; ++i) {
        const double xi = x.item(n * width_in + i);
        const size_t at = static_cast<size_t>(o * width_in + i);
        const double gx = g * weight.quantize(w[at], s), gw = g * data.quantize(xi, a);
        by_x[static_cast<size_t>(i)] += gx * data.by_x(xi, a);
        by_a += gx * data.by_number(xi, a);
        by_w[at] += gw * weight.by_x(w[at], s);
        by_s += gw * weight.by_number(w[at], s);
      }
    }
  EXPECT_NEAR(got.gradient.at(key).at(0), by_a * data_share, 1e-5);
  EXPECT_NEAR(got.gradient.at(weight_key).at(0), by_s * weight_share, 1e-5);
  EXPECT_NE(by_s, 0);
  for (size_t i = 0; i < by_w.size(); ++i)
    EXPECT_NEAR(got.gradient.at("layer.weight")[i], by_w[i], 1e-5);
  for (size_t i = 0; i < by_x.size(); ++i)
    EXPECT_NEAR(got.gradient.at("before.bias")[i], by_x[i], 1e-5);
}

TEST(Learned, StepSizesGetTheGradientsOfLsq) {
  const Value config = Dict{{"name", "scale_integer"},
                            {"data_in_width", 4},
                            {"data_in_scale", "learned"},
                            {"weight_width", 3},
                            {"weight_scale", "learned"}};
  check_against({false, -8, 7}, {false, -4, 3}, config, 1 / std::sqrt(5.0 * 7),
                1 / std::sqrt(15.0 * 3));
  const Value other =
      Dict{{"name", "scale_integer"},    {"data_in_width", 3}, {"data_in_is_signed", false},
           {"data_in_scale", "learned"}, {"weight_width", 2},  {"weight_scale", "learned"}};
  check_against({false, 0, 7}, {false, -2, 1}, other, 1 / std::sqrt(5.0 * 7),
                1 / std::sqrt(15.0 * 1));
}

TEST(Learned, ClipsGetTheGradientsOfPact) {
  Graph graph;
  const Value config =
      Dict{{"name", "scale_integer"},   {"data_in_width", 4}, {"data_in_is_signed", false},
           {"data_in_clip", "learned"}, {"weight_width", 4},  {"weight_clip", "learned"}};
  check_against({true, 0, 15}, {true, -7, 7}, config, 1, 1);
  check_against({true, 0, 15}, {true, -7, 7}, config, 1, 1, 0.5);
  Value both = config;
  both["data_in_is_signed"] = true;
  check_against({true, -7, 7}, {true, -7, 7}, both, 1, 1, 0.6);
}

TEST(Learned, ValuesBeyondTheClipMoveIt) {
  const Value config = Dict{{"name", "scale_integer"},
                            {"data_in_width", 4},
                            {"data_in_is_signed", false},
                            {"data_in_clip", "learned"}};
  Graph graph = two_layers(config);
  Tensor* clip = graph.modules().at("layer").find("data_in_clip");
  ASSERT_TRUE(clip);
  clip->mutable_data<float>()[0] = 0.75f;
  const Tensor x = random_tensor({batch_size, width_in}, 1.5, 3);
  const Tensor targets = random_tensor({batch_size, width_out}, 1, 4);
  const Result got = step(graph, x, targets);
  EXPECT_EQ(got.value.at("layer.data_in_clip")[0], 0.75f);
  // Finite difference: moving the clip moves exactly the values beyond it (and all others by their
  // rounding, which a fine format makes vanish).
  Value fine = config;
  fine["data_in_width"] = 16;
  const auto loss = [&](float value) {
    Graph moved = two_layers(fine);
    moved.modules().at("layer").find("data_in_clip")->mutable_data<float>()[0] = value;
    const Result out = step(moved, x, targets);
    double sum = 0;
    for (size_t i = 0; i < out.output.size(); ++i)
      sum += std::pow(out.output[i] - targets.item(static_cast<int64_t>(i)), 2);
    return std::pair(sum / static_cast<double>(out.output.size()),
                     out.gradient.at("layer.data_in_clip")[0]);
  };
  const double slope = (loss(0.751f).first - loss(0.749f).first) / 0.002;
  EXPECT_NEAR(loss(0.75f).second, slope, 1e-3 * std::max(1.0, std::abs(slope)));
}

TEST(Learned, NumbersStartFromTheData) {
  const Value config =
      Dict{{"name", "scale_integer"}, {"data_in_width", 4},        {"data_in_scale", "learned"},
           {"weight_width", 3},       {"weight_scale", "learned"}, {"weight_granularity", "row"}};
  const Graph graph = two_layers(config);
  const Module& layer = graph.modules().at("layer");
  const Tensor& scales = *layer.find("weight_scale");
  ASSERT_EQ(scales.shape(), (Shape{width_out, 1}));
  for (int64_t o = 0; o < width_out; ++o) {
    double mean = 0;
    for (int64_t i = 0; i < width_in; ++i)
      mean += std::abs(layer.find("weight")->item(o * width_in + i)) / width_in;
    EXPECT_NEAR(scales.item(o), 2 * mean / std::sqrt(3.0), 1e-6);
  }
  EXPECT_EQ(layer.find("data_in_scale")->item(0), 0);
  const Tensor x = random_tensor({batch_size, width_in}, 1.5, 3);
  const Tensor targets = random_tensor({batch_size, width_out}, 1, 4);
  double mean = 0;
  for (int64_t i = 0; i < x.numel(); ++i)
    mean += std::abs(x.item(i)) / static_cast<double>(x.numel());
  const Result trained = step(graph, x, targets);
  EXPECT_NEAR(trained.value.at("layer.data_in_scale")[0], 2 * mean / std::sqrt(7.0), 1e-6);
  // Evaluation before any training does not wait for it.
  const Result evaluated = step(graph, x, targets, false);
  EXPECT_EQ(evaluated.value.at("layer.data_in_scale")[0], 0);
  for (size_t i = 0; i < evaluated.output.size(); ++i)
    EXPECT_NEAR(evaluated.output[i], trained.output[i], 1e-5);
}

TEST(Learned, ActivationsStartFromSamples) {
  Graph graph = make_model("jsc-tiny");
  PassContext context;
  context.samples = random_tensor({300, 16}, 1, 21);
  run_pass(graph, "quantize",
           Dict{{"by", "type"},
                {"linear", Dict{{"config", Dict{{"name", "scale_integer"},
                                                {"data_in_width", 4},
                                                {"data_in_is_signed", false},
                                                {"data_in_clip", "learned"},
                                                {"weight_width", 4}}}}}},
           context);
  // A fresh batch-norm in evaluation mode changes nothing but for eps; then comes the ReLU.
  float largest = 0;
  for (int64_t i = 0; i < 256 * 16; ++i)
    largest = std::max(largest, context.samples.data<float>()[i]);
  for (const auto& [path, module] : graph.modules())
    if (module.op == "linear") {
      EXPECT_NEAR(module.find("data_in_clip")->item(0), largest, 1e-4);
    }
}

TEST(Learned, EngineOracleAndFileAgree) {
  Graph graph = make_model("jsc-toy");
  PassContext context;
  const Value config =
      Dict{{"name", "scale_integer"}, {"data_in_width", 5},       {"data_in_scale", "learned"},
           {"weight_width", 4},       {"weight_clip", "learned"}, {"weight_granularity", "row"}};
  run_pass(graph, "quantize", Dict{{"by", "type"}, {"linear", Dict{{"config", config}}}}, context);
  int learned = 0;
  for (auto& [path, module] : graph.modules())
    for (auto& [name, tensor] : module.parameters)
      if (name == "data_in_scale") {
        tensor.mutable_data<float>()[0] = 0.11f;
        ++learned;
      }
  EXPECT_EQ(learned, 3);
  const Tensor x = random_tensor({19, 16}, 1, 9);
  const std::vector<Array> wanted = evaluate(graph, {Array::from(x)});
  const std::vector<Tensor> got = run(graph, {x});
  int far = 0;
  for (int64_t i = 0; i < got[0].numel(); ++i)
    far += std::abs(got[0].item(i) - wanted[0].data[static_cast<size_t>(i)]) > 1e-3;
  EXPECT_LE(far, 2);
  const std::string path = test::temporary_folder() + "/graph.mz";
  save_mz(path, graph);
  const Graph again = *load_checkpoint(path).graph;
  for (const auto& [name, tensor] : state_dict(graph)) {
    const size_t dot = name.rfind('.');
    const Tensor* other = again.modules().at(name.substr(0, dot)).find(name.substr(dot + 1));
    ASSERT_TRUE(other) << name;
    EXPECT_TRUE(other->same_bits(tensor)) << name;
  }
  // Quantised again without them, the layers hold no such parameters any more.
  run_pass(
      graph, "quantize",
      Dict{
          {"by", "type"},
          {"linear",
           Dict{{"config", Dict{{"name", "integer"}, {"data_in_width", 8}, {"weight_width", 8}}}}}},
      context);
  for (const auto& [path2, module] : graph.modules())
    for (const auto& [name, tensor] : module.parameters)
      EXPECT_EQ(name.find("scale"), std::string::npos) << path2 << " " << name;
}

// Ten steps of gradient descent under PyTorch's autograd (golden/torch/learned_ranges.py).
TEST(Learned, TrainsAsUnderPyTorch) {
  std::map<std::string, Tensor> golden;
  for (auto& [name, tensor] :
       load_safetensors(test::golden_path("torch/learned_ranges.safetensors")))
    golden.emplace(name, tensor);
  Graph graph;
  NodeId last = graph.add_placeholder("x", {6});
  const auto layer = [&](const std::string& path, int64_t in, int64_t out, const Value& config) {
    Module module =
        make_module("linear", Value(Dict{{"in_features", in}, {"out_features", out}}), 0, path);
    Problems problems;
    module.quantization =
        parse_quantization(config, {.names = {"data_in", "weight", "bias"}}, path, problems);
    problems.throw_if_any();
    fit_learned_parameters(module);
    for (auto& [name, tensor] : module.parameters) tensor = golden.at("init." + path + "." + name);
    last = graph.add_module(path, module, {last});
  };
  layer("a", 6, 8,
        Dict{{"name", "scale_integer"},
             {"data_in_width", 4},
             {"data_in_scale", "learned"},
             {"weight_width", 3},
             {"weight_scale", "learned"}});
  last = graph.call_function("relu", {Argument::node(last)});
  layer("b", 8, 3,
        Dict{{"name", "scale_integer"},
             {"data_in_width", 4},
             {"data_in_is_signed", false},
             {"data_in_clip", "learned"},
             {"weight_width", 4},
             {"weight_scale", "learned"},
             {"weight_granularity", "row"}});
  graph.add_output({last});
  verify(graph);
  CompileOptions options;
  options.training = true;
  options.batch_size = 16;
  options.loss = make_loss("cross_entropy");
  Program program = Program::compile(graph, options);
  Batch batch;
  batch.inputs = {golden.at("x")};
  batch.target = golden.at("y");
  batch.size = 16;
  ASSERT_EQ(program.parameters().size(), 8u);
  for (int step = 0; step < 10; ++step) {
    const double loss = program.forward_backward(batch).loss;
    EXPECT_NEAR(loss, golden.at("loss").item(step), 1e-5) << step;
    for (const ParameterView& view : program.parameters())
      for (size_t i = 0; i < view.value.size(); ++i) {
        const double wanted = golden.at("grad0." + view.name).item(static_cast<int64_t>(i));
        EXPECT_TRUE(step > 0 || std::abs(view.gradient[i] - wanted) < 1e-6)
            << view.name << " " << view.gradient[i] << " " << wanted;
        view.value[i] -= 0.05f * view.gradient[i];
      }
    program.parameters_changed();
  }
  for (const ParameterView& view : program.parameters())
    for (size_t i = 0; i < view.value.size(); ++i)
      EXPECT_NEAR(view.value[i], golden.at("final." + view.name).item(static_cast<int64_t>(i)),
                  1e-5)
          << view.name;
}

TEST(Learned, WrongConfigsAreRefused) {
  const auto message = [](Dict config) {
    try {
      two_layers(Value(std::move(config)));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string n = "scale_integer";
  EXPECT_NE(message({{"name", n}, {"weight_width", 4}, {"weight_scale", "learnt"}}).find("learned"),
            std::string::npos);
  EXPECT_NE(message({{"name", n},
                     {"weight_width", 4},
                     {"weight_scale", "learned"},
                     {"weight_clip", "learned"}})
                .find("learned already"),
            std::string::npos);
  EXPECT_NE(
      message(
          {{"name", n}, {"weight_width", 4}, {"weight_scale", "learned"}, {"weight_affine", true}})
          .find("zero point"),
      std::string::npos);
  EXPECT_NE(message({{"name", n},
                     {"data_in_width", 4},
                     {"data_in_scale", "learned"},
                     {"data_in_granularity", "row"}})
                .find("one number"),
            std::string::npos);
}

TEST(Learned, VectorGradientsEqualTheReference) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f, -0.0f, inf, -inf, std::nanf(""), 3e38f, -3e38f, 1e-45f};
  Random random(5, "patterns");
  while (x.size() < 1003) x.push_back(static_cast<float>(random.normal() * 3));
  std::vector<float> g(x.size());
  for (float& value : g) value = static_cast<float>(random.normal());
  for (const float step : {0.3f, 1e-30f, 1e30f}) {
    for (const bool error : {true, false}) {
      const LearnedSpec spec{step, -8, 7, -8, 7, error};
      std::vector<float> fast(x.size()), plain(x.size());
      const double a = learned_gradient_kernel(spec, x.data(), g.data(), fast.data(), x.size());
      const double b = learned_gradient_reference(spec, x.data(), g.data(), plain.data(), x.size());
      EXPECT_TRUE(std::isfinite(a));
      EXPECT_NEAR(a, b, 1e-3);  // of a sum of a thousand values around 5
      EXPECT_EQ(fast, plain);
      learned_kernel(spec, x.data(), fast.data(), x.size());
      learned_reference(spec, x.data(), plain.data(), x.size());
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_TRUE(fast[i] == plain[i] || (std::isnan(x[i]) && std::isnan(fast[i]))) << x[i];
    }
  }
}

}  // namespace
}  // namespace mase::learned_test
