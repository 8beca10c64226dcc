// SPDX-License-Identifier: Apache-2.0
// A connection to a PostgreSQL server. Statements are prepared once and sent many at a time, so
// that the way to the server and back is made once for all of them, or not waited for at all: the
// server works on what was sent while the next is made.
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
  // Goes on without the answers: a failure is told by the next run.
  void send(const std::vector<SqlStatement>& statements);
  // Waits for what was sent, too. Answers are those of these statements.
  std::vector<std::vector<SqlRow>> run(const std::vector<SqlStatement>& statements);
  bool told_by_others();
  void wait(std::chrono::milliseconds longest) const;

 private:
  struct Closed {
    void operator()(pg_conn* connection) const;
  };
  void put(const SqlStatement& statement, bool answered);
  void collect(std::vector<std::vector<SqlRow>>& answers);
  [[noreturn]] void fail() const;

  std::string place_;
  std::unique_ptr<pg_conn, Closed> connection_;
  std::map<std::string, std::string> prepared_;  // names by text
  size_t names_ = 0;                             // that were given
  std::vector<std::string> preparing_;           // and not known to be
  std::vector<bool> sent_;                       // and not answered yet: whether somebody asked
};

}  // namespace mase::search
