// SPDX-License-Identifier: Apache-2.0
#include "mase/search/storages/sql_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "mase/base/text.h"
#include "mase/search/storages/python_json.h"

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

SqlRows::SqlRows(std::string into, std::vector<SqlColumn> columns, std::string rest)
    : into_(std::move(into)), rest_(std::move(rest)), rows_{std::move(columns)} {}

void SqlRows::add(std::vector<SqlValue> row) {
  MASE_CHECK(row.size() == rows_.columns.size(), "a value for each column");
  std::move(row.begin(), row.end(), std::back_inserter(rows_.values));
}

std::vector<SqlStatement> SqlRows::statements(const SqlConnection& db) const {
  std::vector<std::string> names;
  for (const SqlColumn& column : rows_.columns) names.push_back(column.name);
  const std::string columns = join(names, ", ");
  // Without a condition SQLite takes "ON CONFLICT" for that of a join.
  return db.with_rows(rows_,
                      fmt::format("INSERT INTO {} ({}) SELECT {} FROM ", into_, columns, columns),
                      " WHERE true" + rest_);
}

void SqlRows::write(const SqlConnection& db, std::vector<SqlStatement>& all) const {
  for (SqlStatement& one : statements(db)) all.push_back(std::move(one));
}

// There are few sizes of statements, so that the database plans few.
std::vector<SqlStatement> SqlConnection::with_rows(const SqlTable& rows, const std::string& before,
                                                   const std::string& after) const {
  constexpr size_t most_rows = 64;
  const size_t columns = rows.columns.size();
  std::string named;
  for (size_t c = 0; c < columns; ++c)
    named += fmt::format("{}column{} AS {}", c ? ", " : "", c + 1, rows.columns[c].name);
  std::vector<SqlStatement> all;
  for (size_t at = 0; at < rows.values.size();) {
    const size_t left = (rows.values.size() - at) / columns;
    size_t count = most_rows;
    while (count > left) count /= 2;
    std::string sql = before + "(SELECT " + named + " FROM (VALUES ";
    for (size_t r = 0, number = 1; r < count; ++r) {
      sql += r ? ", (" : "(";
      for (size_t c = 0; c < columns; ++c) sql += fmt::format("{}${}", c ? ", " : "", number++);
      sql += ")";
    }
    const auto first = rows.values.begin() + static_cast<int64_t>(at);
    at += count * columns;
    all.push_back(
        {sql + ")) AS given" + after, {first, rows.values.begin() + static_cast<int64_t>(at)}});
  }
  return all;
}

AttributeRows::AttributeRows(const std::string& table, bool fresh)
    : SqlRows(table, {{"trial_id", "integer"}, {"key", "text"}, {"value_json", "text"}},
              fresh ? ""
                    : " ON CONFLICT (trial_id, key) DO UPDATE SET value_json = "
                      "excluded.value_json") {}

void AttributeRows::add(int64_t trial, const Dict& attributes) {
  for (const auto& [key, value] : attributes) SqlRows::add({trial, key, write_python_json(value)});
}

}  // namespace mase::search
