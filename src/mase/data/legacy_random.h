// SPDX-License-Identifier: Apache-2.0
// NumPy's legacy random permutation and scikit-learn's split, number for number, so that a test set
// made here holds the same rows as one made there and figures compare.
#pragma once

#include <cstdint>
#include <vector>

namespace mase {

// numpy.random.RandomState(seed).permutation(n): MT19937, Fisher-Yates from the end, bounded draws
// by masked rejection.
std::vector<uint32_t> numpy_permutation(uint32_t seed, uint32_t n);

struct SplitRows {
  std::vector<uint32_t> first;   // what is kept: "train"
  std::vector<uint32_t> second;  // what is taken out: "test"
};

// sklearn.model_selection.train_test_split(test_size=share, random_state=seed) of n rows: the first
// ceil(share * n) of the permutation are the test rows.
SplitRows train_test_split(uint32_t n, double share, uint32_t seed);

}  // namespace mase
