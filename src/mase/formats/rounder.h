// SPDX-License-Identifier: Apache-2.0
// How a tensor is rounded: which values belong together (a group), what a group shares (found in
// its values, or given), the rule for values of one group, and their codes. One driver walks the
// groups of a tensor, whatever the granularity, for values, codes, gradients and the plain
// reference. A form of numbers says how its rounder is made (number_type.h); a format that means no
// form of numbers brings its own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/formats/groups.h"
#include "mase/formats/number_type.h"

namespace mase {

// What the values of a group share: a step and a zero point, an exponent, a scale and a threshold.
using Shared = std::array<double, 2>;

// Values of one group that lie together.
struct GroupRun {
  int64_t group = 0;
  Shared shared = {};
  uint64_t draw = 0;   // stochastic rounding: which draw,
  uint32_t first = 0;  // and what the first of the values is numbered as
};

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

struct Rounder {
  // Groups, and for how many of them numbers are given: 1, they are for any.
  Granularity granularity = {};
  std::optional<Block> boxes = {};  // groups are its boxes instead
  int64_t groups = 1;

  // What a group shares: found in its values, by vectors and (if that differs) by plain loops; or
  // given.
  using Fit = std::function<Shared(const float* in, std::span<const Run> runs)>;
  Fit fit = {}, plain_fit = {};
  std::function<Shared(int64_t group)> given = {};

  // Rounds values of one group, `out` may be `in`; and one value, which the former is tested
  // against and may be left to. `element` is the number of the value, for what is drawn.
  std::function<void(const GroupRun& run, const float* in, float* out, size_t count)> round = {};
  std::function<float(const GroupRun& run, float x, uint32_t element)> one = {};
  bool stochastic = false;
  // All of that at once, where the groups lie as a kernel wants them; false where they do not.
  std::function<bool(const float* in, float* out, const Shape& shape)> sweep = {};

  // Integer codes, where there are some: one per value. What is shared is kept beside them, in
  // row-major order of groups.
  struct Codes {
    std::vector<uint32_t> codes;
    std::vector<double> scales;  // and zero points
    std::vector<int32_t> exponents;
  };
  int code_bits = 0;  // 0: no codes
  enum class Kept { nothing, scale, scale_and_zero, exponent };
  Kept kept = Kept::nothing;
  std::function<void(const GroupRun& run, const float* in, uint32_t* codes, size_t count)>
      to_codes = {};
  std::function<void(const GroupRun& run, const uint32_t* codes, float* out, size_t count)>
      to_values = {};
  // As `sweep`.
  std::function<bool(const float* in, const Shape& shape, Codes& codes)> code_sweep = {};
  std::function<bool(const Codes& codes, float* out, const Shape& shape)> value_sweep = {};

  // Storage: of a value, and of what a group shares.
  int width = 0;  // of one code; the widest where they differ
  double bits = 0, shared_bits = 0;
  // Limits, where they are the same for all values and known without the data; else of a group.
  std::optional<double> lowest = {}, largest = {}, smallest_positive = {};
  std::function<Limits(int64_t group)> group_limits = {};
  bool clipped = false;  // the gradient is zero outside them; else it passes through

  // True if every value is rounded on its own: any contiguous piece of a tensor, in any layout, may
  // be given (shape {n}), and rounding may be fused into other sweeps.
  bool elementwise = false;
  // Set: training finds a number. All else then works with its starting value.
  std::shared_ptr<const LearnedNumber> learned = {};

  void set_limits(const Limits& limits);
  // One rule for all values, without numbers of theirs.
  bool is_elementwise() const;

  // Rounds `in`, a row-major tensor of this shape, to representable values. `out` may be `in`.
  // Stochastic: draw number `draw` (a training step), the values numbered from `first`.
  void quantize(const float* in, float* out, const Shape& shape, uint64_t draw = 0,
                int64_t first = 0) const;
  // The same by plain loops.
  void reference(const float* in, float* out, const Shape& shape) const;
  // True if what a group shares does not depend on its values: parts of it may be rounded alone.
  bool rounds_parts() const { return !fit && !sweep_only() && !boxes; }
  // Rounds values of one group; see rounds_parts.
  void quantize_part(int64_t group, const float* in, float* out, int64_t count, uint64_t draw = 0,
                     int64_t first = 0) const;

  // Whether there is a gradient that is not simply that by `out`, and it.
  bool has_gradient() const { return clipped && (group_limits || (lowest && largest)); }
  void gradient(const float* in, const float* grad_out, float* grad_in, const Shape& shape) const;

  Codes encode(const float* in, const Shape& shape) const;
  void decode(const Codes& codes, float* out, const Shape& shape) const;

  // How many groups a tensor of this shape has.
  int64_t group_count(const Shape& shape) const;
  // Storage per value of a tensor of this shape: its code plus the share of what is shared.
  double bits_per_value(const Shape& shape) const;

 private:
  bool sweep_only() const { return sweep && !one && !round; }
};

// Why a tensor of this shape cannot be rounded: numbers that do not fit its groups, an axis that it
// does not have. Nothing if it can be.
std::optional<std::string> misfit(const Rounder& rounder, const Shape& shape);

// Codes of values that are rounded already, and back.
struct CodeLayout;
void set_codes(Rounder& rounder, const CodeLayout& layout);
void set_codes(Rounder& rounder, int bits, std::function<uint32_t(float)> code_of,
               std::function<float(uint32_t)> value_of);

}  // namespace mase
