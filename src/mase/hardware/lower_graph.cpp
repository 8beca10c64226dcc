// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/lower_graph.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "mase/formats/format.h"
#include "mase/hardware/linear_form.h"
#include "mase/hardware/lower_linear.h"
#include "mase/hardware/lower_rounding.h"
#include "mase/hardware/quantizer_format.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/learned.h"

namespace mase {
namespace {

// A value in software has no integers.
using Features = std::optional<std::vector<IntegerId>>;

class GraphLowering {
 public:
  explicit GraphLowering(const Graph& graph)
      : graph_(graph), builder_(graph.name.empty() ? "network" : graph.name) {}

  LoweredNetwork run() {
    shapes_ = infer_shapes(graph_, 1);
    std::vector<Features> values(graph_.id_limit());
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.kind == NodeKind::output) break;
      if (node.kind == NodeKind::placeholder || node.kind == NodeKind::get_attr) continue;
      builder_.add_layer(node.name);
      values[static_cast<size_t>(id)] = lower_node(node, values);
      if (!values[static_cast<size_t>(id)]) result_.software.push_back(node.name);
    }
    for (const NodeId id : graph_.outputs()) {
      const Features& features = values[static_cast<size_t>(id)];
      if (!features)
        throw Error(graph_.node(id).name, "its result is never rounded to a number format",
                    "quantise the layers before it (ch transform)");
      for (size_t i = 0; i < features->size(); ++i) {
        const IntegerId feature = (*features)[i];
        if (!builder_.at(feature).inputs.empty())
          builder_.name(feature, fmt::format("{}_out{}", graph_.node(id).name, i));
        builder_.output(feature);
      }
    }
    std::vector<IntegerId> renamed;
    result_.graph = without_dead_nodes(builder_.graph(), &renamed);
    verify(result_.graph);
    for (const auto& [feature, one] : wrapping_) {
      if (renamed[static_cast<size_t>(feature)] < 0) continue;
      result_.wrapping.push_back(one);
      if (one.value >= 0) result_.wrapping.back().value = renamed[static_cast<size_t>(one.value)];
    }
    for (const NodeId id : graph_.order()) {
      const Features& features = values[static_cast<size_t>(id)];
      if (!features) continue;
      std::vector<IntegerId> ids;
      for (const IntegerId feature : *features)
        ids.push_back(renamed[static_cast<size_t>(feature)]);
      if (std::find(ids.begin(), ids.end(), -1) == ids.end())
        result_.values.emplace_back(id, std::move(ids));
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] static void refuse(const Node& node, const std::string& cause,
                                  const std::string& remedy) {
    throw Error(node.name, cause, remedy);
  }

  size_t features_of(NodeId id) const {
    const Shape& shape = shapes_[static_cast<size_t>(id)];
    return static_cast<size_t>(element_count(shape)) /
           static_cast<size_t>(std::max<int64_t>(1, shape[0]));
  }

  Features lower_node(const Node& node, const std::vector<Features>& values) {
    const BoundCall call = bind_call(graph_, node);
    const Quantization& quantization = graph_.quantization_of(node);
    const auto quantizer = [&](const std::string& operand) {
      return current_quantizer(quantization, call.module, operand);
    };
    std::vector<Features> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const QuantizerPtr format = quantizer(input_operand(*call.op, i, call.module != nullptr));
      Features features = values[static_cast<size_t>(call.inputs[i])];
      if (format)
        features = features ? rounded(node, *features, format, "in")
                            : source(node, call.inputs[i], format);
      inputs.push_back(std::move(features));
    }
    const bool any =
        std::any_of(inputs.begin(), inputs.end(), [](const Features& f) { return f.has_value(); });
    const bool all =
        std::all_of(inputs.begin(), inputs.end(), [](const Features& f) { return f.has_value(); });
    if (!any) {
      const QuantizerPtr out = quantizer("data_out");
      // Its own result is the first one rounded.
      return out ? source_of_result(node, out) : Features{};
    }
    if (!all)
      refuse(node, "one of its operands is rounded to a number format and another is not",
             "quantise what feeds it");
    Features result = compute(node, call, inputs, quantizer);
    if (const QuantizerPtr out = quantizer("data_out")) result = rounded(node, *result, out, "out");
    return result;
  }

  Features compute(const Node& node, const BoundCall& call, const std::vector<Features>& inputs,
                   const auto& quantizer) {
    const std::string& op = call.op->name;
    const std::vector<IntegerId>& first = *inputs[0];
    if (op == "linear") return linear(node, call, first, quantizer);
    if (op == "identity" || op == "dropout" || op == "flatten" || op == "reshape") return first;
    if (op == "relu") return each(first, [&](IntegerId x) { return builder_.relu(x); });
    if (op == "relu6") return limited(first, 0, 6);
    if (op == "hardtanh")
      return limited(first, call.attributes["min_val"].as_double(),
                     call.attributes["max_val"].as_double());
    if (op == "leaky_relu")
      if (const Features leaky = leaky_relu(first, call.attributes["negative_slope"].as_double()))
        return leaky;
    if (op == "neg") return each(first, [&](IntegerId x) { return builder_.negate(x); });
    if ((op == "add" || op == "sub") && inputs.size() == 2)
      return sum(node, first, *inputs[1], op == "sub");
    if (op == "cat") {
      std::vector<IntegerId> result;
      if (shapes_[static_cast<size_t>(node.id)].size() != 2)
        refuse(node, "joins something else than features", "join along the last dimension");
      for (const Features& features : inputs)
        result.insert(result.end(), features->begin(), features->end());
      return result;
    }
    if (op == "batch_norm1d")
      refuse(node, "a batch norm after a rounded layer has no exact integers",
             "run fuse_batch_norm before quantize; where the layer came quantised, fuse_batch_norm "
             "with quantized = true, which rounds its weights anew");
    return by_table(node, call, first, quantizer);
  }

  template <class Function>
  std::vector<IntegerId> each(const std::vector<IntegerId>& features, const Function& function) {
    std::vector<IntegerId> result;
    for (const IntegerId feature : features) result.push_back(function(feature));
    return result;
  }

  // Limits that are whole steps of the features' own formats.
  std::vector<IntegerId> limited(const std::vector<IntegerId>& features, double low, double high) {
    return each(features, [&](IntegerId x) {
      int frac = builder_.at(x).frac;
      for (const double limit : {low, high})
        if (limit != 0) frac = std::max(frac, dyadic(limit, "a limit").frac);
      const IntegerId fine = builder_.aligned(x, frac);
      return builder_.clamp(fine, std::llround(std::ldexp(low, frac)),
                            std::llround(std::ldexp(high, frac)));
    });
  }

  // A slope of few bits is exact: sums of shifts below zero. Others become tables.
  Features leaky_relu(const std::vector<IntegerId>& features, double slope) {
    const Dyadic factor = dyadic(slope, "negative_slope");
    if (std::abs(factor.mantissa) >= 1 << 8 || factor.frac < 0 || factor.frac > 16) return {};
    return each(features, [&](IntegerId x) {
      const int frac = builder_.at(x).frac;
      const IntegerId below = builder_.scale(x, factor.mantissa, frac + factor.frac);
      const IntegerId negative = builder_.compare(x, builder_.constant(0, frac));
      return builder_.select(negative, below, builder_.shift(x, factor.frac));
    });
  }

  Features sum(const Node& node, const std::vector<IntegerId>& a, const std::vector<IntegerId>& b,
               bool subtract) {
    if (a.size() != b.size()) refuse(node, "its operands have different sizes", "give equal ones");
    std::vector<IntegerId> result;
    for (size_t i = 0; i < a.size(); ++i) {
      const int frac = std::max(builder_.at(a[i]).frac, builder_.at(b[i]).frac);
      result.push_back(builder_.add(a[i], frac - builder_.at(a[i]).frac, b[i],
                                    frac - builder_.at(b[i]).frac, subtract));
    }
    return result;
  }

  // A key that gives an operand the format of its layer.
  static std::string first_key(const Module& module) {
    const Value& config = module.quantization.config;
    const FormatRecord* const format =
        config.is_dict() && config["name"].is_string()
            ? Registry<FormatRecord>::instance().find(config["name"].as_string())
            : nullptr;
    return format && !format->schema.fields.empty() ? format->schema.fields[0].name : "width";
  }

  std::vector<IntegerId> linear(const Node& node, const BoundCall& call,
                                const std::vector<IntegerId>& inputs, const auto& quantizer) {
    if (!call.module || inputs.size() != features_of(call.inputs[0]) ||
        shapes_[static_cast<size_t>(node.id)].size() != 2)
      refuse(node, "is not a layer with constant weights on one row of features",
             "use a Linear module");
    const auto parameter = [&](const char* name) -> std::optional<Tensor> {
      const Tensor* tensor = call.module->find(name);
      if (!tensor) return {};
      const QuantizerPtr format = quantizer(name);
      if (!format)
        refuse(node, fmt::format("its {} is not rounded to a number format", name),
               fmt::format("give {}_{} in its quantisation", name, first_key(*call.module)));
      return quantize(*format, *tensor);
    };
    const Tensor weight = *parameter("weight");
    const std::optional<Tensor> bias = parameter("bias");
    const size_t out = static_cast<size_t>(weight.shape()[0]),
                 in = static_cast<size_t>(weight.shape()[1]);
    std::vector<std::vector<double>> weights(in, std::vector<double>(out));
    for (size_t o = 0; o < out; ++o)
      for (size_t i = 0; i < in; ++i) {
        weights[i][o] = weight.item(static_cast<int64_t>(o * in + i));
        check_constant(node, "weight", weights[i][o]);
      }
    std::vector<double> biases;
    for (size_t o = 0; bias && o < out; ++o) {
      biases.push_back(bias->item(static_cast<int64_t>(o)));
      check_constant(node, "bias", biases.back());
    }
    const std::vector<IntegerId> sums = lower_linear(builder_, inputs, weights, biases, node.name);
    note_exactness(node, inputs, weights, biases, sums);
    return sums;
  }

  // A scale that is no power of two makes numbers of 24 significant bits, which no sum in single
  // precision adds exactly.
  void check_constant(const Node& node, const char* what, double value) const {
    const Dyadic number = dyadic(value, node.name);
    if (std::abs(number.mantissa) >= int64_t{1} << 16)
      refuse(node, fmt::format("its {} {} has more than 16 significant bits", what, value),
             "use a format whose scale is a power of two (integer, minifloat, block formats)");
  }

  void note_exactness(const Node& node, const std::vector<IntegerId>& inputs,
                      const std::vector<std::vector<double>>& weights,
                      const std::vector<double>& biases, const std::vector<IntegerId>& sums) {
    int bits = 0;
    for (size_t o = 0; o < sums.size(); ++o) {
      const int frac = builder_.at(sums[o]).frac;
      double largest = biases.empty() ? 0 : std::abs(std::ldexp(biases[o], frac));
      for (size_t i = 0; i < inputs.size(); ++i) {
        const IntegerNode& x = builder_.at(inputs[i]);
        const double most = std::max(std::abs(static_cast<double>(x.range.low)),
                                     std::abs(static_cast<double>(x.range.high)));
        largest += most * std::abs(std::ldexp(weights[i][o], frac - x.frac));
      }
      bits = std::max(bits, static_cast<int>(std::ceil(std::log2(std::max(largest, 1.0)))));
    }
    result_.float32.push_back({node.name, bits <= 24, bits});
  }

  // The hardware's inputs: whatever codes the format has.
  std::vector<IntegerId> source(const Node& node, NodeId from, const QuantizerPtr& format) {
    const size_t count = features_of(from);
    const std::string& name = graph_.node(from).name;
    InputCodes codes = input_codes_of(*format, count, node.name);
    std::vector<IntegerId> result;
    for (size_t i = 0; i < count; ++i) {
      IntegerId input =
          builder_.input(codes.ranges[i], codes.fracs[i], fmt::format("{}_{}", name, i));
      if (codes.sign_bits) input = builder_.add_constant(builder_.scale(input, 2, 0), -1);
      result.push_back(input);
    }
    result_.sources.push_back({from, format, std::move(codes.fracs), codes.sign_bits});
    return result;
  }

  std::vector<IntegerId> source_of_result(const Node& node, const QuantizerPtr& format) {
    return source(node, node.id, format);
  }

  std::vector<IntegerId> rounded(const Node& node, const std::vector<IntegerId>& features,
                                 const QuantizerPtr& format, const char* what) {
    const std::vector<IntegerId> results = lower_rounding(builder_, features, *format, node.name);
    for (size_t i = 0; i < results.size(); ++i)
      if (!builder_.at(results[i]).inputs.empty())
        builder_.name(results[i], fmt::format("{}_{}{}", node.name, what, i));
    const auto formats = fixed_formats(*format, features.size());
    for (size_t i = 0; formats && i < results.size(); ++i) {
      if ((*formats)[i].overflow != IntegerOverflow::wrap || (*formats)[i].width <= 0) continue;
      const IntegerNode& result = builder_.at(results[i]);
      const bool wraps = results[i] != features[i] && result.op->name == "wrap";
      wrapping_.push_back({results[i],
                           {node.name, static_cast<int64_t>(i), wraps ? result.inputs[0] : -1,
                            (*formats)[i].range()}});
    }
    return results;
  }

  // Any other function of one number whose result is rounded: the op's own reference and the
  // format's own rounding, code by code.
  Features by_table(const Node& node, const BoundCall& call, const std::vector<IntegerId>& features,
                    const auto& quantizer) {
    const QuantizerPtr out = quantizer("data_out");
    if (call.inputs.size() != 1 || call.op->class_name.empty() ||
        (call.module && !call.module->parameters.empty()))
      refuse(node, fmt::format("'{}' has no integer form", call.op->name),
             "hardware has linear, relu, clamps, add, cat and functions of one number");
    if (!out || !is_function_of_value(*out))
      refuse(node,
             fmt::format("the result of '{}' is not rounded to a number format", call.op->name),
             "give data_out_width in its quantisation");
    return each(features, [&](IntegerId feature) {
      const auto function = [&](std::vector<float> values) {
        Array in({static_cast<int64_t>(values.size()), 1});
        std::copy(values.begin(), values.end(), in.data.begin());
        OpCall op_call{call.attributes, {&in}};
        const Array result = call.op->eval(op_call);
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(result.data[i]);
        out->quantize(values.data(), values.data(), {static_cast<int64_t>(values.size())});
        return values;
      };
      return lower_table(builder_, feature, function, node.name);
    });
  }

  const Graph& graph_;
  IntegerBuilder builder_;
  LoweredNetwork result_;
  // With the features they are of, before those that nothing needs are gone.
  std::vector<std::pair<IntegerId, LoweredNetwork::Wrapping>> wrapping_;
  std::vector<Shape> shapes_;
};

}  // namespace

LoweredNetwork lower(const Graph& graph) { return GraphLowering(graph).run(); }

std::vector<std::string> layers_in_software(const Graph& graph) {
  std::vector<std::string> names;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    if (module && !module->op.empty() && find_op(module->op).product &&
        !graph.quantization_of(node).active())
      names.push_back(node.name);
  }
  return names;
}

std::vector<int64_t> input_codes(const LoweredNetwork& network, const std::vector<Tensor>& values) {
  MASE_CHECK(values.size() == network.sources.size(), "{} values for {} sources", values.size(),
             network.sources.size());
  const int64_t rows = values.empty() ? 0 : values[0].shape()[0];
  std::vector<int64_t> codes(static_cast<size_t>(rows) * network.graph.inputs.size());
  size_t offset = 0;
  for (size_t s = 0; s < values.size(); ++s) {
    const LoweredNetwork::Source& source = network.sources[s];
    const Tensor rounded = quantize(*source.quantizer, values[s].to(DType::f32));
    const size_t width = source.fracs.size();
    for (int64_t row = 0; row < rows; ++row)
      for (size_t i = 0; i < width; ++i) {
        const float value = rounded.data<float>()[static_cast<size_t>(row) * width + i];
        if (!std::isfinite(value))
          throw Error(fmt::format("row {}, feature {}", row, i), fmt::format("is {}", value),
                      "hardware takes finite numbers");
        codes[static_cast<size_t>(row) * network.graph.inputs.size() + offset + i] =
            source.sign_bits
                ? value > 0
                : static_cast<int64_t>(std::ldexp(static_cast<double>(value), source.fracs[i]));
      }
    offset += width;
  }
  return codes;
}

std::vector<double> output_values(const IntegerGraph& graph, const std::vector<int64_t>& codes) {
  std::vector<double> values;
  values.reserve(codes.size());
  for (size_t i = 0; i < codes.size(); ++i)
    values.push_back(std::ldexp(static_cast<double>(codes[i]),
                                -graph.at(graph.outputs[i % graph.outputs.size()]).frac));
  return values;
}

}  // namespace mase
