// SPDX-License-Identifier: Apache-2.0
// How much a reader may build from a file. Every reader of foreign files charges what it allocates
// to one budget, so that a small file cannot claim a large machine.
#pragma once

#include <cstddef>
#include <string>

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {

struct ReadLimits {
  size_t memory = 0;            // bytes of values and copied tensors; 0: the file's size + 40 MB
  size_t depth = 256;           // nesting of values
  size_t objects = 4'000'000;   // values made by one pickle, and steps of its machine
  size_t inflate_ratio = 200;   // deflated entries: inflated size over stored size
  size_t entries = 200'000;     // of a zip
  size_t header = 100'000'000;  // of a safetensors file, by its specification
};

class MemoryBudget {
 public:
  MemoryBudget(const ReadLimits& limits, size_t file_size)
      : left_(limits.memory ? limits.memory : file_size + default_margin) {}

  bool take(size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  void give_back(size_t bytes) { left_ += bytes; }
  size_t left() const { return left_; }
  // The same, with the one error.
  void charge(size_t bytes, const std::string& place) {
    if (!take(bytes))
      throw Error(place, "reading on would need more memory than the limit allows",
                  "the file is damaged or hostile");
  }

 private:
  static constexpr size_t default_margin = size_t{40} << 20;
  size_t left_;
};

}  // namespace mase
