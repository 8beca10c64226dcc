// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/lower/lower_linear.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mase {

Dyadic dyadic(double value, const std::string& place) {
  if (!std::isfinite(value))
    throw Error(place, fmt::format("{} is no finite number", value), "train without infinities");
  if (value == 0) return {};
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  int64_t mantissa = static_cast<int64_t>(std::ldexp(fraction, 53));
  int frac = 53 - exponent;
  while ((mantissa & 1) == 0) {
    mantissa /= 2;
    --frac;
  }
  return {mantissa, frac};
}

IntegerId lower_sum(IntegerBuilder& builder, const std::vector<SumTerm>& given, double bias,
                    const std::string& place, int least_frac) {
  // The binary point at which every term of the sum is whole.
  int frac = least_frac;
  std::vector<std::pair<IntegerId, Dyadic>> terms;
  terms.reserve(given.size());
  for (const SumTerm& term : given) {
    const Dyadic weight = dyadic(term.weight, place);
    const IntegerNode& x = builder.at(term.value);
    if (weight.mantissa == 0 || (x.range.low == 0 && x.range.high == 0)) continue;
    terms.emplace_back(term.value, weight);
    frac = std::max(frac, weight.frac + x.frac);
  }
  const Dyadic constant = dyadic(bias, place);
  if (constant.mantissa != 0) frac = std::max(frac, constant.frac);
  if (frac == no_least_frac) frac = 0;
  const auto scaled = [&](const Dyadic& number, int own) {
    const int up = frac - number.frac - own;
    if (up > 60 || std::abs(std::ldexp(static_cast<double>(number.mantissa), up)) > 0x1p60)
      throw Error(place, fmt::format("its sums need more than {} bits", integer_limit_bits),
                  "give the weights fewer fraction bits");
    return number.mantissa * (int64_t{1} << up);
  };
  const int64_t whole = constant.mantissa == 0 ? 0 : scaled(constant, 0);
  if (terms.empty()) return builder.constant(whole, frac);
  std::vector<IntegerId> operands;
  std::vector<int64_t> numbers = {frac, whole};
  operands.reserve(terms.size());
  numbers.reserve(terms.size() + 2);
  for (const auto& [id, weight] : terms) {
    operands.push_back(id);
    numbers.push_back(scaled(weight, builder.at(id).frac));
  }
  return terms.size() == 1 && whole == 0
             ? builder.scale(operands[0], numbers.back(), frac)
             : builder.node("linear_sum", std::move(operands), std::move(numbers));
}

std::vector<IntegerId> lower_linear(IntegerBuilder& builder, const std::vector<IntegerId>& inputs,
                                    const std::vector<std::vector<double>>& weights,
                                    const std::vector<double>& bias, const std::string& place) {
  std::vector<IntegerId> results;
  std::vector<SumTerm> terms(inputs.size());
  for (size_t o = 0; o < weights[0].size(); ++o) {
    for (size_t i = 0; i < inputs.size(); ++i) terms[i] = {inputs[i], weights[i][o]};
    results.push_back(lower_sum(builder, terms, bias.empty() ? 0 : bias[o], place));
  }
  builder.note_linear(inputs, results);
  return results;
}

}  // namespace mase
