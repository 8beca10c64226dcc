// SPDX-License-Identifier: Apache-2.0
// Percentile and median: a trial ends whose best value so far is worse than the given percentile of
// what the complete trials had at the same step.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/search/pruners/pruner.h"

namespace mase::percentile_pruner {
namespace {

using namespace search;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double best_so_far(const Trial& trial, bool maximise) {
  double best = unknown;
  for (const auto& [step, value] : trial.intermediate)
    if (std::isnan(best) || (maximise ? value > best : value < best)) best = value;
  return best;
}

// Linear between the two nearest; not-a-number left out.
double percentile_of(std::vector<double> values, double percentile) {
  values.erase(std::remove_if(values.begin(), values.end(), [](double x) { return std::isnan(x); }),
               values.end());
  if (values.empty()) return unknown;
  std::sort(values.begin(), values.end());
  const double at = percentile / 100 * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(std::floor(at));
  const double share = at - std::floor(at);
  if (share == 0) return values[low];
  return values[low] + share * (values[low + 1] - values[low]);
}

class PercentilePruner final : public Pruner {
 public:
  explicit PercentilePruner(const Value& options)
      : percentile_(options["percentile"].as_double()),
        startup_(options["n_startup_trials"].as_int()),
        warmup_(options["n_warmup_steps"].as_int()),
        interval_(options["interval_steps"].as_int()),
        least_(options["n_min_trials"].as_int()) {}

  bool prune(const Trials& trials, Trial& trial) override {
    int64_t complete = 0;
    for (const Trial& other : trials) complete += other.state == TrialState::complete;
    if (complete == 0 || complete < startup_ || trial.intermediate.empty()) return false;
    const int64_t step = trial.intermediate.rbegin()->first;
    if (step < warmup_) return false;
    // Only the first report within an interval counts.
    const int64_t start = (step - warmup_) / interval_ * interval_ + warmup_;
    int64_t before = -1;
    for (const auto& [other, value] : trial.intermediate)
      if (other != step) before = std::max(before, other);
    if (before >= start) return false;
    const bool maximise = trials.maximise()[0];
    const double best = best_so_far(trial, maximise);
    if (std::isnan(best)) return true;
    std::vector<double> values;
    for (const Trial& other : trials) {
      if (other.state != TrialState::complete) continue;
      const auto found = other.intermediate.find(step);
      if (found != other.intermediate.end()) values.push_back(found->second);
    }
    if (static_cast<int64_t>(values.size()) < least_) return false;
    const double limit =
        percentile_of(std::move(values), maximise ? 100 - percentile_ : percentile_);
    if (std::isnan(limit)) return false;
    return maximise ? best < limit : best > limit;
  }

 private:
  double percentile_;
  int64_t startup_, warmup_, interval_, least_;
};

Schema schema(bool with_percentile) {
  const auto whole = [](const char* name, int64_t fallback, double least, const char* help) {
    return Field{.name = name,
                 .type = FieldType::integer,
                 .default_value = fallback,
                 .help = help,
                 .minimum = least};
  };
  Schema all = {{whole("n_startup_trials", 5, 0, "complete trials before any is ended"),
                 whole("n_warmup_steps", 0, 0, "steps that no trial is ended before"),
                 whole("interval_steps", 1, 1, "steps between two looks"),
                 whole("n_min_trials", 1, 1, "values needed at a step")}};
  Field percentile{.name = "percentile",
                   .type = FieldType::number,
                   .help = "share of trials that goes on, in percent",
                   .minimum = 0,
                   .maximum = 100};
  if (with_percentile)
    percentile.required = true;
  else
    percentile.default_value = 50.0;
  all.fields.insert(all.fields.begin(), std::move(percentile));
  return all;
}

std::unique_ptr<Pruner> make(const Value& options) {
  return std::make_unique<PercentilePruner>(options);
}

const Register<PrunerRecord> registered{{
    .name = "percentile",
    .summary = "ends what is worse than a percentile of the complete trials",
    .schema = schema(true),
    .make = make,
}};

const Register<PrunerRecord> median{{
    .name = "median",
    .summary = "ends what is worse than the median of the complete trials",
    .schema = schema(false),
    .make = make,
}};

}  // namespace
}  // namespace mase::percentile_pruner
