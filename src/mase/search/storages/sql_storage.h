// SPDX-License-Identifier: Apache-2.0
// A study in a relational database with Optuna's schema (version 12, unchanged since 3.2). What the
// databases differ in is behind SqlConnection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mase/search/storages/storage.h"

namespace mase::search {

using SqlValue = std::variant<std::monostate, int64_t, double, std::string>;
using SqlRow = std::vector<std::optional<std::string>>;

struct SqlStatement {
  std::string sql;  // parameters are $1, $2, ...
  std::vector<SqlValue> parameters = {};
};

// Rows of parameters, one after the other.
struct SqlColumn {
  std::string name, type;  // as PostgreSQL calls it: an array's type is not guessed
};
struct SqlTable {
  std::vector<SqlColumn> columns;
  std::vector<SqlValue> values = {};
};

class SqlConnection {
 public:
  virtual ~SqlConnection() = default;
  // Numbers in the result have all their digits.
  virtual std::vector<SqlRow> run(const std::string& sql,
                                  const std::vector<SqlValue>& parameters = {}) = 0;
  // One after the other, in one go where the database is far away; results by statement.
  virtual std::vector<std::vector<SqlRow>> run_all(const std::vector<SqlStatement>& statements);
  // `before`, the rows as a table named "given", `after`; several statements where rows are many.
  virtual std::vector<SqlStatement> with_rows(const SqlTable& rows, const std::string& before,
                                              const std::string& after) const;
  virtual void make_tables() = 0;
  virtual SqlStatement exclusive() const = 0;  // begins a transaction that excludes other writers
  // Begins one that sees the database as it is now.
  virtual SqlStatement snapshot() const { return {"BEGIN"}; }
  // Until the end of the transaction no other process gives numbers to trials of this study.
  virtual std::vector<SqlStatement> lock_study(int64_t /*study*/) const { return {}; }
  std::vector<SqlStatement> exclusive(int64_t study) const;  // both

  // "column is one of the numbers in parameter N", and such a parameter.
  virtual std::string among(const std::string& column, size_t parameter) const = 0;
  virtual SqlValue list(const std::vector<int64_t>& numbers) const = 0;
  // The time so many seconds (parameter N) ago by the database's clock.
  virtual std::string seconds_ago(size_t parameter) const = 0;

  virtual void listen(int64_t /*study*/) {}  // to what others tell of this study
  // Tells them, when the transaction is committed.
  virtual std::vector<SqlStatement> tell(int64_t /*study*/) const { return {}; }
  virtual bool changed() = 0;  // see Storage
  virtual void wait(std::chrono::milliseconds longest);
  virtual const std::string& place() const = 0;  // for errors; never a password
};

// `connect` gives a connection of its own each time: signs of life come from their own thread.
std::unique_ptr<Storage> make_sql_storage(std::function<std::unique_ptr<SqlConnection>()> connect);

}  // namespace mase::search
