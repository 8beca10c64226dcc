// SPDX-License-Identifier: Apache-2.0
// How much memory there is to take: what the system can give, and what a container (a control group
// of Linux, version 1 or 2) leaves of its limit, which is told nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mase {

// Bytes that can be taken without taking them from others: the least of what the system says and
// what every control group above this process leaves. Nothing where nobody says. `root` is where
// /proc and /sys are looked for.
std::optional<uint64_t> available_memory(const std::string& root = "");

}  // namespace mase
