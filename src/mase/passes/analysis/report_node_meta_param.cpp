// SPDX-License-Identifier: Apache-2.0
// report_node_meta_param: the metadata of every node as one grid table, tables printed as Python's
// pprint prints them.
#include <algorithm>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"
#include "mase/passes/output.h"

namespace mase::report_node_meta_param_pass {
namespace {

const std::vector<std::string> kinds = {"common", "hardware", "software"};

std::optional<std::string> check_which(const Value& value) {
  const auto known = [](const Value& item) {
    return item.is_string() &&
           (item.as_string() == "all" || std::count(kinds.begin(), kinds.end(), item.as_string()));
  };
  const bool fine = value.is_list()
                        ? !value.as_list().empty() &&
                              std::all_of(value.as_list().begin(), value.as_list().end(), known)
                        : known(value);
  if (fine) return {};
  return "expected a list of: all, common, hardware, software";
}

bool wanted(const Value& which, const std::string& kind) {
  const auto names = [&](const Value& item) {
    return item.as_string() == "all" || item.as_string() == kind;
  };
  if (which.is_string()) return names(which);
  return std::any_of(which.as_list().begin(), which.as_list().end(), names);
}

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  ensure_metadata(graph, context);
  std::vector<std::string> header = {"Node name", "Fx Node op", "Mase type", "Mase op"};
  const char* titles[] = {"Common Param", "Hardware Param", "Software Param"};
  for (size_t k = 0; k < kinds.size(); ++k)
    if (wanted(args["which"], kinds[k])) header.push_back(titles[k]);
  Table table(header);
  Dict nodes;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::vector<std::string> row = {node.name, node_kind_name(node.kind), mase_type(graph, node),
                                    mase_op(graph, node)};
    Dict shown;
    for (const std::string& kind : kinds) {
      if (!wanted(args["which"], kind)) continue;
      const Value* value = node.meta.find(kind);
      shown.set(kind, value ? *value : Value(Dict()));
      row.push_back(python_pprint(shown.at(kind)));
    }
    table.add(row);
    nodes.set(node.name, std::move(shown));
  }
  const std::string text = table.str(TableStyle::grid);
  print_info(context, "Inspecting graph [add_common_meta_param_analysis_pass]");
  print_info(context, "\n" + text.substr(0, text.size() - 1));
  Dict result{{"nodes", nodes}};
  if (!args["save_path"].is_null())
    result.set("file", save_text(context, args["save_path"].as_string(), text));
  return {std::move(result), false};
}

const Register<PassRecord> registered{{
    .name = "report_node_meta_param",
    .aliases = {"report_node_meta_param_analysis_pass"},
    .summary = "The metadata of every node as a table",
    .schema = {{
        {.name = "which",
         .default_value = List{Value("all")},
         .help = "which metadata: all, common, hardware, software",
         .check = check_which},
        text_field("save_path", "write the table to this file too"),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::report_node_meta_param_pass
