// SPDX-License-Identifier: Apache-2.0
// What transform and pass do first: the network with its checkpoint, the data for profiling and
// accuracies, and the context that passes run in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/cli/options.h"
#include "mase/data/dataset.h"
#include "mase/passes/pass.h"

namespace mase {

struct PassNetwork {
  Graph graph;
  Value checkpoint_extra;          // what an .mz carries beside its graph
  std::vector<std::string> notes;  // what was loaded or guessed, for the terminal
};

// The network that the model name and --load give. A name nobody registered is accepted when the
// checkpoint's tensors are those of a registered network, which is then used and said.
PassNetwork pass_network(const Value& model, Value values, const std::string& config_path,
                         const Dataset* dataset);

PassContext pass_context(const Dataset* dataset, const Settings& settings);

// A file's path as it was written, or beside the configuration that names it.
std::string path_beside(const std::string& path, const std::string& config_path);

}  // namespace mase
