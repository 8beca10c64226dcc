// SPDX-License-Identifier: Apache-2.0
// A study in a relational database with Optuna's schema (version 12, unchanged since 3.2). What the
// databases differ in is behind SqlConnection.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mase/search/storage.h"

namespace mase::search {

using SqlValue = std::variant<std::monostate, int64_t, double, std::string>;
using SqlRow = std::vector<std::optional<std::string>>;

class SqlConnection {
 public:
  virtual ~SqlConnection() = default;
  // One statement; parameters are $1, $2, ... Numbers in the result have all their digits.
  virtual std::vector<SqlRow> run(const std::string& sql,
                                  const std::vector<SqlValue>& parameters = {}) = 0;
  virtual void begin() = 0;  // a transaction that excludes other writers
  virtual void make_tables() = 0;
  // Until the end of the transaction no other process gives numbers to trials of this study.
  virtual void lock_study(int64_t study) = 0;
  virtual const std::string& place() const = 0;  // for errors; never a password
};

std::unique_ptr<Storage> make_sql_storage(std::unique_ptr<SqlConnection> connection);

}  // namespace mase::search
