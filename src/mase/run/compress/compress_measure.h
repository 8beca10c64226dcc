// SPDX-License-Identifier: Apache-2.0
// How good a compressed network is, and how large: the figure of its task on rows that no method
// saw, and the bits that its parameters take.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "mase/passes/pass.h"
#include "mase/run/compress/compress.h"

namespace mase {

struct CompressFigures {
  double value = 0, loss = 0;
  std::vector<bool> correct = {};  // by row, where the figure is a share of rows
};

// What a network is calibrated and measured on.
struct CompressTask {
  std::string figure;
  bool higher_is_better = true;
  std::string measured_on, calibrated_on;
  std::string identity;  // of the rows measured and calibrated on
  Graph graph;           // for rows of this size
  PassContext context;   // calibration
  std::function<CompressFigures(const Graph& graph)> measure;
};
// The experiment outlives it.
CompressTask dataset_task(const Experiment& experiment, const CompressSpec& spec);
CompressTask text_task(const Experiment& experiment, const CompressSpec& spec,
                       const std::function<void()>& check_stop);

struct WeightSizes {
  int64_t weights = 0;     // of these layers
  double weight_bits = 0;  // of those weights, and of layers that a method put beside them
  double all_bits = 0;     // of every parameter
};
// `layers`: paths; `original`: the network before, from which added layers are known.
WeightSizes weight_sizes(const Graph& graph, const Graph& original,
                         const std::set<std::string>& layers);

}  // namespace mase
