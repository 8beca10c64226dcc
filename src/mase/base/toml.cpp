// SPDX-License-Identifier: Apache-2.0
// TOML in and out, through toml++. toml++ sorts tables by key; passes run in file order, so items
// are put back into the order in which they were written.
#include <algorithm>
#include <cmath>

#include "mase/base/file.h"
#include "mase/base/value.h"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace mase {
namespace {

constexpr int deepest = 64;  // toml++ recurses, and so do we

struct Converter {
  std::shared_ptr<const std::string> file;

  Position where(const toml::node& node) const {
    return {file, static_cast<int>(node.source().begin.line),
            static_cast<int>(node.source().begin.column)};
  }

  Value convert(const toml::node& node, int depth) const {
    if (depth > deepest) throw Error(where(node), "", "tables are nested too deeply");
    Value value;
    if (const auto* table = node.as_table()) {
      struct Entry {
        const toml::key* key;
        const toml::node* node;
      };
      std::vector<Entry> entries;
      for (const auto& [key, child] : *table) entries.push_back({&key, &child});
      std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.key->source().begin < b.key->source().begin;
      });
      Dict dict;
      for (const Entry& entry : entries) {
        Value child = convert(*entry.node, depth + 1);
        const auto& begin = entry.key->source().begin;
        child.at({file, static_cast<int>(begin.line), static_cast<int>(begin.column)});
        dict.set(std::string(entry.key->str()), std::move(child));
      }
      value = std::move(dict);
    } else if (const auto* array = node.as_array()) {
      List list;
      for (const auto& child : *array) list.push_back(convert(child, depth + 1));
      value = std::move(list);
    } else if (const auto* boolean = node.as_boolean()) {
      value = boolean->get();
    } else if (const auto* integer = node.as_integer()) {
      value = static_cast<int64_t>(integer->get());
    } else if (const auto* number = node.as_floating_point()) {
      value = number->get();
    } else if (const auto* text = node.as_string()) {
      value = text->get();
    } else {
      throw Error(where(node), "", "dates and times have no meaning here", "write them as text");
    }
    value.at(where(node));
    return value;
  }
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string key_text(const std::string& key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
  return bare ? key : quoted(key);
}

std::string inline_text(const Value& value) {
  if (value.is_null()) return "\"NA\"";  // TOML has no null; MASE writes None as "NA"
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_double()) {
    const double number = value.as_double();
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    std::string text = fmt::format("{}", number);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  if (value.is_string()) return quoted(value.as_string());
  if (value.is_symbol()) return quoted(value.symbol());
  std::vector<std::string> parts;
  if (value.is_list()) {
    for (const Value& item : value.as_list()) parts.push_back(inline_text(item));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  for (const auto& [key, item] : value.as_dict())
    parts.push_back(key_text(key) + " = " + inline_text(item));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

void write_table(const Dict& dict, const std::string& path, std::string& out) {
  for (const auto& [key, value] : dict)
    if (!value.is_dict()) out += key_text(key) + " = " + inline_text(value) + "\n";
  for (const auto& [key, value] : dict) {
    if (!value.is_dict()) continue;
    const std::string inner = path.empty() ? key_text(key) : path + "." + key_text(key);
    const Dict& table = value.as_dict();
    const bool only_tables = !table.empty() && std::all_of(table.begin(), table.end(), [](auto& i) {
      return i.second.is_dict();
    });
    if (!only_tables) out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", inner);
    write_table(table, inner, out);
  }
}

}  // namespace

Value parse_toml(const std::string& text, const std::string& file_name) {
  auto file = std::make_shared<const std::string>(file_name);
  try {
    const toml::table table = toml::parse(text, file_name);
    return Converter{file}.convert(table, 0);
  } catch (const toml::parse_error& error) {
    throw Error(Position{file, static_cast<int>(error.source().begin.line), 0}, "",
                fmt::format("not valid TOML: {}", error.description()),
                "see https://toml.io for the syntax");
  }
}

Value read_toml(const std::string& path) { return parse_toml(read_text_file(path), path); }

std::string to_toml(const Value& value) {
  std::string out;
  write_table(value.as_dict(), "", out);
  return out;
}

}  // namespace mase
