// SPDX-License-Identifier: Apache-2.0
// bias_correction: rounding shifts the mean of what a layer gives; its bias takes the shift back,
// channel by channel, as calibration rows show it (Nagel et al., 2019):
//   b' = b - (mean of the layer's results - mean of the same without number formats)
#include <algorithm>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/passes/calibration.h"
#include "mase/passes/format_error.h"
#include "mase/passes/output.h"
#include "mase/passes/select.h"

namespace mase::bias_correction_pass {
namespace {

// Why the bias of this layer cannot take a shift; empty if it can.
std::string obstacle(const Graph& graph, const Node& node) {
  if (const std::string why = no_product_reason(graph, node); !why.empty()) return why;
  const Module& module = *graph.module_of(node);
  if (!module.quantization.active()) return "it has no number format";
  const ProductInfo& product = *op_of(graph, node)->product;
  if (const Quantizer* quantizer = module.quantization.find(product.weight);
      quantizer && !quantizer->learned && !quantizer->stochastic &&
      quantize(*quantizer, *module.find(product.weight)).same_bits(*module.find(product.weight)))
    return "its weight is rounded for good, so what it was is not known: correct first";
  if (!module.find(product.bias) && module.attributes["bias"] != Value(false))
    return "it can have no bias";
  return "";
}

void shift_bias(Module& module, const std::string& name, const std::vector<double>& shift) {
  if (!module.find(name)) {
    module.attributes.dict().set("bias", true);
    module.parameters.emplace_back(name, Tensor(Shape{static_cast<int64_t>(shift.size())}));
  }
  float* bias = module.find(name)->mutable_data<float>();
  for (size_t c = 0; c < shift.size(); ++c) bias[c] = static_cast<float>(bias[c] - shift[c]);
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  std::vector<NodeId> nodes = graph.order(), work;
  if (!args["target_nodes"].is_null()) {
    Problems problems;
    nodes =
        select_nodes(graph, select_by(args["by"]), args["target_nodes"], "target_nodes", problems);
    problems.throw_if_any();
  }
  Dict left, layers;
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
    print(context, "bias_correction: no quantised product to work on\n");
    return {std::move(data), false};
  }
  const CalibrationRows rows = calibration_rows(graph, args, context);
  const Graph reference = without_formats(graph);
  Graph changed = graph;
  bool any = false;
  Table table({"Node", "Before", "After", "Before (held out)", "After (held out)", ""});
  const auto text = [](double value) { return fmt::format("{:.3e}", value); };
  for (size_t at = 0; at < work.size(); ++at) {
    const NodeId id = work[at];
    const ProductInfo& product = *op_of(graph, graph.node(id))->product;
    Graph tried = changed;
    shift_bias(*tried.module_of(tried.node(id)), product.bias,
               channel_bias(reference, changed, id, product.channel_axis, rows.seen));
    const double before = format_error(reference, changed, {id}, rows.seen),
                 held = format_error(reference, changed, {id}, rows.heldout);
    double after = format_error(reference, tried, {id}, rows.seen),
           held_after = format_error(reference, tried, {id}, rows.heldout);
    const bool kept = held_after <= held;
    std::string what;
    if (kept) {
      changed = std::move(tried);
      any = true;
    } else {
      what = fmt::format("left alone: {} on held-out rows", text(held_after));
      after = before;
      held_after = held;
    }
    const std::string& name = graph.node(id).name;
    table.add({name, text(before), text(after), text(held), text(held_after), what});
    layers.set(name, Dict{{"before", before},
                          {"after", after},
                          {"heldout_before", held},
                          {"heldout_after", held_after},
                          {"kept", kept},
                          {"note", what}});
    if (context.progress)
      context.progress(static_cast<double>(at + 1) / static_cast<double>(work.size()));
  }
  graph = std::move(changed);
  print(context, fmt::format("bias_correction: errors of layers' results relative to their power, "
                             "on {} rows seen and {} held out\n{}\n",
                             rows.seen.at(0).dim(0), rows.heldout.at(0).dim(0), table.str()));
  data.set("calibration", rows.record());
  data.set("layers", std::move(layers));
  return {std::move(data), any};
}

Schema schema() {
  Schema result{{by_field(),
                 list_field("target_nodes", "which layers; all quantised products if not given")}};
  for (Field& field : calibration_fields()) result.fields.push_back(std::move(field));
  return result;
}

const Register<PassRecord> registered{{
    .name = "bias_correction",
    .aliases = {"bias_correction_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Biases that take back the shift of means that rounding makes",
    .help =
        "Runs behind quantize, and before methods that round weights for good (gptq, adaround), "
        "since what rounding shifts is told by the weights as they were. Layers without a bias "
        "get one. A bias with a number format is rounded to it as ever.",
    .schema = schema(),
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::bias_correction_pass
