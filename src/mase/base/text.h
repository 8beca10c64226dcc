// SPDX-License-Identifier: Apache-2.0
// Small text functions: nearest names for "did you mean", splitting and joining, numbers as people
// and as Python write them, and display width.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mase {

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string strip(std::string_view text);
std::string lower_case(std::string_view text);
std::string replace_all(std::string text, std::string_view from, std::string_view to);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

// The candidates closest to a misspelt name, nearest first; empty if none is close.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates,
                                       size_t at_most = 3);

// "did you mean 'weight_width'?", or "known: a, b, c" when nothing is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);

std::string with_thousands(int64_t number);  // 3363 -> "3,363"
std::string human_bytes(double bytes);       // 1536 -> "1.5 KB"
std::string human_count(double count);       // 67784 -> "67.78 K"
std::string human_seconds(double seconds);   // 75.2 -> "01:15", 3700 -> "1:01:40"

// Terminal columns a UTF-8 text takes; invalid bytes count one each.
int display_width(std::string_view text);
std::string pad_right(std::string_view text, int width);
std::string pad_left(std::string_view text, int width);

// Strict whole-text conversions: no blanks, no trailing characters, locale-free.
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// Makes control characters visible, so that hostile names cannot drive a terminal.
std::string printable(std::string_view text);

}  // namespace mase
