// SPDX-License-Identifier: Apache-2.0
// report_graph: the graph as torch.fx prints it, how many nodes of each kind it has, and its
// layers, to the terminal or to a file.
#include "mase/base/fields.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/output.h"

namespace mase::report_graph_pass {
namespace {

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  Dict counts;
  for (int kind = 0; kind <= static_cast<int>(NodeKind::output); ++kind)
    counts.set(node_kind_name(static_cast<NodeKind>(kind)), 0);
  List layers;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    Value& count = counts[node_kind_name(node.kind)];
    count = count.as_int() + 1;
    if (graph.module_of(node)) layers.push_back(Symbol{layer_text(graph, node)});
  }
  const std::string text = graph.text() + "Network overview:\n" + python_repr(Value(counts)) +
                           "\nLayer types:\n" + python_repr(Value(layers)) + "\n";
  Dict result{{"counts", counts}};
  List names;
  for (const Value& layer : layers) names.push_back(layer.symbol());
  result.set("layers", names);
  if (args["file_name"].is_null())
    print(context, text);
  else
    result.set("file", save_text(context, args["file_name"].as_string(), text));
  return {std::move(result), false};
}

const Register<PassRecord> registered{{
    .name = "report_graph",
    .aliases = {"report_graph_analysis_pass"},
    .summary = "The graph, its node counts and its layers",
    .help = "placeholder: an input. get_attr: a parameter fetched by name. call_function: a free\n"
            "function. call_method: a method of a value. call_module: a layer. output: the result.",
    .schema = {{
        text_field("file_name", "write the report to this file instead of the terminal"),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::report_graph_pass
