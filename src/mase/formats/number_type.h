// SPDX-License-Identifier: Apache-2.0
// What numbers a tensor may hold, as data. A format turns its config into a NumberType; kernels,
// codes, bits, limits, costs, calibration, the hardware's integers and the grids on pages are
// derived from it, so none of them needs to know a format's name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/formats/groups.h"
#include "mase/formats/rounding.h"

namespace mase {

struct Rounder;  // rounder.h: what every form below is turned into

enum class Overflow {
  saturate,  // the nearest end of the range
  wrap,      // the low bits of the code, as hardware drops them
  infinity,  // floats that have one
};

// What the topmost codes of a float mean.
enum class Specials {
  none,  // all codes are numbers
  nan,   // all ones is NaN (OCP E4M3)
  ieee,  // the all-ones exponent is infinity (fraction 0) and NaN
};

// k * 2^-frac for whole k: two's complement, or plain binary when unsigned. In the notation of
// (k)eep sign, (i)nteger and (f)raction bits: k = is_signed, i = width - k - frac, f = frac.
struct Fixed {
  bool is_signed = true;
  int width = 8;  // with the sign; 0: the constant 0
  int frac = 4;   // may be negative or above the width
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = Overflow::saturate;
  bool narrow = false;          // without the lowest number of two's complement
  bool sign_magnitude = false;  // the codes are; implies narrow
  uint64_t seed = 0;            // of stochastic rounding
  // One per group where the granularity is finer than the tensor (see NumberType); empty: all
  // alike. `width` and `frac` are then the largest ones, `is_signed` is whether any is.
  std::vector<int> widths = {}, fracs = {}, signs = {};

  Rounder rounder(const Granularity& granularity) const;
  std::string text() const;
  bool operator==(const Fixed&) const = default;
};

// Sign, exponent field, fraction: (1 + fraction / 2^mantissa) * 2^(field - bias), subnormals with
// field 0. Without a hidden bit: k / 2^mantissa * 2^(field - bias), k < 2^mantissa.
struct Float {
  int exponent = 4, mantissa = 3, bias = 7;  // bits, bits, subtracted from the field
  Specials specials = Specials::none;
  bool hidden_bit = true;
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = Overflow::saturate;  // or infinity

  int width() const { return 1 + exponent + mantissa; }
  Rounder rounder(const Granularity& granularity) const;
  std::string text() const;
  bool operator==(const Float&) const = default;
};

// +-2^(field - bias), the nearest one.
struct Log {
  enum class Zero {
    least_negative,  // the code of -2^-bias is zero
    lowest_field,    // the lowest exponent field is, with both signs
  };
  int width = 8;  // sign and exponent field
  int bias = 63;
  Zero zero = Zero::least_negative;

  Rounder rounder(const Granularity& granularity) const;
  std::string text() const;
  bool operator==(const Log&) const = default;
};

// (k - zero) * step for whole k, step and zero real.
struct Scaled {
  enum class Source {
    data,           // the step covers the values of its group, each time anew
    learned_scale,  // a parameter of the layer: the step (LSQ)
    learned_clip,   // a parameter of the layer: the end of the range (PACT)
    given,          // steps and zeros below
  };
  bool is_signed = true;
  int width = 8;
  bool narrow = true;   // without the lowest number of two's complement
  bool affine = false;  // with a zero point
  Source source = Source::data;
  // One each, or one per group; zeros empty: 0.
  std::vector<double> steps = {}, zeros = {};

  // How k is found; all but `exact` are for given steps.
  enum class Arithmetic {
    exact,       // the nearest one, decided in double precision
    zero_first,  // round(clamp(x / step + zero)) in single precision, as QONNX does
    zero_last,   // clamp(round(x / step) + zero), as ONNX does
    truncate,    // round(clamp(nearest(x / dropped_step + dropped_zero) / divisor)): QONNX's Trunc
  };
  Arithmetic arithmetic = Arithmetic::exact;
  Rounding rounding = Rounding::nearest_even;  // of all but `exact`
  double dropped_step = 1, dropped_zero = 0, divisor = 1;
  bool clamped = true;  // only `truncate` may be without a range

  Rounder rounder(const Granularity& granularity) const;
  std::string text() const;
  bool operator==(const Scaled&) const = default;
};

// A small float times a given scale, by the arithmetic of QONNX's FloatQuant: x / scale is rounded
// to the step of its own exponent, 2^max(floor(log2 |x|) - mantissa, 1 - bias - mantissa).
struct ScaledFloat {
  int exponent = 4, mantissa = 3;  // bits
  double bias = 7, largest = 480;  // before scaling
  bool saturates = true;
  bool has_infinity = false;  // without saturation: what is beyond becomes infinite; else NaN
  Rounding rounding = Rounding::nearest_even;
  std::vector<double> scales = {1};  // one, or one per group

  Rounder rounder(const Granularity& granularity) const;
  std::string text() const;
  bool operator==(const ScaledFloat&) const = default;
};

// element * 2^E, one E per block: F less the exponent of the largest element, clamped, where F is
// the exponent of the block's largest finite magnitude.
struct Block {
  std::variant<Fixed, Float, Log> element;
  int scale_bits = 8;            // of E as it is stored
  int least = -127, most = 127;  // of E
  bool carry = false;            // F is taken after rounding to the element's precision
  // The form of a block: `size` entries per dimension, right-aligned, -1 the whole dimension,
  // `skip_first_dim` for a batch in front; or so many along `axis`.
  std::vector<int64_t> size = {32};
  bool skip_first_dim = true;
  std::optional<int64_t> axis = {};

  Rounder rounder(const Granularity& granularity) const;
  std::string text() const;
  bool operator==(const Block&) const = default;
};

// Two values. Plain: -1 and +1. Scaled: minus and plus the mean magnitude of a group; one-sided: 0
// and the mean.
struct Binary {
  bool scaled = false, one_sided = false;

  Rounder rounder(const Granularity& granularity) const;
  std::string text() const;
  bool operator==(const Binary&) const = default;
};

// -1, 0 and +1, times the mean magnitude of those that are not zeroed if scaled. Zeroed are values
// up to the threshold: given, or 0.75 of the group's mean magnitude.
struct Ternary {
  bool scaled = false;
  std::optional<float> threshold = {};

  Rounder rounder(const Granularity& granularity) const;
  std::string text() const;
  bool operator==(const Ternary&) const = default;
};

struct NumberType {
  using Form = std::variant<Fixed, Float, Log, Scaled, ScaledFloat, Block, Binary, Ternary>;
  Form form;
  // What shares the numbers of a form (widths, steps, scales). Binary and Ternary take one scale
  // per entry of dimension 0, blocks have their own form.
  Granularity granularity = {};

  Rounder rounder() const;

  bool operator==(const NumberType&) const = default;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&form);
  }
};

// The Fixed of one group, without the vectors.
Fixed fixed_at(const Fixed& type, int64_t group);
// How many groups the vectors have; 1 without any.
int64_t group_count(const Fixed& type);
// The fixed-point numbers that hold all numbers of this type: steps that are powers of two without
// zero points. `same_rule`: values are rounded to them as by that type, too.
std::optional<Fixed> as_fixed(const NumberType& type, bool same_rule);
// The range of k.
double lowest_code(const Fixed& type);
double largest_code(const Fixed& type);

// True if one rule rounds every value on its own, wherever it stands.
bool is_elementwise(const NumberType& type);
// Storage per value of a tensor of this shape: the code plus the share of what is shared.
double bits_per_value(const NumberType& type, const Shape& shape);
// Bits of one code; the widest where they differ.
int code_width(const NumberType& type);

// The ends of the range and the smallest number above zero, where they are the same for all values
// and known without the data.
struct Limits {
  double lowest = 0, largest = 0, smallest_positive = 0;
};
std::optional<Limits> limits_of(const NumberType& type);

// "signed fixed 8/4, nearest_even, saturate".
std::string type_text(const NumberType& type);
const char* overflow_name(Overflow overflow);  // "saturate"

}  // namespace mase
