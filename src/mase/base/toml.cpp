// SPDX-License-Identifier: Apache-2.0
// TOML in and out, through toml++. toml++ sorts tables by key; passes run in file order, so items
// are put back into the order in which they were written.
#include <algorithm>
#include <cmath>

#include "mase/base/file.h"
#include "mase/base/value.h"

// What it would assert comes as an error a step later.
#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

namespace mase {
namespace {

constexpr int deepest_table = 64;
constexpr size_t largest_text = size_t{8} << 20;
constexpr int most_key_parts = 32;
constexpr int deepest_bracket = 32;
constexpr size_t most_values = 100'000;

// The length of a letter outside ASCII in UTF-8, and the escape TOML has for it.
std::string escaped_letter(const std::string& text, size_t at, size_t& length) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at);
  length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  unsigned letter = first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0u) != 0x80u) return length = 1, text.substr(at, 1);  // not UTF-8
    letter = letter << 6 | (byte(at + i) & 0x3Fu);
  }
  return fmt::format("\\U{:08X}", letter);
}

// toml++ follows keys and brackets by recursion and keeps hundreds of bytes for a value of one, so
// what is too deep or too much is found before it looks: dots between two separators are the parts
// of one key, and commas, equal signs and lines are the values. Quotes and comments are skipped.
// It also asks of some letters whether they are blanks, which toml++ 3.3 takes for impossible (any
// accented one; undefined behaviour): outside quotes TOML has no such letters, and the first one
// after a line's closing backslash, where they are right, is handed on as its escape.
std::string checked_text(const std::string& text, const std::shared_ptr<const std::string>& file) {
  int line = 1, dots = 0, brackets = 0;
  size_t values = 0, copied = 0;
  std::string out;
  const auto refuse = [&](const char* cause) { throw Error(Position{file, line, 0}, "", cause); };
  if (text.size() > largest_text) refuse("the file is larger than 8 MB, which no config is");
  const size_t mark = text.compare(0, 3, "\xEF\xBB\xBF") == 0 ? 3 : 0;  // the byte order's
  for (size_t i = mark; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '#':
        i = std::min(text.find('\n', i), text.size()) - 1;
        break;
      case '"':
      case '\'': {
        const bool many = text.compare(i, 3, std::string(3, c)) == 0;
        const size_t quote = many ? 3 : 1;
        size_t at = i + quote;
        // To the closing quote; a line that ends first is toml++'s to complain about.
        while (at < text.size() && text.compare(at, quote, std::string(quote, c)) != 0 &&
               (many || text[at] != '\n')) {
          const bool escape = text[at] == '\\' && c == '"';
          if (escape && many) {
            size_t next = text.find_first_not_of(" \t\r\n", at + 1);
            next = std::min(next, text.size());
            line += static_cast<int>(std::count(text.begin() + static_cast<ptrdiff_t>(at),
                                                text.begin() + static_cast<ptrdiff_t>(next), '\n'));
            const bool continued = next > at + 1;
            if (next < text.size() && (text[next] & 0x80) != 0) {
              if (!continued) refuse("not valid TOML: no escape begins with this letter");
              size_t length = 0;
              out.append(text, copied, next - copied);
              out += escaped_letter(text, next, length);
              copied = next + length;
              at = copied;
              continue;
            }
            if (continued) {
              at = next;
              continue;
            }
          }
          if (escape) ++at;
          line += at < text.size() && text[at] == '\n';
          ++at;
        }
        i = !many && at < text.size() && text[at] == '\n' ? at - 1 : at + quote - 1;
        // Such a text may end in one or two quotes of its own.
        for (int own = 0; many && own < 2 && i + 1 < text.size() && text[i + 1] == c; ++own) ++i;
        break;
      }
      case '.':
        if (++dots >= most_key_parts) refuse("a key has too many parts");
        break;
      case '[':
      case '{':
        dots = 0;
        if (++brackets > deepest_bracket) refuse("values are nested too deeply");
        break;
      case ']':
      case '}':
        brackets = std::max(0, brackets - 1);
        break;
      case '\n':
        ++line;
        [[fallthrough]];
      case ',':
      case '=':
        dots = 0;
        if (++values > most_values) refuse("the file has more than 100,000 values");
        break;
      default:
        if ((c & 0x80) != 0)
          throw Error(Position{file, line, 0}, "",
                      "not valid TOML: a letter outside ASCII that is not in quotes",
                      "put quotes around the name or the text");
        break;
    }
  }
  return out.append(text, copied);
}

struct Converter {
  std::shared_ptr<const std::string> file;

  Position where(const toml::node& node) const {
    return {file, static_cast<int>(node.source().begin.line),
            static_cast<int>(node.source().begin.column)};
  }

  Value convert(const toml::node& node, int depth) const {
    if (depth > deepest_table) throw Error(where(node), "", "tables are nested too deeply");
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
        child.set_position({file, static_cast<int>(begin.line), static_cast<int>(begin.column)});
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
    value.set_position(where(node));
    return value;
  }
};

std::string toml_quoted(const std::string& text) {
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
  return bare ? key : toml_quoted(key);
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
  if (value.is_string()) return toml_quoted(value.as_string());
  if (value.is_symbol()) return toml_quoted(value.symbol());
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
  const std::string checked = checked_text(text, file);
  try {
    const toml::table table = toml::parse(checked, file_name);
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
