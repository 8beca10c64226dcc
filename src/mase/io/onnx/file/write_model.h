// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mase/io/onnx/file/model.h"

namespace mase::onnx {

// The .onnx file of a model, written whole or not at all. One file holds at most 2 GB, as protocol
// buffers' readers take no more.
void write_model(const std::string& path, const Model& model);
std::string model_bytes(const Model& model);

}  // namespace mase::onnx
