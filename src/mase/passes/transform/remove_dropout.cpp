// SPDX-License-Identifier: Apache-2.0
// remove_dropout: x -> Dropout -> y  =>  x -> y. Dropout does nothing outside training, so outputs
// in evaluation mode are the same to the bit.
#include "mase/ir/layer_text.h"
#include "mase/passes/pass.h"

namespace mase::remove_dropout_pass {
namespace {

PassResult run(Graph& graph, const Value&, PassContext&) {
  List removed;
  const std::vector<NodeId> order = graph.order();
  for (const NodeId id : order) {
    if (mase_op(graph, graph.node(id)) != "dropout") continue;
    removed.push_back(graph.node(id).name);
    graph.replace_uses(id, graph.inputs_of(id).front());
    graph.erase(id);
  }
  const bool changed = !removed.empty();
  return {Dict{{"removed", std::move(removed)}}, changed};
}

const Register<PassRecord> registered{{
    .name = "remove_dropout",
    .aliases = {"remove_dropout_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Takes dropout layers out",
    .run = run,
}};

}  // namespace
}  // namespace mase::remove_dropout_pass
