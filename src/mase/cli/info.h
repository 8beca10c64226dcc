// SPDX-License-Identifier: Apache-2.0
// Tables of what is registered: ch --info [all|model|dataset|op|sampler|...].
#pragma once

#include <string>
#include <vector>

namespace mase {

std::vector<std::string> info_kinds();  // "model", "dataset", ...
std::string info_text(const std::string& what);

}  // namespace mase
