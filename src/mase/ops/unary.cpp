// SPDX-License-Identifier: Apache-2.0
// Functions of one number, a row each: torch's function of that name.
#include "mase/ops/elementwise.h"

namespace mase::unary_ops {
namespace {

struct Unary : Register<OpRecord> {
  Unary(const std::string& name, const char* summary, ElementRule element,
        Expr (*expr)(const Expr&))
      : Register(elementwise({.name = name,
                              .function = "torch." + name,
                              .mase_type = "builtin_func",
                              .summary = summary,
                              .element = element},
                             [expr](const Value&) { return expr(Expr::operand(0)); })) {}
};

constexpr auto promoted = ElementRule::promoted, real = ElementRule::real;

const Unary registered[] = {
    {"abs", "absolute value", promoted, abs},
    {"ceil", "the whole number at or above", promoted, [](const Expr& x) { return -floor(-x); }},
    {"cos", "the cosine", real, cos},
    {"erf", "error function", real, erf},
    {"exp", "e to the power of x", real, exp},
    {"floor", "the whole number at or below", promoted, floor},
    {"log", "natural logarithm", real, log},
    {"round", "the nearest whole number, halves to the even one", promoted, round},
    {"rsqrt", "1 over the square root", real, [](const Expr& x) { return 1.0 / sqrt(x); }},
    // 0 for NaN, as PyTorch
    {"sign", "-1, 0 or 1", promoted, [](const Expr& x) { return less(0.0, x) - less(x, 0.0); }},
    {"sin", "the sine", real, sin},
    {"sqrt", "square root", real, sqrt},
    {"square", "x times x", promoted, [](const Expr& x) { return x * x; }},
    {"trunc", "the whole number towards zero", promoted,
     [](const Expr& x) { return select(less(x, 0.0), -floor(-x), floor(x)); }},
};
const Register<OpRecord> negative{elementwise(
    {.name = "neg", .function = "operator.neg", .mase_type = "implicit_func", .summary = "-x"},
    [](const Value&) { return -Expr::operand(0); })};

}  // namespace
}  // namespace mase::unary_ops
