// SPDX-License-Identifier: Apache-2.0
// What a table of arguments may hold: names, types, defaults, limits and help. One description
// serves validation ("unknown key 'weigth_width'; did you mean 'weight_width'?"), command-line
// flags, --help and the generated reference.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mase/base/value.h"

namespace mase {

enum class FieldType { boolean, integer, number, text, list, table, any };

struct Field {
  std::string name;
  FieldType type = FieldType::any;
  Value default_value = {};  // null: none, unless required
  std::string help = {};
  bool required = false;
  std::vector<std::string> choices = {};  // for texts
  std::optional<double> minimum = {};
  std::optional<double> maximum = {};
  std::string group = {};  // heading in --help
  // A further rule: what is wrong with the value, or nothing.
  std::function<std::optional<std::string>(const Value&)> check = {};
  std::vector<std::string> aliases = {};  // further flags and keys: "cpu" of "num_workers"
  bool secret = false;  // an address that may carry a password, which is never shown or kept
  bool idle = false;    // taken from other programs' files, and without effect
};

const char* type_name(FieldType type);  // "integer", "text", ...

struct Schema {
  std::vector<Field> fields = {};
  bool open = false;  // keys not listed are allowed and kept

  const Field* find(const std::string& name) const;
  std::vector<std::string> names() const;
};

// Null, "NA", "None" and "none": not given, as MASE's files write it.
bool means_none(const Value& value);

// The arguments with defaults filled in, in schema order (further keys of an open schema after).
// What means none is not given, except in text fields whose choices contain it. Every problem is
// added, with the position of the value at fault; `path` is the dotted name of the table.
Value validate(const Value& given, const Schema& schema, const std::string& path,
               Problems& problems);
Value validate(const Value& given, const Schema& schema, const std::string& path);  // throws

}  // namespace mase
