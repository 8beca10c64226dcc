// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/kernels/instruction_set.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <atomic>

#include "mase/base/error.h"

namespace mase {
namespace {

// Asked once: while Highway answers, another thread might run a kernel with too much.
std::atomic<int64_t> known_targets{0};
// Somebody chose sets: of those that are not compiled Highway takes the least that is.
std::atomic<bool> chosen{false};

}  // namespace

int64_t enabled_targets() {
  int64_t targets = known_targets;
  if (targets != 0) return targets;
  targets = hwy::SupportedTargets();
  if (!chosen &&
      (targets & HWY_TARGETS) == 0)  // one of them is then also what Highway would fall back to
    throw Error(
        "", "this program was compiled for processors that can do more than this one",
        "build it here (./ch of its sources), or install the package, which has all kernels");
  hwy::GetChosenTarget().Update(targets);
  known_targets = targets;
  return targets;
}

std::string instruction_set() {
  const int64_t usable = enabled_targets() & HWY_TARGETS;
  return usable == 0 ? "scalar" : hwy::TargetName(usable & -usable);  // the lowest is the best
}

std::vector<std::string> built_instruction_sets() {
  std::vector<std::string> names;
  for (int64_t target = int64_t{1} << 62; target > 0; target >>= 1)  // the lowest is the best
    if (HWY_TARGETS & target) names.emplace_back(hwy::TargetName(target));
  return names;
}

void use_targets(int64_t targets) {
  enabled_targets();
  chosen = true;
  hwy::DisableTargets(~targets);
  known_targets = 0;
  enabled_targets();
}

void use_portable_instructions() {
#if defined(__x86_64__)
  if (enabled_targets() & HWY_SSE4) {
    use_targets(HWY_SSE4);
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
