// SPDX-License-Identifier: Apache-2.0
// Quantisers that learn keep their number with the parameters of the layer they belong to, under
// the operand's name: weight_scale, data_in_clip. So optimisers train it and checkpoints keep it.
#pragma once

#include <string>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

struct LearnedOperand {
  std::string operand, parameter;
  const Quantizer* quantizer = nullptr;
  Shape shape;  // of the parameter
};
std::vector<LearnedOperand> learned_operands(const Module& module);

// Gives the module the parameters that its quantisers learn, and takes away those that none of them
// wants any more. Numbers of weights start from the weights; those of activations are zero until
// training sees the first batch.
void fit_learned_parameters(Module& module);

// The quantiser of an operand as it is now: a learned number is the module's, unless it was not
// found yet. Null if the operand is not rounded; `module` may be null.
QuantizerPtr current_quantizer(const Quantization& quantization, const Module* module,
                               const std::string& operand);

}  // namespace mase
