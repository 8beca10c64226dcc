// SPDX-License-Identifier: Apache-2.0
// Asynchronous successive halving (Li et al., 2020) and Hyperband (Li et al., 2018) over it.
#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "mase/search/pruners/pruner.h"

namespace mase::halving_pruner {
namespace {

using namespace search;

std::string rung_key(int rung) { return fmt::format("completed_rung_{}", rung); }

std::optional<int64_t> last_step(const Trial& trial) {
  if (trial.intermediate.empty()) return {};
  return trial.intermediate.rbegin()->first;
}

using Belongs = std::function<bool(const Trial&)>;

class Halving {
 public:
  Halving(std::optional<int64_t> least, int64_t factor, int64_t rate, int64_t bootstrap)
      : least_(least), factor_(factor), rate_(rate), bootstrap_(bootstrap) {}

  bool prune(const Trials& trials, Trial& trial, const Belongs& belongs) {
    const std::optional<int64_t> step = last_step(trial);
    if (!step) return false;
    int rung = 0;
    while (trial.system_attributes.contains(rung_key(rung))) ++rung;
    const double value = trial.intermediate.rbegin()->second;
    for (;; ++rung) {
      if (!least_ && !(least_ = estimated(trials, belongs))) return false;
      const double promotion =
          static_cast<double>(*least_) *
          std::pow(static_cast<double>(factor_), static_cast<double>(rate_ + rung));
      if (static_cast<double>(*step) < promotion) return false;
      if (std::isnan(value)) return true;
      const std::string key = rung_key(rung);
      std::vector<double> rivals;
      for (const Trial& other : trials) {
        const Value* at = other.system_attributes.find(key);
        if (at && at->is_number() && belongs(other)) rivals.push_back(at->as_double());
      }
      rivals.push_back(value);
      trial.system_attributes.set(key, value);
      if (static_cast<int64_t>(rivals.size()) <= bootstrap_) return true;
      if (!promotable(value, std::move(rivals), trials.maximise()[0])) return true;
    }
  }

 private:
  static std::optional<int64_t> estimated(const Trials& trials, const Belongs& belongs) {
    std::optional<int64_t> longest;
    for (const Trial& other : trials)
      if (other.state == TrialState::complete && belongs(other))
        longest = std::max(longest, last_step(other));
    if (!longest) return {};
    return std::max<int64_t>(*longest / 100, 1);
  }

  bool promotable(double value, std::vector<double> rivals, bool maximise) const {
    const size_t share = rivals.size() / static_cast<size_t>(factor_);
    const size_t last = share == 0 ? 0 : share - 1;
    std::sort(rivals.begin(), rivals.end());
    return maximise ? value >= rivals[rivals.size() - 1 - last] : value <= rivals[last];
  }

  std::optional<int64_t> least_;
  int64_t factor_, rate_, bootstrap_;
};

class HalvingPruner final : public Pruner {
 public:
  explicit HalvingPruner(Halving halving) : halving_(halving) {}
  bool prune(const Trials& trials, Trial& trial) override {
    return halving_.prune(trials, trial, [](const Trial&) { return true; });
  }

 private:
  Halving halving_;
};

class HyperbandPruner final : public Pruner {
 public:
  HyperbandPruner(int64_t least, std::optional<int64_t> most, int64_t factor, int64_t bootstrap)
      : least_(least), most_(most), factor_(factor), bootstrap_(bootstrap) {}

  bool prune(const Trials& trials, Trial& trial) override {
    if (brackets_.empty() && !begin(trials)) return false;
    const size_t bracket = bracket_of(trials.study_name(), trial.number);
    return brackets_[bracket].prune(trials, trial, [&](const Trial& other) {
      return bracket_of(trials.study_name(), other.number) == bracket;
    });
  }

 private:
  bool begin(const Trials& trials) {
    if (!most_) {
      for (const Trial& other : trials)
        if (other.state == TrialState::complete)
          if (const auto step = last_step(other)) most_ = std::max(most_, std::optional(*step + 1));
      if (!most_) return false;
    }
    const double ratio = static_cast<double>(*most_) / static_cast<double>(least_);
    const double base = static_cast<double>(factor_);
    const auto count = static_cast<int64_t>(std::floor(std::log(ratio) / std::log(base))) + 1;
    for (int64_t b = 0; b < std::max<int64_t>(1, count); ++b) {
      const auto s = static_cast<double>(count - 1 - b);
      budgets_.push_back(static_cast<uint64_t>(
          std::ceil(static_cast<double>(count) * std::pow(base, s) / (s + 1))));
      brackets_.emplace_back(least_, factor_, b, bootstrap_);
    }
    return true;
  }

  size_t bracket_of(const std::string& study, int64_t number) const {
    uint64_t total = 0;
    for (const uint64_t budget : budgets_) total += budget;
    const std::string text = fmt::format("{}_{}", study, number);
    uint64_t left =
        crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())) %
        total;
    size_t bracket = 0;
    while (left >= budgets_[bracket]) left -= budgets_[bracket++];
    return bracket;
  }

  int64_t least_;
  std::optional<int64_t> most_;
  int64_t factor_, bootstrap_;
  std::vector<uint64_t> budgets_;
  std::vector<Halving> brackets_;
};

Field whole(const char* name, Value fallback, double least, const char* help) {
  return {.name = name,
          .type = FieldType::integer,
          .default_value = std::move(fallback),
          .help = help,
          .minimum = least};
}

// "auto" or a number of steps.
Field resource(const char* name, Value fallback, const char* help) {
  return {.name = name,
          .default_value = std::move(fallback),
          .help = help,
          .check = [](const Value& value) -> std::optional<std::string> {
            if (value.is_string() && value.as_string() == "auto") return {};
            if (value.is_int() && value.as_int() >= 1) return {};
            return "wants a number of steps from 1 on, or \"auto\"";
          }};
}

std::optional<int64_t> steps_of(const Value& value) {
  if (value.is_int()) return value.as_int();
  return {};
}

const Register<PrunerRecord> registered{{
    .name = "halving",
    .aliases = {"successive-halving", "successive_halving", "successivehalving", "sha", "asha"},
    .summary = "at steps that grow by a factor only the best of so many go on",
    .schema = {{resource("min_resource", "auto", "steps before the first comparison"),
                whole("reduction_factor", 4, 2, "one in so many goes on"),
                whole("min_early_stopping_rate", 0, 0, "rungs left out at the start"),
                whole("bootstrap_count", 0, 0,
                      "trials that end at a rung before one is promoted")}},
    .make = [](const Value& o) -> std::unique_ptr<Pruner> {
      return std::make_unique<HalvingPruner>(
          Halving(steps_of(o["min_resource"]), o["reduction_factor"].as_int(),
                  o["min_early_stopping_rate"].as_int(), o["bootstrap_count"].as_int()));
    },
}};

const Register<PrunerRecord> hyperband{{
    .name = "hyperband",
    .summary = "successive halving with several first steps side by side",
    .schema = {{whole("min_resource", 1, 1, "steps of the shortest"),
                resource("max_resource", "auto", "steps of the longest"),
                whole("reduction_factor", 3, 2, "one in so many goes on"),
                whole("bootstrap_count", 0, 0,
                      "trials that end at a rung before one is promoted")}},
    .make = [](const Value& o) -> std::unique_ptr<Pruner> {
      return std::make_unique<HyperbandPruner>(
          o["min_resource"].as_int(), steps_of(o["max_resource"]), o["reduction_factor"].as_int(),
          o["bootstrap_count"].as_int());
    },
}};

}  // namespace
}  // namespace mase::halving_pruner
