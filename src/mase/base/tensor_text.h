// SPDX-License-Identifier: Apache-2.0
// Tensors as PyTorch prints them: four digits, one common width, lines of at most 80 columns, and
// only the edges of tensors above a thousand values.
#pragma once

#include <string>
#include <vector>

#include "mase/base/tensor.h"

namespace mase {

// "tensor([[-0.0689,  0.2381], ...], requires_grad=True)"; `suffixes` stand before the bracket.
std::string tensor_text(const Tensor& tensor, const std::vector<std::string>& suffixes = {});

// The same below "Parameter containing:".
std::string parameter_text(const Tensor& tensor);

}  // namespace mase
