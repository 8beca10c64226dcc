// SPDX-License-Identifier: Apache-2.0
// --plugin FILE: passes and other records from outside. A shared library registers them as it is
// loaded; a Python file registers functions through the package mase.
#pragma once

#include "mase/base/value.h"

namespace mase {

void load_plugins(const Value& files);  // a list of paths, or null

}  // namespace mase
