// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mase/base/figure.h"
#include "mase/base/text.h"

namespace mase::shown {

const Value& entry(const Value& dict, const char* key) {
  static const Value none;
  return dict.is_dict() ? dict[key] : none;
}

const List& items(const Value& value) {
  static const List none;
  return value.is_list() ? value.as_list() : none;
}

std::optional<double> number(const Value& value) {
  if (!value.is_number() || !std::isfinite(value.as_double())) return {};
  return value.as_double();
}

std::string word(const Value& value) { return value.is_string() ? value.as_string() : ""; }

std::string text(const Value& value) {
  if (value.is_null()) return "–";
  if (value.is_string()) return value.as_string();
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_number()) return brief(value.as_double(), 6);
  std::vector<std::string> parts;
  if (value.is_list()) {
    for (const Value& item : value.as_list()) parts.push_back(text(item));
    return "[" + join(parts, ", ") + "]";
  }
  if (!value.is_dict()) return python_repr(value);
  for (const auto& [key, item] : value.as_dict()) parts.push_back(key + ": " + text(item));
  return join(parts, ", ");
}

std::string file_name(const Value& value) {
  std::string name = text(value);
  if (name.find_first_of(" \t\n") != std::string::npos) return name;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  const size_t slash = name.rfind('/');
  return slash == std::string::npos || slash + 1 == name.size() ? name : name.substr(slash + 1);
}

std::string shape(const Value& value) {
  if (!value.is_list()) return value.is_null() ? "" : text(value);
  const List& all = value.as_list();
  const bool flat =
      std::all_of(all.begin(), all.end(), [](const Value& v) { return v.is_number(); });
  std::vector<std::string> parts;
  for (const Value& item : all) parts.push_back(flat ? text(item) : shape(item));
  return join(parts, flat ? " × " : ", ");
}

std::string brief(const std::optional<double>& value, int digits) {
  if (!value) return "–";
  if (!std::isfinite(*value)) return std::isnan(*value) ? "NaN" : *value > 0 ? "∞" : "−∞";
  const double size = std::abs(*value);
  if (size > 0 && (size < 1e-3 || size >= 1e7)) return fmt::format("{:.{}g}", *value, digits - 1);
  if (*value == std::round(*value)) return whole(value);
  return fmt::format("{:.{}g}", *value, std::max(digits, static_cast<int>(std::log10(size)) + 1));
}

std::string whole(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return "–";
  if (std::abs(*value) > 1e15) return fmt::format("{:.6g}", *value);
  return with_thousands(std::llround(*value));
}

std::string percent(const std::optional<double>& value, int digits) {
  return value && std::isfinite(*value) ? figure_text(100 * *value, digits) + " %" : "–";
}

std::string points(const std::optional<double>& before, const std::optional<double>& after) {
  if (!before || !after) return "–";
  return (*after >= *before ? "+" : "−") + figure_text(100 * std::abs(*after - *before), 2) +
         " points";
}

std::string duration(const std::optional<double>& seconds) {
  if (!seconds || *seconds < 0 || *seconds > 1e10) return "–";
  if (*seconds < 1) return fmt::format("{:.0f} ms", 1000 * *seconds);
  if (*seconds < 60) return fmt::format("{:.1f} s", *seconds);
  const auto total = static_cast<int64_t>(std::llround(*seconds));
  if (total >= 3600) return fmt::format("{} h {:02} min", total / 3600, total / 60 % 60);
  return fmt::format("{} min {:02} s", total / 60, total % 60);
}

std::string date(const Value& value) {
  std::string given = word(value);
  if (given.size() < 19 || given[10] != 'T') return given;
  given[10] = ' ';
  return given.substr(0, 19);
}

std::string key(const std::optional<double>& value) {
  return value ? fmt::format("{:.9g}", *value) : "";
}

}  // namespace mase::shown
