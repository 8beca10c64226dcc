// SPDX-License-Identifier: Apache-2.0
// Fields of schemas, written in a line: integer_field("bins", "how many", 64).between(1, 4096)
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mase/base/schema.h"

namespace mase {

// A field of which more can be said.
struct FieldOf : Field {
  FieldOf needed(bool is = true) && { return required = is, std::move(*this); }
  FieldOf from(double least) && { return minimum = least, std::move(*this); }
  FieldOf to(double most) && { return maximum = most, std::move(*this); }
  FieldOf between(double least, double most) && {
    return minimum = least, maximum = most, std::move(*this);
  }
  FieldOf checked(decltype(Field::check) rule) && {
    return check = std::move(rule), std::move(*this);
  }
  FieldOf also(decltype(aliases) names) && { return aliases = std::move(names), std::move(*this); }
  FieldOf without_effect() && { return idle = true, std::move(*this); }
  FieldOf under(std::string heading) && { return group = std::move(heading), std::move(*this); }
};

// By type; without a default it has none.
FieldOf boolean_field(std::string name, std::string help = {}, Value default_value = {});
FieldOf integer_field(std::string name, std::string help = {}, Value default_value = {});
FieldOf number_field(std::string name, std::string help = {}, Value default_value = {});
FieldOf list_field(std::string name, std::string help = {}, Value default_value = {});
FieldOf table_field(std::string name, std::string help = {}, Value default_value = {});
FieldOf any_field(std::string name, std::string help = {}, Value default_value = {});
FieldOf text_field(std::string name, std::string help = {}, Value default_value = {},
                   std::vector<std::string> choices = {});

}  // namespace mase
