// SPDX-License-Identifier: Apache-2.0
// Rows for Optuna's tables, gathered and written many to a statement, and numbers as these tables
// keep them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mase/search/storages/sql_storage.h"

namespace mase::search {

// Objectives may be infinite, values on the way not numbers: a word beside the number says so.
std::pair<SqlValue, std::string> stored_number(double value);
double number_from(const std::optional<std::string>& value, const std::string& type);
SqlValue time_or_null(int64_t microseconds);

class SqlRows {
 public:
  // `rest` is what follows the rows.
  SqlRows(std::string into, std::vector<SqlColumn> columns, std::string rest = "");

  void add(std::vector<SqlValue> row);
  // The statements that insert them, in order.
  std::vector<SqlStatement> statements(const SqlConnection& db) const;
  void write(const SqlConnection& db, std::vector<SqlStatement>& all) const;

 private:
  std::string into_, rest_;
  SqlTable rows_;
};

// Of one kind, (trial_id, key, value_json). A key that is there gets the new value; nothing may be
// added twice. Of new trials there is none yet, and not to look for it costs less.
class AttributeRows : public SqlRows {
 public:
  explicit AttributeRows(const std::string& table, bool fresh = false);
  void add(int64_t trial, const Dict& attributes);
};

}  // namespace mase::search
