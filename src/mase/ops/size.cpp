// SPDX-License-Identifier: Apache-2.0
// size: how large a dimension of a tensor is. A number, known before anything runs (ir/graph.h), so
// it is never computed; as an op it exists to be named.
#include "mase/base/fields.h"
#include "mase/ops/along.h"

namespace mase::size_op {
namespace {

const Register<OpRecord> registered{{
    .name = "size",
    .mase_type = "implicit_func",
    .summary = "how large a dimension is (a method)",
    .attributes = {{integer_field("dim", "the dimension", 0)}},
    .element = ElementRule::integer,
    .infer =
        [](const Value& attributes, const std::vector<Shape>& inputs) {
          checked_dim(attributes["dim"].as_int(), inputs[0].size());
          return Shape{};
        },
    .eval =
        [](const OpCall& call) {
          const Shape& x = call.inputs[0]->shape;
          const Along along(x, call.attributes["dim"].as_int());
          return Array({}, static_cast<double>(along.size));
        },
    .grad =
        [](const OpCall& call, const Array&, const Array&) {
          return OpGradients{{Array(call.inputs[0]->shape)}};  // a number has no gradient
        },
}};

}  // namespace
}  // namespace mase::size_op
