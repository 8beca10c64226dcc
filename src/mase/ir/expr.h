// SPDX-License-Identifier: Apache-2.0
// Scalar expressions: what an element-wise op computes, written once. From the same expression come
// the oracle's value, its derivative (by symbolic differentiation) and the engine's vector sweep.
//
//   const Expr x = Expr::operand(0);
//   const Expr silu = x * sigmoid(x);
#pragma once

#include <memory>
#include <vector>

namespace mase {

// A closed set: each has a scalar meaning, a derivative and a vector kernel.
enum class ScalarOp {
  operand,
  constant,
  add,
  sub,
  mul,
  div,
  min,
  max,
  neg,
  abs,
  sqrt,
  exp,
  log,
  tanh,
  sigmoid,
  erf,
  softplus,  // softplus(x) = log(1 + exp(x)), stable
  sin,
  cos,
  floor,
  round,   // halves to the even number
  less,    // a < b ? 1 : 0
  select,  // a != 0 ? b : c
};

class Expr {
 public:
  struct Node;
  using NodePtr = std::shared_ptr<const Node>;

  Expr(double constant);
  static Expr operand(int index);
  static Expr make(ScalarOp op, std::vector<Expr> inputs);

  const Node& node() const { return *node_; }
  const NodePtr& pointer() const { return node_; }
  int operand_count() const;  // largest operand index + 1
  int size() const;           // nodes, shared ones counted each time

  double evaluate(const std::vector<double>& operands) const;
  Expr derivative(int operand) const;                        // simplified
  Expr substitute(const std::vector<Expr>& operands) const;  // operands replaced by expressions
  bool is_constant(double value) const;

 private:
  explicit Expr(NodePtr node) : node_(std::move(node)) {}
  NodePtr node_;
};

struct Expr::Node {
  ScalarOp op;
  double constant = 0;
  int operand = 0;
  std::vector<Expr> inputs;
};

// Building these simplifies constants, x + 0, x * 1 and x * 0.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr abs(const Expr& a);
Expr sqrt(const Expr& a);
Expr exp(const Expr& a);
Expr log(const Expr& a);
Expr tanh(const Expr& a);
Expr sigmoid(const Expr& a);
Expr erf(const Expr& a);
Expr softplus(const Expr& a);
Expr sin(const Expr& a);
Expr cos(const Expr& a);
Expr floor(const Expr& a);
Expr round(const Expr& a);
Expr less(const Expr& a, const Expr& b);
Expr select(const Expr& condition, const Expr& then, const Expr& otherwise);

}  // namespace mase
