// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum, Nesterov's or the plain one, and weight decay. The
// defaults are MASE's: momentum 0.9, Nesterov's, and a cosine schedule that ends at 0.
#include "mase/base/fields.h"
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
        number_field("weight_decay", "pull of the weights towards zero", 0.0)
            .from(0)
            .also({"weight_decay"}),
        number_field("momentum", "share of the last update that is kept", 0.9)
            .from(0)
            .also({"momentum"}),
        number_field("dampening", "share of the gradient that momentum leaves out", 0.0),
        boolean_field("nesterov", "Nesterov's momentum", true).also({"nesterov"}),
    }},
    .schedule_defaults = {{"eta_min", 0.0}},
    .state = {"momentum_buffer"},
    .update = update,
}};

}  // namespace
}  // namespace mase::sgd_optimizer
