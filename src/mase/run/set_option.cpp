// SPDX-License-Identifier: Apache-2.0
#include "mase/run/set_option.h"

#include "mase/base/text.h"

namespace mase {
namespace {

Value value_of(const std::string& text) {
  try {
    const Value table = parse_toml("value = " + text, "--set");
    if (table.as_dict().size() == 1) {
      Value value = table["value"];
      return value.set_position({});
    }
  } catch (const Error&) {
  }
  return text;
}

}  // namespace

Value set_table(const Value& settings, const std::string& place) {
  Value table = Dict();
  if (settings.is_null()) return table;
  for (const std::string& setting : settings.as_string_list(place)) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(place, fmt::format("'{}' is not key=value", printable(setting)),
                  "for example width=8");
    Value* at = &table;
    for (const std::string& key : split(setting.substr(0, equals), '.')) {
      if (!at->is_null() && !at->is_dict())
        throw Error(place, fmt::format("'{}' goes below a value", printable(setting)));
      at = &(*at)[key];
    }
    *at = value_of(setting.substr(equals + 1));
  }
  return table;
}

Value with_changes(const Value& table, const Value& changes, const std::string& path) {
  if (!changes.is_dict()) return changes;
  if (!table.is_dict() && !table.is_null())
    throw Error("--set", fmt::format("'{}' is {}, not a table", printable(path), table.type_name()),
                "set it whole, or a key of a table");
  Value result = table.is_null() ? Value(Dict{}) : table;
  for (const auto& [key, value] : changes.as_dict())
    result[key] = with_changes(table.is_null() ? Value() : table[key], value,
                               path.empty() ? key : path + "." + key);
  return result;
}

}  // namespace mase
