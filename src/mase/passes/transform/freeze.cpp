// SPDX-License-Identifier: Apache-2.0
// freeze: the parameters of chosen layers are no longer trained (or are again).
#include "mase/base/fields.h"
#include "mase/passes/pass.h"
#include "mase/passes/select.h"

namespace mase::freeze_pass {
namespace {

void check(const Graph& graph, const Value& args, const std::string& path, Problems& problems) {
  select_nodes(graph, select_by(args["by"]), args["target_nodes"], path + ".target_nodes",
               problems);
}

PassResult run(Graph& graph, const Value& args, PassContext&) {
  Problems problems;
  std::vector<NodeId> nodes =
      args["target_nodes"].is_null()
          ? graph.order()
          : select_nodes(graph, select_by(args["by"]), args["target_nodes"], "", problems);
  const bool freeze = args["frozen"].as_bool();
  bool changed = false;
  List names;
  for (const NodeId id : nodes) {
    Module* module = graph.module_of(graph.node(id));
    if (!module || module->parameters.empty()) continue;
    changed = changed || module->frozen != freeze;
    module->frozen = freeze;
    names.push_back(graph.node(id).name);
  }
  return {Dict{{freeze ? "frozen" : "trained", std::move(names)},
               {"trainable_parameters", graph.parameter_count(true)}},
          changed};
}

const Register<PassRecord> registered{{
    .name = "freeze",
    .aliases = {"freeze_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Keeps the parameters of layers out of training",
    .schema = {{
        by_field(),
        list_field("target_nodes", "the layers; all of them if not given"),
        boolean_field("frozen", "false: train them again", true),
    }},
    .check = check,
    .run = run,
}};

}  // namespace
}  // namespace mase::freeze_pass
