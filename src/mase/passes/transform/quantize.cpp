// SPDX-License-Identifier: Apache-2.0
// quantize: gives layers and functions number formats, by op, name or expression.
//   Linear  =>  LinearInteger: the same weights, rounded when used
// Weights stay stored in float, so quantising again never compounds, and retraining sees them.
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/quantize_plan.h"
#include "mase/passes/select.h"

namespace mase {
namespace {

void check(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  plan_quantize(graph, args, path, problems);
}

PassResult run(Graph& graph, const Value& args, PassContext&) {
  Problems problems;
  const std::vector<PlannedNode> plan = plan_quantize(graph, args, "quantize", problems);
  problems.throw_if_any();
  Dict nodes;
  bool changed = false;
  for (const PlannedNode& entry : plan) {
    if (!entry.changes()) continue;
    Node& node = graph.node(entry.node);
    const Value before = graph.quantization_of(node).config;
    const std::string old_class = class_text(graph, node);
    Module* module = graph.module_of(node);
    (module ? module->quantization : node.quantization) = entry.quantization;
    update_operand_metadata(graph, node);
    changed = changed || !(before == entry.quantization.config);
    nodes.set(node.name, Dict{{"from", old_class},
                              {"to", class_text(graph, node)},
                              {"rule", entry.rule},
                              {"formats", format_text(entry.quantization)}});
  }
  return {Dict{{"quantized", nodes.size()}, {"nodes", nodes}}, changed};
}

const Register<PassRecord> registered{{
    .name = "quantize",
    .aliases = {"quantize_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Number formats for layers and functions",
    .help = "One table per op, node name or expression, each with a config:\n"
            "  [passes.quantize]\n"
            "  by = \"type\"\n"
            "  [passes.quantize.default.config]\n"
            "  name = \"NA\"\n"
            "  [passes.quantize.linear.config]\n"
            "  name = \"integer\"\n"
            "  data_in_width = 8\n"
            "  data_in_frac_width = 4\n"
            "  weight_width = 8\n"
            "  weight_frac_width = 4\n"
            "Operands: data_in, weight, bias, data_out. The formats: ch format show.",
    .schema = {.fields = {by_field(),
                          {.name = "default",
                           .type = FieldType::table,
                           .help = "the rule of every node that no other rule names"}},
               .open = true},
    .check = check,
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase
