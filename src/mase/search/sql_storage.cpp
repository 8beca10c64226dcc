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
#include "mase/search/study.h"

namespace mase::search {
namespace {

constexpr double most_seconds_unwritten = 0.5;
constexpr size_t most_retries = 5;  // of a configuration that takes its process with it each time
constexpr const char* process_key = "mase:process";

// Numbers of an objective: Optuna keeps infinities as words.
std::pair<SqlValue, std::string> stored_number(double value) {
  if (std::isnan(value)) return {std::monostate{}, "NAN"};
  if (std::isinf(value)) return {std::monostate{}, value > 0 ? "INF_POS" : "INF_NEG"};
  return {value, "FINITE"};
}

double number_from(const std::optional<std::string>& value, const std::string& type) {
  if (type == "INF_POS") return std::numeric_limits<double>::infinity();
  if (type == "INF_NEG") return -std::numeric_limits<double>::infinity();
  if (type == "NAN" || !value) return std::numeric_limits<double>::quiet_NaN();
  return parse_number(*value).value_or(std::numeric_limits<double>::quiet_NaN());
}

SqlValue time_or_null(int64_t microseconds) {
  return microseconds ? SqlValue(iso_time(microseconds)) : SqlValue(std::monostate{});
}

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
    const Transaction transaction(*db_);
    auto found = db_->run("SELECT study_id FROM studies WHERE study_name = $1", {header.name});
    if (found.empty())
      // Two that come first at the same time make one.
      found = db_->run(
          "INSERT INTO studies (study_name) VALUES ($1) ON CONFLICT (study_name) DO UPDATE SET "
          "study_name = $1 RETURNING study_id",
          {header.name});
    study_ = id(found);
    db_->lock_study(study_);
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
    const Transaction transaction(*db_);
    db_->lock_study(study_);
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
    const Transaction transaction(*db_);
    db_->lock_study(study_);
    const bool ended = !ended_.empty();
    write_ends();
    begun_ = counted_ = all_seen_ = false;
    inside_ = true;
    try {
      change();
    } catch (...) {
      inside_ = false;
      throw;
    }
    inside_ = false;
    write_later();
    if (ended || begun_) db_->tell(study_);
    transaction.commit();
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
    int64_t key;
    if (trial.stored < 0 || known == ids_.end()) {
      trial.stored = count_trials();
      key = insert_trial(trial.state, trial.started, 0);
    } else {
      key = known->second;
      // Optuna takes up what waits without asking for the study.
      if (db_->run(
                 "UPDATE trials SET state = $2, datetime_start = $3 WHERE trial_id = $1 AND state "
                 "= 'WAITING' RETURNING trial_id",
                 {key, std::string(state_name(trial.state)), iso_time(trial.started)})
              .empty())
        return false;
    }
    known_[key] = {trial.stored, trial.state, true, true};
    unfinished_.erase(key);  // nobody else changes it
    write_parameters(key, trial, later_);
    write_attributes("trial_system_attributes", key, trial.system_attributes, later_);
    write_attributes("trial_system_attributes", key, {{process_key, process_}}, later_);
    later_.push_back(
        {"INSERT INTO trial_heartbeats (trial_id, heartbeat) VALUES ($1, CURRENT_TIMESTAMP) ON "
         "CONFLICT (trial_id) DO UPDATE SET heartbeat = CURRENT_TIMESTAMP",
         {key}});
    if (heartbeat_) heartbeat_->add(key);
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
    explicit Transaction(SqlConnection& db) : db_(db) { db_.begin(); }
    ~Transaction() {
      if (done_) return;
      try {
        db_.run("ROLLBACK");
      } catch (const Error&) {  // the connection is gone, and with it the transaction
      }
    }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit() const {
      db_.run("COMMIT");
      done_ = true;
    }

   private:
    SqlConnection& db_;
    mutable bool done_ = false;
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
    const auto each = [&](const char* columns, const char* table, const char* order,
                          const auto& take) {
      for (const SqlRow& row :
           db_->run(fmt::format("SELECT trial_id, {} FROM {} WHERE {} ORDER BY {}", columns, table,
                                db_->among("trial_id", 1), order),
                    {list}))
        take(place.at(whole(row[0])), row);
    };
    std::vector<std::vector<StoredParameter>> parameters(all.size());
    std::map<std::string, Distribution> distributions;  // the same text many times
    each("param_name, param_value, distribution_json", "trial_params", "param_id",
         [&](size_t at, const SqlRow& row) {
           const std::string text = row[3].value_or("");
           auto known = distributions.find(text);
           if (known == distributions.end())
             known = distributions.emplace(text, distribution_from_json(text, db_->place())).first;
           parameters[at].push_back(
               {row[1].value_or(""), number_from(row[2], "FINITE"), known->second});
         });
    each("objective, value, value_type", "trial_values", "objective",
         [&](size_t at, const SqlRow& row) {
           all[at].values.push_back(number_from(row[2], row[3].value_or("")));
         });
    each("step, intermediate_value, intermediate_value_type", "trial_intermediate_values", "step",
         [&](size_t at, const SqlRow& row) {
           all[at].intermediate[whole(row[1])] = number_from(row[2], row[3].value_or(""));
         });
    const auto attribute = [&](Dict Trial::*dict) {
      return [this, dict, &all](size_t at, const SqlRow& row) {
        (all[at].*dict)
            .set(row[1].value_or(""), parse_python_json(row[2].value_or("null"), db_->place()));
      };
    };
    each("key, value_json", "trial_user_attributes", "trial_user_attribute_id",
         attribute(&Trial::user_attributes));
    each("key, value_json", "trial_system_attributes", "trial_system_attribute_id",
         attribute(&Trial::system_attributes));
    each("heartbeat", "trial_heartbeats", "trial_id",
         [&](size_t at, const SqlRow&) { all[at].beats = true; });
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

  int64_t insert_trial(TrialState state, int64_t started, int64_t ended) {
    const int64_t number = count_trials();
    const int64_t key =
        id(db_->run("INSERT INTO trials (number, study_id, state, datetime_start, "
                    "datetime_complete) VALUES ($1, $2, $3, $4, $5) RETURNING trial_id",
                    {number, study_, std::string(state_name(state)), time_or_null(started),
                     time_or_null(ended)}));
    ids_[number] = key;
    if (all_seen_) {
      last_seen_ = std::max(last_seen_, key);
      ++seen_;
    }
    ++count_;
    return key;
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
    const int64_t copy = insert_trial(TrialState::waiting, 0, 0);
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
    write_attributes("trial_system_attributes", copy, attributes, later_);
    begun_ = true;
  }

  void write_later() {
    db_->run_all(later_);
    later_.clear();
  }

  void write_ends() {
    std::vector<SqlStatement> statements;
    for (const Trial& trial : ended_)
      statements.push_back(
          {"UPDATE trials SET state = $2, datetime_complete = $3 WHERE trial_id = $1 AND state = "
           "'RUNNING' RETURNING trial_id",
           {ids_.at(trial.shown()), std::string(state_name(trial.state)),
            time_or_null(trial.ended)}});
    const auto updated = db_->run_all(statements);
    statements.clear();
    for (size_t i = 0; i < ended_.size(); ++i) {
      const Trial& trial = ended_[i];
      int64_t key = ids_.at(trial.shown());
      known_[key].state = trial.state;
      if (updated[i].empty()) {
        const auto copy = waiting_copy(trial);
        if (!copy) {
          write_late(key, trial, statements);
          continue;
        }
        key = *copy;
      }
      // What waits is tried from its beginning.
      if (trial.state == TrialState::waiting) {
        statements.push_back({"DELETE FROM trial_intermediate_values WHERE trial_id = $1", {key}});
        unfinished_.insert(key);
      }
      for (size_t k = 0; k < trial.values.size(); ++k) {
        const auto [number, type] = stored_number(trial.values[k]);
        statements.push_back(
            {"INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES ($1, $2, "
             "$3, $4)",
             {key, static_cast<int64_t>(k), number, type}});
      }
      write_attributes("trial_user_attributes", key, trial.user_attributes, statements);
      if (!trial.constraints.empty())
        write_attributes("trial_system_attributes", key, stored_attributes(trial), statements);
    }
    db_->run_all(statements);
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
  void write_late(int64_t key, const Trial& trial, std::vector<SqlStatement>& statements) {
    List values;
    for (const double value : trial.values) values.emplace_back(value);
    write_attributes(
        "trial_user_attributes", key,
        {{"late_result", Dict{{"state", state_name(trial.state)}, {"values", std::move(values)}}}},
        statements);
  }

  void write_parameters(int64_t key, const Trial& trial, std::vector<SqlStatement>& statements) {
    for (size_t i = 0; i < trial.point.size(); ++i)
      if (!std::isnan(trial.point[i]))
        statements.push_back(
            {"INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
             "VALUES ($1, $2, $3, $4) ON CONFLICT (trial_id, param_name) DO NOTHING",
             {key, space_->parameters()[i].name, trial.point[i], distribution_text(i)}});
  }

  static void write_attributes(const char* table, int64_t key, const Dict& attributes,
                               std::vector<SqlStatement>& statements) {
    for (const auto& [name, value] : attributes)
      statements.push_back(
          {fmt::format("INSERT INTO {} (trial_id, key, value_json) VALUES ($1, $2, "
                       "$3) ON CONFLICT (trial_id, key) DO UPDATE SET value_json = "
                       "$3",
                       table),
           {key, name, write_python_json(value)}});
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

std::unique_ptr<Storage> make_sql_storage(std::function<std::unique_ptr<SqlConnection>()> connect) {
  return std::make_unique<SqlStorage>(std::move(connect));
}

}  // namespace mase::search
