// SPDX-License-Identifier: Apache-2.0
// Racing over rows (Maron and Moore, "Hoeffding races", 1994; Birattari et al., 2002), for several
// objectives. All but the accuracy are known before a row is seen. A candidate is given up as soon
// as it cannot enter the front any more: another one costs no more in any objective, and is more
// accurate, either whatever the rows that are left say, or by a sign test on the rows that only one
// of the two got right. Both met the same rows, so few are enough.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/ir/graph.h"
#include "mase/search/study/pareto.h"
#include "mase/train/evaluation.h"

namespace mase::search {

// The probability that of wins + defeats fair coins at most `wins` show heads.
double sign_test(int64_t wins, int64_t defeats);

class Race {
 public:
  // `risk`: that a member of the front is given up by chance, over all looks at it; 0: never, only
  // what is certain counts.
  explicit Race(double risk) : risk_(risk) {}

  struct Verdict {
    double probability = 0;     // that it is no worse after all; 0: certain
    double rival_accuracy = 0;  // on the rows that both met
  };
  // A look at a candidate with these losses besides the accuracy, after its first rows of so many.
  std::optional<Verdict> look(const Losses& others, const std::vector<bool>& correct,
                              int64_t total) const;
  // It met all rows.
  void finish(const Losses& others, std::vector<bool> correct);

  // Rows after which there is a look: 64, 128, 256, ...
  static bool is_look(int64_t rows, int64_t batch, int64_t total);

 private:
  struct Rival {
    Losses others;
    std::vector<bool> correct;
    int64_t hits = 0;
  };

  double risk_;
  mutable std::mutex mutex_;
  std::vector<Rival> rivals_;  // that no other one beats
};

struct RacedScore {
  Score score;  // of the rows that were met
  std::optional<Race::Verdict> given_up = {};
};
// As score_network, until the race is lost. Rows are met in their order, so they must be mixed.
RacedScore race_network(const Graph& graph, const Dataset& dataset, const Split& split,
                        int64_t rows, int64_t batch_size, const Losses& others, Race& race);

}  // namespace mase::search
