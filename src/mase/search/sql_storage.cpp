// SPDX-License-Identifier: Apache-2.0
#include "mase/search/sql_storage.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "mase/base/text.h"
#include "mase/search/heartbeat.h"
#include "mase/search/python_json.h"
#include "mase/search/sql_rows.h"
#include "mase/search/study.h"

namespace mase::search {
namespace {

constexpr double most_seconds_unwritten = 0.5;
constexpr size_t most_retries = 5;  // of a configuration that takes its process with it each time
constexpr const char* process_key = "mase:process";

class SqlStorage final : public Storage {
 public:
  explicit SqlStorage(std::function<std::unique_ptr<SqlConnection>()> connect)
      : connect_(std::move(connect)), db_(connect_()), process_(this_process()) {
    db_->make_tables();
    const auto version = db_->run("SELECT schema_version FROM version_info");
    if (version.empty() || version[0][0] != "12")
      throw Error(db_->place(), "has another version of Optuna's tables than 12",
                  "upgrade it with 'optuna storage upgrade'");
  }

  ~SqlStorage() override {
    try {
      flush();
    } catch (...) {  // a destructor has nobody to tell; flush() before tells
    }
  }

  void open_study(const StudyHeader& header) override {
    const Transaction transaction(*db_, {db_->exclusive()});
    auto found = db_->run("SELECT study_id FROM studies WHERE study_name = $1", {header.name});
    if (found.empty())
      // Two that come first at the same time make one.
      found = db_->run(
          "INSERT INTO studies (study_name) VALUES ($1) ON CONFLICT (study_name) DO UPDATE SET "
          "study_name = $1 RETURNING study_id",
          {header.name});
    study_ = id(found);
    db_->run_all(db_->lock_study(study_));
    const auto rows =
        rows_of("SELECT direction FROM study_directions WHERE study_id = $1 ORDER BY objective");
    if (rows.empty()) {
      for (size_t k = 0; k < header.maximise.size(); ++k)
        db_->run(
            "INSERT INTO study_directions (direction, study_id, objective) VALUES ($1, $2, $3)",
            {direction(header.maximise[k]), study_, static_cast<int64_t>(k)});
      if (!header.metric_names.empty())
        set_study_attribute("study:metric_names", Value::of(header.metric_names));
    } else {
      std::vector<std::string> theirs, ours;
      for (const SqlRow& row : rows) theirs.push_back(row[0].value_or("NOT_SET"));
      for (const bool maximise : header.maximise) ours.push_back(direction(maximise));
      if (theirs != ours)
        throw Error(
            db_->place(),
            fmt::format("study '{}' has the directions {}, this search {}", printable(header.name),
                        lower_case(join(theirs, ", ")), lower_case(join(ours, ", "))),
            "give another --study");
    }
    transaction.commit();
    db_->listen(study_);
    known_.clear();
    unfinished_.clear();
    last_seen_ = -1;
    count_ = seen_ = 0;
  }

  int64_t agreed(const std::string& name, int64_t proposed) override {
    const Transaction transaction(*db_, db_->exclusive(study_));
    const auto rows =
        db_->run("SELECT value_json FROM study_system_attributes WHERE study_id = $1 AND key = $2",
                 {study_, name});
    const Value said =
        rows.empty() ? Value() : parse_python_json(rows[0][0].value_or("null"), db_->place());
    const int64_t largest = said.is_int() ? std::max(said.as_int(), proposed) : proposed;
    db_->run(
        "INSERT INTO study_system_attributes (study_id, key, value_json) VALUES ($1, $2, $3) ON "
        "CONFLICT (study_id, key) DO UPDATE SET value_json = $3",
        {study_, name, write_python_json(largest)});
    transaction.commit();
    return largest;
  }

  bool shared() const override { return true; }
  bool changed() override { return db_->changed(); }
  void beat(double seconds) override {
    heartbeat_ = std::make_unique<Heartbeat>(connect_, seconds);
  }

  void exclusively(const std::function<void()>& change) override {
    const bool ended = !ended_.empty();
    starting_.clear();  // of a transaction that did not come to its end
    later_.clear();
    std::vector<SqlStatement> first = db_->exclusive(study_);
    const size_t before = first.size();
    end_statements(first);
    const Transaction transaction(*db_, first);
    write_ends(transaction.results(), before);
    begun_ = counted_ = all_seen_ = false;
    inside_ = true;
    try {
      change();
    } catch (...) {
      inside_ = false;
      throw;
    }
    inside_ = false;
    write_begun();
    if (ended || begun_)
      for (SqlStatement& one : db_->tell(study_)) later_.push_back(std::move(one));
    std::vector<SqlStatement> last;
    last.swap(later_);
    transaction.commit(std::move(last));
    ended_.clear();
    last_write_ = std::chrono::steady_clock::now();
  }

  std::vector<Trial> news(const Space& space) override {
    std::vector<Trial> all;
    std::map<int64_t, size_t> place;  // in `all`, by trial_id
    const std::vector<int64_t> open(unfinished_.begin(), unfinished_.end());
    for (const SqlRow& row :
         db_->run("SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials "
                  "WHERE study_id = $1 AND (trial_id > $2 OR " +
                      db_->among("trial_id", 3) + ") ORDER BY trial_id",
                  {study_, last_seen_, db_->list(open)})) {
      const int64_t key = whole(row[0]);
      Trial trial;
      trial.stored = whole(row[1]);
      trial.state = state_from_name(row[2].value_or(""), db_->place());
      trial.started = row[3] ? parse_iso_time(*row[3]) : 0;
      trial.ended = row[4] ? parse_iso_time(*row[4]) : 0;
      const bool own = key > last_seen_ && known_.count(key) && !unfinished_.count(key);
      if (key > last_seen_) {
        last_seen_ = key;
        ++seen_;
      }
      if (own) continue;  // begun here before others were looked at
      Known& known = known_[key];
      // What runs with all of its parameters has nothing new to say.
      const bool same = known.told && known.state == trial.state &&
                        (known.whole || trial.state != TrialState::running);
      known = {trial.stored, trial.state, true, known.whole};
      ids_[trial.stored] = key;
      if (trial.finished())
        unfinished_.erase(key);
      else
        unfinished_.insert(key);
      if (same) continue;
      place[key] = all.size();
      all.push_back(std::move(trial));
    }
    count_ = seen_;
    counted_ = all_seen_ = inside_;
    if (!all.empty()) fill(space, place, all);
    std::stable_sort(all.begin(), all.end(),
                     [](const Trial& a, const Trial& b) { return a.stored < b.stored; });
    return all;
  }

  // Two ways to be lost: the process is not among those of this machine any more, or the database
  // has not heard of it for long. Without a sign of life ever (Optuna's default) none.
  bool retry_lost(double seconds) override {
    if (unfinished_.empty()) return false;
    const std::vector<int64_t> open(unfinished_.begin(), unfinished_.end());
    std::vector<int64_t> lost;
    for (const SqlRow& row : db_->run(
             fmt::format("SELECT t.trial_id, h.heartbeat < {}, a.value_json FROM trials t JOIN "
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

  bool begin(const Space& space, Trial& trial) override {
    if (!inside_) {
      bool begun = false;
      exclusively([&] { begun = begin(space, trial); });
      return begun;
    }
    begun_ = true;
    space_ = &space;
    const auto known = ids_.find(trial.stored);
    if (trial.stored < 0 || known == ids_.end()) {
      trial.stored = count_trials();
      ++count_;
    } else if (db_->run("UPDATE trials SET state = $2, datetime_start = $3 WHERE trial_id = $1 AND "
                        "state = 'WAITING' RETURNING trial_id",
                        {known->second, std::string(state_name(trial.state)),
                         iso_time(trial.started)})
                   .empty()) {
      return false;  // Optuna takes up what waits without asking for the study
    }
    starting_.push_back(trial);
    return true;
  }

  void report(const Trial& trial, int64_t step, double value) override {
    const auto [number, type] = stored_number(value);
    db_->run(
        "INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, "
        "intermediate_value_type) VALUES ($1, $2, $3, $4) ON CONFLICT (trial_id, step) DO NOTHING",
        {ids_.at(trial.shown()), step, number, type});
    flush_if_due();
  }

  void finish(const Space& space, const Trial& trial) override {
    space_ = &space;
    ended_.push_back(trial);
    if (heartbeat_) heartbeat_->remove(ids_.at(trial.shown()));
    flush_if_due();
  }

  void flush() override {
    last_write_ = std::chrono::steady_clock::now();
    if (!ended_.empty()) exclusively([] {});
  }

 private:
  struct Known {
    int64_t number = 0;
    TrialState state = TrialState::waiting;
    bool told = false;   // news had it
    bool whole = false;  // with all its parameters
  };

  class Transaction {
   public:
    Transaction(SqlConnection& db, const std::vector<SqlStatement>& first) : db_(db) {
      try {
        results_ = db_.run_all(first);
      } catch (...) {
        roll_back();
        throw;
      }
    }
    ~Transaction() {
      if (!done_) roll_back();
    }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    const std::vector<std::vector<SqlRow>>& results() const { return results_; }
    void commit(std::vector<SqlStatement> last = {}) const {
      last.push_back({"COMMIT"});
      db_.run_all(last);
      done_ = true;
    }

   private:
    void roll_back() const {
      try {
        db_.run("ROLLBACK");
      } catch (const Error&) {  // none was begun, or the connection is gone and with it all of it
      }
    }

    SqlConnection& db_;
    mutable bool done_ = false;
    std::vector<std::vector<SqlRow>> results_;
  };

  static std::string direction(bool maximise) { return maximise ? "MAXIMIZE" : "MINIMIZE"; }
  int64_t whole(const std::optional<std::string>& text) const {
    const auto number = text ? parse_integer(*text) : std::nullopt;
    if (!number) throw Error(db_->place(), "holds something else than a number where one belongs");
    return *number;
  }
  int64_t id(const std::vector<SqlRow>& rows) const { return whole(rows.at(0).at(0)); }
  std::vector<SqlRow> rows_of(const std::string& sql) { return db_->run(sql, {study_}); }

  // What somebody said first stays.
  void set_study_attribute(const std::string& key, const Value& value) {
    db_->run(
        "INSERT INTO study_system_attributes (study_id, key, value_json) VALUES ($1, $2, $3) ON "
        "CONFLICT (study_id, key) DO NOTHING",
        {study_, key, write_python_json(value)});
  }

  void flush_if_due() {
    const std::chrono::duration<double> past = std::chrono::steady_clock::now() - last_write_;
    if (past.count() >= most_seconds_unwritten) flush();
  }

  // Everything else about these trials.
  void fill(const Space& space, const std::map<int64_t, size_t>& place, std::vector<Trial>& all) {
    std::vector<int64_t> keys;
    for (const auto& [key, at] : place) keys.push_back(key);
    const SqlValue list = db_->list(keys);
    using Take = std::function<void(size_t at, const SqlRow& row)>;
    std::vector<SqlStatement> questions;
    std::vector<Take> takes;
    const auto ask = [&](const char* columns, const char* table, const char* order, Take take) {
      questions.push_back({fmt::format("SELECT trial_id, {} FROM {} WHERE {} ORDER BY {}", columns,
                                       table, db_->among("trial_id", 1), order),
                           {list}});
      takes.push_back(std::move(take));
    };
    std::vector<std::vector<StoredParameter>> parameters(all.size());
    std::map<std::string, Distribution> distributions;  // the same text many times
    ask("param_name, param_value, distribution_json", "trial_params", "param_id",
        [&](size_t at, const SqlRow& row) {
          const std::string text = row[3].value_or("");
          auto known = distributions.find(text);
          if (known == distributions.end())
            known = distributions.emplace(text, distribution_from_json(text, db_->place())).first;
          parameters[at].push_back(
              {row[1].value_or(""), number_from(row[2], "FINITE"), known->second});
        });
    ask("objective, value, value_type", "trial_values", "objective",
        [&](size_t at, const SqlRow& row) {
          all[at].values.push_back(number_from(row[2], row[3].value_or("")));
        });
    ask("step, intermediate_value, intermediate_value_type", "trial_intermediate_values", "step",
        [&](size_t at, const SqlRow& row) {
          all[at].intermediate[whole(row[1])] = number_from(row[2], row[3].value_or(""));
        });
    const auto attribute = [&](Dict Trial::*dict) -> Take {
      return [this, dict, &all](size_t at, const SqlRow& row) {
        (all[at].*dict)
            .set(row[1].value_or(""), parse_python_json(row[2].value_or("null"), db_->place()));
      };
    };
    ask("key, value_json", "trial_user_attributes", "trial_user_attribute_id",
        attribute(&Trial::user_attributes));
    ask("key, value_json", "trial_system_attributes", "trial_system_attribute_id",
        attribute(&Trial::system_attributes));
    ask("heartbeat", "trial_heartbeats", "trial_id",
        [&](size_t at, const SqlRow&) { all[at].beats = true; });
    const auto answers = db_->run_all(questions);
    for (size_t i = 0; i < answers.size(); ++i)
      for (const SqlRow& row : answers[i]) takes[i](place.at(whole(row[0])), row);
    for (const auto& [key, at] : place) {
      Trial& trial = all[at];
      place_in_space(space, parameters[at], trial);
      trial.constraints = constraints_of(trial.system_attributes);
      trial.system_attributes.erase(process_key);
      known_[key].whole = trial.in_space;
    }
  }

  // News count what is new; without them in this transaction others may have added some.
  int64_t count_trials() {
    if (!counted_) count_ = id(rows_of("SELECT count(*) FROM trials WHERE study_id = $1"));
    counted_ = true;
    return count_;
  }

  // New trials get their numbers and ids in one go, in the order in which they were begun.
  std::vector<int64_t> insert_trials(const std::vector<const Trial*>& trials) {
    SqlRows rows("trials (number, study_id, state, datetime_start, datetime_complete)", 5,
                 " RETURNING trial_id, number");
    for (const Trial* trial : trials)
      rows.add({trial->stored, study_, std::string(state_name(trial->state)),
                time_or_null(trial->started), time_or_null(0)});
    std::vector<int64_t> keys;
    for (const std::vector<SqlRow>& written : db_->run_all(rows.statements()))
      for (const SqlRow& row : written) {
        keys.push_back(whole(row.at(0)));
        ids_[whole(row.at(1))] = keys.back();
        if (!all_seen_) continue;
        last_seen_ = std::max(last_seen_, keys.back());
        ++seen_;
      }
    return keys;
  }

  // Everything about the trials that were begun in this transaction.
  void write_begun() {
    std::vector<const Trial*> fresh;
    for (const Trial& trial : starting_)
      if (!ids_.count(trial.stored)) fresh.push_back(&trial);
    if (!fresh.empty()) insert_trials(fresh);
    SqlRows parameters("trial_params (trial_id, param_name, param_value, distribution_json)", 4,
                       " ON CONFLICT (trial_id, param_name) DO NOTHING");
    AttributeRows attributes("trial_system_attributes");
    std::vector<int64_t> keys;
    for (const Trial& trial : starting_) {
      const int64_t key = ids_.at(trial.stored);
      known_[key] = {trial.stored, trial.state, true, true};
      unfinished_.erase(key);  // nobody else changes it
      for (size_t i = 0; i < trial.point.size(); ++i)
        if (!std::isnan(trial.point[i]))
          parameters.add({key, space_->parameters()[i].name, trial.point[i], distribution_text(i)});
      Dict all = trial.system_attributes;
      all.set(process_key, process_);
      attributes.add(key, all);
      keys.push_back(key);
      if (heartbeat_) heartbeat_->add(key);
    }
    if (!keys.empty())
      later_.push_back(
          {fmt::format("INSERT INTO trial_heartbeats (trial_id, heartbeat) SELECT trial_id, "
                       "CURRENT_TIMESTAMP FROM trials WHERE {} ON CONFLICT (trial_id) DO UPDATE "
                       "SET heartbeat = CURRENT_TIMESTAMP",
                       db_->among("trial_id", 1)),
           {db_->list(keys)}});
    parameters.write(later_);
    attributes.write(later_);
    starting_.clear();
  }

  // As Optuna's own callback does it: the trial fails, and its configuration waits under a new
  // number, with the numbers it had.
  void retry(int64_t key) {
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
    rows.write(later_);
    begun_ = true;
  }

  void write_later() {
    db_->run_all(later_);
    later_.clear();
  }

  void end_statements(std::vector<SqlStatement>& statements) const {
    for (const Trial& trial : ended_)
      statements.push_back(
          {"UPDATE trials SET state = $2, datetime_complete = $3 WHERE trial_id = $1 AND state = "
           "'RUNNING' RETURNING trial_id",
           {ids_.at(trial.shown()), std::string(state_name(trial.state)),
            time_or_null(trial.ended)}});
  }

  // What belongs to the trials whose ends the transaction began with: their results say which of
  // them were still ours.
  void write_ends(const std::vector<std::vector<SqlRow>>& updated, size_t first) {
    SqlRows values("trial_values (trial_id, objective, value, value_type)", 4);
    AttributeRows user("trial_user_attributes"), system("trial_system_attributes");
    for (size_t i = 0; i < ended_.size(); ++i) {
      const Trial& trial = ended_[i];
      int64_t key = ids_.at(trial.shown());
      known_[key].state = trial.state;
      if (updated.at(first + i).empty()) {
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
    values.write(later_);
    user.write(later_);
    system.write(later_);
  }

  // Somebody took us for dead: if the configuration still waits, this is its result.
  std::optional<int64_t> waiting_copy(const Trial& trial) {
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

  // Otherwise it is kept beside the failure: the trial is being tried again already.
  static Dict late_result(const Trial& trial) {
    List values;
    for (const double value : trial.values) values.emplace_back(value);
    return {
        {"late_result", Dict{{"state", state_name(trial.state)}, {"values", std::move(values)}}}};
  }

  const std::string& distribution_text(size_t parameter) {
    std::string& text = distributions_[parameter];
    if (text.empty()) text = distribution_to_json(space_->parameters()[parameter].distribution);
    return text;
  }

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
  std::chrono::steady_clock::time_point last_write_ = std::chrono::steady_clock::now();
};

}  // namespace

std::vector<std::vector<SqlRow>> SqlConnection::run_all(
    const std::vector<SqlStatement>& statements) {
  std::vector<std::vector<SqlRow>> results;
  for (const SqlStatement& one : statements) results.push_back(run(one.sql, one.parameters));
  return results;
}

std::vector<SqlStatement> SqlConnection::exclusive(int64_t study) const {
  std::vector<SqlStatement> both = {exclusive()};
  for (SqlStatement& one : lock_study(study)) both.push_back(std::move(one));
  return both;
}

std::unique_ptr<Storage> make_sql_storage(std::function<std::unique_ptr<SqlConnection>()> connect) {
  return std::make_unique<SqlStorage>(std::move(connect));
}

}  // namespace mase::search
