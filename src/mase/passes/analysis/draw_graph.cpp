// SPDX-License-Identifier: Apache-2.0
// draw_graph: the graph as an SVG picture, laid out by Graphviz where it is installed.
#include "mase/base/fields.h"
#include "mase/passes/drawing.h"
#include "mase/passes/output.h"

namespace mase::draw_graph_pass {
namespace {

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const std::string& layout = args["layout"].as_string();
  const std::string& name = args["file_name"].as_string();
  std::optional<std::string> svg;
  if (layout != "builtin") svg = dot_to_svg(graph_dot(graph));
  if (!svg && layout == "dot")
    throw Error("draw_graph", "the program 'dot' is not installed or failed",
                "install graphviz, or set layout = \"builtin\"");
  const std::string used = svg ? "dot" : "builtin";
  const bool wants_dot = ends_with(name, ".dot");
  const std::string path = save_text(context, name,
                                     wants_dot ? graph_dot(graph)
                                     : svg     ? *svg
                                               : graph_svg(graph));
  print(context, fmt::format("drawn to {}\n", path));
  return {Dict{{"file", path}, {"layout", used}}, false};
}

const Register<PassRecord> registered{{
    .name = "draw_graph",
    .aliases = {"draw_graph_analysis_pass", "plot_graph", "plot_graph_analysis_pass"},
    .summary = "The graph as an SVG picture",
    .help = "A file name that ends in .dot gets Graphviz' own language instead.",
    .schema = {{
        text_field("file_name", "where the picture goes", "mase_graph.svg"),
        text_field("layout", "who places the boxes", "auto", {"auto", "dot", "builtin"}),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::draw_graph_pass
