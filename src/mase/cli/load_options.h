// SPDX-License-Identifier: Apache-2.0
// --load, --load-type and --load-partial, for every command that takes a network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/base/schema.h"
#include "mase/io/checkpoint.h"

namespace mase {

// The three options, for commands that do not take general_options().
std::vector<Field> load_options();

struct Loaded {
  std::optional<Checkpoint> checkpoint;  // none when --load was not given
  LoadReport report;
  std::vector<std::string> notes;  // what was taken, for the terminal
};

// Fills the graph from values["load"], or replaces it by the graph of an .mz. `values` may also be
// null or without --load: then nothing happens.
Loaded load_network(Graph& graph, const Value& values);

// The registered model that has exactly these tensors; "" if none has.
std::string guess_model(const TensorTable& tensors);

}  // namespace mase
