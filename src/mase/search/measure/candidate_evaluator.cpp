// SPDX-License-Identifier: Apache-2.0
#include "mase/search/measure/candidate_evaluator.h"

#include <algorithm>

namespace mase::search {

class CandidateEvaluator::OwnSession final : public Session {
 public:
  explicit OwnSession(const CandidateEvaluator& evaluator) : evaluator_(evaluator) {}

  std::vector<Result> measure(std::span<const Point> points, const Calls& calls) override {
    std::vector<Result> all;
    for (const Point& point : points) all.push_back(evaluator_.measure(point, calls));
    return all;
  }
  Dict hardware(const Point& point) override {
    return evaluator_.setup_.figures.hardware(evaluator_.untrained(point));
  }
  std::vector<Score> scores(std::span<const Point> points) override {
    std::vector<Score> all;
    for (const Point& point : points) all.push_back(evaluator_.score(evaluator_.untrained(point)));
    return all;
  }

 private:
  const CandidateEvaluator& evaluator_;
};

CandidateEvaluator::CandidateEvaluator(EvaluatorSetup setup) : setup_(std::move(setup)) {
  EvaluationRows& rows = setup_.rows;
  check_split(*rows.split, *rows.dataset, setup_.graph);
  rows.rows = std::min(rows.rows, rows.split->rows());
  if (!setup_.training) return;
  training_data_ = *rows.dataset;
  if (setup_.training->rows > 0)
    training_data_.train = first_rows(training_data_.train, setup_.training->rows);
}

std::unique_ptr<Evaluator::Session> CandidateEvaluator::session() const {
  return std::make_unique<OwnSession>(*this);
}

Graph CandidateEvaluator::untrained(const Point& point) const {
  return setup_.space.candidate(setup_.graph, point, setup_.use).graph;
}

Score CandidateEvaluator::score(const Graph& graph) const {
  const EvaluationRows& rows = setup_.rows;
  return score_network(graph, *rows.dataset, *rows.split, rows.rows, setup_.batch_size);
}

Evaluator::Result CandidateEvaluator::measure(const Point& point, const Calls& calls) const {
  Result result;
  Candidate candidate = setup_.space.candidate(setup_.graph, point, setup_.use);
  // False where a figure cannot be had of this configuration: its own result.
  const auto add_hardware = [&] {
    try {
      result.figures.hardware = setup_.figures.hardware(candidate.graph);
      return true;
    } catch (const Error& error) {
      result = {};
      result.end = End::failed;
      result.failure = error.what();
      return false;
    }
  };
  if (!add_hardware()) return result;
  if (setup_.training) {
    TrainSession session;
    session.fold_batch_norm = setup_.training->fold_batch_norm;
    bool enough = false;
    session.observer.on_epoch = [&](const EpochEvent& event, const Program&) {
      if (!calls.on_epoch || !event.val_loss) return;
      Figures so_far{{{"loss", *event.val_loss}}, result.figures.hardware};
      if (event.val_accuracy) so_far.software.set("accuracy", *event.val_accuracy);
      enough = !calls.on_epoch(event.epoch, so_far) || enough;
    };
    bool cancelled = false;
    session.observer.stop_requested = [&] {
      cancelled = cancelled || (calls.cancelled && calls.cancelled());
      return enough || cancelled;
    };
    const TrainOutcome outcome = train(candidate.graph, training_data_,
                                       setup_.training->options(candidate.training), session);
    if (outcome.status == TrainStatus::diverged) {
      result.end = End::failed;
      result.failure = outcome.message;
      return result;
    }
    if (cancelled && outcome.status == TrainStatus::interrupted) result.end = End::cancelled;
    if (enough) result.end = End::enough;
    if (result.end != End::measured) return result;
    if (!add_hardware()) return result;  // widths may be learned
  }
  result.figures.software = setup_.figures.software(score(candidate.graph));
  if (setup_.training) result.network = std::move(candidate.graph);
  return result;
}

}  // namespace mase::search
