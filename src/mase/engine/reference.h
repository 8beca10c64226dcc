// SPDX-License-Identifier: Apache-2.0
// What the plain loops of primitives share: indices of row-major arrays.
#pragma once

#include <span>

#include "mase/engine/primitive.h"

namespace mase::engine {

// Calls visit(index) for every index of a shape, the last dimension fastest.
template <class Visit>
void each_index(const Shape& shape, const Visit& visit) {
  Shape index(shape.size(), 0);
  for (int64_t left = element_count(shape); left > 0; --left) {
    visit(static_cast<const Shape&>(index));
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

// The value of an operand that is broadcast to this index: dimensions of size 1 are repeated, those
// it does not have are left out.
double& value_at(Array& array, const Shape& index);
double value_at(const Array& array, const Shape& index);

// The dimension that stands at a place among the rows.
size_t dimension_of(const TensorInfo& info, int place);

// The operands of a primitive as they are in memory.
Reference read_operands(const Plan& plan, const Primitive& primitive, const Memory& memory,
                        const Run& run);
Array read_tensor(const Plan& plan, int tensor, const Memory& memory, const Run& run);

// What a primitive means: its record's plain loops, then the stages behind it.
void run_reference(Reference& call);
// The same of primitives that were joined to one, each taking the result of the one before.
void run_parts(Reference& call, std::span<const Primitive> parts);

// For primitives that are an op: its own code, on the operands, weight and bias, is the plain form.
void run_op(Reference& call, const std::string& op, const Value& attributes);
// The gradient of its first input, from these inputs, the result and the gradient of that.
void run_op_gradient(Reference& call, const std::string& op, const Value& attributes,
                     std::vector<const Array*> inputs, const Array& result, const Array& gradient);

// The plain loops as a step.
Step reference_step(Plan& plan, Primitive& primitive);

}  // namespace mase::engine
