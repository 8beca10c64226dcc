// SPDX-License-Identifier: Apache-2.0
// Fixed point with a limit on the signed digits of every value: what a weight may become when it is
// trained further without needing more adders. Such formats live while a network is shrunk; its
// weights stay numbers of their own formats.
#pragma once

#include <vector>

#include "mase/formats/format.h"

namespace mase {

// Digits of a whole number in the signed form without neighbours, and the number without its lowest
// one.
int signed_digit_count(int64_t number);
int64_t without_lowest_digit(int64_t number);
// A number near this one with at most so many signed digits, within the limits (which hold 0).
int64_t with_few_digits(int64_t number, int digits, int64_t low, int64_t high);

struct FewDigits {
  int frac = 0;
  int64_t low = 0, high = 0;  // codes
  int digits = 0;
};
QuantizerPtr few_digits_quantizer(std::vector<FewDigits> values);

}  // namespace mase
