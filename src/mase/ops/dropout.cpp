// SPDX-License-Identifier: Apache-2.0
// Dropout: in training each element is zeroed with probability p and the others are scaled by
// 1 / (1 - p); in evaluation nothing happens (Srivastava et al., 2014).
#include "mase/base/fields.h"
#include "mase/base/random.h"
#include "mase/ops/elementwise.h"

namespace mase::dropout_op {
namespace {

// The factor of every element, the same for the same seed.
std::vector<double> factors(const OpCall& call) {
  const double p = call.attributes["p"].as_double();
  std::vector<double> result(call.inputs[0]->data.size(), 1.0);
  if (!call.training || p == 0) return result;
  Random random(call.seed, "dropout");
  for (double& factor : result) factor = random.uniform() < p ? 0.0 : 1.0 / (1.0 - p);
  return result;
}

Array eval(const OpCall& call) {
  Array y = *call.inputs[0];
  const std::vector<double> factor = factors(call);
  for (size_t i = 0; i < y.data.size(); ++i) y.data[i] = factor[i] == 0 ? 0 : y.data[i] * factor[i];
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  Array gx = g;
  const std::vector<double> factor = factors(call);
  for (size_t i = 0; i < gx.data.size(); ++i) gx.data[i] *= factor[i];
  return OpGradients{{std::move(gx)}};
}

const Register<OpRecord> registered{{
    .name = "dropout",
    .class_name = "Dropout",
    .function = "torch.nn.functional.dropout",
    .mase_type = "module_related_func",
    .summary = "zeroes elements at random in training",
    .attributes = {{
        number_field("p", "probability of an element to be zeroed", 0.5).between(0, 1),
        inplace_field(),
    }},
    .infer = [](const Value&, const std::vector<Shape>& inputs) { return inputs[0]; },
    .eval = eval,
    .grad = grad,
    .repr =
        [](const Value& attributes) {
          return fmt::format("p={}, inplace={}", python_repr(attributes["p"]),
                             python_repr(attributes["inplace"]));
        },
    .lower =
        [](Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
          return lowering.dropout(inputs[0], attributes["p"].as_double());
        },
}};

}  // namespace
}  // namespace mase::dropout_op
