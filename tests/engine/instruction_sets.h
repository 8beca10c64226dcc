// SPDX-License-Identifier: Apache-2.0
// Kernels with every instruction set they are compiled for and the machine has.
#pragma once

#include <hwy/targets.h>

#include <functional>

#include "mase/engine/kernels/instruction_set.h"
#include "support/support.h"

namespace mase {

inline void with_every_instruction_set(const std::function<void()>& check) {
  const int64_t all = enabled_targets();
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}, int64_t{HWY_SSE4}}) {
    if (!(all & target)) continue;
    use_targets(target);
    if (instruction_set() != hwy::TargetName(target)) continue;  // sanitizers: not compiled
    SCOPED_TRACE(instruction_set());
    check();
  }
  use_targets(all);
}

}  // namespace mase
