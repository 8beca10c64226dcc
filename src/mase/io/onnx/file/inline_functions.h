// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mase/io/onnx/file/model.h"
#include "mase/io/read_limits.h"

namespace mase::onnx {

// A model's own functions put in the place of their calls, so that only operators remain. Functions
// that call themselves, or make more nodes than the limit, are an Error.
Model inlined(const Model& model, const std::string& place, MemoryBudget& budget);

}  // namespace mase::onnx
