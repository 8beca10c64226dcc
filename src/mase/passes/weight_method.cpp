// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/weight_method.h"

#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"
#include "mase/ir/op.h"
#include "mase/passes/output.h"
#include "mase/passes/select.h"

namespace mase {
namespace {

struct LayerErrors {
  double seen = 0, heldout = 0;
};

LayerErrors relative_errors(const Tensor& weight, const Tensor& other, const ProductInputs& seen,
                            const ProductInputs& heldout) {
  const Tensor zero(weight.shape());
  const auto share = [&](const ProductInputs& inputs) {
    const double power = output_error(weight, zero, inputs);
    const double error = output_error(weight, other, inputs);
    return power > 0 ? error / power : error;
  };
  return {share(seen), share(heldout)};
}

// The layer with the weights chosen, such that its own format keeps them; nothing if it does not.
std::optional<Module> with_weights(const Module& layer, const OpRecord& op,
                                   const WeightChoice& choice) {
  const std::string& name = op.product->weight;
  Module changed = layer;
  *changed.find(name) = choice.weight;
  const auto keeps = [&](const Module& module) {
    return quantize(*module.quantization.find(name), choice.weight).same_bits(choice.weight);
  };
  if (keeps(changed)) return changed;
  const Quantizer& quantizer = *layer.quantization.find(name);
  const Value frozen = frozen_config(quantizer, choice.scales_from);
  if (frozen.is_null()) return {};
  Value config = layer.quantization.config;
  for (const auto& [key, value] : frozen.as_dict())
    if (!value.is_null()) config.dict().set(name + "_" + key, value);
  Problems problems;
  changed.quantization = parse_quantization(config, operand_rules(op), layer.op, problems);
  if (!problems.empty() || !changed.quantization.find(name) || !keeps(changed)) return {};
  return changed;
}

std::vector<NodeId> targets(const Graph& graph, const Value& args) {
  if (args["target_nodes"].is_null()) return graph.order();
  Problems problems;
  std::vector<NodeId> nodes =
      select_nodes(graph, select_by(args["by"]), args["target_nodes"], "target_nodes", problems);
  problems.throw_if_any();
  return nodes;
}

// Why this layer is none of the method's; empty if it is.
std::string obstacle(const Graph& graph, const Node& node) {
  if (const std::string why = no_product_reason(graph, node); !why.empty()) return why;
  const Module& module = *graph.module_of(node);
  const std::string& name = op_of(graph, node)->product->weight;
  const Quantizer* quantizer = module.quantization.find(name);
  if (!quantizer) return "its weight has no number format";
  for (const auto& [masked, mask] : module.masks)
    if (masked == name) return "it is pruned: prune behind the method";
  return "";
}

std::string error_text(double error) { return fmt::format("{:.3e}", error); }

}  // namespace

double output_error(const Tensor& weight, const Tensor& other, const ProductInputs& inputs) {
  const int64_t n = inputs.columns, rows = weight.numel() / std::max<int64_t>(1, n);
  std::vector<double> difference(static_cast<size_t>(n));
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < n; ++c)
      difference[static_cast<size_t>(c)] = static_cast<double>(other.data<float>()[r * n + c]) -
                                           static_cast<double>(weight.data<float>()[r * n + c]);
    sum += quadratic_form(difference.data(),
                          inputs.hessians[static_cast<size_t>(r * inputs.groups / rows)], n);
  }
  return sum / 2;  // H has a factor of two
}

Schema weight_method_schema(std::vector<Field> own) {
  Schema schema{{by_field(),
                 list_field("target_nodes", "which layers; all quantised products if not given")}};
  for (Field& field : calibration_fields()) schema.fields.push_back(std::move(field));
  for (Field& field : own) schema.fields.push_back(std::move(field));
  return schema;
}

PassResult improve_weights(Graph& graph, const Value& args, PassContext& context,
                           const WeightMethod& method) {
  const std::vector<NodeId> nodes = targets(graph, args);
  std::vector<NodeId> work;
  Dict left;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    if (!graph.module_of(node) || !op_of(graph, node)->multiplies_weights()) continue;
    if (const std::string why = obstacle(graph, node); why.empty())
      work.push_back(id);
    else
      left.set(node.name, why);
  }
  Dict data{{"layers", Dict{}}, {"left_alone", Value(left)}};
  if (work.empty()) {
    print(context, fmt::format("{}: no quantised product to work on\n", method.name));
    return {std::move(data), false};
  }
  const CalibrationRows rows = calibration_rows(graph, args, context);
  // What a method refuses is refused before anything is changed.
  for (const NodeId id : work) {
    const Module& module = *graph.module_of(graph.node(id));
    const std::string& name = op_of(graph, graph.node(id))->product->weight;
    try {
      const FrozenGrid grid(*module.quantization.find(name), *module.find(name));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: layer {}", method.name, graph.node(id).name), error.what());
    }
  }
  Graph changed = graph;
  Table table({"Node", "Inputs", "Before", "After", "Before (held out)", "After (held out)", ""});
  Dict layers;
  bool any = false;
  // Layers with one input follow each other and are collected in one run.
  std::map<NodeId, ProductInputs> seen, heldout;
  LayerStream seen_rows(rows.seen), heldout_rows(rows.heldout);
  NodeId collected = -1;
  for (size_t at = 0; at < work.size(); ++at) {
    const NodeId id = work[at];
    const NodeId source = changed.inputs_of(id).front();
    if (source != collected) {
      std::vector<NodeId> same;
      for (size_t other = at; other < work.size(); ++other)
        if (changed.inputs_of(work[other]).front() == source) same.push_back(work[other]);
      seen = product_inputs(changed, same, seen_rows);
      heldout = product_inputs(changed, same, heldout_rows);
      collected = source;
    }
    const Node& node = changed.node(id);
    Module& module = *changed.module_of(node);
    const OpRecord& op = *op_of(changed, node);
    const Tensor weight = *module.find(op.product->weight);
    const Quantizer& quantizer = *module.quantization.find(op.product->weight);
    const ProductInputs& inputs = seen.at(id);
    const WeightProblem problem{quantizer,      weight, weight.dim(0),
                                inputs.columns, inputs, context.seed};
    const LayerErrors before =
        relative_errors(weight, quantize(quantizer, weight), inputs, heldout.at(id));
    WeightChoice choice = method.choose(problem);
    LayerErrors after = before;  // of the layer as it stands when the pass is through
    std::string what = choice.why;
    if (what.empty()) {
      const LayerErrors tried = relative_errors(weight, choice.weight, inputs, heldout.at(id));
      if (!(tried.heldout <= before.heldout)) {
        what = fmt::format("left alone: {} on held-out rows", error_text(tried.heldout));
      } else if (std::optional<Module> better = with_weights(module, op, choice)) {
        any = any || !better->find(op.product->weight)->same_bits(weight);
        module = std::move(*better);
        after = tried;
      } else {
        what = "left alone: the format would round the result again";
      }
    }
    table.add({node.name, std::to_string(inputs.vectors), error_text(before.seen),
               error_text(after.seen), error_text(before.heldout), error_text(after.heldout),
               what});
    layers.set(node.name, Dict{{"before", before.seen},
                               {"after", after.seen},
                               {"heldout_before", before.heldout},
                               {"heldout_after", after.heldout},
                               {"vectors", inputs.vectors},
                               {"kept", what.empty()},
                               {"note", what}});
    if (context.progress)
      context.progress(static_cast<double>(at + 1) / static_cast<double>(work.size()));
  }
  graph = std::move(changed);
  print(context,
        fmt::format("{}: errors of outputs relative to their power, on {} rows seen and {} "
                    "held out\n{}\n",
                    method.name, rows.seen.at(0).dim(0), rows.heldout.at(0).dim(0), table.str()));
  data.set("calibration", rows.record());
  data.set("layers", std::move(layers));
  return {std::move(data), any};
}

}  // namespace mase
