// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/search_progress.h"

#include <algorithm>

#include "mase/base/text.h"

namespace mase::search_command {
namespace {

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void ProgressText::take(const search::Trials& trials, const search::Trial& trial) {
  if (first_ < 0) {
    first_ = trial.number;
    for (const search::Trial& before : trials) note(trials, before);
  }
  done_ = static_cast<int64_t>(trials.size());
  note(trials, trial);
}

void ProgressText::take_all(const search::Trials& trials) {
  done_ = static_cast<int64_t>(trials.size());
  for (const search::Trial& trial : trials) note(trials, trial);
}

void ProgressText::note(const search::Trials& trials, const search::Trial& trial) {
  if (trial.state != search::TrialState::complete || !trial.feasible()) return;
  const double loss = trials.loss(trial);
  if (!known_ || loss < loss_) {
    known_ = true;
    loss_ = loss;
    value_ = trial.values[0];
  }
}

std::string ProgressText::str() const {
  const double seconds = since(start_);
  const double rate = static_cast<double>(done_ - std::max<int64_t>(0, first_)) / seconds;
  std::string text = fmt::format("Trial {}/{}", done_, planned_);
  if (known_) text += fmt::format("  best {} {:.4g}", search_.objectives().front(), value_);
  text += fmt::format("  {:.1f} trials/s", rate);
  if (rate > 0 && done_ < planned_)
    text += fmt::format("  {} left", human_seconds(static_cast<double>(planned_ - done_) / rate));
  return text;
}

}  // namespace mase::search_command
