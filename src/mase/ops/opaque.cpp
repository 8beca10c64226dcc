// SPDX-License-Identifier: Apache-2.0
// opaque: an operator of another program's file that has no op here, kept so that the network can
// be looked at, drawn and saved. It says what it was and what it gives, and cannot be run.
#include "mase/base/fields.h"
#include "mase/ir/op.h"

namespace mase::opaque_op {
namespace {

[[noreturn]] void refuse(const Value& attributes) {
  throw Error("",
              fmt::format("the operator '{}' of the file cannot be run",
                          attributes["operator"].as_string()),
              "it was kept to be looked at only (--partial)");
}

// The batch is that of the first input.
Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  Shape shape = attributes["shape"].as_int_list("shape");
  element_count(shape);
  if (attributes["batched"].as_bool())
    shape.insert(shape.begin(), inputs.empty() || inputs[0].empty() ? 1 : inputs[0][0]);
  return shape;
}

const Register<OpRecord> registered{{
    .name = "opaque",
    .function = "opaque",
    .mase_type = "builtin_func",
    .summary = "an operator of a file that cannot be run here",
    .attributes = {{text_field("operator", "its name in the file").needed(),
                    integer_field("version", "of its operator set", 1),
                    text_field("reason", "why it cannot be run", ""),
                    integer_field("output", "which of its results this is", 0),
                    list_field("shape", "of the result, without the batch", Value(List{})),
                    boolean_field("batched", "the batch stands in front", true)}},
    .min_inputs = 0,
    .max_inputs = -1,
    .infer = infer,
    .eval = [](const OpCall& call) -> Array { refuse(call.attributes); },
    .grad = [](const OpCall& call, const Array&, const Array&) -> OpGradients {
      refuse(call.attributes);
    },
    .lower = [](Lowering&, const Value& attributes, const std::vector<Slot>&) -> Slot {
      refuse(attributes);
    },
}};

}  // namespace
}  // namespace mase::opaque_op
