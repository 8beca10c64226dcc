// SPDX-License-Identifier: Apache-2.0
// Whether a resumed run can end in the bits that an uninterrupted one would have.
#pragma once

#include <string>

#include "mase/base/value.h"

namespace mase {

// What differs between the two tables of what bits depend on (version, instruction set, number of
// processes), as a sentence; empty if nothing does or `before` is none.
std::string difference_of_makers(const Value& before, const Dict& now);

}  // namespace mase
