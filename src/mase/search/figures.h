// SPDX-License-Identifier: Apache-2.0
// What a network is worth and what it costs: loss and accuracy on given rows, bits and operations
// from the number types, logic and delay from the hardware part's model.
#pragma once

#include <string>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/ir/graph.h"
#include "mase/ir/parameter_counts.h"
#include "mase/passes/costs.h"
#include "mase/train/evaluation.h"

namespace mase::search {

struct Figures {
  Dict software;  // loss, accuracy
  Dict hardware;  // average_bitwidth, memory_density, bitops, ...
};

// Names of what is measured, for checks before a search.
std::vector<std::string> software_figures(bool classification);
std::vector<std::string> hardware_figures();

struct FigureOptions {
  double compare_to = 32;  // bits that memory_density compares with
  bool design = false;     // area_luts and latency too: the network becomes integers
  bool loss = true;        // without, accuracy alone, which is faster in an exhaustive search
};

struct EvaluationRows {
  const Dataset* dataset = nullptr;
  const Split* split = nullptr;
  int64_t rows = 0;  // the first so many; all if there are fewer
};

Dict software_of(const Score& score, bool classification);
// An Error if figures of a design are wanted and the network does not become integers.
Dict hardware_of(const Graph& graph, const FigureOptions& options);
// The same from the costs of a network with so many parameters, without those of a design.
Dict hardware_of(const NetworkCost& cost, const ParameterCounts& parameters,
                 const FigureOptions& options);

Score score_network(const Graph& graph, const Dataset& dataset, const Split& split, int64_t rows,
                    int64_t batch_size);

// The first rows of a split; the same memory where that is all of them.
Split first_rows(const Split& split, int64_t rows);

}  // namespace mase::search
