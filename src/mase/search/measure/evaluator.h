// SPDX-License-Identifier: Apache-2.0
// Measures the networks of a search, one configuration or many. One interface, and two ways behind
// it: number formats without training share their work (ptq_evaluator.h), everything else is made,
// trained if that is asked for, and scored on its own (candidate_evaluator.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/search/measure/figures.h"
#include "mase/search/spaces/candidate.h"
#include "mase/train/trainer.h"

namespace mase::search {

struct Training {
  // Of a candidate: the search's own options with these changes.
  std::function<TrainOptions(const Dict& changes)> options;
  std::function<void(Graph& graph)> fold_batch_norm = {};  // see TrainSession
  int64_t rows = 0;                                        // the first so many; 0: all
};

class Evaluator {
 public:
  struct Calls {
    // After each epoch of training, with figures on all validation rows; false: enough.
    std::function<bool(int64_t epoch, const Figures& figures)> on_epoch = {};
    std::function<bool()> cancelled = {};
  };
  enum class End { measured, enough, cancelled, failed };
  struct Result {
    End end = End::measured;
    Figures figures = {};
    Graph network = {};        // where it was trained
    std::string failure = {};  // why nothing was measured
  };

  // What one thread keeps from one measurement to the next.
  class Session {
   public:
    virtual ~Session() = default;
    // Points that follow each other may share what they have in common. A configuration that a
    // figure cannot measure is a result that failed.
    virtual std::vector<Result> measure(std::span<const Point> points, const Calls& calls) = 0;
    virtual int64_t at_once() const { return 1; }  // points that are worth measuring together
    // Parts of it, without training: figures that need no rows, and the scores.
    virtual Dict hardware(const Point& point) = 0;
    virtual std::vector<Score> scores(std::span<const Point> points) = 0;
  };

  virtual ~Evaluator() = default;
  virtual std::unique_ptr<Session> session() const = 0;
  // Nothing is trained, and what configurations have in common is computed once.
  virtual bool shares_work() const { return false; }
  virtual Graph untrained(const Point& point) const = 0;  // the network without training
};

struct EvaluatorSetup {
  const Graph& graph;
  const CandidateSpace& space;
  EvaluationRows rows;
  int64_t batch_size = 256;
  const FigureSet& figures;
  CandidateUse use = {};
  std::optional<Training> training = {};
};
std::unique_ptr<Evaluator> make_evaluator(EvaluatorSetup setup);

}  // namespace mase::search
