// SPDX-License-Identifier: Apache-2.0
// Batch norms that are multiplied into the weights of what they stand behind.
#pragma once

#include "mase/engine/plan.h"

namespace mase::engine {

// What is multiplied with: the weights and bias of the primitive, or with the batch norm that is
// the first of its stages in them; what is left of the stages then.
struct Factors {
  int weight, bias;
  Epilogue rest;
};

// Where there is a batch norm, w' = w * s, b' = (b - mean) * s + bias with s = weight /
// sqrt(var + eps), once per change of the parameters; weights are [out][in], and 1 where the
// primitive has none.
Factors factors_of(Plan& plan, const Primitive& p);

// Whether its weight and bias are parameters: rounded ones must stay what they are.
bool has_plain_weights(const Plan& plan, const Primitive& p);

}  // namespace mase::engine
