// SPDX-License-Identifier: Apache-2.0
// A connection to a PostgreSQL server. Statements are prepared once and sent many at a time, so
// that the way to the server and back is made once for all of them.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mase/search/storages/sql_storage.h"

struct pg_conn;

namespace mase::search {

// A column of rows as PostgreSQL reads an array: {1,NULL,"a \"word\""}.
std::string array_text(const SqlTable& rows, size_t column);

class PostgresqlPipeline {
 public:
  PostgresqlPipeline(const std::string& address, std::string place);

  void execute(const std::string& sql);  // one statement or several, without parameters
  std::vector<std::vector<SqlRow>> run(const std::vector<SqlStatement>& statements);
  bool told_by_others();
  void wait(std::chrono::milliseconds longest) const;

 private:
  struct Closed {
    void operator()(pg_conn* connection) const;
  };
  void put(const SqlStatement& statement);
  void collect(std::vector<std::vector<SqlRow>>& answers);
  [[noreturn]] void fail() const;

  std::string place_;
  std::unique_ptr<pg_conn, Closed> connection_;
  std::map<std::string, std::string> prepared_;  // names by text
  size_t names_ = 0;                             // that were given
  std::vector<std::string> preparing_;           // and not known to be
  std::vector<bool> sent_;                       // and not answered yet: whether it has rows
};

}  // namespace mase::search
