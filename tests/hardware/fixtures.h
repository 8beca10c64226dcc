// SPDX-License-Identifier: Apache-2.0
// The fixed-point networks that tests of hardware share.
#pragma once

#include <string>
#include <vector>

#include "mase/hardware/lower/lower_graph.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/networks/importer.h"
#include "support/support.h"

namespace mase::test {

struct Fixture {
  Graph network;
  IntegerGraph plain;                    // its integers, nothing optimised
  std::vector<int64_t> inputs, outputs;  // codes by rows
  std::vector<int> fracs;                // of the outputs
};

inline std::vector<int64_t> integers(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.numel(); ++i)
    values.push_back(static_cast<int64_t>(tensor.item(i)));
  return values;
}

inline const Tensor& tensor_of(const TensorTable& table, const std::string& name) {
  for (const auto& [key, tensor] : table)
    if (key == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

// From a folder with NAME.json, NAME.safetensors and NAME.vectors.safetensors.
inline Fixture read_fixture(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  Fixture fixture;
  fixture.network = import_network(path + ".json").graph;
  fixture.plain = lower(fixture.network).graph;
  const TensorTable vectors = load_safetensors(path + ".vectors.safetensors");
  fixture.inputs = integers(tensor_of(vectors, "x_codes"));
  fixture.outputs = integers(tensor_of(vectors, "y_codes"));
  for (const int64_t frac : integers(tensor_of(vectors, "y_frac")))
    fixture.fracs.push_back(static_cast<int>(frac));
  return fixture;
}

}  // namespace mase::test
