// SPDX-License-Identifier: Apache-2.0
// report_node_type: kind, MASE type and op of every node, and the number type of its first input.
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/output.h"

namespace mase::report_node_type_pass {
namespace {

PassResult run(Graph& graph, const Value&, PassContext& context) {
  Table table({"Node name", "Fx Node op", "Mase type", "Mase op", "Value type"});
  List rows;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Quantizer* quantizer = graph.quantization_of(node).find("data_in");
    const std::string value_type = !op_of(graph, node) ? "NA"
                                   : quantizer         ? quantizer->format
                                                       : "float";
    const std::vector<std::string> row = {node.name, node_kind_name(node.kind),
                                          mase_type(graph, node), mase_op(graph, node), value_type};
    table.add(row);
    rows.push_back(Value::of(row));
  }
  print_info(context, "Inspecting graph [add_common_node_type_analysis_pass]");
  print_info(context, "\n" + table.str());
  return {Dict{{"nodes", rows}}, false};
}

const Register<PassRecord> registered{{
    .name = "report_node_type",
    .aliases = {"report_node_type_analysis_pass"},
    .summary = "Kind, MASE type, MASE op and number type of every node",
    .run = run,
}};

}  // namespace
}  // namespace mase::report_node_type_pass
