// SPDX-License-Identifier: Apache-2.0
// A number format that a model gives to one operand, before it is known which layer's table it goes
// into: a table has one format name for all its operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/base/value.h"
#include "mase/formats/rounding.h"

namespace mase::onnx {

// Integers with a scale and a zero point, as QONNX's Quant and ONNX's QuantizeLinear have them.
struct AffineFormat {
  int width = 8;
  bool is_signed = true, narrow = false;
  std::vector<double> scales = {1}, zeros = {0};  // one, or one per entry of `axis`
  std::optional<int64_t> axis = {};
  // Above 0: one number for so many entries of `axis` of a matrix, those of a row or column
  // (whatever the axis is not) one after the other.
  int64_t block = 0;
  Rounding rounding = Rounding::nearest_even;
  bool zero_first = true;  // the zero point is added before rounding (QONNX), or after (ONNX)

  bool operator==(const AffineFormat&) const = default;
};

struct OperandFormat {
  std::string name;                         // of the format
  Dict keys = {};                           // without operand prefix
  std::optional<int64_t> axis = {};         // where the numbers are per channel
  std::optional<AffineFormat> affine = {};  // set: `name` and `keys` follow from it

  bool operator==(const OperandFormat& other) const {
    return name == other.name && keys == other.keys && axis == other.axis && affine == other.affine;
  }
};

OperandFormat affine_format(const AffineFormat& affine);
// The format with the width whose range this is; an Error at `place` if there is none.
AffineFormat ranged(AffineFormat format, double lowest, double largest, const std::string& place);
// Fixed point, where the scales are powers of two and nothing else stands in the way.
std::optional<OperandFormat> fixed_format(const OperandFormat& format);
// The same format of a tensor whose dimensions were put into another order.
OperandFormat permuted(OperandFormat format, const std::vector<int64_t>& order, size_t rank);
// Whether a layer's table can say it for a tensor of this rank: blocks lie along the last
// dimension.
bool has_keys(const OperandFormat& format, size_t rank);
// Adds the keys with the operand's prefix to a layer's table.
void add_keys(Dict& table, const std::string& operand, const OperandFormat& format);
// The tensor rounded.
Tensor round_tensor(const OperandFormat& format, const Tensor& tensor, const std::string& place);

// A scale or zero point of an operand: one number, or one along one axis of a tensor of this rank.
struct PerChannel {
  std::vector<double> numbers;
  std::optional<int64_t> axis = {};
};
// Nothing if it varies along several axes.
std::optional<PerChannel> per_channel(const Tensor& numbers, size_t rank);

}  // namespace mase::onnx
