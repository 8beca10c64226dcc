// SPDX-License-Identifier: Apache-2.0
// report_node_shape: shapes of what goes into and comes out of every node.
#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/output.h"

namespace mase::report_node_shape_pass {
namespace {

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const int64_t batch =
      args["batch_size"].is_null() ? report_batch(context) : args["batch_size"].as_int();
  const std::vector<Shape> shapes = infer_shapes(graph, batch);
  Table table({"Node name", "In", "Out"});
  Dict nodes;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::vector<std::string> in;
    Dict inputs;
    const std::vector<NodeId> sources = graph.inputs_of(id);
    for (size_t i = 0; op_of(graph, node) && i < sources.size();
         ++i) {  // nothing goes into an output
      const Shape& shape = shapes[static_cast<size_t>(sources[i])];
      in.push_back(fmt::format("{} {}", input_name(i), shape_text(shape)));
      inputs.set(input_name(i), Value::of(shape));
    }
    if (const Module* module = graph.module_of(node))
      for (const auto& [name, tensor] : module->parameters) {
        in.push_back(fmt::format("{} {}", name, shape_text(tensor.shape())));
        inputs.set(name, Value::of(tensor.shape()));
      }
    const Shape& out = shapes[static_cast<size_t>(id)];
    table.add({node.name, join(in, ", "), "data_out_0 " + shape_text(out)});
    nodes.set(node.name, Dict{{"in", inputs}, {"out", Value::of(out)}});
  }
  print_info(context, "Inspecting graph [add_common_node_shape_analysis_pass]");
  print_info(context, "\n" + table.str());
  return {Dict{{"nodes", nodes}}, false};
}

const Register<PassRecord> registered{{
    .name = "report_node_shape",
    .aliases = {"report_node_shape_analysis_pass"},
    .summary = "Shapes of every node's arguments and results",
    .schema = {{
        integer_field("batch_size", "batch size of the shapes; the caller's if not given").from(1),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::report_node_shape_pass
