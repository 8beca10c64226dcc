// SPDX-License-Identifier: Apache-2.0
// Trials that were begun and ended here, gathered and written in one transaction.
#include <algorithm>
#include <cmath>
#include <utility>

#include "mase/search/storages/python_json.h"
#include "mase/search/storages/sql_rows.h"
#include "mase/search/storages/sql_study.h"

namespace mase::search {
namespace {

// A result that comes too late is kept beside the failure: the trial is being tried again already.
Dict late_result(const Trial& trial) {
  List values;
  for (const double value : trial.values) values.emplace_back(value);
  return {{"late_result", Dict{{"state", state_name(trial.state)}, {"values", std::move(values)}}}};
}

}  // namespace

bool SqlStudy::begin(const Space& space, Trial& trial) {
  if (!inside_) {
    bool begun = false;
    exclusively([&] {
      begun = begin(space, trial);
      return true;
    });
    return begun;
  }
  begun_ = true;
  space_ = &space;
  const auto known = ids_.find(trial.stored);
  if (trial.stored < 0 || known == ids_.end()) {
    trial.stored = count_trials();
    ++count_;
  } else if (db_->run(
                    "UPDATE trials SET state = $2, datetime_start = $3 WHERE trial_id = $1 AND "
                    "state = 'WAITING' RETURNING trial_id",
                    {known->second, std::string(state_name(trial.state)), iso_time(trial.started)})
                 .empty()) {
    return false;  // Optuna takes up what waits without asking for the study
  }
  starting_.push_back(trial);
  return true;
}

void SqlStudy::report(const Trial& trial, int64_t step, double value) {
  const auto [number, type] = stored_number(value);
  db_->run(
      "INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, "
      "intermediate_value_type) VALUES ($1, $2, $3, $4) ON CONFLICT (trial_id, step) DO NOTHING",
      {ids_.at(trial.shown()), step, number, type});
  flush_if_due();
}

void SqlStudy::finish(const Space& space, const Trial& trial) {
  space_ = &space;
  ended_.push_back(trial);
  if (heartbeat_) heartbeat_->remove(ids_.at(trial.shown()));
  flush_if_due();
}

int64_t SqlStudy::count_trials() {
  if (!counted_) count_ = id(rows_of("SELECT count(*) FROM trials WHERE study_id = $1"));
  counted_ = true;
  return count_;
}

std::vector<int64_t> SqlStudy::insert_trials(const std::vector<const Trial*>& trials) {
  SqlRows rows("trials",
               {{"number", "integer"},
                {"study_id", "integer"},
                {"state", "trialstate"},
                {"datetime_start", "timestamp"}},
               " ORDER BY number RETURNING number, trial_id");
  for (const Trial* trial : trials)
    rows.add({trial->stored, study_, std::string(state_name(trial->state)),
              time_or_null(trial->started)});
  for (const std::vector<SqlRow>& some : db_->run_all(rows.statements(*db_)))
    for (const SqlRow& row : some) ids_[whole(row.at(0))] = whole(row.at(1));
  std::vector<int64_t> keys;
  for (const Trial* trial : trials) {
    keys.push_back(ids_.at(trial->stored));
    if (!all_seen_) continue;
    last_seen_ = std::max(last_seen_, keys.back());
    ++seen_;
  }
  return keys;
}

void SqlStudy::write_begun() {
  std::vector<const Trial*> fresh, waited;
  for (const Trial& trial : starting_)
    (ids_.count(trial.stored) ? waited : fresh).push_back(&trial);
  if (!fresh.empty()) insert_trials(fresh);
  write_begun(true, fresh);
  write_begun(false, waited);
  starting_.clear();
}

void SqlStudy::write_begun(bool fresh, const std::vector<const Trial*>& trials) {
  SqlTable beats{{{"trial_id", "integer"}}};
  SqlRows parameters("trial_params",
                     {{"trial_id", "integer"},
                      {"param_name", "text"},
                      {"param_value", "float8"},
                      {"distribution_json", "text"}},
                     fresh ? "" : " ON CONFLICT (trial_id, param_name) DO NOTHING");
  AttributeRows attributes("trial_system_attributes", fresh);
  for (const Trial* trial : trials) {
    const int64_t key = ids_.at(trial->stored);
    known_[key] = {trial->stored, trial->state, true, true};
    unfinished_.erase(key);  // nobody else changes it
    for (size_t i = 0; i < trial->point.size(); ++i)
      if (!std::isnan(trial->point[i]))
        parameters.add({key, space_->parameters()[i].name, trial->point[i], distribution_text(i)});
    Dict all = trial->system_attributes;
    all.set(process_key, process_);
    attributes.add(key, all);
    beats.values.emplace_back(key);
    if (heartbeat_) heartbeat_->add(key);
  }
  for (SqlStatement& one :
       db_->with_rows(beats,
                      "INSERT INTO trial_heartbeats (trial_id, heartbeat) SELECT trial_id, "
                      "CURRENT_TIMESTAMP FROM ",
                      fresh ? ""
                            : " WHERE true ON CONFLICT (trial_id) DO UPDATE SET heartbeat = "
                              "CURRENT_TIMESTAMP"))
    later_.push_back(std::move(one));
  parameters.write(*db_, later_);
  attributes.write(*db_, later_);
}

std::vector<SqlStatement> SqlStudy::end_statements() const {
  SqlTable ends{{{"key", "integer"}, {"state", "trialstate"}, {"ended", "timestamp"}}};
  for (const Trial& trial : ended_)
    for (SqlValue value :
         {SqlValue(ids_.at(trial.shown())), SqlValue(std::string(state_name(trial.state))),
          time_or_null(trial.ended)})
      ends.values.push_back(std::move(value));
  return db_->with_rows(
      ends, "UPDATE trials SET state = given.state, datetime_complete = given.ended FROM ",
      " WHERE trial_id = given.key AND trials.state = 'RUNNING' RETURNING trial_id");
}

void SqlStudy::write_ends(const std::set<int64_t>& updated) {
  SqlRows values("trial_values", {{"trial_id", "integer"},
                                  {"objective", "integer"},
                                  {"value", "float8"},
                                  {"value_type", "trialvaluetype"}});
  AttributeRows user("trial_user_attributes"), system("trial_system_attributes");
  for (const Trial& trial : ended_) {
    int64_t key = ids_.at(trial.shown());
    known_[key].state = trial.state;
    if (!updated.count(key)) {
      const auto copy = waiting_copy(trial);
      if (!copy) {
        user.add(key, late_result(trial));
        continue;
      }
      key = *copy;
    }
    // What waits is tried from its beginning.
    if (trial.state == TrialState::waiting) {
      later_.push_back({"DELETE FROM trial_intermediate_values WHERE trial_id = $1", {key}});
      unfinished_.insert(key);
    }
    for (size_t k = 0; k < trial.values.size(); ++k) {
      const auto [number, type] = stored_number(trial.values[k]);
      values.add({key, static_cast<int64_t>(k), number, type});
    }
    user.add(key, trial.user_attributes);
    if (!trial.constraints.empty()) system.add(key, stored_attributes(trial));
  }
  values.write(*db_, later_);
  user.write(*db_, later_);
  system.write(*db_, later_);
}

std::optional<int64_t> SqlStudy::waiting_copy(const Trial& trial) {
  if (!trial.finished()) return {};
  const Value* first = trial.system_attributes.find("failed_trial");
  const auto rows = db_->run(
      "UPDATE trials SET state = $4, datetime_start = $5, datetime_complete = $6 WHERE trial_id "
      "= (SELECT min(t.trial_id) FROM trials t JOIN trial_system_attributes a ON a.trial_id = "
      "t.trial_id WHERE t.study_id = $1 AND t.state = 'WAITING' AND a.key = $2 AND a.value_json "
      "= $3) RETURNING trial_id",
      {study_, std::string("failed_trial"),
       write_python_json(first ? *first : Value(trial.shown())),
       std::string(state_name(trial.state)), iso_time(trial.started), iso_time(trial.ended)});
  if (rows.empty()) return {};
  return id(rows);
}

const std::string& SqlStudy::distribution_text(size_t parameter) {
  std::string& text = distributions_[parameter];
  if (text.empty()) text = distribution_to_json(space_->parameters()[parameter].distribution);
  return text;
}

}  // namespace mase::search
