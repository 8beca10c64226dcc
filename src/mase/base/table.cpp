// SPDX-License-Identifier: Apache-2.0
#include "mase/base/table.h"

#include <algorithm>

#include "mase/base/error.h"
#include "mase/base/text.h"

namespace mase {
namespace {

bool is_numeric(const std::string& cell) {
  return cell.empty() || parse_number(replace_all(cell, ",", "")).has_value();
}

std::string dashes(int count, char c = '-') { return std::string(std::max(0, count), c); }

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  return '"' + replace_all(cell, "\"", "\"\"") + '"';
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  MASE_CHECK(row.size() == header_.size(), "{} cells in a table of {}", row.size(), header_.size());
  rows_.push_back(std::move(row));
}

void Table::add_rule() { rules_.push_back(rows_.size()); }

std::string Table::str(TableStyle style) const {
  const size_t columns = header_.size();
  std::vector<int> widths(columns);
  std::vector<bool> right(columns, !rows_.empty());
  for (size_t c = 0; c < columns; ++c) {
    // tabulate gives headers of its bordered styles two blanks more than it needs
    widths[c] = display_width(header_[c]) + (style == TableStyle::simple ? 0 : 2);
    bool any = false;
    for (const auto& row : rows_) {
      for (const std::string& line : split(row[c], '\n'))
        widths[c] = std::max(widths[c], display_width(line));
      right[c] = right[c] && is_numeric(row[c]);
      any = any || !row[c].empty();
    }
    right[c] = right[c] && any;
  }

  const auto rule = [&](char left, char cross, char end, char fill) {
    std::string line(1, left);
    for (size_t c = 0; c < columns; ++c)
      line += (c ? std::string(1, cross) : "") + dashes(widths[c] + 2, fill);
    return line + end + "\n";
  };
  const bool bordered = style != TableStyle::simple;
  const auto row_text = [&](const std::vector<std::string>& cells) {
    std::vector<std::vector<std::string>> lines;
    size_t height = 1;
    for (const std::string& cell : cells) {
      lines.push_back(split(cell, '\n'));
      height = std::max(height, lines.back().size());
    }
    std::string text;
    for (size_t h = 0; h < height; ++h) {
      std::string line = bordered ? "|" : "";
      for (size_t c = 0; c < columns; ++c) {
        const std::string part = h < lines[c].size() ? lines[c][h] : "";
        const std::string padded =
            right[c] ? pad_left(part, widths[c]) : pad_right(part, widths[c]);
        line += bordered ? " " + padded + " |" : (c ? "  " : "") + padded;
      }
      if (!bordered) line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  };

  std::string out;
  const auto simple_rule = [&] {
    std::string line;
    for (size_t c = 0; c < columns; ++c) line += (c ? "  " : "") + dashes(widths[c]);
    return line + "\n";
  };
  if (style == TableStyle::grid) out += rule('+', '+', '+', '-');
  out += row_text(header_);
  if (style == TableStyle::grid) out += rule('+', '+', '+', '=');
  if (style == TableStyle::orgtbl) out += rule('|', '+', '|', '-');
  if (style == TableStyle::simple) out += simple_rule();
  if (style == TableStyle::pipe) {
    std::string line = "|";
    for (size_t c = 0; c < columns; ++c)
      line += right[c] ? dashes(widths[c] + 1) + ":|" : ":" + dashes(widths[c] + 1) + "|";
    out += line + "\n";
  }
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (style == TableStyle::simple && std::count(rules_.begin(), rules_.end(), r))
      out += simple_rule();
    out += row_text(rows_[r]);
    if (style == TableStyle::grid) out += rule('+', '+', '+', '-');
  }
  return out;
}

std::string Table::csv() const {
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::vector<std::string> parts;
    for (const std::string& cell : cells) parts.push_back(csv_cell(cell));
    out += join(parts, ",") + "\n";
  };
  line(header_);
  for (const auto& row : rows_) line(row);
  return out;
}

}  // namespace mase
