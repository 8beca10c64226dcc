// SPDX-License-Identifier: Apache-2.0
// Values as Python prints them, because MASE's reports are Python dicts: repr() and pprint.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "mase/base/text.h"
#include "mase/base/value.h"

namespace mase {
namespace {

std::string python_quoted(const std::string& text) {
  const char quote =
      text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\')
      out += std::string("\\") + c;
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + quote;
}

std::vector<const Dict::Item*> sorted_items(const Dict& dict) {
  std::vector<const Dict::Item*> items;
  for (const Dict::Item& item : dict) items.push_back(&item);
  std::sort(items.begin(), items.end(), [](auto* a, auto* b) { return a->first < b->first; });
  return items;
}

std::string repr(const Value& value, bool sorted) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_double()) return python_float(value.as_double());
  if (value.is_string()) return python_quoted(value.as_string());
  if (value.is_symbol()) return value.symbol();
  std::vector<std::string> parts;
  if (value.is_list()) {
    for (const Value& item : value.as_list()) parts.push_back(repr(item, sorted));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (sorted) {
    for (const Dict::Item* item : sorted_items(value.as_dict()))
      parts.push_back(python_quoted(item->first) + ": " + repr(item->second, sorted));
  } else {
    for (const auto& [key, item] : value.as_dict())
      parts.push_back(python_quoted(key) + ": " + repr(item, sorted));
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

// pprint breaks a long text at blanks, and at its own line ends; the pieces stand below each other.
void pprint_text(const std::string& text, int column, int closing, int width, bool top,
                 std::string& out) {
  if (top) ++column, ++closing;
  std::vector<std::string> lines, chunks;
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    const size_t stop = end == std::string::npos ? text.size() : end + 1;
    lines.push_back(text.substr(start, stop - start));
    start = stop;
  }
  const auto fits = [&](const std::string& piece, bool last) {
    return display_width(python_quoted(piece)) <= width - column - (last ? closing : 0);
  };
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool last_line = i + 1 == lines.size();
    const std::string& line = lines[i];
    if (fits(line, last_line)) {
      chunks.push_back(python_quoted(line));
      continue;
    }
    std::string current;
    for (size_t at = 0; at < line.size();) {
      size_t end = at;
      while (end < line.size() && !blank(line[end])) ++end;
      while (end < line.size() && blank(line[end])) ++end;
      const std::string part = line.substr(at, end - at);
      if (!fits(current + part, last_line && end == line.size())) {
        if (!current.empty()) chunks.push_back(python_quoted(current));
        current = part;
      } else {
        current += part;
      }
      at = end;
    }
    if (!current.empty()) chunks.push_back(python_quoted(current));
  }
  const bool brackets = top && chunks.size() > 1;
  if (brackets) out += '(';
  for (size_t i = 0; i < chunks.size(); ++i)
    out += (i ? "\n" + std::string(static_cast<size_t>(column), ' ') : "") + chunks[i];
  if (brackets) out += ')';
}

// pprint's rule: a container that fits between `column` and the width (less what must still be
// closed after it) stays on one line; else one item per line, aligned behind the bracket. Numbers
// in a broken list are filled, one per line, as pprint does.
void pprint(const Value& value, int column, int closing, int width, bool top, std::string& out) {
  const std::string line = repr(value, true);
  const bool fits = display_width(line) <= width - column - closing;
  if (!fits && value.is_string() && !value.as_string().empty())
    return pprint_text(value.as_string(), column, closing, width, top, out);
  if (fits || !(value.is_list() || value.is_dict())) {
    out += line;
    return;
  }
  const std::string indent(column + 1, ' ');
  if (value.is_list()) {
    out += '[';
    const List& list = value.as_list();
    for (size_t i = 0; i < list.size(); ++i) {
      const bool last = i + 1 == list.size();
      if (i > 0) out += indent;
      pprint(list[i], column + 1, last ? closing + 1 : 1, width, false, out);
      out += last ? "]" : ",\n";
    }
    if (list.empty()) out += ']';
    return;
  }
  out += '{';
  const std::vector<const Dict::Item*> items = sorted_items(value.as_dict());
  for (size_t i = 0; i < items.size(); ++i) {
    const bool last = i + 1 == items.size();
    if (i > 0) out += indent;
    const std::string key = python_quoted(items[i]->first) + ": ";
    out += key;
    pprint(items[i]->second, column + 1 + display_width(key), last ? closing + 1 : 1, width, false,
           out);
    out += last ? "}" : ",\n";
  }
}

}  // namespace

std::string python_float(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  const double magnitude = std::abs(number);
  if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16)) {
    std::string text = fmt::format("{:e}", number);  // shortest digits need the general form
    std::string shortest = fmt::format("{}", number);
    if (shortest.find('e') != std::string::npos) return shortest;
    for (int digits = 0; digits < 17; ++digits) {
      text = fmt::format("{:.{}e}", number, digits);
      if (std::strtod(text.c_str(), nullptr) == number) break;
    }
    return text;
  }
  std::string text = fmt::format("{}", number);
  if (text.find('e') != std::string::npos) {  // fmt switches to exponents before Python does
    for (int digits = 0; digits < 25; ++digits) {
      text = fmt::format("{:.{}f}", number, digits);
      if (std::strtod(text.c_str(), nullptr) == number) break;
    }
  }
  return text.find_first_of(".") == std::string::npos ? text + ".0" : text;
}

std::string python_repr(const Value& value) { return repr(value, false); }

std::string python_pprint(const Value& value, int width) {
  std::string out;
  pprint(value, 0, 0, width, true, out);
  return out;
}

}  // namespace mase
