// SPDX-License-Identifier: Apache-2.0
// Element-wise ops from one scalar expression: shape inference with broadcasting, reference value,
// gradient (symbolic derivative), cost and lowering all follow from it. An activation's file is
// then its expression and its printed form.
#pragma once

#include <functional>
#include <string>

#include "mase/ir/op.h"

namespace mase {

using ExprOf = std::function<Expr(const Value& attributes)>;

// Fills in infer, eval, grad, cost and lower of an op of one input.
OpRecord elementwise(OpRecord record, ExprOf expr);

// The same for an op of two inputs, either of which may be a number: `other` stands for the second
// (x + 1), `input` for the first (1 - x).
OpRecord elementwise_pair(OpRecord record, const std::function<Expr(Expr, Expr)>& expr);

// An activation module: operands data_in and data_out, one FLOP per element.
OpRecord activation(OpRecord record, ExprOf expr);

Field inplace_field();
std::string inplace_repr(const Value& attributes);  // "inplace=True" or ""

// The shape of both together; an Error where they do not fit.
Shape broadcast(const Shape& a, const Shape& b);
// Sums what was broadcast, so that the gradient has the operand's own shape.
Array sum_to_shape(const Array& array, const Shape& shape);

}  // namespace mase
