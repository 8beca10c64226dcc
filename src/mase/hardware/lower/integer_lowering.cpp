// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/lower/integer_lowering.h"

#include <algorithm>
#include <cmath>

#include "mase/formats/format.h"
#include "mase/hardware/lower/lower_linear.h"
#include "mase/hardware/lower/lower_rounding.h"
#include "mase/hardware/lower/lowering_probe.h"
#include "mase/hardware/lower/one_number.h"
#include "mase/hardware/lower/quantizer_format.h"

namespace mase {
namespace {

// The op's own reference and the format's own rounding, code by code.
std::vector<IntegerId> by_table(const IntegerCall& call) {
  const BoundCall& bound = call.call;
  if (call.inputs.size() != 1 || !is_function_of_one_number(*bound.op, bound.attributes))
    call.refuse(
        fmt::format("'{}' has no integer form", bound.op->name),
        fmt::format(
            "hardware has {}, what moves values, and functions of one number whose result is "
            "rounded; see docs/reference/limits.md",
            join(Registry<IntegerLowering>::instance().names(), ", ")));
  const QuantizerPtr out = call.format("data_out");
  if (!out || !is_function_of_value(*out))
    call.refuse(fmt::format("the result of '{}' is not rounded to a number format", bound.op->name),
                "give data_out_width in its quantisation");
  const auto function = [&](std::vector<float> values) {
    Array in({static_cast<int64_t>(values.size()), 1});
    std::copy(values.begin(), values.end(), in.data.begin());
    const Array result = bound.op->eval(OpCall{bound.attributes, {&in}});
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(result.data[i]);
    out->quantize(values.data(), values.data(), {static_cast<int64_t>(values.size())});
    return values;
  };
  return call.each([&](IntegerId feature) {
    return lower_table(call.builder, feature, function, call.node.name);
  });
}

// Knows what only moves values.
class MovesOnly final : public LoweringProbe {
 public:
  explicit MovesOnly(std::vector<Shape> shapes) : shapes_(std::move(shapes)) {}
  Shape shape(Slot slot) const override {
    return slot < 0 ? unknown() : shapes_[static_cast<size_t>(slot)];
  }
  Slot reshape(Slot x, const Shape& to) override { return x < 0 ? nothing : made(to); }
  Slot permute(Slot x, const std::vector<int64_t>& order) override {
    if (x < 0) return nothing;
    Shape to;
    for (const int64_t dim : order) to.push_back(shape(x)[static_cast<size_t>(dim)]);
    return made(to);
  }
  Slot concat(const std::vector<Slot>& parts, int64_t dim) override {
    Shape to = shape(parts.at(0));
    for (size_t k = 0; k < parts.size(); ++k) {
      if (parts[k] < 0) return nothing;
      if (k > 0) to[static_cast<size_t>(dim)] += shape(parts[k])[static_cast<size_t>(dim)];
    }
    return made(to);
  }
  Slot slice(Slot x, int64_t dim, int64_t, int64_t, int64_t count) override {
    if (x < 0) return nothing;
    Shape to = shape(x);
    to[static_cast<size_t>(dim)] = count;
    return made(to);
  }

 private:
  Slot made(const Shape& to) {
    shapes_.push_back(to);
    return static_cast<Slot>(shapes_.size()) - 1;
  }
  std::vector<Shape> shapes_;
};

// Operations that only move values (flatten, transpose, cat, split, ...): their own reference moves
// the places. Nothing: it does more than that.
std::optional<std::vector<IntegerId>> by_moving(const IntegerCall& call) {
  const BoundCall& bound = call.call;
  std::vector<Slot> slots;
  for (size_t i = 0; i < call.inputs.size(); ++i) slots.push_back(static_cast<Slot>(i));
  MovesOnly moves(call.shapes);
  if (!bound.op->lower || !bound.op->eval || bound.op->lower(moves, bound.attributes, slots) < 0)
    return {};
  std::vector<IntegerId> all;
  std::vector<Array> places;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    places.emplace_back(call.shapes[i]);
    size_t next = all.size();
    for (double& place : places.back().data) place = static_cast<double>(next++);
    all.insert(all.end(), call.inputs[i].begin(), call.inputs[i].end());
  }
  std::vector<const Array*> operands;
  for (const Array& array : places) operands.push_back(&array);
  const Array moved = bound.op->eval(OpCall{bound.attributes, operands});
  std::vector<IntegerId> result;
  for (const double place : moved.data) result.push_back(all.at(static_cast<size_t>(place)));
  return result;
}

}  // namespace

void IntegerCall::refuse(const std::string& cause, const std::string& remedy) const {
  throw Error(node.name, cause, remedy);
}

// Limits that are whole steps of a finer format than the feature's make it that fine.
std::vector<IntegerId> IntegerCall::limited(double low, double high) const {
  return each([&](IntegerId x) {
    int frac = builder.at(x).frac;
    for (const double limit : {low, high})
      if (limit != 0) frac = std::max(frac, dyadic(limit, node.name).frac);
    return builder.clamp(builder.aligned(x, frac), std::llround(std::ldexp(low, frac)),
                         std::llround(std::ldexp(high, frac)));
  });
}

std::vector<IntegerId> lower_call(const IntegerCall& call) {
  if (const IntegerLowering* record =
          Registry<IntegerLowering>::instance().find(call.call.op->name))
    if (const std::optional<std::vector<IntegerId>> features = record->lower(call))
      return *features;
  if (std::optional<std::vector<IntegerId>> moved = by_moving(call)) return *moved;
  return by_table(call);
}

}  // namespace mase
