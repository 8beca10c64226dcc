// SPDX-License-Identifier: Apache-2.0
// Which figures are measured after each epoch, and their options, as flags and files say it:
// --metrics top_k_accuracy:k=3,balanced_accuracy or
//
//   [metrics.top_k_accuracy]
//   k = 3
#pragma once

#include <string>

#include "mase/base/error.h"
#include "mase/base/value.h"

namespace mase {

// {"top_k_accuracy": {"k": 3}, "balanced_accuracy": {}}
Value metrics_of(const std::string& text);
// The table as the text that means the same.
std::string metrics_text(const Value& table, Problems& problems);

}  // namespace mase
