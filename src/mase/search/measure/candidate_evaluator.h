// SPDX-License-Identifier: Apache-2.0
// Measures networks of a search that change in more than number formats, or that are trained before
// they are measured: each is made, trained if that is asked for, and scored on the search's rows.
#pragma once

#include "mase/search/measure/evaluator.h"

namespace mase::search {

class CandidateEvaluator final : public Evaluator {
 public:
  explicit CandidateEvaluator(EvaluatorSetup setup);

  std::unique_ptr<Session> session() const override;
  Graph untrained(const Point& point) const override;

 private:
  class OwnSession;
  Result measure(const Point& point, const Calls& calls) const;
  Score score(const Graph& graph) const;

  EvaluatorSetup setup_;
  Dataset training_data_;  // with fewer training rows, if so asked
};

}  // namespace mase::search
