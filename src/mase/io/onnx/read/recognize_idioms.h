// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mase/ir/graph.h"

namespace mase::onnx {

// Layers that exporters write in their parts become layers again (idioms/):
//
//   (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * w + b   =>   LayerNorm
//   x / sqrt(mean(x^2) + eps) * w                               =>   RMSNorm
//   x / 2 * (1 + erf(x / sqrt(2))), and its form with tanh      =>   gelu
//   softmax(q k^T * scale + mask) v                             =>   scaled_dot_product_attention
//   x * cos + rotated(x) * sin, of tables that are angles       =>   rotary_embedding
//
// Values stay what they are but for the last bits.
void recognize_idioms(Graph& graph);

}  // namespace mase::onnx
