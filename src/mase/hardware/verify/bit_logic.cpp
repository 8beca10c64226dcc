// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/bit_logic.h"

#include <algorithm>
#include <utility>

namespace mase {

LogicWord BitLogic::constant(int64_t value) const {
  LogicWord result;
  result.is_signed = value < 0;
  for (int64_t rest = value; rest != 0 && rest != -1; rest >>= 1)
    result.bits.push_back(static_cast<Decision>(rest & 1));
  if (value < 0) result.bits.push_back(DecisionDiagram::always);
  return result;
}

Decision BitLogic::sign(const LogicWord& a) const {
  return a.is_signed && !a.bits.empty() ? a.bits.back() : DecisionDiagram::never;
}

LogicWord BitLogic::extended(const LogicWord& a, size_t width) const {
  LogicWord result = a;
  result.bits.resize(width, sign(a));
  return result;
}

// A word of so many bits that all of its values have a sign.
LogicWord BitLogic::with_sign(const LogicWord& a, size_t width) const {
  LogicWord result = extended(a, width);
  result.is_signed = true;
  return result;
}

LogicWord BitLogic::sliced(const LogicWord& a, size_t from) const {
  LogicWord result{{}, a.is_signed};
  for (size_t k = from; k < a.bits.size(); ++k) result.bits.push_back(a.bits[k]);
  if (result.bits.empty() && a.is_signed) result.bits.push_back(sign(a));
  return result;
}

Decision BitLogic::any(const LogicWord& a) {
  Decision result = DecisionDiagram::never;
  for (const Decision bit : a.bits) result = diagram_.either(result, bit);
  return result;
}

Decision BitLogic::less(const LogicWord& a, const LogicWord& b) {
  const size_t width = std::max(a.bits.size(), b.bits.size()) + 1;
  LogicWord x = with_sign(a, width), y = with_sign(b, width);
  std::swap(x.bits.back(), y.bits.back());  // a sign counts the other way round
  Decision result = DecisionDiagram::never;
  for (size_t k = 0; k < width; ++k)
    result = diagram_.choose(diagram_.differ(x.bits[k], y.bits[k]), y.bits[k], result);
  return result;
}

LogicWord BitLogic::choose(Decision when, const LogicWord& a, const LogicWord& b) {
  const size_t width = std::max(a.bits.size(), b.bits.size()) + 1;
  const LogicWord x = with_sign(a, width), y = with_sign(b, width);
  LogicWord result{{}, true};
  for (size_t k = 0; k < width; ++k)
    result.bits.push_back(diagram_.choose(when, x.bits[k], y.bits[k]));
  return result;
}

LogicWord BitLogic::added(const LogicWord& a, const LogicWord& b, bool inverse) {
  const size_t width = std::max(a.bits.size(), b.bits.size()) + 2;
  const LogicWord x = with_sign(a, width), y = with_sign(b, width);
  LogicWord result{{}, true};
  Decision carry = inverse ? DecisionDiagram::always : DecisionDiagram::never;
  for (size_t k = 0; k < width; ++k) {
    const Decision other = inverse ? diagram_.inverse(y.bits[k]) : y.bits[k];
    const Decision one = diagram_.differ(x.bits[k], other);
    result.bits.push_back(diagram_.differ(one, carry));
    carry = diagram_.choose(one, carry, other);
  }
  return result;
}

LogicWord BitLogic::sum(const LogicWord& a, const LogicWord& b) { return added(a, b, false); }

LogicWord BitLogic::negated(const LogicWord& a) { return added(constant(0), a, true); }

LogicWord BitLogic::limited(const LogicWord& a, int64_t low, int64_t high) {
  const LogicWord least = constant(low), most = constant(high);
  return choose(less(a, least), least, choose(less(most, a), most, a));
}

Decision BitLogic::within(const LogicWord& a, int64_t low, int64_t high) {
  return diagram_.both(diagram_.inverse(less(a, constant(low))),
                       diagram_.inverse(less(constant(high), a)));
}

}  // namespace mase
