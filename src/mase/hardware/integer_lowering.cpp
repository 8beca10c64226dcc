// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/integer_lowering.h"

#include <algorithm>
#include <cmath>

#include "mase/formats/format.h"
#include "mase/hardware/lower_linear.h"
#include "mase/hardware/lower_rounding.h"
#include "mase/hardware/one_number.h"
#include "mase/hardware/quantizer_format.h"

namespace mase {
namespace {

// The op's own reference and the format's own rounding, code by code.
std::vector<IntegerId> by_table(const IntegerCall& call) {
  const BoundCall& bound = call.call;
  if (call.inputs.size() != 1 || !is_function_of_one_number(*bound.op, bound.attributes))
    call.refuse(fmt::format("'{}' has no integer form", bound.op->name),
                fmt::format("hardware has {}, and functions of one number whose result is rounded",
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
  return by_table(call);
}

}  // namespace mase
