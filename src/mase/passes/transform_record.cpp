// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/transform_record.h"

#include <algorithm>
#include <map>

#include "mase/formats/measure.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/passes/compare.h"
#include "mase/passes/costs.h"
#include "mase/passes/metadata.h"
#include "mase/passes/observe.h"
#include "mase/passes/statistics/value_sketch.h"

namespace mase {
namespace {

// Rows that layers are compared on: as many as take a few seconds, in multiply-adds.
int64_t profiled_rows(const Graph& graph, int64_t batch) {
  constexpr int64_t most = 1024, fewest = 16, work = int64_t{1} << 36, of_a_value = 50;
  int64_t values = 0;
  for (const Shape& shape : infer_shapes(graph, batch)) values += element_count(shape);
  const int64_t of_a_batch = std::max(of_a_value * values, network_cost(graph, batch).total().macs);
  return std::clamp(work / std::max<int64_t>(1, of_a_batch / batch), fewest, most);
}

constexpr int bins = 48;

Value optional_value(std::optional<double> number) { return number ? Value(*number) : Value(); }

List node_records(const Graph& graph, const PassContext& context) {
  const std::vector<Shape> shapes = infer_shapes(graph, report_batch(context));
  List nodes;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    List inputs;
    for (const NodeId input : graph.inputs_of(id)) inputs.push_back(graph.node(input).name);
    nodes.push_back(Dict{{"name", node.name},
                         {"kind", node_kind_name(node.kind)},
                         {"target", layer_text(graph, node)},
                         {"op", mase_op(graph, node)},
                         {"class", class_text(graph, node)},
                         {"inputs", inputs},
                         {"shape", Value::of(shapes[static_cast<size_t>(id)])},
                         {"format", format_text(graph.quantization_of(node))},
                         {"meta", Value(node.meta)}});
  }
  return nodes;
}

// The values an operand takes, and the codes they are rounded to.
struct OperandValues {
  ValueSketch sketch{size_t{1} << 20};
  std::vector<bool> codes;  // which of them were found

  void add(const Tensor& tensor, const Quantizer* quantizer) {
    for (const float value : tensor.values<float>()) sketch.add(value);
    if (!has_table(quantizer)) return;
    codes.resize(size_t{1} << quantizer->code_bits);
    for (const uint32_t code : quantizer->encode(tensor.data<float>(), tensor.shape()).codes) {
      MASE_CHECK(code < codes.size(), "code {} of {} bits", code, quantizer->code_bits);
      codes[code] = true;
    }
  }
  // One table of codes, small enough to count.
  static bool has_table(const Quantizer* quantizer) {
    if (!quantizer || !quantizer->type || quantizer->code_bits < 1 || quantizer->code_bits > 16)
      return false;
    const Fixed* fixed = quantizer->type->as<Fixed>();
    return !fixed || group_count(*fixed) == 1;
  }
};

// What the range bar draws: every number of the format, where they are few and fixed.
Value grid_of(const Quantizer& quantizer) {
  constexpr int most_bits = 10;
  if (!quantizer.elementwise || quantizer.code_bits > most_bits) return {};
  List grid;
  for (const float value : representable_values(quantizer)) grid.push_back(value);
  return grid;
}

Value histogram_record(const std::string& node, const std::string& operand,
                       const OperandValues& found, const Quantizer* quantizer) {
  List edges, counts;
  const ValueSketch& values = found.sketch;
  const double low = values.lowest(), high = values.largest();
  for (int i = 0; i <= bins; ++i) edges.push_back(low + (high - low) * i / bins);
  for (const int64_t count : values.histogram(low, high, bins)) counts.push_back(count);
  Dict record{{"node", node},
              {"operand", operand},
              {"edges", edges},
              {"counts", counts},
              {"lowest", quantizer ? optional_value(quantizer->lowest) : Value()},
              {"largest", quantizer ? optional_value(quantizer->largest) : Value()}};
  if (OperandValues::has_table(quantizer)) {
    record.set("codes", int64_t{1} << quantizer->code_bits);
    record.set("codes_used", std::count(found.codes.begin(), found.codes.end(), true));
    record.set("grid", grid_of(*quantizer));
  }
  return record;
}

// The operand that an entry of the histograms is about: "data_in_1" is one of the node's inputs.
std::string operand_of_entry(const Graph& graph, const Node& node, const std::string& entry) {
  if (!starts_with(entry, "data_in_")) return entry;
  return operand_of_input(graph, node,
                          static_cast<size_t>(parse_integer(entry.substr(8)).value_or(0)));
}

// The network's inputs, operands of every quantised node, and weights of all other layers that have
// some.
List histogram_records(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::map<std::pair<NodeId, std::string>, OperandValues> all;
  std::vector<NodeId> sources, quantized;
  const auto quantizer_of = [&](NodeId id, const std::string& entry) {
    const Node& node = graph.node(id);
    return current_quantizer(graph.quantization_of(node), graph.module_of(node),
                             operand_of_entry(graph, node, entry));
  };
  const auto add = [&](NodeId id, const std::string& entry, const Tensor& tensor) {
    all[{id, entry}].add(tensor, quantizer_of(id, entry).get());
  };
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    if (module)
      for (const auto& [name, tensor] : module->parameters) add(id, name, tensor);
    if (!graph.quantization_of(node).active()) continue;
    quantized.push_back(id);
    for (const NodeId input : graph.inputs_of(id)) sources.push_back(input);
  }
  if (!sources.empty())
    observe_nodes(graph, inputs, sources, [&](NodeId source, const Tensor& result) {
      for (const NodeId id : quantized) {
        const std::vector<NodeId> from = graph.inputs_of(id);
        for (size_t i = 0; i < from.size(); ++i)
          if (from[i] == source) add(id, input_name(i), result);
      }
    });
  const std::vector<NodeId> placeholders = graph.placeholders();
  for (size_t i = 0; i < std::min(placeholders.size(), inputs.size()); ++i)
    add(placeholders[i], "data_out_0", inputs[i]);
  List records;
  for (const NodeId id : graph.order())
    for (const auto& [key, values] : all) {
      if (key.first != id || values.sketch.count() == 0) continue;
      records.push_back(histogram_record(graph.node(id).name, key.second, values,
                                         quantizer_of(id, key.second).get()));
    }
  return records;
}

Value cost_record(const Graph& graph, const PassContext& context) {
  Value costs = network_cost(graph, report_batch(context)).to_value();
  costs.dict().erase("layers");  // totals: the page shows one row a quantity
  return costs;
}

}  // namespace

Value transform_record(const Graph& original, const Graph& transformed,
                       const PassContext& context) {
  const std::vector<Tensor> inputs =
      sample_inputs(transformed, context, profiled_rows(original, report_batch(context)));
  List layers;
  for (const LayerError& error : compare_layers(original, transformed, inputs))
    layers.push_back(
        Dict{{"node", transformed.node(error.node).name},
             {"weight_error",
              optional_value(error.weight ? std::optional(error.weight->largest) : std::nullopt)},
             {"output_error", error.output.largest},
             {"sqnr_db", optional_value(error.output.sqnr_db())},
             {"cosine", optional_value(error.output.cosine())},
             {"saturation", optional_value(error.saturation())}});
  List table{Value::of(std::vector<std::string>{"Ori name", "New name", "MASE_TYPE", "Mase_OP",
                                                "Original type", "Quantized type", "Changed"})};
  for (const NodePair& pair : pair_nodes(original, transformed))
    table.push_back(Value::of(std::vector<std::string>{
        pair.before->name, pair.after ? pair.after->name : "-", mase_type(original, *pair.before),
        mase_op(original, *pair.before), pair.old_class, pair.new_class,
        pair.old_class != pair.new_class ? "True" : "False"}));
  Dict record{{"nodes", node_records(transformed, context)},
              {"histograms", histogram_records(transformed, inputs)},
              {"layers", layers},
              {"rows", inputs.empty() ? int64_t{0} : inputs[0].shape()[0]},
              {"before_after", table},
              {"costs", Dict{{"before", cost_record(original, context)},
                             {"after", cost_record(transformed, context)}}}};
  if (context.test_x.numel() > 0 && context.test_labels.numel() > 0)
    record.set("accuracy",
               Dict{{"split", "test"},
                    {"rows", context.test_labels.numel()},
                    {"before", accuracy(original, context.test_x, context.test_labels)},
                    {"after", accuracy(transformed, context.test_x, context.test_labels)}});
  return record;
}

}  // namespace mase
