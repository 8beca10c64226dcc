// SPDX-License-Identifier: Apache-2.0
// init_metadata: empty common, software and hardware tables on every node and on the graph.
#include "mase/passes/pass.h"

namespace mase::init_metadata_pass {
namespace {

PassResult run(Graph& graph, const Value&, PassContext&) {
  const auto clear = [](Dict& meta) {
    for (const char* kind : {"common", "software", "hardware"}) meta.set(kind, Dict());
  };
  for (const NodeId id : graph.order()) clear(graph.node(id).meta);
  clear(graph.meta);
  return {Dict(), false};
}

const Register<PassRecord> registered{{
    .name = "init_metadata",
    .aliases = {"init_metadata_analysis_pass"},
    .summary = "Empty metadata tables on every node",
    .help = "Start here: the other metadata passes fill the tables in.",
    .run = run,
}};

}  // namespace
}  // namespace mase::init_metadata_pass
