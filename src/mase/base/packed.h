// SPDX-License-Identifier: Apache-2.0
// Numbers in fewer bytes than floats have: blocks of codes that share steps, as files hold them and
// as kernels read them. What a block means is said by its type; nobody else needs to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mase {

// How the codes of a block lie, for the kernels that read them. Q...: as ggml's files have them;
// `groups` is ours: see formats/packed_types.h.
enum class PackedForm : uint8_t {
  f16,
  bf16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q4_k,
  q5_k,
  q6_k,
  groups
};

struct PackedType {
  std::string name;  // "Q4_1"
  PackedForm form = PackedForm::f16;
  int64_t values = 1, bytes = 2;  // of a block
  int bits = 16;                  // of a code
  bool offsets = false;           // each group of codes has a number that is added
  // Where in a block its numbers of half precision stand (steps, offsets).
  std::vector<int> halves = {};
  // What a code stands for, times the step; empty: itself.
  std::vector<float> levels = {};
  // `count` whole blocks as float32, exactly what they mean.
  void (*widen)(const PackedType& type, const std::byte* blocks, int64_t count,
                float* out) = nullptr;

  double bits_per_value() const {
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(values);
  }
};
using PackedTypePtr = std::shared_ptr<const PackedType>;

}  // namespace mase
