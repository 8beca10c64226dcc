// SPDX-License-Identifier: Apache-2.0
// max and min: over all values one number; along a dimension two results, the values and where they
// stand (the first of equal ones). NaN is larger and smaller than anything, as PyTorch has it.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/ops/along.h"

namespace mase::extremum_ops {
namespace {

// Without a dimension, all values stand along one.
Along line_of(const Value& attributes, const Shape& x) {
  const bool all = attributes["dim"].is_null();
  const Along along(all ? Shape{element_count(x)} : x, all ? 0 : attributes["dim"].as_int());
  if (along.size == 0)
    throw Error("", "no values to compare", "take a dimension that is not empty");
  return along;
}

Shape infer_extremum(const Value& attributes, const std::vector<Shape>& inputs) {
  const Along along = line_of(attributes, inputs[0]);
  if (attributes["dim"].is_null()) {
    checked_result(attributes, 1);
    return {};
  }
  checked_result(attributes, 2);
  return reduced_shape(inputs[0], along.dim, attributes["keepdim"].as_bool());
}

// Where along the dimension the extreme value stands, `size` values `stride` apart.
size_t extreme_place(const double* values, size_t size, size_t stride, bool largest) {
  size_t best = 0;
  for (size_t k = 1; k < size && !std::isnan(values[best * stride]); ++k) {
    const double value = values[k * stride], so_far = values[best * stride];
    if ((largest ? value > so_far : value < so_far) || std::isnan(value)) best = k;
  }
  return best;
}

// visit(place of the extreme value in x, its index along the dimension, place in the result)
template <class Visit>
void each_extremum(const OpCall& call, bool largest, const Visit& visit) {
  const Array& x = *call.inputs[0];
  const Along along = line_of(call.attributes, x.shape);
  for (size_t o = 0; o < along.outer; ++o)
    for (size_t i = 0; i < along.inner; ++i) {
      const size_t first = along.place(o, 0, i);
      const size_t k = extreme_place(x.data.data() + first, along.size, along.inner, largest);
      visit(first + k * along.inner, k, o * along.inner + i);
    }
}

Slot lower_extremum(Lowering& lowering, const Value& attributes, Slot x, bool largest) {
  const Shape shape = lowering.shape(x);
  const size_t rank = shape.size();
  if (rank == 0) return -1;
  std::vector<int64_t> dims;
  if (attributes["dim"].is_null())
    for (size_t i = 0; i < rank; ++i) dims.push_back(static_cast<int64_t>(i));
  else
    dims = {checked_dim(attributes["dim"].as_int(), rank)};
  const bool keep = attributes["keepdim"].as_bool();
  const Slot turned = largest ? x : lowering.map(-Expr::operand(0), {x});
  if (!attributes["dim"].is_null() && checked_result(attributes, 2) == 1)
    return lowering.reshape(lowering.primitive("argmax", Dict{{"dim", dims[0]}}, {turned}),
                            reduced_shape(shape, static_cast<size_t>(dims[0]), keep));
  const Slot most = lowering.reduce(ReduceKind::max, turned, dims, keep);
  return largest ? most : lowering.map(-Expr::operand(0), {most});
}

OpRecord extremum(OpRecord record, bool largest) {
  record.mase_type = "builtin_func";
  record.attributes = {{integer_field("dim", "the dimension; all if not given"),
                        boolean_field("keepdim", "keep the dimension with size 1", false),
                        result_field()}};
  record.results =
      ResultsInfo{.count = [](const Value&, const std::vector<Shape>&) { return int64_t{2}; },
                  .several = [](const Value& attributes) { return !attributes["dim"].is_null(); },
                  .elements = {ElementRule::promoted, ElementRule::integer}};
  record.infer = infer_extremum;
  record.eval = [largest](const OpCall& call) {
    const Array& x = *call.inputs[0];
    Array y(infer_extremum(call.attributes, {x.shape}));
    const bool where = call.attributes["result"].as_int() % 2 != 0;
    each_extremum(call, largest, [&](size_t from, size_t k, size_t to) {
      y.data[to] = where ? static_cast<double>(k) : x.data[from];
    });
    return y;
  };
  record.grad = [largest](const OpCall& call, const Array& y, const Array& g) {
    const Array& x = *call.inputs[0];
    OpGradients result;
    result.inputs.emplace_back(x.shape);
    Array& gx = result.inputs[0];
    if (call.attributes["result"].as_int() % 2 != 0) return result;  // a place has no gradient
    if (!call.attributes["dim"].is_null()) {
      each_extremum(call, largest,
                    [&](size_t to, size_t, size_t from) { gx.data[to] += g.data[from]; });
      return result;
    }
    // Over all values, equal ones share it.
    double equal = 0;
    for (const double value : x.data) equal += value == y.data[0];
    for (size_t i = 0; i < x.data.size(); ++i)
      if (x.data[i] == y.data[0]) gx.data[i] = g.data[0] / equal;
    return result;
  };
  record.cost = [](const Value&, const std::vector<Shape>& inputs, const Shape&) {
    return OpCost{0, element_count(inputs[0])};
  };
  record.lower = [largest](Lowering& lowering, const Value& attributes,
                           const std::vector<Slot>& inputs) {
    return lower_extremum(lowering, attributes, inputs[0], largest);
  };
  return record;
}

const Register<OpRecord> largest{extremum(
    {.name = "max", .function = "torch.max", .summary = "the largest value, and where it stands"},
    true)};
const Register<OpRecord> smallest{extremum(
    {.name = "min", .function = "torch.min", .summary = "the smallest value, and where it stands"},
    false)};

}  // namespace
}  // namespace mase::extremum_ops
