// SPDX-License-Identifier: Apache-2.0
#include "mase/base/fields.h"

namespace mase {
namespace {

FieldOf field_of(FieldType type, std::string name, std::string help, Value default_value) {
  return {{std::move(name), type, std::move(default_value), std::move(help)}};
}

}  // namespace

FieldOf boolean_field(std::string name, std::string help, Value default_value) {
  return field_of(FieldType::boolean, std::move(name), std::move(help), std::move(default_value));
}
FieldOf integer_field(std::string name, std::string help, Value default_value) {
  return field_of(FieldType::integer, std::move(name), std::move(help), std::move(default_value));
}
FieldOf number_field(std::string name, std::string help, Value default_value) {
  return field_of(FieldType::number, std::move(name), std::move(help), std::move(default_value));
}
FieldOf list_field(std::string name, std::string help, Value default_value) {
  return field_of(FieldType::list, std::move(name), std::move(help), std::move(default_value));
}
FieldOf table_field(std::string name, std::string help, Value default_value) {
  return field_of(FieldType::table, std::move(name), std::move(help), std::move(default_value));
}
FieldOf any_field(std::string name, std::string help, Value default_value) {
  return field_of(FieldType::any, std::move(name), std::move(help), std::move(default_value));
}
FieldOf text_field(std::string name, std::string help, Value default_value,
                   std::vector<std::string> choices) {
  FieldOf field =
      field_of(FieldType::text, std::move(name), std::move(help), std::move(default_value));
  field.choices = std::move(choices);
  return field;
}

}  // namespace mase
