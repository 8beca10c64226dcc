// SPDX-License-Identifier: Apache-2.0
// Where files of another kind keep the table that ours call "mase", as JSON.
#pragma once

namespace mase {

inline constexpr const char* notes_property = "mase.notes";

}  // namespace mase
