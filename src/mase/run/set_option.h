// SPDX-License-Identifier: Apache-2.0
// --set key=value as a table: values are read as TOML, anything else is text; dots in keys make
// tables inside tables.
#pragma once

#include "mase/base/value.h"

namespace mase {

// `settings`: a list of texts, or null; mistakes are told at `place`.
Value set_table(const Value& settings, const std::string& place = "--set");

// The table with the changes put into it: tables are merged, everything else is replaced.
Value with_changes(const Value& table, const Value& changes, const std::string& path = "");

}  // namespace mase
