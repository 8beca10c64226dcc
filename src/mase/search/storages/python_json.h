// SPDX-License-Identifier: Apache-2.0
// JSON as Python's json module writes and reads it, which is what Optuna's storages hold: NaN,
// Infinity and -Infinity are numbers, and there is a blank after ',' and ':'.
#pragma once

#include <string>

#include "mase/base/value.h"

namespace mase::search {

Value parse_python_json(const std::string& text, const std::string& place);
std::string write_python_json(const Value& value);

}  // namespace mase::search
