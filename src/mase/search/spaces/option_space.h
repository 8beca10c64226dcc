// SPDX-License-Identifier: Apache-2.0
// [search.search_space.train]: options of training as parameters. A list gives choices, a table a
// range; what options there are, and which belong to one member of a set alone, the caller says.
//   learning_rate = {low = 1e-4, high = 1e-1, log = true}
//   batch_size = [64, 128, 256]
//   optimizer = ["adam", "sgd"]
//   optimizer_momentum = [0.0, 0.9]      # exists only with sgd
#pragma once

#include <string>
#include <vector>

#include "mase/base/schema.h"
#include "mase/search/spaces/candidate.h"

namespace mase::search {

struct TrainingOption {
  Field field;
  // An option of one member of a set: "training_optimizer" must be one of `members`.
  std::string selector = {};
  std::vector<std::string> members = {};
};

class OptionSpace final : public SpacePart {
 public:
  // `chosen`: the values that the search has where the table says nothing.
  OptionSpace(const Value& table, const std::string& path,
              const std::vector<TrainingOption>& options, const Value& chosen, Problems& problems);

  void apply(const Point& point, const CandidateUse& use, Candidate& candidate) const override;
  Dict sampled_config(const Point& point) const override;

 private:
  struct Chosen {
    std::string option;
    Value fixed;
    int parameter = -1;
  };
  void add(const std::string& key, const Value& value, const std::string& path,
           const TrainingOption& option, const Value& chosen, Problems& problems);
  Dict options(const Point& point) const;

  std::vector<Chosen> chosen_;
};

}  // namespace mase::search
