// SPDX-License-Identifier: Apache-2.0
// What a model holds, for people: nothing of it is converted or run.
#pragma once

#include "mase/base/value.h"
#include "mase/io/onnx/file/model.h"

namespace mase::onnx {

// Version, producer, operator sets, inputs, outputs, and how often each operator stands in it.
Value describe(const Model& model);

// "float32 [batch, 16]"
std::string value_text(const ValueInfo& value);

}  // namespace mase::onnx
