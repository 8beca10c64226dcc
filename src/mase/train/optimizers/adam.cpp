// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba, 2015): decay is added to the gradient, as PyTorch does.
#include "mase/engine/kernels/optimizer.h"
#include "mase/train/optimizer.h"

namespace mase {
namespace {

void update(const Value& arguments, const UpdateStep& step) {
  kernels::AdamUpdate u;
  u.learning_rate = step.learning_rate;
  u.beta1 = arguments["beta1"].as_double();
  u.beta2 = arguments["beta2"].as_double();
  u.eps = arguments["eps"].as_double();
  u.weight_decay = arguments["weight_decay"].as_double();
  u.decoupled = false;
  u.step = step.step;
  kernels::adam(step.values, step.gradients, step.state[0], step.state[1], u);
}

const Register<OptimizerRecord> registered{{
    .name = "adam",
    .summary = "Adam (Kingma and Ba, 2015): decay is added to the gradient, as PyTorch does",
    .arguments = {{
        {.name = "weight_decay", .type = FieldType::number, .default_value = 0.0, .minimum = 0},
        {.name = "beta1",
         .type = FieldType::number,
         .default_value = 0.9,
         .minimum = 0,
         .maximum = 0.9999999},
        {.name = "beta2",
         .type = FieldType::number,
         .default_value = 0.999,
         .minimum = 0,
         .maximum = 0.9999999},
        {.name = "eps", .type = FieldType::number, .default_value = 1e-8, .minimum = 0},
    }},
    .state = {"exp_avg", "exp_avg_sq"},
    .update = update,
}};

}  // namespace
}  // namespace mase
