// SPDX-License-Identifier: Apache-2.0
// The number types of GGUF files. Packed ones are blocks of codes with a step, and often an offset,
// for each group of them: value = step * code + offset, in single precision, is exact but for the
// last rounding, and is what ggml's own code gives, to the bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/base/tensor.h"

namespace mase {

// One block as it is packed, taken apart.
struct GgufBlock {
  std::array<int8_t, 256> codes;
  std::array<float, 16> steps, offsets;  // of each group of codes, in order
};

struct GgufType {
  uint32_t number;
  const char* name;
  int64_t values, bytes;  // of a block; a value of its own where nothing is packed
  std::optional<DType> plain = {};
  // Packed types:
  int64_t group = 0;  // codes that share a step
  int bits = 0;       // of a code
  bool is_signed = false;
  bool offsets = false;  // else all are zero
  void (*unpack)(const uint8_t* block, GgufBlock& out) = nullptr;
  PackedForm form = PackedForm::f16;
  std::vector<int> halves = {};  // where a block's numbers of half precision stand
};

// Null: not a type that is read.
const GgufType* find_gguf_type(uint32_t number);
std::string known_gguf_types();  // "BF16, F16, ..."
// What ggml calls the number where we do not read it; "" for none of its types.
std::string foreign_gguf_type(uint32_t number);

// The type of tensors that stay as they are packed, those of 16-bit floats too; null for others.
PackedTypePtr packed_type(const GgufType& type);
std::vector<PackedTypePtr> packed_types();  // all of them
// A matrix of 16-bit floats as such a tensor; any other is as it was.
Tensor with_packed_floats(const Tensor& tensor);

// Whole blocks as float32.
void widen_gguf(const GgufType& type, std::span<const std::byte> blocks, float* out);

// A packed tensor taken apart, for whoever computes with its codes.
struct GgufCodes {
  int64_t group = 0;
  std::vector<int8_t> codes;
  std::vector<float> steps, offsets;  // a number for each group; offsets empty: all zero
};
GgufCodes gguf_codes(const GgufType& type, std::span<const std::byte> blocks);

}  // namespace mase
