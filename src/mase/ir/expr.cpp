// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/expr.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "mase/base/error.h"

namespace mase {
double scalar_result(ScalarOp op, double a, double b, double c) {
  switch (op) {
    case ScalarOp::add:
      return a + b;
    case ScalarOp::sub:
      return a - b;
    case ScalarOp::mul:
      return a * b;
    case ScalarOp::div:
      return a / b;
    // As PyTorch: a NaN on either side wins.
    case ScalarOp::min:
      return std::isnan(a) || std::isnan(b) ? NAN : (b < a ? b : a);
    case ScalarOp::max:
      return std::isnan(a) || std::isnan(b) ? NAN : (a < b ? b : a);
    case ScalarOp::neg:
      return -a;
    case ScalarOp::abs:
      return std::abs(a);
    case ScalarOp::sqrt:
      return std::sqrt(a);
    case ScalarOp::exp:
      return std::exp(a);
    case ScalarOp::log:
      return std::log(a);
    case ScalarOp::tanh:
      return std::tanh(a);
    case ScalarOp::sigmoid:
      return 1.0 / (1.0 + std::exp(-a));
    case ScalarOp::erf:
      return std::erf(a);
    case ScalarOp::softplus:
      return std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a)));
    case ScalarOp::sin:
      return std::sin(a);
    case ScalarOp::cos:
      return std::cos(a);
    case ScalarOp::floor:
      return std::floor(a);
    case ScalarOp::round:
      return std::nearbyint(a);
    case ScalarOp::less:
      return a < b ? 1.0 : 0.0;
    case ScalarOp::select:
      return a != 0 ? b : c;
    case ScalarOp::operand:
    case ScalarOp::constant:
      break;
  }
  MASE_CHECK(false, "leaf has no value of its own");
}

Expr::Expr(double constant)
    : node_(std::make_shared<Node>(Node{ScalarOp::constant, constant, 0, {}})) {}

Expr Expr::operand(int index) {
  return Expr(std::make_shared<Node>(Node{ScalarOp::operand, 0, index, {}}));
}

Expr Expr::make(ScalarOp op, std::vector<Expr> inputs) {
  const bool constant = std::all_of(inputs.begin(), inputs.end(), [](const Expr& input) {
    return input.node().op == ScalarOp::constant;
  });
  if (constant && !inputs.empty()) {
    const auto value = [&](size_t i) {
      return i < inputs.size() ? inputs[i].node().constant : 0.0;
    };
    return Expr(scalar_result(op, value(0), value(1), value(2)));
  }
  return Expr(std::make_shared<Node>(Node{op, 0, 0, std::move(inputs)}));
}

bool Expr::is_constant(double value) const {
  return node_->op == ScalarOp::constant && node_->constant == value;
}

int Expr::operand_count() const {
  if (node_->op == ScalarOp::operand) return node_->operand + 1;
  int count = 0;
  for (const Expr& input : node_->inputs) count = std::max(count, input.operand_count());
  return count;
}

int Expr::size() const {
  int size = 1;
  for (const Expr& input : node_->inputs) size += input.size();
  return size;
}

double Expr::evaluate(const std::vector<double>& operands) const {
  if (node_->op == ScalarOp::constant) return node_->constant;
  if (node_->op == ScalarOp::operand) return operands.at(static_cast<size_t>(node_->operand));
  double inputs[3] = {0, 0, 0};
  for (size_t i = 0; i < node_->inputs.size(); ++i) inputs[i] = node_->inputs[i].evaluate(operands);
  return scalar_result(node_->op, inputs[0], inputs[1], inputs[2]);
}

Expr Expr::substitute(const std::vector<Expr>& operands) const {
  if (node_->op == ScalarOp::constant) return *this;
  if (node_->op == ScalarOp::operand) return operands.at(static_cast<size_t>(node_->operand));
  std::vector<Expr> inputs;
  for (const Expr& input : node_->inputs) inputs.push_back(input.substitute(operands));
  return make(node_->op, std::move(inputs));
}

Expr Expr::derivative(int wanted) const {
  const std::vector<Expr>& in = node_->inputs;
  const auto d = [&](size_t i) { return in[i].derivative(wanted); };
  switch (node_->op) {
    case ScalarOp::constant:
      return 0.0;
    case ScalarOp::operand:
      return node_->operand == wanted ? 1.0 : 0.0;
    case ScalarOp::add:
      return d(0) + d(1);
    case ScalarOp::sub:
      return d(0) - d(1);
    case ScalarOp::mul:
      return d(0) * in[1] + in[0] * d(1);
    case ScalarOp::div:
      return d(0) / in[1] - *this / in[1] * d(1);
    // At a tie the first operand takes the gradient of max only if it is strictly larger, so that
    // relu = max(x, 0) has derivative 0 at 0, as PyTorch's.
    case ScalarOp::max:
      return select(less(in[1], in[0]), d(0), d(1));
    case ScalarOp::min:
      return select(less(in[0], in[1]), d(0), d(1));
    case ScalarOp::neg:
      return 0.0 - d(0);  // not -0 where d(0) is 0
    case ScalarOp::abs:
      return (less(0.0, in[0]) - less(in[0], 0.0)) * d(0);
    case ScalarOp::sqrt:
      return d(0) * 0.5 / *this;
    case ScalarOp::exp:
      return *this * d(0);
    case ScalarOp::log:
      return d(0) / in[0];
    case ScalarOp::tanh:
      return (1.0 - *this * *this) * d(0);
    case ScalarOp::sigmoid:
      return *this * (1.0 - *this) * d(0);
    case ScalarOp::erf:
      return 2.0 * std::numbers::inv_sqrtpi * exp(-(in[0] * in[0])) * d(0);
    case ScalarOp::softplus:
      return sigmoid(in[0]) * d(0);
    case ScalarOp::sin:
      return cos(in[0]) * d(0);
    case ScalarOp::cos:
      return -sin(in[0]) * d(0);
    // As PyTorch: 0 at the steps too.
    case ScalarOp::floor:
    case ScalarOp::round:
    case ScalarOp::less:
      return 0.0;
    case ScalarOp::select:
      return select(in[0], d(1), d(2));
  }
  MASE_CHECK(false, "no derivative");
}

Expr operator+(const Expr& a, const Expr& b) {
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  return Expr::make(ScalarOp::add, {a, b});
}
Expr operator-(const Expr& a, const Expr& b) {
  if (b.is_constant(0)) return a;
  if (a.is_constant(0)) return -b;
  return Expr::make(ScalarOp::sub, {a, b});
}
Expr operator*(const Expr& a, const Expr& b) {
  // 0 * x is 0 here even where x may be infinite: these zeros come from derivatives of constants.
  if (a.is_constant(0) || b.is_constant(0)) return 0.0;
  if (a.is_constant(1)) return b;
  if (b.is_constant(1)) return a;
  return Expr::make(ScalarOp::mul, {a, b});
}
Expr operator/(const Expr& a, const Expr& b) {
  if (a.is_constant(0)) return 0.0;
  if (b.is_constant(1)) return a;
  return Expr::make(ScalarOp::div, {a, b});
}
Expr operator-(const Expr& a) { return Expr::make(ScalarOp::neg, {a}); }
Expr min(const Expr& a, const Expr& b) { return Expr::make(ScalarOp::min, {a, b}); }
Expr max(const Expr& a, const Expr& b) { return Expr::make(ScalarOp::max, {a, b}); }
Expr abs(const Expr& a) { return Expr::make(ScalarOp::abs, {a}); }
Expr sqrt(const Expr& a) { return Expr::make(ScalarOp::sqrt, {a}); }
Expr exp(const Expr& a) { return Expr::make(ScalarOp::exp, {a}); }
Expr log(const Expr& a) { return Expr::make(ScalarOp::log, {a}); }
Expr tanh(const Expr& a) { return Expr::make(ScalarOp::tanh, {a}); }
Expr sigmoid(const Expr& a) { return Expr::make(ScalarOp::sigmoid, {a}); }
Expr erf(const Expr& a) { return Expr::make(ScalarOp::erf, {a}); }
Expr softplus(const Expr& a) { return Expr::make(ScalarOp::softplus, {a}); }
Expr sin(const Expr& a) { return Expr::make(ScalarOp::sin, {a}); }
Expr cos(const Expr& a) { return Expr::make(ScalarOp::cos, {a}); }
Expr floor(const Expr& a) { return Expr::make(ScalarOp::floor, {a}); }
Expr round(const Expr& a) { return Expr::make(ScalarOp::round, {a}); }
Expr less(const Expr& a, const Expr& b) { return Expr::make(ScalarOp::less, {a, b}); }
Expr select(const Expr& condition, const Expr& then, const Expr& otherwise) {
  if (condition.node().op == ScalarOp::constant)
    return condition.node().constant != 0 ? then : otherwise;
  if (then.node().op == ScalarOp::constant && otherwise.is_constant(then.node().constant))
    return then;
  return Expr::make(ScalarOp::select, {condition, then, otherwise});
}

}  // namespace mase
