// SPDX-License-Identifier: Apache-2.0
#include "mase/search/candidate_evaluator.h"

#include <algorithm>

namespace mase::search {

CandidateEvaluator::CandidateEvaluator(const Graph& graph, const CandidateSpace& space,
                                       EvaluationRows rows, int64_t batch_size,
                                       FigureOptions figures, CandidateUse use,
                                       std::optional<Training> training)
    : graph_(graph),
      space_(space),
      rows_(rows),
      batch_size_(batch_size),
      figures_(figures),
      use_(use),
      training_(std::move(training)) {
  check_split(*rows_.split, *rows_.dataset, graph_);
  rows_.rows = std::min(rows_.rows, rows_.split->rows());
  if (!training_) return;
  training_data_ = *rows_.dataset;
  if (training_->rows > 0) training_data_.train = first_rows(training_data_.train, training_->rows);
}

Graph CandidateEvaluator::untrained(const Point& point) const {
  return space_.candidate(graph_, point, use_).graph;
}

CandidateEvaluator::Result CandidateEvaluator::measure(const Point& point,
                                                       const Calls& calls) const {
  Result result;
  Candidate candidate = space_.candidate(graph_, point, use_);
  try {
    result.figures.hardware = hardware_of(candidate.graph, figures_);
  } catch (const Error& error) {  // of a design that this configuration does not give
    result.end = End::failed;
    result.failure = error.what();
    return result;
  }
  if (training_) {
    TrainSession session;
    session.fold_batch_norm = training_->fold_batch_norm;
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
    const TrainOutcome outcome =
        train(candidate.graph, training_data_, training_->options(candidate.training), session);
    if (outcome.status == TrainStatus::diverged) {
      result.end = End::failed;
      result.failure = outcome.message;
      return result;
    }
    if (cancelled && outcome.status == TrainStatus::interrupted) result.end = End::cancelled;
    if (enough) result.end = End::enough;
    if (result.end != End::measured) return result;
    result.figures.hardware = hardware_of(candidate.graph, figures_);  // widths may be learned
  }
  const Score score =
      score_network(candidate.graph, *rows_.dataset, *rows_.split, rows_.rows, batch_size_);
  result.figures.software = software_of(score, rows_.dataset->classification);
  result.network = std::move(candidate.graph);
  return result;
}

}  // namespace mase::search
