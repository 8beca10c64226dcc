// SPDX-License-Identifier: Apache-2.0
// The next token at each place of a text.
#include "mase/train/task.h"

namespace mase::lm_task {
namespace {

const Register<TaskRecord> registered{{
    .name = "lm",
    .aliases = {"causal-language-modeling"},
    .summary = "the next token at each place of a text",
    .classes = true,
    .each_token = true,
    .usual = true,
    .loss = "cross_entropy",
    .metrics = {"loss", "perplexity", "accuracy"},
    .monitor = "loss",
}};

}  // namespace
}  // namespace mase::lm_task
