// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/few_digits.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mase {
namespace {

// The power of two nearest to a positive number; the larger one of two.
int64_t nearest_power(int64_t number) {
  const int top = static_cast<int>(std::bit_width(static_cast<uint64_t>(number))) - 1;
  const int64_t below = int64_t{1} << top;
  return 2 * (number - below) >= below ? 2 * below : below;
}

}  // namespace

int signed_digit_count(int64_t number) {
  const uint64_t x = static_cast<uint64_t>(number < 0 ? -number : number);
  return std::popcount(x ^ 3 * x);
}

int64_t without_lowest_digit(int64_t number) {
  if (number == 0) return 0;
  const int shift = std::countr_zero(static_cast<uint64_t>(number));
  const int64_t odd = number >> shift;
  const int64_t digit = (odd & 3) == 3 ? -1 : 1;
  return (odd - digit) * (int64_t{1} << shift);
}

int64_t with_few_digits(int64_t number, int digits, int64_t low, int64_t high) {
  number = std::clamp(number, low, high);
  int64_t result = 0;
  for (int k = 0; k < digits && result != number; ++k) {
    const int64_t rest = number - result;
    int64_t step = nearest_power(rest < 0 ? -rest : rest);
    // Beyond a limit the power below is the nearest that is left.
    while (step > 0 &&
           (result + (rest < 0 ? -step : step) < low || result + (rest < 0 ? -step : step) > high))
      step /= 2;
    result += rest < 0 ? -step : step;
  }
  return result;
}

QuantizerPtr few_digits_quantizer(std::vector<FewDigits> values) {
  Quantizer result;
  result.format = "few_digits";
  result.untyped = "its digits are limited one by one";
  result.granularity = {Granularity::Kind::element};
  result.groups = static_cast<int64_t>(values.size());
  const auto limits = std::make_shared<const std::vector<FewDigits>>(std::move(values));
  result.one = [limits](const GroupRun& run, float x, uint32_t) {
    const FewDigits& limit = limits->at(static_cast<size_t>(run.group));
    const double code = std::ldexp(static_cast<double>(x), limit.frac);
    const double inside = std::isfinite(code)
                              ? std::clamp(std::nearbyint(code), static_cast<double>(limit.low),
                                           static_cast<double>(limit.high))
                              : 0;
    return static_cast<float>(
        std::ldexp(static_cast<double>(with_few_digits(static_cast<int64_t>(inside), limit.digits,
                                                       limit.low, limit.high)),
                   -limit.frac));
  };
  return std::make_shared<const Quantizer>(std::move(result));
}

}  // namespace mase
