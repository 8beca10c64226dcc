// SPDX-License-Identifier: Apache-2.0
// Patient: lets another pruner decide only once the trial has not improved for so many steps.
// Threshold: ends a trial whose value leaves its bounds. Nop: ends none.
#include <cmath>
#include <limits>

#include "mase/search/pruners/pruner.h"

namespace mase::patient_pruner {
namespace {

using namespace search;

class PatientPruner final : public Pruner {
 public:
  explicit PatientPruner(const Value& options)
      : patience_(static_cast<size_t>(options["patience"].as_int())),
        delta_(options["min_delta"].as_double()) {
    if (!options["wrapped"].is_null()) wrapped_ = make_pruner(options["wrapped"], "pruner.wrapped");
  }

  bool prune(const Trials& trials, Trial& trial) override {
    const size_t steps = trial.intermediate.size();
    if (steps <= patience_ + 1) return false;
    const double sign = trials.maximise()[0] ? -1 : 1;
    double before = std::numeric_limits<double>::quiet_NaN(), after = before;
    size_t i = 0;
    for (const auto& [step, value] : trial.intermediate) {
      double& best = i++ < steps - patience_ - 1 ? before : after;
      if (std::isnan(best) || sign * value < best) best = sign * value;
    }
    if (!(before + delta_ < after)) return false;
    return !wrapped_ || wrapped_->prune(trials, trial);
  }

 private:
  size_t patience_;
  double delta_;
  std::unique_ptr<Pruner> wrapped_;
};

class ThresholdPruner final : public Pruner {
 public:
  explicit ThresholdPruner(const Value& options) : options_(options) {}

  bool prune(const Trials&, Trial& trial) override {
    if (trial.intermediate.empty()) return false;
    const auto& [step, value] = *trial.intermediate.rbegin();
    const int64_t warmup = options_["n_warmup_steps"].as_int();
    const int64_t interval = options_["interval_steps"].as_int();
    if (step < warmup) return false;
    const int64_t start = (step - warmup) / interval * interval + warmup;
    for (const auto& [other, ignored] : trial.intermediate)
      if (other != step && other >= start) return false;
    const Value &lower = options_["lower"], &upper = options_["upper"];
    return std::isnan(value) || (lower.is_number() && value < lower.as_double()) ||
           (upper.is_number() && value > upper.as_double());
  }

 private:
  Value options_;
};

class NopPruner final : public Pruner {
 public:
  bool prune(const Trials&, Trial&) override { return false; }
};

const Register<PrunerRecord> registered{{
    .name = "patient",
    .summary = "asks another pruner only after steps without an improvement",
    .schema = {{{.name = "wrapped", .help = "the other pruner: a name or a table; none: ends it"},
                {.name = "patience",
                 .type = FieldType::integer,
                 .help = "steps without an improvement",
                 .required = true,
                 .minimum = 0},
                {.name = "min_delta",
                 .type = FieldType::number,
                 .default_value = 0.0,
                 .help = "what counts as one",
                 .minimum = 0}}},
    .make = [](const Value& options) -> std::unique_ptr<Pruner> {
      return std::make_unique<PatientPruner>(options);
    },
}};

const Register<PrunerRecord> threshold{{
    .name = "threshold",
    .summary = "ends a trial whose value leaves its bounds",
    .schema = {{{.name = "lower", .type = FieldType::number, .help = "least value allowed"},
                {.name = "upper", .type = FieldType::number, .help = "largest value allowed"},
                {.name = "n_warmup_steps",
                 .type = FieldType::integer,
                 .default_value = 0,
                 .help = "steps that no trial is ended before",
                 .minimum = 0},
                {.name = "interval_steps",
                 .type = FieldType::integer,
                 .default_value = 1,
                 .help = "steps between two looks",
                 .minimum = 1}}},
    .make = [](const Value& options) -> std::unique_ptr<Pruner> {
      if (options["lower"].is_null() && options["upper"].is_null())
        throw Error("pruner", "a threshold needs 'lower' or 'upper'");
      return std::make_unique<ThresholdPruner>(options);
    },
}};

const Register<PrunerRecord> nop{{
    .name = "nop",
    .aliases = {"none"},
    .summary = "ends no trial",
    .make = [](const Value&) -> std::unique_ptr<Pruner> { return std::make_unique<NopPruner>(); },
}};

}  // namespace
}  // namespace mase::patient_pruner
