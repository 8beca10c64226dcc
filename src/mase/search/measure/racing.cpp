// SPDX-License-Identifier: Apache-2.0
#include "mase/search/measure/racing.h"

#include <algorithm>
#include <cmath>

namespace mase::search {
namespace {

constexpr int64_t first_look = 64;

bool no_worse(const Losses& a, const Losses& b) {
  for (size_t k = 0; k < a.size(); ++k)
    if (!(a[k] <= b[k])) return false;
  return true;
}

}  // namespace

double sign_test(int64_t wins, int64_t defeats) {
  const int64_t n = wins + defeats;
  double sum = 0;
  for (int64_t k = 0; k <= wins; ++k)
    sum += std::exp(
        std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(k) + 1) -
        std::lgamma(static_cast<double>(n - k) + 1) - static_cast<double>(n) * std::log(2.0));
  return std::min(sum, 1.0);
}

// With batches looks come at the first batch's end beyond each mark.
bool Race::is_look(int64_t rows, int64_t batch, int64_t total) {
  if (rows >= total) return false;
  for (int64_t mark = first_look; mark < total; mark *= 2)
    if (rows >= mark && rows - batch < mark) return true;
  return false;
}

std::optional<Race::Verdict> Race::look(const Losses& others, const std::vector<bool>& correct,
                                        int64_t total) const {
  const auto rows = static_cast<int64_t>(correct.size());
  double looks = 0;
  for (int64_t mark = first_look; mark < total; mark *= 2) ++looks;
  const int64_t hits = std::count(correct.begin(), correct.end(), true);
  std::lock_guard lock(mutex_);
  for (const Rival& rival : rivals_) {
    if (!no_worse(rival.others, others)) continue;
    int64_t wins = 0, defeats = 0, theirs = 0;
    for (size_t r = 0; r < correct.size(); ++r) {
      theirs += rival.correct[r];
      wins += correct[r] && !rival.correct[r];
      defeats += !correct[r] && rival.correct[r];
    }
    const double accuracy = static_cast<double>(theirs) / static_cast<double>(rows);
    if (hits + (total - rows) < rival.hits) return Verdict{0, accuracy};
    if (defeats <= wins || risk_ <= 0) continue;
    const double probability = sign_test(wins, defeats);
    if (probability < risk_ / looks) return Verdict{probability, accuracy};
  }
  return {};
}

void Race::finish(const Losses& others, std::vector<bool> correct) {
  Rival fresh{others, std::move(correct), 0};
  fresh.hits = std::count(fresh.correct.begin(), fresh.correct.end(), true);
  std::lock_guard lock(mutex_);
  const auto beats = [](const Rival& a, const Rival& b) {
    return no_worse(a.others, b.others) && a.hits >= b.hits;
  };
  if (std::any_of(rivals_.begin(), rivals_.end(),
                  [&](const Rival& rival) { return beats(rival, fresh); }))
    return;
  std::erase_if(rivals_, [&](const Rival& rival) { return beats(fresh, rival); });
  rivals_.push_back(std::move(fresh));
}

RacedScore race_network(const Graph& graph, const Dataset& dataset, const Split& split,
                        int64_t rows, int64_t batch_size, const Losses& others, Race& race) {
  const int64_t total = std::min(rows, split.rows());
  CompileOptions options;
  options.batch_size = std::min(batch_size, std::max<int64_t>(1, total));
  options.loss = loss_for(dataset);
  Program program = Program::compile(graph, options);
  const int64_t classes = element_count(program.output_shape(0)) / options.batch_size;
  std::vector<float> logits(static_cast<size_t>(options.batch_size * classes));
  std::vector<bool> correct;
  Batch batch;
  batch.inputs = {RowTensor(split.x, split.bytes.get())};
  batch.target = RowTensor(split.labels, "target");
  RacedScore result;
  while (result.score.rows < total) {
    batch.first_row = result.score.rows;
    batch.size = std::min(options.batch_size, total - batch.first_row);
    const StepResult step = program.forward(batch);
    program.read_output(0, logits.data());
    for (int64_t r = 0; r < batch.size; ++r) {
      const float* row = logits.data() + r * classes;
      correct.push_back(arg_max(row, classes) == split.labels.data<int32_t>()[batch.first_row + r]);
    }
    result.score.add(step, batch.size);
    if (!Race::is_look(result.score.rows, batch.size, total)) continue;
    result.given_up = race.look(others, correct, total);
    if (result.given_up) return result;
  }
  race.finish(others, std::move(correct));
  return result;
}

}  // namespace mase::search
