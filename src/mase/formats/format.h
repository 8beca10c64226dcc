// SPDX-License-Identifier: Apache-2.0
// What a number format is. A FormatRecord describes a family (integer, block_fp, mxfp, ...); given
// the values of its config keys it says which NumberType they stand for, and the Quantizer follows
// from that. A Quantizer is immutable and may be shared by any number of graphs and threads. No op
// names a format and no format names an op.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/base/tensor.h"
#include "mase/formats/number_type.h"

namespace mase {

// A number that training finds: kept with the layer's parameters, one for each group of values that
// share it (a step, the end of a range). What the number does to a tensor is the format's business.
struct LearnedNumber {
  std::string name;    // "scale": the layer's parameter is then called weight_scale
  bool whole = false;  // one for the tensor: any piece of it, in any layout, may be given below

  std::function<Shape(const Shape& tensor)> shape;
  // Its value before training, found from the data. Zero stands for "not found yet".
  std::function<void(const float* in, const Shape& tensor, float* number)> start;
  std::function<void(const float* in, const float* number, float* out, const Shape& tensor)>
      quantize;
  // The gradient by `in` is written, those by the numbers are added to.
  std::function<void(const float* in, const float* number, const float* grad_out, float* grad_in,
                     double* grad_number, const Shape& tensor)>
      gradient;
  // What the gradient by a number is multiplied with, for a group of so many values.
  std::function<double(int64_t values)> gradient_scale;
  // The number type with the number in it, for what wants to know more than rounded values.
  std::function<NumberType(const float* number, const Shape& tensor)> type;
};

struct Quantizer {
  std::string format;  // registry name
  Value config;        // validated, defaults filled in

  std::optional<NumberType> type;  // what everything below was derived from
  std::string untyped;             // without a type: why there is none

  // True if every value is rounded on its own: such a quantizer may be applied to any contiguous
  // piece of a tensor, in any layout (shape {n}), and fused into other sweeps.
  bool elementwise = false;

  // Rounds `in`, a row-major tensor of this shape, to representable values. `out` may be `in`.
  std::function<void(const float* in, float* out, const Shape& shape)> quantize;
  // Numbers per group (see NumberType) only: rounds `count` values that all belong to this group,
  // for layouts in which they lie together.
  std::function<void(const float* in, float* out, int64_t count, int64_t group)> quantize_group;
  // Stochastic formats only: draw number `draw` (a training step); `quantize` is draw 0.
  std::function<void(const float* in, float* out, const Shape& shape, uint64_t draw)>
      quantize_drawn;
  // The same by plain loops: what `quantize` is tested against.
  std::function<void(const float* in, float* out, const Shape& shape)> reference;

  // Gradient of the loss by `in`, given the one by `out`. Empty: straight-through (a copy).
  std::function<void(const float* in, const float* grad_out, float* grad_in, const Shape& shape)>
      gradient;

  // Set: training finds a number. `quantize` and the rest then work with its starting value.
  std::shared_ptr<const LearnedNumber> learned;

  // Why its lists of numbers do not fit a tensor of this shape. Empty: the type says it.
  std::function<std::optional<std::string>(const Shape& shape)> misfit;

  // Storage per value of a tensor of this shape: element bits plus the share of block overhead.
  std::function<double(const Shape& shape)> bits_per_value;

  // Integer codes, where the format has them: one per value. Scaled formats keep their scales (and
  // zero points) in `scales`, block formats their shared exponents in `exponents`, in row-major
  // order of blocks.
  struct Codes {
    std::vector<uint32_t> codes;
    std::vector<double> scales;
    std::vector<int32_t> exponents;
  };
  int code_bits = 0;  // 0: no codes
  std::function<Codes(const float* in, const Shape& shape)> encode;
  std::function<void(const Codes& codes, float* out, const Shape& shape)> decode;

  // Limits, for formats that have fixed ones.
  std::optional<double> lowest, largest, smallest_positive;

  // As the metadata's "precision" shows it: [8, 4] for a fixed-point 8/4, widths in key order.
  std::vector<int64_t> precision;
};

// The number type of a config, or why it stands for none.
using TypeOrReason = std::variant<NumberType, std::string>;

struct FormatRecord {
  static constexpr const char* kind = "format";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string class_suffix;  // "Integer": a quantised Linear prints as LinearInteger
  std::string summary;
  std::string help = {};
  Schema schema;  // keys without operand prefix: width, frac_width, ...
  // Configs are validated by `schema` already. Where `type` gives a reason, or is left out, `make`
  // brings the quantizer itself.
  std::function<TypeOrReason(const Value& config)> type = {};
  std::function<Quantizer(const Value& config)> make = {};
  std::function<std::vector<int64_t>(const Value& config)> precision = {};  // see Quantizer
  // Configs over the format's range of widths, narrowest first, fit for values up to `largest` in
  // magnitude: what `ch format sweep` tries. Empty: the default config alone.
  std::function<std::vector<Value>(double largest)> ladder = {};
};

using QuantizerPtr = std::shared_ptr<const Quantizer>;

// Validates the config (errors name `path` and the value's position) and makes the quantizer.
QuantizerPtr make_quantizer(const std::string& format, const Value& config,
                            const std::string& path = "");

// The quantizer of a number type alone. `clipped`: its gradient is zero where values saturate.
Quantizer typed_quantizer(const NumberType& type, bool clipped = false);

// What follows from a type without its rule of rounding.
void set_bits_and_limits(Quantizer& quantizer, const NumberType& type);

// Why a tensor of this shape cannot be quantised: numbers that do not fit its groups, an axis that
// it does not have. Nothing if it can be.
std::optional<std::string> misfit(const Quantizer& quantizer, const Shape& shape);

Tensor quantize(const Quantizer& quantizer, const Tensor& tensor);

}  // namespace mase
