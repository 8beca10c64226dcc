// SPDX-License-Identifier: Apache-2.0
// Which rows were seen before, by 128-bit hash: two different rows among a billion are taken for
// one with a probability below 1e-20. Rows are compared as pandas compares them: every NaN equals
// every other, -0 equals 0, and numbers in the file's own precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mase {

struct RowHash {
  uint64_t low = 0, high = 0;
  bool operator==(const RowHash&) const = default;
};

RowHash hash_row(std::span<const double> cells);

class RowSet {
 public:
  explicit RowSet(size_t expected);
  bool insert(const RowHash& hash);  // false if it was there

 private:
  void grow();

  std::vector<RowHash> slots_;  // open addressing; all zero is empty
  size_t used_ = 0;
  bool has_zero_ = false;
};

// A fast checksum of memory, for files of our own; not for identity.
uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace mase
