// SPDX-License-Identifier: Apache-2.0
// Flatten: dimensions start_dim to end_dim become one.
#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"
#include "mase/ops/reshaping.h"

namespace mase::flatten_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Shape& shape = inputs[0];
  const int64_t start = checked_dim(attributes["start_dim"].as_int(), shape.size());
  const int64_t end = checked_dim(attributes["end_dim"].as_int(), shape.size());
  if (start > end) throw Error("", fmt::format("start_dim {} is after end_dim {}", start, end));
  if (shape.empty()) return {1};
  Shape middle(shape.begin() + start, shape.begin() + end + 1);
  Shape out(shape.begin(), shape.begin() + start);
  out.push_back(element_count(middle));
  out.insert(out.end(), shape.begin() + end + 1, shape.end());
  return out;
}

const Register<OpRecord> registered{{
    .name = "flatten",
    .class_name = "Flatten",
    .function = "torch.flatten",
    .mase_type = "module_related_func",
    .summary = "makes several dimensions one",
    .attributes = {{
        integer_field("start_dim", "first dimension to flatten", 1),
        integer_field("end_dim", "last dimension to flatten", -1),
    }},
    .infer = infer,
    .eval = eval_reshaping<infer>,
    .grad = grad_reshaping,
    .repr =
        [](const Value& attributes) {
          return fmt::format("start_dim={}, end_dim={}", attributes["start_dim"].as_int(),
                             attributes["end_dim"].as_int());
        },
    .lower = lower_reshaping<infer>,
}};

}  // namespace
}  // namespace mase::flatten_op
