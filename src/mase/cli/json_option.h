// SPDX-License-Identifier: Apache-2.0
// --json as every command means it: a file, or - for the terminal.
#pragma once

#include <string>

#include "mase/base/schema.h"

namespace mase {

Field json_field(const std::string& help, const std::string& group = "");
void write_json(const std::string& path, const Value& value);

}  // namespace mase
