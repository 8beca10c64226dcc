// SPDX-License-Identifier: Apache-2.0
// add_software_metadata: an empty table of statistics for every argument, parameter, buffer and
// result; profile_statistics fills them.
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/metadata.h"

namespace mase::add_software_metadata_pass {
namespace {

Value empty_statistics() { return Dict{{"stat", Dict()}}; }

PassResult run(Graph& graph, const Value&, PassContext&) {
  for (const NodeId id : graph.order()) {
    Node& node = graph.node(id);
    Dict args;
    for (size_t i = 0; i < graph.inputs_of(id).size(); ++i)
      args.set(input_name(i), empty_statistics());
    if (const Module* module = graph.module_of(node))
      for (const auto& [name, tensor] : numeric_tensors(*module))
        args.set(name, empty_statistics());
    Dict software;
    if (node.kind != NodeKind::placeholder && node.kind != NodeKind::get_attr)
      software.set("args", std::move(args));
    if (node.kind != NodeKind::output)
      software.set("results", Dict{{"data_out_0", empty_statistics()}});
    node.meta.set("software", std::move(software));
  }
  return {Dict(), false};
}

const Register<PassRecord> registered{{
    .name = "add_software_metadata",
    .aliases = {"add_software_metadata_analysis_pass"},
    .summary = "Empty tables of statistics for every argument and result",
    .run = run,
}};

}  // namespace
}  // namespace mase::add_software_metadata_pass
