// SPDX-License-Identifier: Apache-2.0
#include "mase/base/schema.h"

#include <algorithm>

#include "mase/base/text.h"

namespace mase {
namespace {

bool is_absent(const Value& value, const Field& field) {
  if (!means_none(value)) return false;
  return value.is_null() || std::find(field.choices.begin(), field.choices.end(),
                                      value.as_string()) == field.choices.end();
}

bool has_type(const Value& value, FieldType type) {
  switch (type) {
    case FieldType::boolean:
      return value.is_bool();
    case FieldType::integer:
      return value.is_int();
    case FieldType::number:
      return value.is_number();
    case FieldType::text:
      return value.is_string();
    case FieldType::list:
      return value.is_list();
    case FieldType::table:
      return value.is_dict();
    case FieldType::any:
      return true;
  }
  return false;
}

// How a value of the field is written: its default, or any.
std::string example_of(const Field& field) {
  if (!field.default_value.is_null()) return to_json(field.default_value);
  if (!field.choices.empty()) return to_json(field.choices.front());
  switch (field.type) {
    case FieldType::boolean:
      return "true";
    case FieldType::integer:
      return "16";
    case FieldType::number:
      return "0.5";
    case FieldType::list:
      return "[...]";
    case FieldType::table:
      return "{...}";
    case FieldType::text:
    case FieldType::any:
      return "\"...\"";
  }
  return "";
}

std::string number_text(double number) { return fmt::format("{}", number); }

// What is wrong with the value; nothing if it is fine.
struct Fault {
  std::string cause, remedy = {};
  Mistake mistake = Mistake::other;
};

std::optional<Fault> fault(const Value& value, const Field& field) {
  if (!has_type(value, field.type))
    return Fault{fmt::format("expected {}, got {}", type_name(field.type), value.type_name()),
                 fmt::format("write {} = {}", field.name, example_of(field))};
  if (!field.choices.empty() && value.is_string()) {
    const std::string& text = value.as_string();
    if (std::find(field.choices.begin(), field.choices.end(), text) == field.choices.end())
      return Fault{fmt::format("unknown choice '{}'", printable(text)),
                   "choose one of: " + join(field.choices, ", "), Mistake::unknown_name};
  }
  if (value.is_number()) {
    const double number = value.as_double();
    if (field.minimum && !(number >= *field.minimum))
      return Fault{fmt::format("{} is too small", number_text(number)),
                   fmt::format("the least is {}", number_text(*field.minimum))};
    if (field.maximum && !(number <= *field.maximum))
      return Fault{fmt::format("{} is too large", number_text(number)),
                   fmt::format("the most is {}", number_text(*field.maximum))};
  }
  if (field.check)
    if (auto wrong = field.check(value)) return Fault{*wrong};
  return {};
}

}  // namespace

bool means_none(const Value& value) {
  if (value.is_null()) return true;
  if (!value.is_string()) return false;
  const std::string& text = value.as_string();
  return text == "NA" || text == "None" || text == "none";
}

const char* type_name(FieldType type) {
  switch (type) {
    case FieldType::boolean:
      return "true or false";
    case FieldType::integer:
      return "an integer";
    case FieldType::number:
      return "a number";
    case FieldType::text:
      return "text";
    case FieldType::list:
      return "a list";
    case FieldType::table:
      return "a table";
    case FieldType::any:
      return "any value";
  }
  return "";
}

const Field* Schema::find(const std::string& name) const {
  for (const Field& field : fields)
    if (field.name == name) return &field;
  return nullptr;
}

std::vector<std::string> Schema::names() const {
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  return names;
}

Value validate(const Value& given, const Schema& schema, const std::string& path,
               Problems& problems) {
  const auto inner = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (!given.is_null() && !given.is_dict()) {
    problems.add(
        Error(given.position(), path, fmt::format("expected a table, got {}", given.type_name())));
    return Dict();
  }
  static const Dict nothing;
  const Dict& dict = given.is_null() ? nothing : given.as_dict();
  // A misspelt key is one mistake: the key that was meant is not told as missing too.
  std::vector<std::string> meant;
  if (!schema.open)
    for (const auto& [key, value] : dict) {
      if (schema.find(key)) continue;
      problems.add(Error(value.position(), path, fmt::format("unknown key '{}'", printable(key)),
                         suggestion(key, schema.names()))
                       .as(Mistake::unknown_key));
      for (std::string& name : nearest_names(key, schema.names(), 1)) meant.push_back(name);
    }
  Dict result;
  for (const Field& field : schema.fields) {
    const Value* value = dict.find(field.name);
    if (!value || is_absent(*value, field)) {
      if (field.required && std::find(meant.begin(), meant.end(), field.name) == meant.end())
        problems.add(
            Error(given.position(), path, fmt::format("'{}' is missing", field.name), field.help)
                .as(Mistake::missing_key));
      result.set(field.name, field.default_value);
      continue;
    }
    if (auto wrong = fault(*value, field))
      problems.add(Error(value->position(), inner(field.name), wrong->cause, wrong->remedy)
                       .as(wrong->mistake));
    result.set(field.name, *value);
  }
  if (schema.open)
    for (const auto& [key, value] : dict)
      if (!schema.find(key)) result.set(key, value);
  Value out(std::move(result));
  out.set_position(given.position());
  return out;
}

Value validate(const Value& given, const Schema& schema, const std::string& path) {
  Problems problems;
  Value result = validate(given, schema, path, problems);
  problems.throw_if_any();
  return result;
}

}  // namespace mase
