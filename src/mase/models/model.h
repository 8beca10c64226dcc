// SPDX-License-Identifier: Apache-2.0
// Built-in networks and networks described in TOML files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/ir/graph.h"

namespace mase {

struct ModelInputs {
  Shape sample_shape = {};  // of the data set; empty: the network's own default
  int64_t outputs = 0;      // classes or targets; 0: the network's own default
  uint64_t seed = 0;
  bool values = true;  // false: parameters are zeros, for who only counts them
};

struct ModelRecord {
  static constexpr const char* kind = "model";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::function<Graph(const ModelInputs& inputs)> build;
};

// A registered name or the path of a network description (.toml).
Graph make_model(const std::string& name_or_path, const ModelInputs& inputs = {});

}  // namespace mase
