// SPDX-License-Identifier: Apache-2.0
// The state of the search for shared additions (cmvm.h): nodes with their exact linear forms, and
// columns of terms that are still to be added up.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "mase/base/random.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/cmvm.h"

namespace mase {

struct CmvmTerm {
  int node = -1;
  int shift = 0;
  bool negative = false;
};
using CmvmColumn = std::vector<CmvmTerm>;

struct SharingOptions {
  double noise = 0;         // how much scores are disturbed
  double term_weight = 3;   // what one term less in a column is worth, in bits
  double delay_weight = 0;  // what a level of waiting costs, in bits
};

class CmvmSharing {
 public:
  explicit CmvmSharing(const CmvmProblem& problem);

  // Adds every column up, sharing what columns have in common. The result is one term a column;
  // an empty column gives node -1.
  CmvmColumn add_up(std::vector<CmvmColumn> columns, const SharingOptions& options, Random& random);

  int64_t bits() const { return bits_; }
  AdderGraph finish(const CmvmColumn& outputs) const;

 private:
  struct SharingNode {
    LinearForm form;  // over the inputs
    IntegerRange range;
    double arrival = 0;
  };
  struct Pair {  // first + sign * second 2^distance, distance of any sign
    int first, second, distance;
    bool opposite;
  };

  // The node that is this sum, an old one if there is one, as a term at shift 0.
  CmvmTerm add_node(const CmvmTerm& a, const CmvmTerm& b);
  int cost_of(const Pair& pair);
  CmvmTerm sum_of_column(CmvmColumn column, const SharingOptions& options);

  friend class PairTable;
  const CmvmProblem& problem_;
  std::vector<SharingNode> nodes_;
  std::vector<AdderGraph::Adder> adders_;
  std::unordered_multimap<uint64_t, int> by_form_;
  int64_t bits_ = 0;
};

// A whole number as signed digits with no two neighbours (canonical), or another such writing where
// `random` is given: 3 may be 4 - 1 or 2 + 1.
CmvmColumn signed_digits(int64_t value, int node, Random* random);

}  // namespace mase
