// SPDX-License-Identifier: Apache-2.0
// coverage floor: 2500
#include "fuzz/target.h"
#include "mase/models/hf.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  try {
    const mase::Value config =
        mase::parse_json(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    mase::TensorTable none;
    const mase::Graph graph = mase::make_hf_network(config, none, {}, "fuzz");
    size_t nodes = graph.order().size();
    try {
      nodes += mase::resized_hf_network(graph, {.shapes = {{1}}, .cached = 5}).order().size();
    } catch (const mase::Error&) {
      ++nodes;  // none that goes on with texts
    }
    return nodes;
  } catch (const mase::Error&) {
    return 0;
  }
}
