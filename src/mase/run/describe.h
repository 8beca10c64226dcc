// SPDX-License-Identifier: Apache-2.0
// Networks and data sets as run records and terminals tell of them.
#pragma once

#include <string>

#include "mase/data/dataset.h"
#include "mase/ir/graph.h"

namespace mase {

// One line per layer and the totals, as "summary" of run.json and as text: shapes of a batch, MACs
// of one sample.
Value summary_record(const Graph& graph, int64_t batch_size);
std::string summary_text(const Value& summary, const Graph& graph);

Value dataset_record(const Dataset& dataset);      // "dataset" of run.json
std::string dataset_text(const Dataset& dataset);  // "Data set jsc (simulated): 72,000 ..."

}  // namespace mase
