// SPDX-License-Identifier: Apache-2.0
// Values of a record as people read them. Records may be anybody's: what does not fit is "–".
#pragma once

#include <optional>
#include <string>

#include "mase/base/value.h"

namespace mase::shown {

const Value& entry(const Value& dict, const char* key);  // null where there is none
const List& items(const Value& value);                   // none where it is no list
std::optional<double> number(const Value& value);        // finite
std::string word(const Value& value);                    // a string, or ""

std::string text(const Value& value);       // any value on one line
std::string file_name(const Value& value);  // a path stands for its file
std::string shape(const Value& value);      // 8 × 16
std::string brief(const std::optional<double>& value, int digits = 4);
std::string whole(const std::optional<double>& value);
std::string percent(const std::optional<double>& value, int digits = 2);
std::string points(const std::optional<double>& before, const std::optional<double>& after);
std::string duration(const std::optional<double>& seconds);
std::string date(const Value& value);
std::string key(const std::optional<double>& value);  // to sort by

}  // namespace mase::shown
