// SPDX-License-Identifier: Apache-2.0
// The built-in sample of simulated jets.
#pragma once

#include "mase/data/dataset.h"
#include "mase/data/prepare.h"

namespace mase {

const std::vector<std::string>& jet_class_names();  // g q w z t

// Jet number i depends on the seed and on i only: any number of threads, any number of rows.
RawTable simulate_jets(int64_t rows, uint64_t seed, int threads = 0);  // 0: all

Dataset load_simulated_jets(const DatasetOptions& options);
Schema simulation_options();  // "rows"

}  // namespace mase
