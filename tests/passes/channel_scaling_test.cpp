// SPDX-License-Identifier: Apache-2.0
// smoothquant, awq, cross_layer_equalisation, bias_correction and lqer: scales and weights of other
// implementations, what each is optimal for, and that layers do not get worse.
#include <cmath>

#include "mase/base/file.h"
#include "mase/formats/frozen.h"
#include "mase/ir/evaluate.h"
#include "mase/models/hf.h"
#include "mase/passes/calibration.h"
#include "mase/passes/format_error.h"
#include "mase/passes/lora.h"
#include "mase/passes/pass.h"
#include "mase/passes/weight_method.h"
#include "passes/networks.h"

namespace mase::channel_scaling_test {
namespace {

std::map<std::string, Tensor> tensors_of(const std::string& name) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [key, tensor] : load_safetensors(test::golden_path(name))) tensors[key] = tensor;
  return tensors;
}

struct OutlierNetwork {
  Graph graph;
  Tensor calibration;
};

// A llama whose norms have a few large channels; calibration sentences of 64 tokens.
OutlierNetwork outlier_network() {
  OutlierNetwork result;
  const std::string path = test::golden_path("ptq/llama_outlier");
  result.calibration = tensors_of("ptq/llama_outlier/io.safetensors").at("calibration_ids");
  Checkpoint folder = load_checkpoint(path);
  const int64_t tokens = result.calibration.dim(1);
  result.graph = make_hf_network(folder.contents, folder.tensors, {.shapes = {{tokens}}}, path);
  load_into(result.graph, folder, path);
  return result;
}

// The golden files have 8 sentences; a pass wants some to judge by, so they are there twice.
PassContext twice(const OutlierNetwork& net) {
  PassContext context;
  const Tensor ids = net.calibration.to(DType::i32);
  Tensor all({2 * ids.dim(0), ids.dim(1)}, DType::i32);
  for (int64_t i = 0; i < all.numel(); ++i)
    all.mutable_data<int32_t>()[i] = ids.data<int32_t>()[i % ids.numel()];
  context.samples = all;
  return context;
}

void expect_near(const Tensor& found, const Tensor& wanted, double relative) {
  ASSERT_EQ(found.numel(), wanted.numel());
  for (int64_t i = 0; i < found.numel(); ++i)
    ASSERT_NEAR(found.item(i), wanted.item(i), relative * (std::fabs(wanted.item(i)) + 1e-3)) << i;
}

TEST(SmoothQuant, HasTheWeightsOfTheReference) {
  const std::map<std::string, Tensor> golden =
      tensors_of("ptq/smoothquant_llama_outlier.safetensors");
  for (const double alpha : {0.5, 0.85}) {
    OutlierNetwork net = outlier_network();
    const Graph original = net.graph;
    PassContext context = twice(net);
    const PassResult result =
        run_pass(net.graph, "smoothquant", Dict{{"alpha", alpha}, {"rows", 8}, {"heldout_rows", 8}},
                 context);
    EXPECT_EQ(result.data["judged"], Value(false));
    EXPECT_LT(result.data["change_without_formats"].as_double(), 1e-5);
    int compared = 0;
    for (int layer = 0; layer < 2; ++layer) {
      const std::string from = fmt::format("smooth_a{}.{}.", alpha, layer),
                        to = fmt::format("model.layers.{}.", layer);
      for (const auto& [name, place] : {std::pair{"q_proj.weight", "self_attn.q_proj.weight"},
                                        {"gate_proj.weight", "mlp.gate_proj.weight"},
                                        {"input_layernorm.weight", "input_layernorm.weight"}}) {
        const auto found = golden.find(from + name);
        if (found == golden.end()) continue;
        SCOPED_TRACE(from + name);
        expect_near(*net.graph.tensor(to + place), found->second, 1e-5);
        ++compared;
      }
      // The scales themselves, from what the norm was divided by.
      for (const auto& [name, norm] : {std::pair{"qkv", "input_layernorm.weight"},
                                       {"gateup", "post_attention_layernorm.weight"}}) {
        const Tensor& scale = golden.at(from + name + ".scale");
        for (int64_t i = 0; i < scale.numel(); ++i)
          EXPECT_NEAR(original.tensor(to + norm)->item(i) / net.graph.tensor(to + norm)->item(i),
                      scale.item(i), 1e-5 * scale.item(i));
      }
    }
    EXPECT_GE(compared, alpha == 0.5 ? 4 : 0);
  }
}

TEST(Awq, HasTheScalesOfTheReference) {
  const std::map<std::string, Tensor> golden = tensors_of("ptq/awq_llama_outlier.safetensors");
  const std::map<std::string, double> ratios = {{"0.qkv", 0.8},     {"0.gateup", 0.7},
                                                {"0.down", 0.45},   {"1.qkv", 0.7},
                                                {"1.gateup", 0.75}, {"1.down", 0.5}};
  for (const auto& [site, ratio] : ratios) {
    SCOPED_TRACE(site);
    OutlierNetwork net = outlier_network();
    PassContext context = twice(net);
    const Graph before = net.graph;
    const std::string layer = fmt::format("model.layers.{}.", site[0]);
    const std::string path = layer + (site.substr(2) == "qkv"      ? "input_layernorm"
                                      : site.substr(2) == "gateup" ? "post_attention_layernorm"
                                                                   : "mlp.up_proj");
    std::string node;
    for (const NodeId id : net.graph.order())
      if (net.graph.node(id).target == path) node = net.graph.node(id).name;
    const PassResult result = run_pass(net.graph, "awq",
                                       Dict{{"by", "name"},
                                            {"target_nodes", List{node}},
                                            {"ratios", List{ratio}},
                                            {"rows", 8},
                                            {"heldout_rows", 8}},
                                       context);
    const Value& own = result.data["layers"][node];
    ASSERT_EQ(own["kept"], Value(true)) << to_json(result.data);
    const Tensor& scale = golden.at("awq." + site + ".scale");
    const Tensor &first = *before.tensor(path + ".weight"),
                 &now = *net.graph.tensor(path + ".weight");
    const int64_t row = first.numel() / scale.numel();
    for (int64_t i = 0; i < scale.numel(); ++i)
      EXPECT_NEAR(first.item(i * row) / now.item(i * row), scale.item(i), 1e-5 * scale.item(i));
  }
}

// Two layers whose channels have very different ranges, with a flatten between convolution and
// linear layer, and a depthwise one.
Graph uneven_network() {
  Graph graph;
  graph.name = "uneven";
  NodeId x = graph.add_placeholder("x", {3, 6, 6});
  const auto conv = [&](const std::string& path, int64_t in, int64_t out, int64_t groups) {
    x = graph.add_module(path,
                         make_module("conv2d",
                                     Dict{{"in_channels", in},
                                          {"out_channels", out},
                                          {"kernel_size", 3},
                                          {"padding", 1},
                                          {"groups", groups}},
                                     1, path),
                         {x});
  };
  conv("first", 3, 8, 1);
  x = graph.add_module("relu", make_module("relu", Dict{}, 0, "relu"), {x});
  conv("depthwise", 8, 8, 8);
  x = graph.add_module("relu_1", make_module("relu", Dict{}, 0, "relu_1"), {x});
  x = graph.add_module("flatten", make_module("flatten", Dict{}, 0, "flatten"), {x});
  x = graph.add_module(
      "last", make_module("linear", Dict{{"in_features", 288}, {"out_features", 5}}, 1, "last"),
      {x});
  graph.add_output({x});
  for (const char* path : {"first", "depthwise"}) {
    Tensor& weight = *graph.modules().at(path).find("weight");
    for (int64_t i = 0; i < weight.numel(); ++i)
      weight.mutable_data<float>()[i] *=
          std::pow(3.0f, static_cast<float>(i / (weight.numel() / 8) % 4));
  }
  return graph;
}

PassContext drawn_context(const Graph& graph, int64_t rows) {
  PassContext context;
  Shape shape = graph.node(graph.placeholders().front()).sample_shape;
  shape.insert(shape.begin(), rows);
  Tensor x(shape);
  Random random(5, "rows");
  const int64_t row = x.numel() / rows;
  for (int64_t r = 0; r < rows; ++r) {
    const double common = random.normal();
    for (int64_t i = 0; i < row; ++i)
      x.mutable_data<float>()[r * row + i] = static_cast<float>(common + 0.5 * random.normal());
  }
  context.samples = x;
  return context;
}

double range_of(const Tensor& tensor, int64_t first, int64_t count, int64_t step) {
  double most = 0;
  for (int64_t i = 0; i < count; ++i)
    most = std::max(most, std::fabs(tensor.item(first + i * step)));
  return most;
}

TEST(CrossLayerEqualisation, GivesChannelsEqualRangesThroughFlattenAndDepthwise) {
  Graph graph = uneven_network();
  const Graph original = graph;
  PassContext context = drawn_context(graph, 40);
  const PassResult result = run_pass(graph, "cross_layer_equalisation",
                                     Dict{{"rows", 16}, {"heldout_rows", 16}}, context);
  EXPECT_EQ(result.data["layers"].as_dict().size(), 2u) << to_json(result.data);
  EXPECT_LT(result.data["change_without_formats"].as_double(), 1e-5);
  // The second pair was made equal last: a row of the depthwise layer and 36 columns of the linear.
  const Tensor &depthwise = *graph.tensor("depthwise.weight"), &last = *graph.tensor("last.weight");
  for (int64_t c = 0; c < 8; ++c) {
    double columns = 0;
    for (int64_t r = 0; r < 5; ++r)
      columns = std::max(columns, range_of(last, r * 288 + c * 36, 36, 1));
    EXPECT_NEAR(range_of(depthwise, c * 9, 9, 1), columns, 1e-5 * columns);
  }
  const std::vector<Array> before = evaluate(original, {Array::from(context.samples)}),
                           after = evaluate(graph, {Array::from(context.samples)});
  for (size_t i = 0; i < before[0].data.size(); ++i)
    EXPECT_NEAR(before[0].data[i], after[0].data[i], 1e-5);
}

Value per_tensor(int width) {
  const Value config = Dict{{"name", "scale_integer"},
                            {"weight_width", width},
                            {"weight_granularity", "tensor"},
                            {"weight_only", true}};
  return Dict{{"linear", Dict{{"config", config}}}, {"conv2d", Dict{{"config", config}}}};
}

TEST(BiasCorrection, TakesTheMeanErrorAway) {
  Graph graph = uneven_network();
  PassContext context = drawn_context(graph, 200);
  run_pass(graph, "quantize", per_tensor(4), context);
  const Graph before = graph, reference = without_formats(graph);
  const PassResult result =
      run_pass(graph, "bias_correction", Dict{{"rows", 100}, {"heldout_rows", 100}}, context);
  int kept = 0;
  for (const auto& [name, layer] : result.data["layers"].as_dict()) {
    EXPECT_LE(layer["heldout_after"].as_double(), layer["heldout_before"].as_double());
    kept += layer["kept"] == Value(true);
  }
  EXPECT_GE(kept, 2) << to_json(result.data);
  // The mean of the last layer's error on the rows it was corrected on, by evaluation in double.
  Tensor seen({100, 3, 6, 6});
  std::copy_n(context.samples.data<float>(), seen.numel(), seen.mutable_data<float>());
  const std::vector<Array> wanted = evaluate(reference, {Array::from(seen)}),
                           found = evaluate(graph, {Array::from(seen)});
  if (result.data["layers"]["last"]["kept"] == Value(true))
    for (size_t c = 0; c < 5; ++c) {
      double mean = 0;
      for (size_t r = 0; r < 100; ++r)
        mean += (found[0].data[r * 5 + c] - wanted[0].data[r * 5 + c]) / 100;
      EXPECT_NEAR(mean, 0, 1e-5);
    }
}

// Among all products of the rank none has less error: the residual is orthogonal to the space that
// was taken, and grows when that space is turned a little.
TEST(Lqer, IsTheBestOfItsRank) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {12});
  graph.add_output({graph.add_module(
      "fc", make_module("linear", Dict{{"in_features", 12}, {"out_features", 9}}, 3, "fc"), {x})});
  PassContext context = drawn_context(graph, 200);
  run_pass(graph, "quantize", Dict{{"linear", per_tensor(3)["linear"]}}, context);
  const Graph quantised = graph;
  double last = INFINITY;
  for (const int rank : {1, 2, 4}) {
    graph = quantised;
    const PassResult result = run_pass(
        graph, "lqer",
        Dict{
            {"rank", rank}, {"rows", 100}, {"heldout_rows", 100}, {"format", Dict{{"name", "NA"}}}},
        context);
    const Value& layer = result.data["layers"]["fc"];
    ASSERT_EQ(layer["kept"], Value(true)) << to_json(result.data);
    EXPECT_LT(layer["after"].as_double(), last);
    last = layer["after"].as_double();
    const Tensor weight = *quantised.tensor("fc.weight");
    const Tensor rounded =
        quantize(*quantised.modules().at("fc").quantization.find("weight"), weight);
    const std::vector<Tensor> rows = {[&] {
      Tensor seen({100, 12});
      std::copy_n(context.samples.data<float>(), seen.numel(), seen.mutable_data<float>());
      return seen;
    }()};
    const ProductInputs inputs = *product_inputs(quantised, {quantised.outputs().front()}, rows)
                                      .at(quantised.outputs().front());
    const auto error = [&](const Tensor& a, const Tensor& b) {
      Tensor sum = rounded;
      for (int64_t r = 0; r < 9; ++r)
        for (int64_t c = 0; c < 12; ++c)
          for (int64_t k = 0; k < rank; ++k)
            sum.mutable_data<float>()[r * 12 + c] +=
                b.data<float>()[r * rank + k] * a.data<float>()[k * 12 + c];
      return output_error(weight, sum, inputs);
    };
    const Tensor a = *graph.tensor("fc.lora_A.weight"), b = *graph.tensor("fc.lora_B.weight");
    const double least = error(a, b);
    Random random(1, "turned");
    for (int trial = 0; trial < 50; ++trial) {
      Tensor other_a = a, other_b = b;
      for (Tensor* tensor : {&other_a, &other_b})
        for (int64_t i = 0; i < tensor->numel(); ++i)
          tensor->mutable_data<float>()[i] += static_cast<float>(1e-2 * random.normal());
      EXPECT_GE(error(other_a, other_b), least * (1 - 1e-4));
    }
    verify(graph);
  }
}

// Learned roundings and clipped weights are kept by formats with given scales, zeros included.
TEST(WeightMethods, LieOnTheGrid) {
  Graph graph = uneven_network();
  PassContext context = drawn_context(graph, 64);
  run_pass(graph, "quantize", per_tensor(3), context);
  for (const char* pass : {"gptq", "adaround", "clip_search"}) {
    SCOPED_TRACE(pass);
    Graph own = graph;
    const PassResult result =
        run_pass(own, pass, Dict{{"rows", 32}, {"heldout_rows", 32}}, context);
    for (const auto& [name, layer] : result.data["layers"].as_dict())
      EXPECT_EQ(layer["note"].as_string().find("round the result"), std::string::npos) << name;
    run_pass(own, "verify_quantization", Dict{{"num_samples", 4}, {"show", 0}}, context);
  }
}

TEST(ChannelScaling, LeavesALayerAloneWhereItGetsWorse) {
  Graph graph = uneven_network();
  PassContext context = drawn_context(graph, 64);
  run_pass(graph, "quantize", per_tensor(4), context);
  for (const char* pass : {"cross_layer_equalisation", "awq", "smoothquant"}) {
    Graph own = graph;
    Dict args{{"rows", 32}, {"heldout_rows", 32}};
    if (std::string(pass) == "smoothquant") args.set("from", "all");
    const PassResult result = run_pass(own, pass, Value(args), context);
    for (const auto& [name, layer] : result.data["layers"].as_dict())
      EXPECT_LE(layer["heldout_after"].as_double(), layer["heldout_before"].as_double()) << name;
    run_pass(own, "verify_quantization", Dict{{"num_samples", 4}, {"show", 0}}, context);
  }
}

}  // namespace
}  // namespace mase::channel_scaling_test
