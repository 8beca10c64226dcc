// SPDX-License-Identifier: Apache-2.0
// summarize_quantization: node by node what quantising changed, and a histogram by layer type; both
// also as CSV. Functions count as changed too, which MASE misses.
#include <map>

#include "mase/base/fields.h"
#include "mase/base/table.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/compare.h"
#include "mase/passes/output.h"

namespace mase::summarize_quantization_pass {
namespace {

struct TypeCount {
  std::string op;
  int64_t total = 0, changed = 0;
};

PassResult run(Graph& graph, const Value& args, PassContext& context) {
  const Graph& original = original_graph(context, "summarize_quantization");
  Table nodes({"Ori name", "New name", "MASE_TYPE", "Mase_OP", "Original type", "Quantized type",
               "Changed"});
  std::map<std::string, TypeCount> types;
  int64_t changed_count = 0;
  for (const NodePair& pair : pair_nodes(original, graph)) {
    const std::string op = mase_op(original, *pair.before);
    const bool changed = pair.old_class != pair.new_class;
    nodes.add({pair.before->name, pair.after ? pair.after->name : "-",
               mase_type(original, *pair.before), op, pair.old_class, pair.new_class,
               changed ? "True" : "False"});
    TypeCount& type = types[pair.old_class];
    type.op = op;
    ++type.total;
    type.changed += changed;
    changed_count += changed;
  }
  Table histogram({"Original type", "OP", "Total", "Changed", "Unchanged"});
  List rows;
  for (const auto& [name, type] : types) {
    histogram.add({name, type.op, std::to_string(type.total), std::to_string(type.changed),
                   std::to_string(type.total - type.changed)});
    rows.push_back(Dict{{"original_type", name},
                        {"op", type.op},
                        {"total", type.total},
                        {"changed", type.changed},
                        {"unchanged", type.total - type.changed}});
  }
  if (args["show_nodes"].as_bool()) {
    print_info(context, "Compare nodes:");
    print_info(context, "\n" + nodes.str(TableStyle::orgtbl));
  }
  const std::string text = histogram.str(TableStyle::orgtbl);
  print_info(context, "Quantized graph histogram:");
  print_info(context, "\n" + text.substr(0, text.size() - 1));
  Dict result{{"changed", changed_count}, {"histogram", rows}};
  const Value& folder = args["save_dir"];
  if (!folder.is_null() || !context.save_dir.empty()) {
    const std::string base = folder.is_null() ? "quantize" : folder.as_string();
    result.set("files",
               List{save_text(context, base + "/quantize_table.csv", nodes.csv()),
                    save_text(context, base + "/quantize_histogram.csv", histogram.csv())});
  }
  return {std::move(result), false};
}

const Register<PassRecord> registered{{
    .name = "summarize_quantization",
    .aliases = {"summarize_quantization_analysis_pass"},
    .summary = "What quantising changed: a table per node and a histogram per type",
    .schema = {{
        text_field("save_dir", "folder for quantize_table.csv and quantize_histogram.csv"),
        boolean_field("show_nodes", "print the table of nodes too", false),
    }},
    .run = run,
}};

}  // namespace
}  // namespace mase::summarize_quantization_pass
