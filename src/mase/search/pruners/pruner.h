// SPDX-License-Identifier: Apache-2.0
// What ends a trial early, from the values it reports on its way and those of the others. A pruner
// is one file in pruners/ that registers one record. Rules and defaults are Optuna's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/search/study/trial.h"

namespace mase::search {

class Pruner {
 public:
  virtual ~Pruner() = default;
  // Asked after each reported value; `trial` (one of `trials`) may be given attributes.
  virtual bool prune(const Trials& trials, Trial& trial) = 0;
};

struct PrunerRecord {
  static constexpr const char* kind = "pruner";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema schema = {};
  std::function<std::unique_ptr<Pruner>(const Value& options)> make;
};

// A table with `name` and the pruner's own options, or a name alone.
std::unique_ptr<Pruner> make_pruner(const Value& table, const std::string& path);

}  // namespace mase::search
