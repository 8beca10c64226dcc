// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "mase/base/table.h"
#include "mase/base/value.h"

namespace mase {

struct PrimitiveFigures {
  Value result;  // peaks, and one record for each primitive and variant
  Table table;
  std::string peaks;  // in words
};
// Every primitive, or the one of this name, in every variant that applies here, one thread.
PrimitiveFigures bench_primitives(const std::string& name, double seconds);

}  // namespace mase
