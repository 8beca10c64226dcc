// SPDX-License-Identifier: Apache-2.0
// The bytes of an .onnx file as a Model. Nothing in it is believed yet: names may be missing or
// doubled, sizes may be wrong; whoever uses a part checks it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "mase/io/onnx/file/model.h"
#include "mase/io/read_limits.h"

namespace mase::onnx {

// True if these bytes begin as a ModelProto does: protocol buffers have no mark of their own.
bool looks_like_model(std::span<const std::byte> bytes);

// `owner` keeps the bytes alive: the model's tensors view them.
Model read_model(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                 const std::string& place, MemoryBudget& budget);

// A file that holds one tensor, as the data of ONNX's own tests.
TensorData read_tensor_message(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                               const std::string& place, MemoryBudget& budget);

}  // namespace mase::onnx
