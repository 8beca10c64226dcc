// SPDX-License-Identifier: Apache-2.0
// GroupNorm: each sample normalised over groups of its channels, dim 1, and all positions (Wu and
// He, 2018).
#include "mase/ops/group_norm.h"
#include "mase/base/fields.h"
#include "mase/ops/call.h"

#include <cmath>

namespace mase {
namespace group_norm_op {
namespace {

struct Groups {
  size_t samples, groups, size;  // values of one group
  size_t channels, positions;
};

template <class Visit>
void each_group(const Groups& g, const Array& x, double eps, const Visit& visit) {
  for (size_t i = 0; i < g.samples * g.groups; ++i) {
    const double* values = x.data.data() + i * g.size;
    double sum = 0, squares = 0;
    for (size_t k = 0; k < g.size; ++k) sum += values[k];
    const double mean = sum / static_cast<double>(g.size);
    for (size_t k = 0; k < g.size; ++k) squares += (values[k] - mean) * (values[k] - mean);
    visit(i * g.size, mean, 1.0 / std::sqrt(squares / static_cast<double>(g.size) + eps));
  }
}

}  // namespace
}  // namespace group_norm_op

OpRecord group_norm_record(OpRecord record,
                           int64_t (*count)(const Value& attributes, int64_t channels),
                           const std::string& channels_attribute) {
  using namespace group_norm_op;
  const auto groups_of = [count](const Value& attributes, const Shape& x) {
    const int64_t groups = count(attributes, x[1]);
    Groups g{};
    g.samples = static_cast<size_t>(x[0]);
    g.groups = static_cast<size_t>(groups);
    g.channels = static_cast<size_t>(x[1]);
    g.positions = 1;
    for (size_t i = 2; i < x.size(); ++i) g.positions *= static_cast<size_t>(x[i]);
    g.size = g.groups > 0 ? g.channels / g.groups * g.positions : 0;
    return g;
  };
  record.mase_type = "module_related_func";
  record.operands = {"data_in", "weight", "bias", "data_out"};
  record.required_operands = {"data_in"};
  record.params = [channels_attribute](const Value& attributes) {
    std::vector<ParamSpec> specs;
    const Shape shape = {attributes[channels_attribute].as_int()};
    if (attributes["affine"].as_bool()) {
      specs.push_back({"weight", shape, true, 1});
      specs.push_back({"bias", shape, true, 0});
    }
    return specs;
  };
  const std::string name = record.class_name;
  record.infer = [=](const Value& attributes, const std::vector<Shape>& inputs) {
    const Shape& x = inputs[0];
    const int64_t channels = attributes[channels_attribute].as_int();
    if (x.size() < 2 || x[1] != channels)
      throw Error("", fmt::format("{} wants [N, {}, ...], got {}", name, channels, shape_text(x)));
    const int64_t groups = count(attributes, channels);
    if (groups < 1 || channels % groups != 0)
      throw Error("", fmt::format("{} channels cannot be {} groups", channels, groups));
    return x;
  };
  record.eval = [groups_of](const OpCall& call) {
    const Array& x = *call.inputs[0];
    const Groups g = groups_of(call.attributes, x.shape);
    const Array *weight = param_of(call, "weight"), *bias = param_of(call, "bias");
    Array y(x.shape);
    each_group(g, x, call.attributes["eps"].as_double(),
               [&](size_t first, double mean, double inverse) {
                 for (size_t k = first; k < first + g.size; ++k) {
                   const size_t c = k / g.positions % g.channels;
                   y.data[k] = (x.data[k] - mean) * inverse * (weight ? weight->data[c] : 1.0) +
                               (bias ? bias->data[c] : 0.0);
                 }
               });
    return y;
  };
  record.grad = [groups_of](const OpCall& call, const Array&, const Array& up) {
    const Array& x = *call.inputs[0];
    const Groups g = groups_of(call.attributes, x.shape);
    const Array* weight = param_of(call, "weight");
    Array gx(x.shape), gw({x.shape[1]}), gb({x.shape[1]});
    each_group(g, x, call.attributes["eps"].as_double(),
               [&](size_t first, double mean, double inverse) {
                 double sum = 0, product = 0;
                 for (size_t k = first; k < first + g.size; ++k) {
                   const size_t c = k / g.positions % g.channels;
                   const double d = up.data[k] * (weight ? weight->data[c] : 1.0);
                   const double normal = (x.data[k] - mean) * inverse;
                   sum += d;
                   product += d * normal;
                   gw.data[c] += up.data[k] * normal;
                   gb.data[c] += up.data[k];
                 }
                 const auto size = static_cast<double>(g.size);
                 for (size_t k = first; k < first + g.size; ++k) {
                   const size_t c = k / g.positions % g.channels;
                   const double d = up.data[k] * (weight ? weight->data[c] : 1.0);
                   const double normal = (x.data[k] - mean) * inverse;
                   gx.data[k] = inverse * (d - (sum + normal * product) / size);
                 }
               });
    return layer_gradients(call, std::move(gx), std::move(gw), std::move(gb));
  };
  record.cost = [](const Value&, const std::vector<Shape>&, const Shape& out) {
    return OpCost{0, 5 * element_count(out)};
  };
  record.lower = [count](Lowering& lowering, const Value& attributes,
                         const std::vector<Slot>& inputs) -> Slot {
    const Shape x = lowering.shape(inputs[0]);
    const int64_t groups = count(attributes, x[1]);
    if (element_count(x) == 0) return -1;
    Slot y = lowering.reshape(inputs[0], {x[0], groups, element_count(x) / x[0] / groups});
    y = lowering.layer_norm(y, 1, {}, {}, attributes["eps"].as_double());
    y = lowering.reshape(y, x);
    const auto weight = lowering.parameter("weight"), bias = lowering.parameter("bias");
    if (!weight || !bias) return y;
    Shape channel(x.size() - 1, 1);
    channel[0] = x[1];
    return lowering.map(Expr::operand(0) * Expr::operand(1) + Expr::operand(2),
                        {y, lowering.reshape(*weight, channel), lowering.reshape(*bias, channel)});
  };
  record.complete = [channels_attribute](Dict& attributes, const std::vector<Shape>& inputs,
                                         int64_t) {
    if (!attributes.contains(channels_attribute) && inputs[0].size() > 1)
      attributes.set(channels_attribute, inputs[0][1]);
  };
  return record;
}

}  // namespace mase

namespace mase::group_norm_op {
namespace {

const Register<OpRecord> registered{group_norm_record(
    {.name = "group_norm",
     .class_name = "GroupNorm",
     .summary = "normalises groups of channels of each sample",
     .attributes = {{integer_field("num_groups", "groups of channels", 1).from(1),
                     integer_field("num_channels", "channels, the size of dim 1").needed().from(1),
                     number_field("eps", "added to the variance", 1e-5).from(0),
                     boolean_field("affine", "learn a scale and a shift", true)}},
     .repr =
         [](const Value& attributes) {
           return fmt::format("{}, {}, eps={}, affine={}", attributes["num_groups"].as_int(),
                              attributes["num_channels"].as_int(), python_repr(attributes["eps"]),
                              python_repr(attributes["affine"]));
         }},
    [](const Value& attributes, int64_t) { return attributes["num_groups"].as_int(); },
    "num_channels")};

}  // namespace
}  // namespace mase::group_norm_op
