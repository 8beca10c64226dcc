// SPDX-License-Identifier: Apache-2.0
// What this program is and was built with: ch --version, and the head of ch doctor.
#pragma once

#include <string>

namespace mase {

// "4d1f2ab86c", with "-dirty" behind it where files differed from that commit; "unknown" outside
// git.
const char* program_commit();

std::string about_text();  // several lines, the first "ch 0.1.0"

}  // namespace mase
