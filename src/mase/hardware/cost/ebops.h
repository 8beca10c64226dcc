// SPDX-License-Identifier: Apache-2.0
// Effective bit operations: what products of narrow numbers cost in hardware, to first order (Sun
// et al., 2024). A dense layer has
//   sum over inputs i and outputs o of bits(x_i) bits(w_io)  +  sum over o of bits(bias_o)
// where bits are those of the integer and fraction part; where a value saturates its sign counts.
#pragma once

#include <cstdint>
#include <span>

#include "mase/ir/graph.h"

namespace mase {

// Weights as [out][in].
double dense_ebops(std::span<const int> inputs, std::span<const int> weights,
                   std::span<const int> biases);

// Of a network whose linear layers are all in fixed point. An error names a layer that is not.
double ebops(const Graph& graph);

}  // namespace mase
