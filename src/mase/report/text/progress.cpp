// SPDX-License-Identifier: Apache-2.0
#include "mase/report/text/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mase/base/text.h"
#include "mase/base/value.h"

namespace mase {
namespace {

std::string repeated(const std::string& piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

std::string bar_text(double share, int width, bool ascii) {
  static const char* const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int steps = ascii ? 10 : 8;
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * width * steps);
  const int whole = filled / steps, rest = filled % steps;
  std::string text = repeated(ascii ? "#" : "█", whole);
  int used = whole;
  if (whole < width && rest > 0) {
    text += ascii ? std::to_string(rest) : eighths[rest];
    ++used;
  }
  return text + std::string(static_cast<size_t>(width - used), ' ');
}

std::string centred(const std::string& text, int width) {
  const int blanks = std::max(0, width - display_width(text));
  return std::string(static_cast<size_t>(blanks / 2), ' ') + text +
         std::string(static_cast<size_t>(blanks - blanks / 2), ' ');
}

std::string without_trailing_blanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

std::string progress_text(const ProgressLine& line, int columns, bool ascii) {
  const double share =
      line.total > 0 ? static_cast<double>(line.done) / static_cast<double>(line.total) : 0;
  const double rate = line.seconds > 0 ? static_cast<double>(line.done) / line.seconds : 0;
  const std::string remaining =
      rate > 0 ? human_seconds(static_cast<double>(line.total - line.done) / rate) : "?";
  const std::string left = fmt::format("{}: {:3.0f}%|", line.title, 100 * share);
  std::string right = fmt::format("| {}/{} [{}<{}, ", line.done, line.total,
                                  human_seconds(line.seconds), remaining);
  right += rate > 0 ? fmt::format("{:5.2f}it/s", rate) : "?it/s";
  for (const auto& [name, value] : line.postfix) right += fmt::format(", {}={}", name, value);
  right += "]";
  const int free_columns = columns > 0 ? columns - display_width(left) - display_width(right) : 10;
  if (free_columns >= 1) return left + bar_text(share, free_columns, ascii) + right;
  // Too narrow for all: the bar goes first, then the rate, then figures from the left, as the last
  // ones (validation) say most. What is left is cut instead of letting it wrap and scroll.
  std::string text =
      fmt::format("{}: {:3.0f}% {}/{}", line.title, 100 * share, line.done, line.total);
  size_t first = line.postfix.size();
  int used = display_width(text);
  while (first > 0) {
    const auto& [name, value] = line.postfix[first - 1];
    used += 2 + display_width(name) + display_width(value) + 1;
    if (used > columns) break;
    --first;
  }
  for (size_t i = first; i < line.postfix.size(); ++i)
    text += fmt::format("{} {}={}", i == first ? "" : ",", line.postfix[i].first,
                        line.postfix[i].second);
  while (columns > 0 && !text.empty() && display_width(text) > columns) text.pop_back();
  return text;
}

std::string metric_box(const std::string& title,
                       const std::vector<std::pair<std::string, double>>& metrics, int columns) {
  const std::string column = "DataLoader 0";
  size_t longest = std::max<size_t>(column.size(), 25);
  for (const auto& [name, value] : metrics) longest = std::max(longest, name.size());
  const int width = std::min(static_cast<int>(longest), columns / 2);
  const std::string rule = repeated("─", columns) + "\n";
  std::string text =
      rule + without_trailing_blanks(centred(title, width) + centred(column, width)) + "\n" + rule;
  for (const auto& [name, value] : metrics)
    text +=
        without_trailing_blanks(centred(name, width) + centred(python_float(value), width)) + "\n";
  return text + rule;
}

}  // namespace mase
