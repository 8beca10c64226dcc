// SPDX-License-Identifier: Apache-2.0
#include "mase/search/sql_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "mase/base/text.h"
#include "mase/search/python_json.h"

namespace mase::search {

std::pair<SqlValue, std::string> stored_number(double value) {
  if (std::isnan(value)) return {std::monostate{}, "NAN"};
  if (std::isinf(value)) return {std::monostate{}, value > 0 ? "INF_POS" : "INF_NEG"};
  return {value, "FINITE"};
}

double number_from(const std::optional<std::string>& value, const std::string& type) {
  if (type == "INF_POS") return std::numeric_limits<double>::infinity();
  if (type == "INF_NEG") return -std::numeric_limits<double>::infinity();
  if (type == "NAN" || !value) return std::numeric_limits<double>::quiet_NaN();
  return parse_number(*value).value_or(std::numeric_limits<double>::quiet_NaN());
}

SqlValue time_or_null(int64_t microseconds) {
  return microseconds ? SqlValue(iso_time(microseconds)) : SqlValue(std::monostate{});
}

SqlRows::SqlRows(std::string into, size_t columns, std::string rest)
    : into_(std::move(into)), rest_(std::move(rest)), columns_(columns) {}

void SqlRows::add(std::vector<SqlValue> row) {
  MASE_CHECK(row.size() == columns_, "a value for each column");
  std::move(row.begin(), row.end(), std::back_inserter(values_));
}

std::vector<SqlStatement> SqlRows::statements() const {
  constexpr size_t most_rows = 64;
  std::vector<SqlStatement> all;
  for (size_t at = 0; at < values_.size();) {
    const size_t left = (values_.size() - at) / columns_;
    size_t rows = most_rows;
    while (rows > left) rows /= 2;
    std::string sql = "INSERT INTO " + into_ + " VALUES ";
    for (size_t r = 0, number = 1; r < rows; ++r) {
      sql += r ? ", (" : "(";
      for (size_t c = 0; c < columns_; ++c) sql += fmt::format("{}${}", c ? ", " : "", number++);
      sql += ")";
    }
    const auto first = values_.begin() + static_cast<int64_t>(at);
    at += rows * columns_;
    all.push_back({sql + rest_, {first, values_.begin() + static_cast<int64_t>(at)}});
  }
  return all;
}

void SqlRows::write(std::vector<SqlStatement>& all) const {
  for (SqlStatement& one : statements()) all.push_back(std::move(one));
}

AttributeRows::AttributeRows(const std::string& table)
    : SqlRows(table + " (trial_id, key, value_json)", 3,
              " ON CONFLICT (trial_id, key) DO UPDATE SET value_json = excluded.value_json") {}

void AttributeRows::add(int64_t trial, const Dict& attributes) {
  for (const auto& [key, value] : attributes) SqlRows::add({trial, key, write_python_json(value)});
}

}  // namespace mase::search
