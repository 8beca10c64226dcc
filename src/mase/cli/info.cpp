// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/info.h"

#include "mase/base/table.h"
#include "mase/cli/record_kinds.h"
#include "mase/formats/format.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/op.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"

namespace mase {
namespace {

std::string models() {
  Table table({"Model", "Parameters", "Layers", "MACs", "What it is"});
  for (const ModelRecord* model : Registry<ModelRecord>::instance().all()) {
    const Graph graph = model->build({.values = false});
    const std::vector<Shape> shapes = infer_shapes(graph, 1);
    int64_t macs = 0, layers = 0;
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (node.kind == NodeKind::placeholder || node.kind == NodeKind::output ||
          node.kind == NodeKind::get_attr)
        continue;
      ++layers;
      const BoundCall call = bind_call(graph, node);
      std::vector<Shape> inputs;
      for (const NodeId input : call.inputs) inputs.push_back(shapes[static_cast<size_t>(input)]);
      if (call.op->cost)
        macs += call.op->cost(call.attributes, inputs, shapes[static_cast<size_t>(id)]).macs;
    }
    table.add({model->name, with_thousands(graph.parameter_count()), std::to_string(layers),
               with_thousands(macs), model->summary});
  }
  return table.str();
}

std::string ops() {
  Table table({"Op", "Module", "Function", "Mase type", "What it does"});
  for (const OpRecord* op : Registry<OpRecord>::instance().all())
    table.add({op->name, op->class_name, op->function, op->mase_type, op->summary});
  return table.str();
}

std::string passes() {
  Table table({"Pass", "Kind", "What it does"});
  for (const PassRecord* pass : Registry<PassRecord>::instance().all())
    table.add({pass->name, pass->pass_kind == PassKind::analysis ? "analysis" : "transform",
               pass->summary});
  return table.str();
}

std::string formats() {
  Table table({"Format", "Config keys", "What it is"});
  for (const FormatRecord* format : Registry<FormatRecord>::instance().all())
    table.add({format->name, join(format->schema.names(), ", "), format->summary});
  return table.str();
}

// Of kinds without a table of their own: names, options with their defaults, and what they are.
std::string plain_table(const RecordKind& kind) {
  Table table({"Name", "Options", "What it is"});
  for (const RecordEntry& entry : kind.entries()) {
    std::vector<std::string> options;
    for (const Field& field : entry.options.fields) {
      const std::string usual = reference_default(field);
      options.push_back(usual.empty()    ? field.name
                        : field.required ? field.name + " (required)"
                                         : field.name + " = " + usual);
    }
    table.add({entry.name, join(options, ", "), entry.summary});
  }
  return table.str();
}

std::string table_of(const RecordKind& kind) {
  if (kind.name == "model") return models();
  if (kind.name == "op") return ops();
  if (kind.name == "pass") return passes();
  if (kind.name == "format") return formats();
  return plain_table(kind);
}

}  // namespace

std::vector<std::string> info_kinds() {
  std::vector<std::string> names;
  for (const RecordKind& kind : record_kinds()) names.push_back(kind.name);
  return names;
}

std::string info_text(const std::string& what) {
  std::string text;
  for (const RecordKind& kind : record_kinds()) {
    if (what != "all" && what != kind.name) continue;
    text += fmt::format("{}{}\n\n{}", text.empty() ? "" : "\n", kind.heading, table_of(kind));
    if (text.back() != '\n') text += '\n';
  }
  if (text.empty()) {
    std::vector<std::string> known = info_kinds();
    known.emplace_back("all");
    throw Error("--info", fmt::format("unknown choice '{}'", printable(what)),
                suggestion(what, known));
  }
  return text;
}

}  // namespace mase
