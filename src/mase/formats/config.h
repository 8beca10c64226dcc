// SPDX-License-Identifier: Apache-2.0
// Reading the configs of formats.
#pragma once

#include <string>

#include "mase/formats/format.h"

namespace mase {

// An integer, or the fallback if the key was not given.
int64_t int_or(const Value& config, const std::string& key, int64_t fallback);
// An Error at that key of the config, for rules that join several keys.
Error config_error(const Value& config, const std::string& key, std::string cause,
                   std::string remedy);

// Keys that the use of a tensor decides, unless they are given (FormatRecord::adapt).
void set_default(Dict& config, const std::string& key, Value value);
void adapt_sign(Dict& config, const OperandUse& use);   // is_signed
void adapt_batch(Dict& config, const OperandUse& use);  // skip_first_dim

Field width_field(int64_t least, int64_t most, const std::string& help);

}  // namespace mase
