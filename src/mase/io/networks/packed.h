// SPDX-License-Identifier: Apache-2.0
// Tensors as the codes of a number format, bit by bit, in a safetensors file: a 4-bit tensor takes
// four bits per value. NAME holds the packed codes, NAME.scales and NAME.exponents what groups and
// blocks share, where they share something; the metadata's NAME is JSON with format, config, shape.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

struct PackedTensor {
  std::string name;
  QuantizerPtr quantizer;
  Tensor tensor;  // rounded or not
};
// Formats without codes under their keys are an error.
void save_packed(const std::string& path, const std::vector<PackedTensor>& tensors);
// The values again, single precision. `path` may hold anything.
TensorTable load_packed(const std::string& path);

}  // namespace mase
