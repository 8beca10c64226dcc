// SPDX-License-Identifier: Apache-2.0
// unsqueeze: a new dimension of size 1.
#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"
#include "mase/ops/reshaping.h"

namespace mase::unsqueeze_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  Shape shape = inputs[0];
  const int64_t dim = checked_dim(attributes["dim"].as_int(), shape.size() + 1);
  shape.insert(shape.begin() + dim, 1);
  return shape;
}

const Register<OpRecord> registered{{
    .name = "unsqueeze",
    .function = "torch.unsqueeze",
    .mase_type = "implicit_func",
    .summary = "a new dimension of size 1",
    .attributes = {{integer_field("dim", "where the new one stands", 0)}},
    .infer = infer,
    .eval = eval_reshaping<infer>,
    .grad = grad_reshaping,
    .lower = lower_reshaping<infer>,
}};

}  // namespace
}  // namespace mase::unsqueeze_op
