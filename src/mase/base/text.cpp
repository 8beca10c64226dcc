// SPDX-License-Identifier: Apache-2.0
#include "mase/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>
#include <tuple>

namespace mase {
namespace {

// Damerau-Levenshtein distance (neighbouring letters swapped count one): typing mistakes.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

// Length of the UTF-8 sequence starting here, 1 for invalid bytes.
size_t sequence_length(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  size_t length = 1;
  if (byte >= 0xC2 && byte < 0xE0) length = 2;
  if (byte >= 0xE0 && byte < 0xF0) length = 3;
  if (byte >= 0xF0 && byte < 0xF5) length = 4;
  if (at + length > text.size()) return 1;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return 1;
  return length;
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string strip(std::string_view text) {
  const char* blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(blanks) - first + 1));
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

namespace {

// How a name may stand for another, the likeliest first.
enum class Likeness { misspelt, initials, word, none };

// lr is short for learning_rate, epochs for max-epochs.
Likeness short_form(std::string_view name, std::string_view candidate) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  while (!name.empty() && !is_letter(name.front())) name.remove_prefix(1);
  if (name.size() < 2) return Likeness::none;
  std::string initials, word;
  bool has_word = false;
  for (size_t at = 0; at <= candidate.size(); ++at) {
    if (at < candidate.size() && is_letter(candidate[at])) {
      if (word.empty()) initials += candidate[at];
      word += candidate[at];
    } else {
      has_word = has_word || word == name;
      word.clear();
    }
  }
  if (initials == name) return Likeness::initials;
  return has_word ? Likeness::word : Likeness::none;
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates, size_t at_most) {
  constexpr size_t longest = 64;  // distances of longer names are not worth their cost
  if (name.size() > longest) return {};
  struct Near {
    Likeness likeness;
    size_t distance;
    std::string name;
  };
  std::vector<Near> near;
  const std::string wanted = lower_case(name);
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest) continue;
    const std::string lower = lower_case(candidate);
    const size_t distance = edit_distance(wanted, lower);
    const Likeness likeness = distance <= std::max<size_t>(1, name.size() / 3)
                                  ? Likeness::misspelt
                                  : short_form(wanted, lower);
    if (likeness != Likeness::none) near.push_back({likeness, distance, candidate});
  }
  std::sort(near.begin(), near.end(), [](const Near& a, const Near& b) {
    return std::tie(a.likeness, a.distance, a.name) < std::tie(b.likeness, b.distance, b.name);
  });
  std::vector<std::string> names;
  for (const Near& candidate : near)
    if (names.size() < at_most) names.push_back(candidate.name);
  return names;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = nearest_names(name, candidates, 1);
  if (!near.empty()) return fmt::format("did you mean '{}'?", near.front());
  if (candidates.empty()) return "";
  return "known: " + join(candidates, ", ");
}

std::string with_thousands(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) bytes /= 1024, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string human_count(double count) {
  const char* units[] = {"", " K", " M", " G", " T"};
  size_t unit = 0;
  while (std::abs(count) >= 1000 && unit + 1 < std::size(units)) count /= 1000, ++unit;
  return unit == 0 ? fmt::format("{:g}", count) : fmt::format("{:.2f}{}", count, units[unit]);
}

std::string human_seconds(double seconds) {
  const auto whole = static_cast<int64_t>(std::max(0.0, seconds));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{:02}:{:02}", minutes, rest);
}

int display_width(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size(); at += sequence_length(text, at)) ++width;
  return width;
}

std::string pad_right(std::string_view text, int width) {
  return std::string(text) + std::string(std::max(0, width - display_width(text)), ' ');
}

std::string pad_left(std::string_view text, int width) {
  return std::string(std::max(0, width - display_width(text)), ' ') + std::string(text);
}

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return number;
}

std::optional<double> parse_number(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return number;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool control = byte < 0x20 || byte == 0x7F || (length == 1 && byte >= 0x80) ||
                         (byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0);
    if (control)
      for (size_t i = 0; i < length; ++i)
        shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at + i]));
    else
      shown += text.substr(at, length);
    at += length;
  }
  return shown;
}

}  // namespace mase
