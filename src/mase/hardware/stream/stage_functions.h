// SPDX-License-Identifier: Apache-2.0
// What lies between the sums of a stage and the values that the next one reads: functions of one
// number each, and sums as multiples of what a stage is given.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"
#include "mase/hardware/stream/stages.h"

namespace mase {

[[noreturn]] void refuse_stream(const IntegerGraph& graph, const std::string& cause);

// Nodes as sums of multiples of `stops`, by the position of these; a stop of -1 is none.
struct LocalForm {
  std::vector<std::pair<size_t, int64_t>> terms;
  int64_t constant = 0;
};
class LocalForms {
 public:
  LocalForms(const IntegerGraph& graph, const std::vector<IntegerId>& stops);
  // Nothing if it is no such sum.
  std::optional<LocalForm> of(IntegerId id);

 private:
  const IntegerGraph& graph_;
  std::vector<int> place_;
  std::vector<int64_t> factors_;  // of the form being found
};

// What lies between one of `sums` and node `end`: that sum, and the nodes in order.
struct Between {
  std::optional<size_t> sum;
  std::vector<IntegerId> nodes;
  IntegerId end = -1;
};
Between between(const IntegerGraph& graph, const std::map<IntegerId, size_t>& sums, IntegerId end);

// A value as a function of a sum, for all sums within a range.
struct StageFunction {
  IntegerId sum = -1;
  Between path;
  IntegerRange range = {};
};
// One function for all of these, which may have met different intervals and lost operations that
// did nothing within them; refused where they are not one.
StageFunction common_function(const IntegerGraph& graph, std::vector<StageFunction> all,
                              const std::string& stage);
// What the outputs of a stage are of their sums: each different function once.
void add_functions(StreamStage& stage, const IntegerGraph& graph,
                   const std::vector<StageFunction>& wanted);

bool does_nothing(const std::vector<IntegerGraph>& functions);

// A function that never falls may as well be taken before the largest of windows is: values are
// narrower then.
//   sums -> f -> largest -> g   =>   sums -> g(f) -> largest
void move_before_largest(StreamStage& before, StreamStage& largest);

}  // namespace mase
