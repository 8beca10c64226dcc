// SPDX-License-Identifier: Apache-2.0
// One of several classes for each row.
#include "mase/train/task.h"

namespace mase::classification_task {
namespace {

const Register<TaskRecord> registered{{
    .name = "classification",
    .aliases = {"cls"},
    .summary = "one of several classes for each row",
    .classes = true,
    .usual = true,
    .loss = "cross_entropy",
    .metrics = {"accuracy", "loss"},
}};

}  // namespace
}  // namespace mase::classification_task
