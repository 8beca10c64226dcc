// SPDX-License-Identifier: Apache-2.0
// README.md's own call.
#include <cstdio>

#include "mase/ir/evaluate.h"
#include "mase/models/model.h"

int main() {
  const mase::Graph graph = mase::make_model("jsc-toy");
  const auto logits = mase::evaluate(graph, {mase::Array({2, 16}, 0.5)});
  std::printf("%lld parameters, %s\n", static_cast<long long>(graph.parameter_count()),
              mase::shape_text(logits[0].shape).c_str());
}
