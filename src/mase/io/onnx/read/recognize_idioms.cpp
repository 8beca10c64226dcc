// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/read/recognize_idioms.h"

#include <algorithm>

#include "mase/io/onnx/read/idiom.h"

namespace mase::onnx {

void recognize_idioms(Graph& graph) {
  IdiomGraph seen(graph);
  for (const Idiom* idiom : Registry<Idiom>::instance().all()) {
    std::vector<NodeId> order = graph.order();
    std::reverse(order.begin(), order.end());  // a norm with its bias before one without
    for (const NodeId id : order) {
      if (seen.is_gone(id)) continue;
      const Node& node = graph.node(id);
      if (node.kind == NodeKind::call_function &&
          std::find(idiom->ends.begin(), idiom->ends.end(), node.target) != idiom->ends.end())
        idiom->find(seen, id);
    }
  }
}

}  // namespace mase::onnx
