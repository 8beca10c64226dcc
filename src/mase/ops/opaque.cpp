// SPDX-License-Identifier: Apache-2.0
// opaque: an operator of another program's file that has no op here, kept so that the network can
// be looked at, drawn and saved. It says what it was and what it gives, and cannot be run.
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
    .attributes = {{{.name = "operator",
                     .type = FieldType::text,
                     .help = "its name in the file",
                     .required = true},
                    {.name = "version",
                     .type = FieldType::integer,
                     .default_value = 1,
                     .help = "of its operator set"},
                    {.name = "reason",
                     .type = FieldType::text,
                     .default_value = "",
                     .help = "why it cannot be run"},
                    {.name = "output",
                     .type = FieldType::integer,
                     .default_value = 0,
                     .help = "which of its results this is"},
                    {.name = "shape",
                     .type = FieldType::list,
                     .default_value = Value(List{}),
                     .help = "of the result, without the batch"},
                    {.name = "batched",
                     .type = FieldType::boolean,
                     .default_value = true,
                     .help = "the batch stands in front"}}},
    .min_inputs = 0,
    .max_inputs = -1,
    .infer = infer,
    .eval = [](const OpCall& call) -> Array { refuse(call.attributes); },
    .grad = [](const OpCall& call, const Array&, const Array&) -> OpGradients {
      refuse(call.attributes);
    },
    .cost = [](const Value&, const std::vector<Shape>&, const Shape&) { return OpCost{}; },
    .lower = [](Lowering&, const Value& attributes, const std::vector<Slot>&) -> Slot {
      refuse(attributes);
    },
}};

}  // namespace
}  // namespace mase::opaque_op
