// SPDX-License-Identifier: Apache-2.0
// A transaction that is rolled back unless it was committed.
#pragma once

#include <vector>

#include "mase/base/error.h"
#include "mase/search/storages/sql_storage.h"

namespace mase::search {

class SqlTransaction {
 public:
  SqlTransaction(SqlConnection& db, const std::vector<SqlStatement>& first) : db_(db) {
    try {
      results_ = db_.run_all(first);
    } catch (...) {
      roll_back();
      throw;
    }
  }
  ~SqlTransaction() {
    if (!done_) roll_back();
  }
  SqlTransaction(const SqlTransaction&) = delete;
  SqlTransaction& operator=(const SqlTransaction&) = delete;
  const std::vector<std::vector<SqlRow>>& results() const { return results_; }
  void commit(std::vector<SqlStatement> last = {}) const {
    last.push_back({"COMMIT"});
    db_.run_all(last);
    done_ = true;
  }

 private:
  void roll_back() const {
    try {
      db_.run_all({});  // what failed before is told here, so that the next is heard
    } catch (const Error&) {
    }
    try {
      db_.run("ROLLBACK");
    } catch (const Error&) {  // none was begun, or the connection is gone and with it all of it
    }
  }

  SqlConnection& db_;
  mutable bool done_ = false;
  std::vector<std::vector<SqlRow>> results_;
};

}  // namespace mase::search
