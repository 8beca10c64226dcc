// SPDX-License-Identifier: Apache-2.0
// Those figures that one search wants, measured: each thing that they need of a network is found
// once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/search/measure/figure.h"

namespace mase::search {

struct Figures {
  Dict software;  // loss, accuracy: what needs rows
  Dict hardware;  // average_bitwidth, bitops, ...: the others
};

class FigureSet {
 public:
  FigureSet() = default;
  FigureSet(std::vector<const FigureRecord*> wanted, double compare_to);
  // Every figure of such data that needs no design: what tests compare.
  static FigureSet plain(bool classification);

  bool needs(FigureNeeds need) const;
  const std::vector<const FigureRecord*>& wanted() const { return wanted_; }
  Dict software(const Score& score) const;
  // An Error if the network does not become what a figure needs. `cost` null: it is found here.
  Dict hardware(const Graph& network, const NetworkCost* cost = nullptr) const;
  // The same where costs are all that is needed: without a network.
  Dict hardware(const NetworkCost& cost, const ParameterCounts& parameters) const;

 private:
  Dict others(Measured known) const;

  std::vector<const FigureRecord*> wanted_;
  double compare_to_ = 32;
};

struct EvaluationRows {
  const Dataset* dataset = nullptr;
  const Split* split = nullptr;
  int64_t rows = 0;  // the first so many; all if there are fewer
};

Score score_network(const Graph& graph, const Dataset& dataset, const Split& split, int64_t rows,
                    int64_t batch_size);

// The first rows of a split; the same memory where that is all of them.
Split first_rows(const Split& split, int64_t rows);

}  // namespace mase::search
