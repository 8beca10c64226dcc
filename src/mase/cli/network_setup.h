// SPDX-License-Identifier: Apache-2.0
// What train, test and predict do first: the data set, the network, its checkpoint, the passes of
// the configuration; and the tables they print about them.
#pragma once

#include <optional>

#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/data/dataset.h"
#include "mase/io/checkpoint.h"
#include "mase/ir/graph.h"

namespace mase {

// The task in full ("cls" is classification); an error for what this program has no networks for.
std::string task_of(const Settings& settings);

struct LoadedNetwork {
  Graph graph;
  std::optional<Preprocessing> preprocessing;  // the checkpoint's
  std::vector<std::string> class_names;        // the checkpoint's
  bool transformed = false;                    // from a .mz, or passes ran
  TensorTable quantizer_state = {};            // the checkpoint's, of layers not quantised yet
};

// Only what the checkpoint says about data, before the data set is loaded.
std::optional<Checkpoint> load_network_file(const Settings& settings);

// The network named by the settings (or held by the .mz) with the checkpoint's weights.
LoadedNetwork make_network(const Settings& settings, const std::optional<Checkpoint>& checkpoint,
                           const Dataset* dataset, const Logger& log);
// Runs [passes.*] of the configuration, or of --quant-config. True if any pass ran.
bool run_configured_passes(Graph& graph, const Settings& settings, const Dataset& dataset,
                           const std::string& save_dir, const Logger& log);
// After the passes: what the quantisers of the checkpoint had learned.
void take_quantizer_state(LoadedNetwork& network, const Logger& log);

// One line per layer and the totals, as "summary" of run.json and as text.
Value summary_record(const Graph& graph, int64_t batch_size);
std::string summary_text(const Value& summary, const Graph& graph);

Value dataset_record(const Dataset& dataset);
void tell_about(const Dataset& dataset, const Logger& log);

}  // namespace mase
