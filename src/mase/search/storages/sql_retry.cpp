// SPDX-License-Identifier: Apache-2.0
// Trials whose process died: they fail, and their configurations wait to be tried again.
#include "mase/search/storages/python_json.h"
#include "mase/search/storages/sql_rows.h"
#include "mase/search/storages/sql_study.h"
#include "mase/search/study/study.h"

namespace mase::search {
namespace {

constexpr size_t most_retries = 5;  // of a configuration that takes its process with it each time

}  // namespace

bool SqlStudy::retry_lost(double seconds) {
  if (unfinished_.empty()) return false;
  const std::vector<int64_t> open(unfinished_.begin(), unfinished_.end());
  std::vector<int64_t> lost;
  for (const SqlRow& row :
       db_->run(fmt::format("SELECT t.trial_id, h.heartbeat < {}, a.value_json FROM trials t JOIN "
                            "trial_heartbeats h ON h.trial_id = t.trial_id LEFT JOIN "
                            "trial_system_attributes a ON a.trial_id = t.trial_id AND a.key = $3 "
                            "WHERE {} AND t.state = 'RUNNING' ORDER BY t.trial_id",
                            db_->seconds_ago(2), db_->among("t.trial_id", 1)),
                {db_->list(open), seconds, std::string(process_key)})) {
    const bool silent = row[1] == "1" || row[1] == "t";
    const Value process = row[2] ? parse_python_json(*row[2], db_->place()) : Value();
    if (silent || (process.is_string() && !may_live(process.as_string())))
      lost.push_back(whole(row[0]));
  }
  for (const int64_t key : lost) retry(key);
  if (!lost.empty()) write_later();  // the next news read it
  return !lost.empty();
}

void SqlStudy::retry(int64_t key) {
  db_->run(
      "UPDATE trials SET state = 'FAIL', datetime_complete = $2 WHERE trial_id = $1 AND state = "
      "'RUNNING'",
      {key, iso_time(microseconds_now())});
  const int64_t number = known_[key].number;
  Dict attributes;
  for (const SqlRow& row :
       db_->run("SELECT key, value_json FROM trial_system_attributes WHERE trial_id = $1", {key}))
    attributes.set(row[0].value_or(""), parse_python_json(row[1].value_or("null"), db_->place()));
  attributes.erase(process_key);
  if (!attributes.contains("failed_trial")) attributes.set("failed_trial", number);
  const Value* before = attributes.find("retry_history");
  List history = before && before->is_list() ? before->as_list() : List{};
  history.emplace_back(number);
  if (history.size() > most_retries) return;
  attributes.set("retry_history", std::move(history));
  Trial waiting;
  waiting.state = TrialState::waiting;
  waiting.stored = count_trials();
  ++count_;
  const int64_t copy = insert_trials({&waiting}).at(0);
  unfinished_.insert(copy);  // the next news have it
  db_->run(
      "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) SELECT "
      "CAST($2 AS INTEGER), param_name, param_value, distribution_json FROM trial_params WHERE "
      "trial_id = $1 "
      "ORDER BY param_id",
      {key, copy});
  db_->run(
      "INSERT INTO trial_user_attributes (trial_id, key, value_json) SELECT CAST($2 AS "
      "INTEGER), key, value_json FROM trial_user_attributes WHERE trial_id = $1",
      {key, copy});
  AttributeRows rows("trial_system_attributes");
  rows.add(copy, attributes);
  rows.write(*db_, later_);
  begun_ = true;
}

}  // namespace mase::search
