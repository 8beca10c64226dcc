// SPDX-License-Identifier: Apache-2.0
// squeeze: without dimensions of size 1.
#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"
#include "mase/ops/reshaping.h"

namespace mase::squeeze_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  Shape shape = inputs[0];
  if (attributes["dim"].is_null()) {
    std::erase(shape, 1);
    return shape;
  }
  const auto dim = checked_dim(attributes["dim"].as_int(), shape.size());
  if (!shape.empty() && shape[static_cast<size_t>(dim)] == 1) shape.erase(shape.begin() + dim);
  return shape;
}

const Register<OpRecord> registered{{
    .name = "squeeze",
    .function = "torch.squeeze",
    .mase_type = "implicit_func",
    .summary = "without dimensions of size 1",
    .attributes = {{integer_field("dim", "the dimension; all of size 1 if not given")}},
    .infer = infer,
    .eval = eval_reshaping<infer>,
    .grad = grad_reshaping,
    .lower = lower_reshaping<infer>,
}};

}  // namespace
}  // namespace mase::squeeze_op
