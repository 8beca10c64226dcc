// SPDX-License-Identifier: Apache-2.0
// What a primitive does to its result before it is written: stages, in their order. A primitive
// that is all of a stage says which (PrimitiveRecord::as_stage), one that can compute stages says
// which (PrimitiveRecord::stages, takes), and one rule of fuse.cpp puts them there.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace mase {
struct Quantizer;
}

namespace mase::engine {

// Of each channel: (x - mean) / sqrt(variance + eps) * weight + bias, by tensors.
struct ScaleShiftStage {
  int weight = -1, bias = -1;  // -1: 1 and 0
  int mean = -1, variance = -1;
  double eps = 0;
};

struct AddStage {
  int tensor = -1;  // lies as the result does
};

struct ClampStage {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  bool is_relu() const { return low == 0 && high == std::numeric_limits<float>::infinity(); }
};

struct RoundStage {
  const Quantizer* quantizer = nullptr;
  uint64_t stream = 0;  // of its random draws
};

using FusedStage = std::variant<ScaleShiftStage, AddStage, ClampStage, RoundStage>;
enum class StageKind : size_t { scale_shift, add, clamp, round };  // in the variant's order

inline StageKind kind_of(const FusedStage& stage) { return static_cast<StageKind>(stage.index()); }
const char* stage_name(StageKind kind);              // "batch_norm", as the primitive it was
std::vector<int> reads_of(const FusedStage& stage);  // tensors

struct Epilogue {
  std::vector<FusedStage> stages;

  bool empty() const { return stages.empty(); }
  template <class T>
  const T* find() const {
    for (const FusedStage& stage : stages)
      if (const T* found = std::get_if<T>(&stage)) return found;
    return nullptr;
  }
  ClampStage limits() const;  // those there are, or none
  int added() const;          // the tensor of the sum, or -1
  std::vector<int> reads() const;
  std::string text() const;  // "+batch_norm+add+relu"
};

}  // namespace mase::engine
