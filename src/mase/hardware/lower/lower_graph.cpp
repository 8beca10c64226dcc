// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/lower/lower_graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "mase/formats/format.h"
#include "mase/hardware/lower/integer_lowering.h"
#include "mase/hardware/lower/lower_rounding.h"
#include "mase/hardware/lower/quantizer_format.h"
#include "mase/ir/learned.h"
#include "mase/ir/typed_graph.h"

namespace mase {
namespace {

// A value in software has no integers.
using Features = std::optional<std::vector<IntegerId>>;

class GraphLowering {
 public:
  explicit GraphLowering(const Graph& graph)
      : graph_(graph), bound_(graph), builder_(graph.name.empty() ? "network" : graph.name) {}

  LoweredNetwork run() {
    shapes_ = bound_.shapes(1);
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
                    "quantise the layers before it (ch transform, or --config "
                    "configs/examples/hardware_8bit.toml); see "
                    "docs/how_to/make_and_simulate_rtl.md");
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

  static QuantizerPtr own_rounding(const OpRecord& op, const Value& attributes) {
    const IntegerLowering* const record = Registry<IntegerLowering>::instance().find(op.name);
    return record && record->first_input ? record->first_input(attributes) : nullptr;
  }

  size_t features_of(NodeId id) const {
    const Shape& shape = shapes_[static_cast<size_t>(id)];
    return static_cast<size_t>(element_count(shape)) /
           static_cast<size_t>(std::max<int64_t>(1, shape[0]));
  }

  Features lower_node(const Node& node, const std::vector<Features>& values) {
    const BoundCall& call = bound_.own_call(node.id);
    const Quantization& quantization = graph_.quantization_of(node);
    const std::function<QuantizerPtr(const std::string&)> quantizer =
        [&](const std::string& operand) {
          return current_quantizer(quantization, call.module, operand);
        };
    std::vector<Features> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      QuantizerPtr format = quantizer(input_operand(*call.op, i, call.module != nullptr));
      Features features = values[static_cast<size_t>(call.inputs[i])];
      if (!format && !features) format = own_rounding(*call.op, call.attributes);
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
    std::vector<std::vector<IntegerId>> operands;
    std::vector<Shape> shapes;
    for (size_t i = 0; i < inputs.size(); ++i) {
      operands.push_back(std::move(*inputs[i]));
      shapes.push_back(shapes_[static_cast<size_t>(call.inputs[i])]);
    }
    std::vector<IntegerId> result =
        lower_call({node, call, operands, shapes, shapes_[static_cast<size_t>(node.id)], quantizer,
                    builder_, result_});
    if (const QuantizerPtr out = quantizer("data_out")) result = rounded(node, result, out, "out");
    return result;
  }

  // The hardware's inputs: whatever codes the format has. What several read in one format are the
  // same inputs.
  std::vector<IntegerId> source(const Node& node, NodeId from, const QuantizerPtr& format) {
    for (size_t s = 0; s < given_.size(); ++s) {
      const LoweredNetwork::Source& known = result_.sources[s];
      if (known.node == from && known.quantizer->format == format->format &&
          known.quantizer->config == format->config && !format->learned &&
          !known.quantizer->learned)
        return given_[s];
    }
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
    given_.push_back(result);
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

  const Graph& graph_;
  const BoundGraph bound_;
  IntegerBuilder builder_;
  LoweredNetwork result_;
  std::vector<std::vector<IntegerId>> given_;  // of every source
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
