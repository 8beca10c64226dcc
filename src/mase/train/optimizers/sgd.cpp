// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum, Nesterov's or the plain one, and weight decay.
#include "mase/engine/kernels/optimizer.h"
#include "mase/train/optimizer.h"

namespace mase::sgd_optimizer {
namespace {

void update(const Value& arguments, const UpdateStep& step) {
  kernels::SgdUpdate u;
  u.learning_rate = step.learning_rate;
  u.momentum = arguments["momentum"].as_double();
  u.dampening = arguments["dampening"].as_double();
  u.weight_decay = arguments["weight_decay"].as_double();
  u.nesterov = arguments["nesterov"].as_bool();
  u.first = step.step == 1;
  kernels::sgd(step.values, step.gradients, step.state[0], u);
}

const Register<OptimizerRecord> registered{{
    .name = "sgd",
    .summary = "Stochastic gradient descent with momentum",
    .arguments = {{
        {.name = "weight_decay", .type = FieldType::number, .default_value = 0.0, .minimum = 0},
        {.name = "momentum", .type = FieldType::number, .default_value = 0.0, .minimum = 0},
        {.name = "dampening", .type = FieldType::number, .default_value = 0.0},
        {.name = "nesterov", .type = FieldType::boolean, .default_value = false},
    }},
    .state = {"momentum_buffer"},
    .update = update,
}};

}  // namespace
}  // namespace mase::sgd_optimizer
