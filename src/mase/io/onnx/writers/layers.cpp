// SPDX-License-Identifier: Apache-2.0
// Layers with parameters, pools and normalisations.
#include <cmath>

#include "mase/io/onnx/write/writer.h"

namespace mase::onnx::layer_writers {
namespace {

// Readers of QONNX (hls4ml, FINN) know MatMul, not Gemm; Gemm is for matrices only.
void linear(WriteContext& c) {
  const bool module = c.has_parameter("weight");
  if (!module) c.fail("a linear function of computed weights is not written");
  const bool bias = c.has_parameter("bias");
  const std::string x = c.input(0);
  if (c.input_shape(0).size() == 2 && c.flavour() != Flavour::qonnx) {
    std::vector<std::string> inputs = {x, c.parameter("weight")};
    if (bias) inputs.push_back(c.parameter("bias"));
    return c.result(c.add("Gemm", inputs, {integer_attribute("transB", 1)}));
  }
  std::string y = c.add("MatMul", {x, c.parameter("weight", {.order = {1, 0}})});
  if (bias) y = c.add("Add", {y, c.parameter("bias")});
  c.result(y);
}

std::vector<int64_t> twice(const std::vector<int64_t>& pads) {
  std::vector<int64_t> both = pads;
  both.insert(both.end(), pads.begin(), pads.end());
  return both;
}

// The input with values of its own around it, as no Conv has them.
std::string padded(WriteContext& c, size_t dims) {
  std::vector<int64_t> before(2 + dims, 0), after(2 + dims, 0);
  for (size_t i = 0; i < dims; ++i) {
    if (!c["padding"].is_string()) {
      before[2 + i] = after[2 + i] = c.numbers("padding", dims)[i];
    } else if (c["padding"].as_string() == "same") {
      const int64_t whole =
          c.numbers("dilation", dims)[i] * (c.numbers("kernel_size", dims)[i] - 1);
      before[2 + i] = whole / 2;
      after[2 + i] = whole - whole / 2;
    }
  }
  before.insert(before.end(), after.begin(), after.end());
  return c.add("Pad", {c.input(0), c.integers("pads", before), c.number(0)},
               {text_attribute("mode", c.padding_mode(c["padding_mode"].as_string()))});
}

void convolution(WriteContext& c, size_t dims, bool transposed) {
  if (!c.has_parameter("weight")) c.fail("a convolution with computed weights is not written");
  const bool apart = c["padding_mode"].as_string() != "zeros";
  std::vector<Attribute> attributes = {
      integers_attribute("strides", c.numbers("stride", dims)),
      integers_attribute("dilations", c.numbers("dilation", dims)),
      integer_attribute("group", c["groups"].as_int()),
      integers_attribute("kernel_shape", c.numbers("kernel_size", dims))};
  if (apart) {
    attributes.push_back(integers_attribute("pads", std::vector<int64_t>(2 * dims, 0)));
  } else if (c["padding"].is_string()) {
    attributes.push_back(
        text_attribute("auto_pad", c["padding"].as_string() == "same" ? "SAME_UPPER" : "VALID"));
  } else {
    attributes.push_back(integers_attribute("pads", twice(c.numbers("padding", dims))));
  }
  if (transposed)
    attributes.push_back(integers_attribute("output_padding", c.numbers("output_padding", dims)));
  std::vector<std::string> inputs = {apart ? padded(c, dims) : c.input(0), c.parameter("weight")};
  if (c.has_parameter("bias")) inputs.push_back(c.parameter("bias"));
  c.result(c.add(transposed ? "ConvTranspose" : "Conv", inputs, attributes));
}

OnnxWriter convolution_writer(const char* op, size_t dims, bool transposed) {
  return {.name = op, .write = [=](WriteContext& c) { convolution(c, dims, transposed); }};
}

void batch_norm(WriteContext& c) {
  if (!c.has_parameter("running_mean")) c.fail("it has no running statistics");
  const Shape channels = c.parameter_tensor("running_mean").shape();
  const auto given = [&](const char* name, float fallback) {
    if (c.has_parameter(name)) return c.parameter(name);
    return c.constant(std::string("all_") + name, c.table(channels, fallback));
  };
  std::vector<Attribute> attributes = {number_attribute("epsilon", c["eps"].as_double())};
  if (c["momentum"].is_number())
    attributes.push_back(number_attribute("momentum", 1 - c["momentum"].as_double()));
  c.result(c.add("BatchNormalization",
                 {c.input(0), given("weight", 1), given("bias", 0), c.parameter("running_mean"),
                  c.parameter("running_var")},
                 attributes));
}

// The mean over the last dimensions, kept as ones.
std::string mean_of_last(WriteContext& c, const std::string& x, size_t count) {
  std::vector<int64_t> axes;
  for (int64_t i = -static_cast<int64_t>(count); i < 0; ++i) axes.push_back(i);
  return c.mean(x, axes, true);
}

// Before operator set 17: (x - mean) / sqrt(variance + eps).
void layer_norm_in_parts(WriteContext& c, size_t count) {
  const std::string x = c.input(0);
  const std::string centred = c.add("Sub", {x, mean_of_last(c, x, count)});
  const std::string variance = mean_of_last(c, c.add("Mul", {centred, centred}), count);
  const std::string root =
      c.add("Sqrt", {c.add("Add", {variance, c.number(c["eps"].as_double())})});
  std::string y = c.add("Div", {centred, root});
  if (c.has_parameter("weight")) y = c.add("Mul", {y, c.parameter("weight")});
  if (c.has_parameter("bias")) y = c.add("Add", {y, c.parameter("bias")});
  c.result(y);
}

void layer_norm(WriteContext& c) {
  constexpr int64_t since = 17;
  const Shape normalized = c["normalized_shape"].is_int()
                               ? Shape{c["normalized_shape"].as_int()}
                               : c["normalized_shape"].as_int_list("normalized_shape");
  if (c.operator_set() < since) return layer_norm_in_parts(c, normalized.size());
  std::string weight;
  if (c.has_parameter("weight")) {
    weight = c.parameter("weight");
  } else {
    weight = c.constant("ones", c.table(normalized, 1));
  }
  std::vector<std::string> inputs = {c.input(0), weight};
  if (c.has_parameter("bias")) inputs.push_back(c.parameter("bias"));
  c.result(c.add("LayerNormalization", inputs,
                 {number_attribute("epsilon", c["eps"].as_double()),
                  integer_attribute("axis", -static_cast<int64_t>(normalized.size()))}));
}

// x / sqrt(mean(x^2) + eps): RMSNormalization itself came with operator set 23.
void rms_norm(WriteContext& c) {
  const Shape normalized = c["normalized_shape"].is_int()
                               ? Shape{c["normalized_shape"].as_int()}
                               : c["normalized_shape"].as_int_list("normalized_shape");
  const std::string x = c.input(0);
  const double eps = c["eps"].is_null() ? 1.1920928955078125e-07 : c["eps"].as_double();
  const std::string mean = mean_of_last(c, c.add("Mul", {x, x}), normalized.size());
  const std::string root = c.add("Sqrt", {c.add("Add", {mean, c.number(eps)})});
  std::string y = c.add("Div", {x, root});
  if (c.has_parameter("weight")) y = c.add("Mul", {y, c.parameter("weight")});
  c.result(y);
}

void instance_norm(WriteContext& c) {
  if (c.has_parameter("running_mean")) return batch_norm(c);
  const int64_t channels = c.input_shape(0).at(1);
  const auto given = [&](const char* name, float fallback) {
    if (c.has_parameter(name)) return c.parameter(name);
    return c.constant(fmt::format("{}_{}", name, channels), c.table({channels}, fallback));
  };
  c.result(c.add("InstanceNormalization", {c.input(0), given("weight", 1), given("bias", 0)},
                 {number_attribute("epsilon", c["eps"].as_double())}));
}

// Groups as channels of one long dimension, then a number for each channel: GroupNormalization
// itself has changed between operator sets.
void group_norm(WriteContext& c) {
  const int64_t groups = c["num_groups"].as_int(), channels = c.input_shape(0).at(1);
  const std::string flat = c.add("Reshape", {c.input(0), c.integers("groups", {0, groups, -1})});
  std::string y = c.add("InstanceNormalization",
                        {flat, c.constant(fmt::format("weight_{}", groups), c.table({groups}, 1)),
                         c.constant(fmt::format("bias_{}", groups), c.table({groups}))},
                        {number_attribute("epsilon", c["eps"].as_double())});
  y = c.add("Reshape", {y, c.integers("shape", c.open_shape())});
  Shape along(c.input_shape(0).size() - 1, 1);
  along.front() = channels;
  const auto numbers = [&](const char* name) { return c.parameter(name, {.shape = along}); };
  if (c.has_parameter("weight")) y = c.add("Mul", {y, numbers("weight")});
  if (c.has_parameter("bias")) y = c.add("Add", {y, numbers("bias")});
  c.result(y);
}

void upsample(WriteContext& c) {
  constexpr int64_t axes_since = 18;
  const Shape &from = c.input_shape(0), &to = c.shape();
  const Value& factor = c["scale_factor"];
  const bool by_factor = !factor.is_null() && !c["recompute_scale_factor"].as_bool();
  const bool bilinear = c["mode"].as_string() == "bilinear";
  const char* positions = !bilinear                      ? "asymmetric"
                          : c["align_corners"].as_bool() ? "align_corners"
                                                         : "half_pixel";
  std::vector<Attribute> attributes = {text_attribute("mode", bilinear ? "linear" : "nearest"),
                                       text_attribute("coordinate_transformation_mode", positions),
                                       text_attribute("nearest_mode", "floor")};
  if (!by_factor && c.operator_set() >= axes_since) {
    attributes.push_back(integers_attribute("axes", {2, 3}));
    return c.result(
        c.add("Resize", {c.input(0), "", "", c.integers("sizes", {to[2], to[3]})}, attributes));
  }
  std::vector<float> scales = {1, 1};
  for (size_t i = 2; i < 4; ++i) {
    // Places go by the factor itself, which need not be the ratio of the sizes.
    const Value& given = factor.is_list() ? factor.as_list().at(i - 2) : factor;
    scales.push_back(by_factor ? static_cast<float>(given.as_double())
                               : static_cast<float>(to[i]) / static_cast<float>(from[i]));
    const double size = static_cast<double>(from[i]) * static_cast<double>(scales[i]);
    if (static_cast<int64_t>(std::floor(size)) != to[i]) c.fail("no scale gives its size exactly");
  }
  c.result(c.add(
      "Resize",
      {c.input(0), "", c.constant(fmt::format("{}.scales", c.place()), Tensor::of({4}, scales))},
      attributes));
}

// ONNX counts places through the whole tensor, we through a plane.
void check_result(WriteContext& c) {
  if (c["result"].is_int() && c["result"].as_int() != 0) c.fail("where a maximum stands");
}

void pool(WriteContext& c, size_t dims, bool maximum) {
  check_result(c);
  if (!c["divisor_override"].is_null()) c.fail("a divisor of its own");
  const std::vector<int64_t> kernel = c.numbers("kernel_size", dims);
  std::vector<Attribute> attributes = {
      integers_attribute("kernel_shape", kernel),
      integers_attribute("strides", c["stride"].is_null() ? kernel : c.numbers("stride", dims)),
      integers_attribute("pads", twice(c.numbers("padding", dims))),
      integer_attribute("ceil_mode", c["ceil_mode"].as_bool())};
  if (maximum)
    attributes.push_back(integers_attribute("dilations", c.numbers("dilation", dims)));
  else
    attributes.push_back(integer_attribute("count_include_pad", c["count_include_pad"].as_bool()));
  c.result(c.add(maximum ? "MaxPool" : "AveragePool", {c.input(0)}, attributes));
}

OnnxWriter pool_writer(const char* op, size_t dims, bool maximum) {
  return {.name = op, .write = [=](WriteContext& c) { pool(c, dims, maximum); }};
}

// One position, or windows of one size.
void adaptive_pool(WriteContext& c, size_t dims, bool maximum) {
  check_result(c);
  const Shape &from = c.input_shape(0), &to = c.shape();
  std::vector<int64_t> kernel;
  bool whole = true;
  for (size_t i = 2; i < 2 + dims; ++i) {
    whole = whole && to[i] == 1;
    if (from[i] % to[i] != 0) c.fail("its windows differ in size");
    kernel.push_back(from[i] / to[i]);
  }
  if (whole) return c.result(c.add(maximum ? "GlobalMaxPool" : "GlobalAveragePool", {c.input(0)}));
  c.result(
      c.add(maximum ? "MaxPool" : "AveragePool", {c.input(0)},
            {integers_attribute("kernel_shape", kernel), integers_attribute("strides", kernel)}));
}

OnnxWriter adaptive_writer(const char* op, size_t dims, bool maximum) {
  return {.name = op, .write = [=](WriteContext& c) { adaptive_pool(c, dims, maximum); }};
}

void embedding(WriteContext& c) { c.result(c.add("Gather", {c.parameter("weight"), c.input(0)})); }

void prelu(WriteContext& c) {
  const int64_t slopes = c.parameter_tensor("weight").numel();
  Shape shape(c.input_shape(0).size() > 2 ? c.input_shape(0).size() - 1 : 1, 1);
  shape.front() = slopes;
  c.result(c.add("PRelu", {c.input(0), c.parameter("weight", {.shape = shape})}));
}

const Register<OnnxWriter> writers[] = {
    Register<OnnxWriter>({.name = "linear", .write = linear}),
    Register<OnnxWriter>(convolution_writer("conv1d", 1, false)),
    Register<OnnxWriter>(convolution_writer("conv2d", 2, false)),
    Register<OnnxWriter>(convolution_writer("conv_transpose1d", 1, true)),
    Register<OnnxWriter>(convolution_writer("conv_transpose2d", 2, true)),
    Register<OnnxWriter>(
        {.name = "batch_norm1d", .aliases = {"batch_norm2d"}, .write = batch_norm}),
    Register<OnnxWriter>({.name = "layer_norm", .write = layer_norm}),
    Register<OnnxWriter>({.name = "rms_norm", .write = rms_norm}),
    Register<OnnxWriter>(
        {.name = "instance_norm1d", .aliases = {"instance_norm2d"}, .write = instance_norm}),
    Register<OnnxWriter>({.name = "group_norm", .write = group_norm}),
    Register<OnnxWriter>({.name = "upsample", .write = upsample}),
    Register<OnnxWriter>(pool_writer("max_pool1d", 1, true)),
    Register<OnnxWriter>(pool_writer("max_pool2d", 2, true)),
    Register<OnnxWriter>(pool_writer("avg_pool1d", 1, false)),
    Register<OnnxWriter>(pool_writer("avg_pool2d", 2, false)),
    Register<OnnxWriter>(adaptive_writer("adaptive_avg_pool1d", 1, false)),
    Register<OnnxWriter>(adaptive_writer("adaptive_avg_pool2d", 2, false)),
    Register<OnnxWriter>(adaptive_writer("adaptive_max_pool1d", 1, true)),
    Register<OnnxWriter>(adaptive_writer("adaptive_max_pool2d", 2, true)),
    Register<OnnxWriter>({.name = "embedding", .write = embedding}),
    Register<OnnxWriter>({.name = "prelu", .write = prelu}),
};

}  // namespace
}  // namespace mase::onnx::layer_writers
