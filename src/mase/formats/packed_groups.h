// SPDX-License-Identifier: Apache-2.0
// Tensors of our own formats as they are packed for kernels: blocks of one group each, which are
// the group's step, its zero point if it has one, and its codes. A code means fl(level * step), or
// fl((code - zero) * step): one product is rounded, on every instruction set alike.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/base/random.h"
#include "mase/base/tensor.h"
#include "mase/formats/format.h"

namespace mase {

// Codes of 32 values at a time, 4 * bits bytes each. 8 bits: whole numbers, two's complement.
// 4 bits: the first sixteen in the low halves of the bytes, the others in the high ones. 2 bits: a
// string of bits, the lowest first. 3 bits: such a string of the low two, then one of the third.
struct PackedGroups {
  int bits = 4;                    // 2, 3, 4 or 8
  int64_t values = 32;             // of a group: whole times 32
  int step_bytes = 4;              // 1: an exponent plus 127; 4: single precision; 8: double
  bool offsets = false;            // zero points of single precision; codes then mean themselves
  std::vector<float> levels = {};  // 2^bits of them; 8 bits: none

  int64_t code_bytes() const { return values / 8 * bits; }
};

PackedTypePtr packed_groups_type(const std::string& name, const PackedGroups& groups);
PackedGroups groups_of(const PackedType& type);

// What tests and benchmarks try: all types of ggml's files, and groups of every kind.
std::vector<PackedTypePtr> every_packed_type();
// Random codes with steps of both signs below `size`, some of them 0 or not normal.
void draw_blocks(const PackedType& type, Random& random, double size, std::span<uint8_t> blocks);

// A packed type as a file says it, and again from there: anything else is an error at `place`.
Value packed_type_text(const PackedType& type);
PackedTypePtr packed_type_from(const Value& text, const std::string& place);

// A matrix whose numbers the quantizer leaves as they are, packed by its codes; nothing where they
// do not lie in groups that can be, or where a number would come back as another one (the sign of
// zero is no part of a number here).
std::optional<Tensor> packed_as(const Tensor& matrix, const Quantizer& quantizer);

// Whether this tensor is packed by the codes of this quantizer: rounding it changes nothing.
bool is_packed_as(const Tensor& tensor, const Quantizer& quantizer);

}  // namespace mase
