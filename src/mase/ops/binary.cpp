// SPDX-License-Identifier: Apache-2.0
// Functions of two numbers with broadcasting, a row each. A comparison is 1 where it holds, else 0;
// nothing holds for NaN but "not equal".
#include <limits>

#include "mase/ops/elementwise.h"

namespace mase::binary_ops {
namespace {

Expr is_number(const Expr& x) {
  const double infinity = std::numeric_limits<double>::infinity();
  return max(less(x, infinity), less(-infinity, x));
}

Expr equal(const Expr& a, const Expr& b) {
  return is_number(a) * is_number(b) * (1.0 - less(a, b)) * (1.0 - less(b, a));
}

struct Binary : Register<OpRecord> {
  Binary(const std::string& name, const char* module, const char* summary, ElementRule element,
         Expr (*expr)(const Expr&, const Expr&))
      : Register(elementwise_pair({.name = name,
                                   .function = module + name,
                                   .mase_type = "builtin_func",
                                   .summary = summary,
                                   .element = element},
                                  expr)) {}
};

using E = const Expr&;
constexpr auto promoted = ElementRule::promoted, boolean = ElementRule::boolean;

const Binary registered[] = {
    {"add", "operator.", "a + b", promoted, [](E a, E b) { return a + b; }},
    {"sub", "operator.", "a - b", promoted, [](E a, E b) { return a - b; }},
    {"mul", "operator.", "a * b", promoted, [](E a, E b) { return a * b; }},
    {"maximum", "torch.", "the larger of two", promoted, max},
    {"minimum", "torch.", "the smaller of two", promoted, min},
    {"lt", "operator.", "1 where a < b, else 0", boolean, less},
    {"gt", "operator.", "1 where a > b, else 0", boolean, [](E a, E b) { return less(b, a); }},
    {"le", "operator.", "1 where a <= b, else 0", boolean,
     [](E a, E b) { return max(less(a, b), equal(a, b)); }},
    {"ge", "operator.", "1 where a >= b, else 0", boolean,
     [](E a, E b) { return max(less(b, a), equal(a, b)); }},
    {"eq", "operator.", "1 where a = b, else 0", boolean, equal},
    {"ne", "operator.", "1 where a and b differ, else 0", boolean,
     [](E a, E b) { return 1.0 - equal(a, b); }},
};
const Register<OpRecord> quotient{
    elementwise_pair({.name = "div",
                      .aliases = {"truediv"},
                      .function = "operator.truediv",
                      .mase_type = "implicit_func",
                      .summary = "a / b",
                      .element = ElementRule::real},
                     [](const Expr& a, const Expr& b) { return a / b; })};

}  // namespace
}  // namespace mase::binary_ops
