// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019). They differ in what weight
// decay means: added to the gradient, or shrinking the weights themselves.
#include "mase/base/fields.h"
#include "mase/engine/kernels/optimizer.h"
#include "mase/train/optimizer.h"

namespace mase::adam_optimizer {
namespace {

template <bool kDecoupled>
void update(const Value& arguments, const UpdateStep& step) {
  kernels::AdamUpdate u;
  u.learning_rate = step.learning_rate;
  u.beta1 = arguments["beta1"].as_double();
  u.beta2 = arguments["beta2"].as_double();
  u.eps = arguments["eps"].as_double();
  u.weight_decay = arguments["weight_decay"].as_double();
  u.decoupled = kDecoupled;
  u.step = step.step;
  kernels::adam(step.values, step.gradients, step.state[0], step.state[1], u);
}

Schema arguments(double weight_decay) {
  const auto beta = [](const char* name, double value, const char* help) {
    return number_field(name, help, value).between(0, 0.9999999);
  };
  return {{
      number_field("weight_decay", "pull of the weights towards zero", weight_decay)
          .from(0)
          .also({"weight_decay"}),
      beta("beta1", 0.9, "memory of the mean gradient"),
      beta("beta2", 0.999, "memory of the mean squared gradient"),
      number_field("eps", "added to the denominator", 1e-8).from(0),
  }};
}

const Register<OptimizerRecord> adam{{
    .name = "adam",
    .summary = "Adam (Kingma and Ba, 2015): decay is added to the gradient, as PyTorch does",
    .arguments = arguments(0.0),
    .state = {"exp_avg", "exp_avg_sq"},
    .update = update<false>,
}};

const Register<OptimizerRecord> adamw{{
    .name = "adamw",
    .summary = "AdamW (Loshchilov and Hutter, 2019): decay shrinks the weights themselves",
    .arguments = arguments(0.01),
    .state = {"exp_avg", "exp_avg_sq"},
    .update = update<true>,
}};

}  // namespace
}  // namespace mase::adam_optimizer
