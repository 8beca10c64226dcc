// SPDX-License-Identifier: Apache-2.0
// Measures networks of a search that change in more than number formats, or that are trained before
// they are measured: each is made, trained if that is asked for, and scored on the search's rows.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "mase/search/candidate.h"
#include "mase/search/figures.h"
#include "mase/train/trainer.h"

namespace mase::search {

struct Training {
  // Of a candidate: the search's own options with these changes.
  std::function<TrainOptions(const Dict& changes)> options;
  std::function<void(Graph& graph)> fold_batch_norm = {};  // see TrainSession
  int64_t rows = 0;                                        // the first so many; 0: all
};

class CandidateEvaluator {
 public:
  CandidateEvaluator(const Graph& graph, const CandidateSpace& space, EvaluationRows rows,
                     int64_t batch_size, FigureOptions figures, CandidateUse use,
                     std::optional<Training> training);

  struct Calls {
    // After each epoch of training, with figures on all validation rows; false: enough.
    std::function<bool(int64_t epoch, const Figures& figures)> on_epoch = {};
    std::function<bool()> cancelled = {};
  };
  enum class End { measured, enough, cancelled, failed };
  struct Result {
    End end = End::measured;
    Figures figures = {};
    Graph network = {};
    std::string failure = {};  // why nothing was measured
  };
  // May be called by several threads at once.
  Result measure(const Point& point, const Calls& calls) const;
  // The network of a point without training.
  Graph untrained(const Point& point) const;

 private:
  const Graph& graph_;
  const CandidateSpace& space_;
  EvaluationRows rows_;
  int64_t batch_size_;
  FigureOptions figures_;
  CandidateUse use_;
  std::optional<Training> training_;
  Dataset training_data_;  // with fewer training rows, if so asked
};

}  // namespace mase::search
