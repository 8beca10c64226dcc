// SPDX-License-Identifier: Apache-2.0
// Text tables in the styles MASE's reports use (tabulate's names): cells may hold several lines;
// columns of numbers are aligned right.
#pragma once

#include <string>
#include <vector>

namespace mase {

enum class TableStyle {
  simple,  // header, a rule of dashes, rows
  grid,    // +---+---+ around every cell, === under the header
  orgtbl,  // | a | b | with |---+---| under the header
  pipe,    // Markdown
};

class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}

  void add(std::vector<std::string> row);
  void add_rule();  // a separating line before the next row (simple style)
  size_t rows() const { return rows_.size(); }

  std::string str(TableStyle style = TableStyle::simple) const;
  std::string csv() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> rules_;
};

}  // namespace mase
