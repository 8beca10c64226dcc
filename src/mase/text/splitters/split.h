// SPDX-License-Identifier: Apache-2.0
// What pre-tokenisers that cut by a pattern share.
#pragma once

#include <string>

#include "mase/base/schema.h"
#include "mase/text/part.h"

namespace mase {

Field behavior_field();
SplitBehavior split_behavior(const std::string& name);
// Cuts by a pattern of ours.
Splitter pattern_splitter(const char* expression, SplitBehavior behavior, bool invert = false);

}  // namespace mase
