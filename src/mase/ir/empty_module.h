// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mase/ir/graph.h"

namespace mase {

// A module whose parameters are zeros of the right shape: drawing the values of a large network
// takes seconds, which a listing of networks need not spend.
Module make_empty_module(const std::string& op, const Value& attributes, const std::string& path);

}  // namespace mase
