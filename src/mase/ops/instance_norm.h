// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mase/ir/op.h"

namespace mase {

// PyTorch has one class per number of position axes; what they mean is the same. `batch_norm`: the
// op that running statistics make of it.
OpRecord instance_norm_record(std::string name, std::string class_name,
                              const std::string& batch_norm);

}  // namespace mase
