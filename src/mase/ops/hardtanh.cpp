// SPDX-License-Identifier: Apache-2.0
// Hardtanh: x clamped to [min_val, max_val].
#include "mase/base/fields.h"
#include "mase/ops/elementwise.h"

namespace mase::hardtanh_op {
namespace {

Expr expr(const Value& attributes) {
  return min(max(Expr::operand(0), attributes["min_val"].as_double()),
             attributes["max_val"].as_double());
}

std::string repr(const Value& attributes) {
  return fmt::format("min_val={}, max_val={}{}", python_repr(attributes["min_val"]),
                     python_repr(attributes["max_val"]),
                     attributes["inplace"].as_bool() ? ", inplace=True" : "");
}

const Register<OpRecord> registered{
    activation({.name = "hardtanh",
                .class_name = "Hardtanh",
                .function = "torch.nn.functional.hardtanh",
                .summary = "x clamped to [min_val, max_val]",
                .attributes = {{number_field("min_val", "least result", -1.0),
                                number_field("max_val", "largest result", 1.0), inplace_field()}},
                .repr = repr},
               expr)};

}  // namespace
}  // namespace mase::hardtanh_op
