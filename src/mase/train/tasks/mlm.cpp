// SPDX-License-Identifier: Apache-2.0
// Tokens that were hidden: in running text, some of each window.
#include "mase/train/task.h"

namespace mase::mlm_task {
namespace {

const Register<TaskRecord> registered{{
    .name = "mlm",
    .aliases = {"masked-language-modeling"},
    .summary = "tokens that were hidden",
    .classes = true,
    .each_token = true,
    .usual = false,
    .loss = "cross_entropy",
    .metrics = {"loss", "perplexity", "accuracy"},
    .monitor = "loss",
}};

}  // namespace
}  // namespace mase::mlm_task
