// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/kernels/instruction_set.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "mase/base/error.h"

namespace mase {

std::string instruction_set() {
  const auto targets = hwy::SupportedAndGeneratedTargets();
  enabled_targets();
  return targets.empty() ? "scalar" : hwy::TargetName(targets.front());
}

int64_t enabled_targets() {
  const int64_t targets = hwy::SupportedTargets();
  hwy::GetChosenTarget().Update(targets);
  return targets;
}

void use_portable_instructions() {
#if defined(__x86_64__)
  if (hwy::SupportedTargets() & HWY_SSE4) {
    hwy::DisableTargets(~static_cast<int64_t>(HWY_SSE4));
    return;
  }
#endif
  throw Error("", "this processor has no SSE4, which portable results are computed with",
              "leave --deterministic away");
}

EnvironmentVariable portable_environment() {
  return {"GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4,-AVX512F"};
}

}  // namespace mase
