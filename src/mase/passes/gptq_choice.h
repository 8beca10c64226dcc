// SPDX-License-Identifier: Apache-2.0
// GPTQ's recursion on the grid of a layer's number format, as a choice of its weights: what the
// pass of that name makes, and what others round with.
#pragma once

#include "mase/passes/gptq_solver.h"
#include "mase/passes/weight_method.h"

namespace mase {

WeightChoice gptq_choice(const WeightProblem& problem, GptqOptions options);

std::vector<Field> gptq_fields();  // order, damping, block_columns
GptqOptions gptq_options(const Value& args);

}  // namespace mase
