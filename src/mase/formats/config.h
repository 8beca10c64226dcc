// SPDX-License-Identifier: Apache-2.0
// Reading the configs of formats.
#pragma once

#include <string>

#include "mase/base/schema.h"

namespace mase {

// An integer, or the fallback if the key was not given.
int64_t int_or(const Value& config, const std::string& key, int64_t fallback);
// An Error at that key of the config, for rules that join several keys.
Error config_error(const Value& config, const std::string& key, std::string cause,
                   std::string remedy);

Field width_field(int64_t least, int64_t most, const std::string& help);

}  // namespace mase
