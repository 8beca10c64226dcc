// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "mase/ir/op.h"

namespace mase {

// PyTorch's batch norms differ in the ranks they take.
struct BatchNormKind {
  std::string name, class_name, forms;  // "[N, C] or [N, C, L]"
  std::vector<size_t> ranks;
};
OpRecord batch_norm_record(const BatchNormKind& kind);

}  // namespace mase
