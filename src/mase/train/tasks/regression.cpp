// SPDX-License-Identifier: Apache-2.0
// Numbers for each row.
#include "mase/train/task.h"

namespace mase::regression_task {
namespace {

const Register<TaskRecord> registered{{
    .name = "regression",
    .summary = "numbers for each row",
    .classes = false,
    .usual = true,
    .loss = "mse",
    .metrics = {"loss", "mae", "rmse", "r2"},
}};

}  // namespace
}  // namespace mase::regression_task
