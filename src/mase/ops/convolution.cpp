// SPDX-License-Identifier: Apache-2.0
// Convolutions of [N, C, positions...]: each output channel is a sum over the channels of its group
// and the taps of a window. Transposed ones are their gradient with respect to the image. As
// functions, weight and bias are inputs.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/ops/call.h"
#include "mase/ops/windows.h"

namespace mase::convolution_ops {
namespace {

struct Kind {
  std::string name;
  size_t dims;
  bool transposed;
};

// A convolution whose attributes and shapes have been checked. `image` is the side windows slide
// over, `result` the other: x and y, or y and x where it is transposed.
struct Bound {
  Lowering::Convolution options;
  Shape y;
  int64_t image_channels, result_channels;  // of one group
};

std::vector<int64_t> kernel_of(const Value& attributes, const std::vector<Shape>& inputs,
                               const Kind& kind) {
  if (inputs.size() > 1) return {inputs[1].begin() + 2, inputs[1].end()};
  return per_dimension(attributes["kernel_size"], kind.dims, "kernel_size");
}

void set_padding(const Value& attributes, const Kind& kind, Windows& windows) {
  const Value& padding = attributes["padding"];
  if (!padding.is_string()) {
    windows.padding_before = windows.padding_after = per_dimension(padding, kind.dims, "padding");
    return;
  }
  for (size_t i = 0; i < kind.dims; ++i) {
    const int64_t total =
        padding.as_string() == "same" ? windows.dilation[i] * (windows.kernel[i] - 1) : 0;
    if (total > 0 && windows.stride[i] != 1)
      throw Error(attributes.position(), "", "padding 'same' goes with a stride of 1 only",
                  "give the padding as numbers");
    windows.padding_before.push_back(total / 2);
    windows.padding_after.push_back(total - total / 2);
  }
}

void check_channels(const Value& attributes, const std::vector<Shape>& inputs, const Kind& kind) {
  const Shape& x = inputs[0];
  if (x.size() != kind.dims + 2)
    throw Error("",
                fmt::format("{} wants [N, C, {}], got {}", kind.name, kind.dims == 1 ? "L" : "H, W",
                            shape_text(x)),
                "reshape before it");
  const int64_t groups = attributes["groups"].as_int();
  const bool function = inputs.size() > 1;
  if (function && inputs[1].size() != kind.dims + 2)
    throw Error("", fmt::format("{} wants a weight of rank {}, got {}", kind.name, kind.dims + 2,
                                shape_text(inputs[1])));
  const int64_t in = !function         ? attributes["in_channels"].as_int("in_channels")
                     : kind.transposed ? inputs[1][0]
                                       : inputs[1][1] * groups;
  const int64_t out = !function         ? attributes["out_channels"].as_int("out_channels")
                      : kind.transposed ? inputs[1][1] * groups
                                        : inputs[1][0];
  if (in % groups != 0 || out % groups != 0)
    throw Error("", fmt::format("{} to {} channels cannot be {} groups", in, out, groups));
  if (x[1] != in)
    throw Error("", fmt::format("{} wants {} channels, got {}", kind.name, in, x[1]),
                fmt::format("set in_channels to {}", x[1]));
  if (inputs.size() > 2 && inputs[2] != Shape{out})
    throw Error("",
                fmt::format("{} wants a bias [{}], got {}", kind.name, out, shape_text(inputs[2])));
}

Bound bind_convolution(const Value& attributes, const std::vector<Shape>& inputs,
                       const Kind& kind) {
  check_channels(attributes, inputs, kind);
  const Shape& x = inputs[0];
  Bound bound;
  bound.options.groups = attributes["groups"].as_int();
  Windows& windows = bound.options.windows;
  windows.kernel = kernel_of(attributes, inputs, kind);
  windows.stride = per_dimension(attributes["stride"], kind.dims, "stride");
  windows.dilation = per_dimension(attributes["dilation"], kind.dims, "dilation");
  set_padding(attributes, kind, windows);
  bound.options.padding_mode = padding_mode_of(attributes["padding_mode"].as_string());
  const bool function = inputs.size() > 1;
  const int64_t groups = bound.options.groups;
  const int64_t out = !function         ? attributes["out_channels"].as_int()
                      : kind.transposed ? inputs[1][1] * groups
                                        : inputs[1][0];
  bound.image_channels = (kind.transposed ? out : x[1]) / groups;
  bound.result_channels = (kind.transposed ? x[1] : out) / groups;
  bound.y = {x[0], out};
  const std::vector<int64_t> extra =
      kind.transposed ? per_dimension(attributes["output_padding"], kind.dims, "output_padding")
                      : std::vector<int64_t>(kind.dims, 0);
  for (size_t i = 0; i < kind.dims; ++i) {
    const int64_t reach = windows.dilation[i] * (windows.kernel[i] - 1) + 1;
    const int64_t pads = windows.padding_before[i] + windows.padding_after[i];
    const int64_t size = x[i + 2];
    const int64_t most = std::max(windows.padding_before[i], windows.padding_after[i]);
    if ((bound.options.padding_mode == PaddingMode::reflect && most >= size) ||
        (bound.options.padding_mode == PaddingMode::circular && most > size))
      throw Error("", fmt::format("a padding of {} does not fit {} positions", most, size),
                  "take a smaller padding, or padding_mode 'zeros'");
    if (kind.transposed && extra[i] >= std::max(windows.stride[i], windows.dilation[i]))
      throw Error("", "output_padding must be smaller than the stride or the dilation");
    const int64_t result = kind.transposed
                               ? (size - 1) * windows.stride[i] - pads + reach + extra[i]
                           : size + pads < reach ? 0
                                                 : (size + pads - reach) / windows.stride[i] + 1;
    if (result < 1)
      throw Error("", fmt::format("a window of {} does not fit {} positions", reach, size + pads),
                  "take a smaller kernel or more padding");
    bound.y.push_back(result);
  }
  element_count(bound.y);  // refuses what overflows
  return bound;
}

std::vector<ParamSpec> params(const Value& attributes, const Kind& kind) {
  const int64_t in = attributes["in_channels"].as_int("in_channels");
  const int64_t out = attributes["out_channels"].as_int("out_channels");
  const int64_t groups = attributes["groups"].as_int();
  if (in % groups != 0 || out % groups != 0)
    throw Error(attributes.position(), "",
                fmt::format("{} to {} channels cannot be {} groups", in, out, groups));
  Shape weight = kind.transposed ? Shape{in, out / groups} : Shape{out, in / groups};
  int64_t fan = weight[1];
  for (const int64_t size : per_dimension(attributes["kernel_size"], kind.dims, "kernel_size")) {
    weight.push_back(size);
    fan *= size;
  }
  element_count(weight);
  const double bound = fan > 0 ? 1.0 / std::sqrt(static_cast<double>(fan)) : 0;
  std::vector<ParamSpec> specs = {{"weight", weight, true, 0, bound}};
  if (attributes["bias"].as_bool()) specs.push_back({"bias", {out}, true, 0, bound});
  return specs;
}

// Calls visit(image index, result index, weight index) for every product of the convolution.
template <class Visit>
void each_product(const Bound& bound, const Shape& image, const Shape& result, const Visit& visit) {
  const WindowPlane plane(bound.options.windows, image, result, bound.options.padding_mode);
  const auto positions = static_cast<size_t>(plane.positions());
  const auto results = static_cast<size_t>(plane.results()),
             taps = static_cast<size_t>(plane.taps());
  const auto in = static_cast<size_t>(bound.image_channels),
             out = static_cast<size_t>(bound.result_channels),
             groups = static_cast<size_t>(bound.options.groups);
  for (size_t n = 0; n < static_cast<size_t>(image[0]); ++n)
    for (size_t group = 0; group < groups; ++group)
      for (size_t o = 0; o < out; ++o)
        for (size_t c = 0; c < in; ++c) {
          const size_t from = ((n * groups + group) * in + c) * positions;
          const size_t to = ((n * groups + group) * out + o) * results;
          const size_t weight = ((group * out + o) * in + c) * taps;
          plane.each([&](size_t at, size_t tap, size_t source) {
            visit(from + source, to + at, weight + tap);
          });
        }
}

Array eval(const OpCall& call, const Kind& kind) {
  const Array& x = *call.inputs[0];
  const Array& w = *param_of(call, "weight", 1);
  const Array* bias = param_of(call, "bias", 2);
  const Bound bound = bind_convolution(call.attributes, shapes_of(call), kind);
  Array y(bound.y);
  if (bias && !y.data.empty()) {
    const size_t channels = bias->data.size();
    const size_t positions = y.data.size() / static_cast<size_t>(bound.y[0]) / channels;
    for (size_t i = 0; i < y.data.size(); ++i) y.data[i] = bias->data[i / positions % channels];
  }
  if (kind.transposed)
    each_product(bound, bound.y, x.shape, [&](size_t image, size_t result, size_t weight) {
      y.data[image] += x.data[result] * w.data[weight];
    });
  else
    each_product(bound, x.shape, bound.y, [&](size_t image, size_t result, size_t weight) {
      y.data[result] += x.data[image] * w.data[weight];
    });
  return y;
}

OpGradients grad(const OpCall& call, const Array& y, const Array& g, const Kind& kind) {
  const Array& x = *call.inputs[0];
  const Array& w = *param_of(call, "weight", 1);
  const Bound bound = bind_convolution(call.attributes, shapes_of(call), kind);
  Array gx(x.shape), gw(w.shape), gb({y.shape[1]});
  if (kind.transposed)
    each_product(bound, y.shape, x.shape, [&](size_t image, size_t result, size_t weight) {
      gx.data[result] += g.data[image] * w.data[weight];
      gw.data[weight] += g.data[image] * x.data[result];
    });
  else
    each_product(bound, x.shape, y.shape, [&](size_t image, size_t result, size_t weight) {
      gx.data[image] += g.data[result] * w.data[weight];
      gw.data[weight] += g.data[result] * x.data[image];
    });
  if (!g.data.empty()) {
    const size_t channels = gb.data.size();
    const size_t positions = g.data.size() / static_cast<size_t>(y.shape[0]) / channels;
    for (size_t i = 0; i < g.data.size(); ++i) gb.data[i / positions % channels] += g.data[i];
  }
  return layer_gradients(call, std::move(gx), std::move(gw), std::move(gb));
}

OpCost cost(const Value& attributes, const std::vector<Shape>& inputs, const Shape& out,
            const Kind& kind) {
  const Bound bound = bind_convolution(attributes, inputs, kind);
  int64_t macs = kind.transposed ? element_count(inputs[0]) * bound.image_channels
                                 : element_count(out) * bound.image_channels;
  for (const int64_t size : bound.options.windows.kernel) macs *= size;
  return {macs, 2 * macs};
}

std::string repr(const Value& attributes, const Kind& kind) {
  const auto numbers = [&](const char* name) {
    return per_dimension(attributes[name], kind.dims, name);
  };
  std::string text =
      fmt::format("{}, {}, kernel_size={}, stride={}", attributes["in_channels"].as_int(),
                  attributes["out_channels"].as_int(), tuple_text(numbers("kernel_size")),
                  tuple_text(numbers("stride")));
  const std::vector<int64_t> zeros(kind.dims, 0), ones(kind.dims, 1);
  if (attributes["padding"].is_string())
    text += ", padding=" + attributes["padding"].as_string();
  else if (numbers("padding") != zeros)
    text += ", padding=" + tuple_text(numbers("padding"));
  if (numbers("dilation") != ones) text += ", dilation=" + tuple_text(numbers("dilation"));
  if (kind.transposed && numbers("output_padding") != zeros)
    text += ", output_padding=" + tuple_text(numbers("output_padding"));
  if (attributes["groups"].as_int() != 1)
    text += fmt::format(", groups={}", attributes["groups"].as_int());
  if (!attributes["bias"].as_bool()) text += ", bias=False";
  if (attributes["padding_mode"].as_string() != "zeros")
    text += ", padding_mode=" + attributes["padding_mode"].as_string();
  return text;
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs,
           const Kind& kind) {
  std::vector<Shape> shapes;
  for (const Slot input : inputs) shapes.push_back(lowering.shape(input));
  const Bound bound = bind_convolution(attributes, shapes, kind);
  const bool function = inputs.size() > 1;
  const Slot weight = function ? inputs[1] : *lowering.parameter("weight");
  std::optional<Slot> bias = function ? std::nullopt : lowering.parameter("bias");
  if (inputs.size() > 2) bias = inputs[2];
  if (!kind.transposed) return lowering.convolution(inputs[0], weight, bias, bound.options);
  return lowering.transposed_convolution(inputs[0], weight, bias, bound.options,
                                         {bound.y.begin() + 2, bound.y.end()});
}

Field padding_field(bool transposed) {
  Field field = size_field("padding", 0, "added around the positions", 0);
  if (transposed) return field;
  field.help += ", or \"same\" or \"valid\"";
  const auto numbers = field.check;
  field.check = [numbers](const Value& value) -> std::optional<std::string> {
    if (!value.is_string()) return numbers(value);
    const std::string& name = value.as_string();
    if (name == "same" || name == "valid") return {};
    return "expected numbers, 'same' or 'valid'";
  };
  return field;
}

std::vector<Field> fields(bool transposed) {
  const auto channels = [](const char* name, const char* help) {
    return integer_field(name, help).from(1);
  };
  const Field groups =
      integer_field("groups", "groups of channels that do not see each other", 1).from(1);
  const Field bias = boolean_field("bias", "add a learned bias", true);
  const Field dilation = size_field("dilation", 1, "positions from one tap to the next", 1);
  std::vector<Field> list = {channels("in_channels", "channels of x"),
                             channels("out_channels", "channels of y"),
                             size_field("kernel_size", 3, "size of the window", 1),
                             size_field("stride", 1, "positions from one window to the next", 1),
                             padding_field(transposed)};
  if (transposed) {
    list.push_back(size_field("output_padding", 0, "further positions of the result", 0));
    list.insert(list.end(), {groups, bias, dilation});
  } else {
    list.insert(list.end(), {dilation, groups, bias});
  }
  list.push_back(padding_mode_field());
  if (transposed) list.back().choices = {"zeros"};
  return list;
}

OpRecord convolution_record(const char* name, const char* class_name, size_t dims,
                            bool transposed) {
  OpRecord record{
      .name = name, .class_name = class_name, .function = fmt::format("torch.{}", name)};
  record.summary = fmt::format("{}convolution of [N, C, {}]", transposed ? "transposed " : "",
                               dims == 1 ? "L" : "H, W");
  const Kind kind{record.class_name, dims, transposed};
  record.mase_type = "module_related_func";
  record.attributes = {fields(transposed)};
  record.function_arguments =
      transposed
          ? std::vector<std::string>{"stride", "padding", "output_padding", "groups", "dilation"}
          : std::vector<std::string>{"stride", "padding", "dilation", "groups"};
  record.max_inputs = 3;
  record.operands = {"data_in", "weight", "bias", "data_out"};
  record.required_operands = {"data_in", "weight"};
  record.product = ProductInfo{.out_axis = transposed ? 1 : 0,
                               .in_axis = transposed ? 0 : 1,
                               .channel_axis = 1,
                               .in_attribute = "in_channels",
                               .out_attribute = "out_channels",
                               .groups_attribute = "groups"};
  record.params = [kind](const Value& attributes) { return params(attributes, kind); };
  record.infer = [kind](const Value& attributes, const std::vector<Shape>& inputs) {
    return bind_convolution(attributes, inputs, kind).y;
  };
  record.eval = [kind](const OpCall& call) { return eval(call, kind); };
  record.grad = [kind](const OpCall& call, const Array& y, const Array& g) {
    return grad(call, y, g, kind);
  };
  record.cost = [kind](const Value& attributes, const std::vector<Shape>& inputs,
                       const Shape& out) { return cost(attributes, inputs, out, kind); };
  record.repr = [kind](const Value& attributes) { return repr(attributes, kind); };
  record.lower = [kind](Lowering& lowering, const Value& attributes,
                        const std::vector<Slot>& inputs) {
    return lower(lowering, attributes, inputs, kind);
  };
  record.complete = [](Dict& attributes, const std::vector<Shape>& inputs, int64_t outputs) {
    if (!attributes.contains("in_channels") && inputs[0].size() > 1)
      attributes.set("in_channels", inputs[0][1]);
    if (!attributes.contains("out_channels") && outputs > 0)
      attributes.set("out_channels", outputs);
  };
  return record;
}

const Register<OpRecord> registered[] = {
    Register(convolution_record("conv1d", "Conv1d", 1, false)),
    Register(convolution_record("conv2d", "Conv2d", 2, false)),
    Register(convolution_record("conv_transpose1d", "ConvTranspose1d", 1, true)),
    Register(convolution_record("conv_transpose2d", "ConvTranspose2d", 2, true)),
};

}  // namespace
}  // namespace mase::convolution_ops
