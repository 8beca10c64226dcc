// SPDX-License-Identifier: Apache-2.0
// quantize: gives layers and functions number formats, by op, name or expression.
//   Linear  =>  LinearInteger: the same weights, rounded when used
// Weights stay stored in float, so quantising again never compounds, and retraining sees them.
#include <any>

#include "mase/passes/quantize_plan.h"

namespace mase::quantize_pass {
namespace {

std::any plan(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  return plan_quantize(graph, args, path, problems);
}

PassResult run(Graph& graph, const Value&, PassContext& context) {
  return apply_quantize_plan(graph, std::any_cast<const std::vector<PlannedNode>&>(context.plan),
                             context);
}

const Register<PassRecord> registered{{
    .name = "quantize",
    .aliases = {"quantize_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Number formats for layers and functions",
    .help =
        "One table per op, node name or expression, each with a config:\n"
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
        "Operands: data_in, weight, bias, data_out. The formats: ch format show. A table backward\n"
        "in the config of a layer with weights quantises its backward pass: see training_base.",
    .schema = quantize_schema(),
    .plan = plan,
    .describe = describe_quantize_plan,
    .run = run,
    .tolerance = -1,
}};

}  // namespace
}  // namespace mase::quantize_pass
