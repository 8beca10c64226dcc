// SPDX-License-Identifier: Apache-2.0
// What a quantised network is worth and what it costs, without retraining it: loss and accuracy on
// given rows, bits and operations from the number types.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/ir/graph.h"
#include "mase/search/prefix_runner.h"
#include "mase/search/quantize_space.h"
#include "mase/train/evaluation.h"

namespace mase::search {

struct Figures {
  Dict software;  // loss, accuracy
  Dict hardware;  // average_bitwidth, memory_density, bitops, ...
};

// Names of what is measured, for checks before a search.
std::vector<std::string> software_figures(bool classification);
std::vector<std::string> hardware_figures();

struct EvaluationRows {
  const Dataset* dataset = nullptr;
  const Split* split = nullptr;
  int64_t rows = 0;  // the first so many; all if there are fewer
};

// May be used by several threads at once.
class PtqEvaluator {
 public:
  PtqEvaluator(const Graph& graph, const QuantizeSpace& space, EvaluationRows rows,
               int64_t batch_size, double compare_to);

  // A runner for one thread, over the rows given.
  PrefixRunner runner() const;
  Figures measure(const Point& point, PrefixRunner& runner) const;
  Score score(const Graph& quantised, const Split& split, int64_t rows) const;
  Graph quantised(const Point& point) const;

 private:
  const Graph& graph_;
  const QuantizeSpace& space_;
  EvaluationRows rows_;
  int64_t batch_size_;
  double compare_to_;
};

}  // namespace mase::search
