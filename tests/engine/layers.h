// SPDX-License-Identifier: Apache-2.0
// Networks of tests, built layer by layer.
#pragma once

#include <string>
#include <utility>

#include "mase/ir/evaluate.h"
#include "mase/ir/graph.h"
#include "mase/ir/op.h"

namespace mase {

// A layer behind `x` with what its op completes from that shape, called blocks.0, blocks.1, ...
inline NodeId add_layer(Graph& graph, const std::string& op, Dict attributes, NodeId x) {
  const OpRecord& record = find_op(op);
  const Shape shape = infer_shapes(graph, 2).at(static_cast<size_t>(x));
  if (record.complete) record.complete(attributes, {shape}, 0);
  const std::string path = fmt::format("blocks.{}", graph.modules().size());
  return graph.add_module(path, make_module(op, Value(std::move(attributes)), 3, path), {x});
}

}  // namespace mase
