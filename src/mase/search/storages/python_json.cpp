// SPDX-License-Identifier: Apache-2.0
#include "mase/search/storages/python_json.h"

#include <cmath>

#include "mase/base/text.h"

namespace mase::search {
namespace {

void write_text(const std::string& text, std::string& out) { out += to_json(Value(text)); }

void write_value(const Value& value, std::string& out) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    out += fmt::format("{}", value.as_int());
  } else if (value.is_double()) {
    const double number = value.as_double();
    if (std::isnan(number))
      out += "NaN";
    else if (std::isinf(number))
      out += number > 0 ? "Infinity" : "-Infinity";
    else
      out += python_float(number);
  } else if (value.is_list()) {
    out += '[';
    bool first = true;
    for (const Value& item : value.as_list()) {
      if (!first) out += ", ";
      first = false;
      write_value(item, out);
    }
    out += ']';
  } else if (value.is_dict()) {
    out += '{';
    bool first = true;
    for (const auto& [key, item] : value.as_dict()) {
      if (!first) out += ", ";
      first = false;
      write_text(key, out);
      out += ": ";
      write_value(item, out);
    }
    out += '}';
  } else {
    write_text(value.is_symbol() ? value.symbol() : value.as_string(), out);
  }
}

// The words JSON lacks, where they stand outside of texts, in the form our reader takes.
std::string without_words(const std::string& text) {
  static const std::pair<std::string_view, std::string_view> words[] = {
      {"-Infinity", R"({"$float":"-inf"})"},
      {"Infinity", R"({"$float":"inf"})"},
      {"NaN", R"({"$float":"nan"})"}};
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    bool replaced = false;
    if (!quoted)
      for (const auto& [word, form] : words)
        if (std::string_view(text).substr(i, word.size()) == word) {
          out += form;
          i += word.size() - 1;
          replaced = true;
          break;
        }
    if (!replaced) out += text[i];
  }
  return out;
}

}  // namespace

Value parse_python_json(const std::string& text, const std::string& place) {
  const bool plain = text.find('N') == std::string::npos && text.find('I') == std::string::npos;
  return parse_json(plain ? text : without_words(text), place);
}

std::string write_python_json(const Value& value) {
  std::string out;
  write_value(value, out);
  return out;
}

}  // namespace mase::search
