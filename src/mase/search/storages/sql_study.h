// SPDX-License-Identifier: Apache-2.0
// One study in a database, as the storage works on it: sql_storage.cpp has the study and its
// transactions, sql_news.cpp what others did, sql_writes.cpp what was begun and ended here,
// sql_retry.cpp trials whose process died.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mase/search/storages/heartbeat.h"
#include "mase/search/storages/sql_storage.h"
#include "mase/search/study/trial.h"

namespace mase::search {

constexpr const char* process_key = "mase:process";

class SqlStudy final : public Storage {
 public:
  explicit SqlStudy(std::function<std::unique_ptr<SqlConnection>()> connect);
  ~SqlStudy() override;

  std::vector<std::string> studies() override;
  StoredStudy stored_study(const std::string& name) override;
  void open_study(const StudyHeader& header) override;
  Dict said_first(const Dict& attributes) override;
  int64_t agreed(const std::string& name, int64_t proposed) override;
  bool shared() const override { return true; }
  bool changed() override { return db_->changed(); }
  void beat(double seconds) override;
  void exclusively(const std::function<bool()>& change) override;
  void wait(std::chrono::milliseconds longest) override { db_->wait(longest); }
  std::vector<Trial> news(const Space& space) override;
  // Two ways to be lost: the process is not among those of this machine any more, or the database
  // has not heard of it for long. Without a sign of life ever (Optuna's default) none.
  bool retry_lost(double seconds) override;
  bool begin(const Space& space, Trial& trial) override;
  void report(const Trial& trial, int64_t step, double value) override;
  void finish(const Space& space, const Trial& trial) override;
  void flush() override;

 private:
  struct Known {
    int64_t number = 0;
    TrialState state = TrialState::waiting;
    bool told = false;   // news had it
    bool whole = false;  // with all its parameters
  };

  int64_t whole(const std::optional<std::string>& text) const;
  int64_t id(const std::vector<SqlRow>& rows) const { return whole(rows.at(0).at(0)); }
  std::vector<SqlRow> rows_of(const std::string& sql) { return db_->run(sql, {study_}); }
  // What somebody said first stays.
  void set_study_attribute(const std::string& key, const Value& value);
  void flush_if_due();
  std::vector<Trial> trials_of(const Space& space, const std::vector<SqlRow>& rows);
  Trial outline(const SqlRow& row) const;  // number, state and times
  // Everything else about these trials, and their parameters.
  std::vector<std::vector<StoredParameter>> fill(const std::map<int64_t, size_t>& place,
                                                 std::vector<Trial>& all);
  // News count what is new; without them in this transaction others may have added some.
  int64_t count_trials();
  // New trials get their numbers and ids in one go, in the order in which they were begun.
  std::vector<int64_t> insert_trials(const std::vector<const Trial*>& trials);
  // Everything about the trials that were begun in this transaction; about new ones, of which the
  // database has nothing yet, or about others.
  void write_begun();
  void write_begun(bool fresh, const std::vector<const Trial*>& trials);
  // As Optuna's own callback does it: the trial fails, and its configuration waits under a new
  // number, with the numbers it had.
  void retry(int64_t key);
  void write_later();
  SqlStatement news_statement() const;
  // The ends of trials that were still ours. Whoever was taken for dead meanwhile has lost the
  // trial: it failed, and nothing that comes late overwrites what others made of it.
  std::vector<SqlStatement> end_statements() const;
  void write_ends(const std::set<int64_t>& updated);
  // Somebody took us for dead: if the configuration still waits, this is its result.
  std::optional<int64_t> waiting_copy(const Trial& trial);
  const std::string& distribution_text(size_t parameter);

  std::function<std::unique_ptr<SqlConnection>()> connect_;
  std::unique_ptr<SqlConnection> db_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::string process_;
  int64_t study_ = 0;
  const Space* space_ = nullptr;
  bool inside_ = false, begun_ = false;      // a transaction; something was begun in it
  bool counted_ = false, all_seen_ = false;  // in this transaction: the trials, by news
  std::vector<Trial> ended_;                 // and not written yet
  std::vector<Trial> starting_;              // in this transaction
  std::vector<SqlStatement> later_;          // of the transaction, in one go at its end
  std::map<int64_t, Known> known_;           // by trial_id
  std::set<int64_t> unfinished_;             // that others may change, by trial_id
  std::map<int64_t, int64_t> ids_;           // trial_id by number
  int64_t last_seen_ = -1, seen_ = 0, count_ = 0;
  std::map<size_t, std::string> distributions_;
  std::map<std::string, Distribution> known_distributions_;  // the same text many times
  std::chrono::steady_clock::time_point last_write_ = std::chrono::steady_clock::now();
};

}  // namespace mase::search
