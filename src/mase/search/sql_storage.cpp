// SPDX-License-Identifier: Apache-2.0
#include "mase/search/sql_storage.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

#include "mase/base/text.h"
#include "mase/search/python_json.h"

namespace mase::search {
namespace {

constexpr double most_seconds_unwritten = 0.5;

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

class SqlStorage final : public Storage {
 public:
  explicit SqlStorage(std::unique_ptr<SqlConnection> connection) : db_(std::move(connection)) {
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
    Transaction transaction(*db_);
    auto found = db_->run("SELECT study_id FROM studies WHERE study_name = $1", {header.name});
    if (found.empty()) {
      found = db_->run("INSERT INTO studies (study_name) VALUES ($1) RETURNING study_id",
                       {header.name});
      study_ = id(found);
      for (size_t k = 0; k < header.maximise.size(); ++k)
        db_->run(
            "INSERT INTO study_directions (direction, study_id, objective) VALUES ($1, $2, $3)",
            {direction(header.maximise[k]), study_, static_cast<int64_t>(k)});
      if (!header.metric_names.empty())
        db_->run(
            "INSERT INTO study_system_attributes (study_id, key, value_json) VALUES ($1, $2, $3)",
            {study_, std::string("study:metric_names"),
             write_python_json(Value::of(header.metric_names))});
    } else {
      study_ = id(found);
      const auto rows =
          db_->run("SELECT direction FROM study_directions WHERE study_id = $1 ORDER BY objective",
                   {study_});
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
  }

  std::vector<Trial> load(const Space& space) override {
    flush();
    std::map<int64_t, Trial> trials;  // by trial_id
    std::map<int64_t, std::vector<StoredParameter>> parameters;
    for (const SqlRow& row : rows_of("SELECT trial_id, number, state, datetime_start, "
                                     "datetime_complete FROM trials WHERE study_id = $1 "
                                     "ORDER BY trial_id")) {
      Trial& trial = trials[whole(row[0])];
      trial.number = whole(row[1]);
      trial.state = state_from_name(row[2].value_or(""), db_->place());
      trial.started = row[3] ? parse_iso_time(*row[3]) : 0;
      trial.ended = row[4] ? parse_iso_time(*row[4]) : 0;
    }
    const auto each = [&](const char* columns, const char* table, const char* order,
                          const auto& take) {
      for (const SqlRow& row :
           rows_of(fmt::format("SELECT t.trial_id, {} FROM {} t JOIN trials ON trials.trial_id = "
                               "t.trial_id WHERE trials.study_id = $1 ORDER BY t.{}",
                               columns, table, order))) {
        const auto found = trials.find(whole(row[0]));
        if (found != trials.end()) take(found->second, row, found->first);
      }
    };
    std::map<std::string, Distribution> known;  // the same text many times
    each("t.param_name, t.param_value, t.distribution_json", "trial_params", "param_id",
         [&](Trial&, const SqlRow& row, int64_t key) {
           const std::string text = row[3].value_or("");
           if (!known.count(text)) known[text] = distribution_from_json(text, db_->place());
           parameters[key].push_back(
               {row[1].value_or(""), number_from(row[2], "FINITE"), known[text]});
         });
    each("t.objective, t.value, t.value_type", "trial_values", "objective",
         [&](Trial& trial, const SqlRow& row, int64_t) {
           trial.values.push_back(number_from(row[2], row[3].value_or("")));
         });
    each("t.step, t.intermediate_value, t.intermediate_value_type", "trial_intermediate_values",
         "step", [&](Trial& trial, const SqlRow& row, int64_t) {
           trial.intermediate[whole(row[1])] = number_from(row[2], row[3].value_or(""));
         });
    const auto attribute = [&](Dict Trial::*dict) {
      return [this, dict](Trial& trial, const SqlRow& row, int64_t) {
        (trial.*dict)
            .set(row[1].value_or(""), parse_python_json(row[2].value_or("null"), db_->place()));
      };
    };
    each("t.key, t.value_json", "trial_user_attributes", "trial_user_attribute_id",
         attribute(&Trial::user_attributes));
    each("t.key, t.value_json", "trial_system_attributes", "trial_system_attribute_id",
         attribute(&Trial::system_attributes));
    std::vector<Trial> all;
    for (auto& [key, trial] : trials) {
      ids_[trial.number] = key;
      place_in_space(space, parameters[key], trial);
      trial.constraints = constraints_of(trial.system_attributes);
      all.push_back(std::move(trial));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Trial& a, const Trial& b) { return a.number < b.number; });
    return all;
  }

  void begin(const Space& space, const Trial& trial) override {
    const bool fresh = !ids_.count(trial.number);
    pending_[trial.number] = {trial, fresh, !fresh};
    space_ = &space;
    flush_if_due();
  }

  void report(const Trial& trial, int64_t step, double value) override {
    const auto waiting = pending_.find(trial.number);
    if (waiting != pending_.end() && waiting->second.fresh) {
      waiting->second.trial.intermediate[step] = value;
    } else {
      const auto [number, type] = stored_number(value);
      db_->run(
          "INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, "
          "intermediate_value_type) VALUES ($1, $2, $3, $4)",
          {ids_.at(trial.number), step, number, type});
    }
    flush_if_due();
  }

  void finish(const Space& space, const Trial& trial) override {
    space_ = &space;
    const bool fresh = !ids_.count(trial.number);
    const auto before = pending_.find(trial.number);
    const bool taken_up = before != pending_.end() && before->second.taken_up;
    pending_[trial.number] = {trial, fresh, taken_up};
    flush_if_due();
  }

  void flush() override {
    last_write_ = std::chrono::steady_clock::now();
    if (pending_.empty()) return;
    Transaction transaction(*db_);
    db_->lock_study(study_);
    for (auto& [number, change] : pending_) write(change);
    transaction.commit();
    pending_.clear();
  }

 private:
  struct Change {
    Trial trial;
    bool fresh = true;      // not in the database yet
    bool taken_up = false;  // it waited there, perhaps without all of its parameters
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
    void commit() {
      db_.run("COMMIT");
      done_ = true;
    }

   private:
    SqlConnection& db_;
    bool done_ = false;
  };

  static std::string direction(bool maximise) { return maximise ? "MAXIMIZE" : "MINIMIZE"; }
  int64_t whole(const std::optional<std::string>& text) const {
    const auto number = text ? parse_integer(*text) : std::nullopt;
    if (!number) throw Error(db_->place(), "holds something else than a number where one belongs");
    return *number;
  }
  int64_t id(const std::vector<SqlRow>& rows) const { return whole(rows.at(0).at(0)); }
  std::vector<SqlRow> rows_of(const std::string& sql) { return db_->run(sql, {study_}); }

  void flush_if_due() {
    const std::chrono::duration<double> past = std::chrono::steady_clock::now() - last_write_;
    if (past.count() >= most_seconds_unwritten) flush();
  }

  void write(Change& change) {
    const Trial& trial = change.trial;
    const SqlValue ended =
        trial.ended ? SqlValue(iso_time(trial.ended)) : SqlValue(std::monostate{});
    int64_t key;
    if (change.fresh) {
      key = id(
          db_->run("INSERT INTO trials (number, study_id, state, datetime_start, "
                   "datetime_complete) VALUES ((SELECT count(*) FROM trials WHERE study_id = "
                   "$1), $1, $2, $3, $4) RETURNING trial_id",
                   {study_, std::string(state_name(trial.state)), iso_time(trial.started), ended}));
      ids_[trial.number] = key;
      write_parameters(key, trial);
      for (const auto& [step, value] : trial.intermediate) {
        const auto [number, type] = stored_number(value);
        db_->run(
            "INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, "
            "intermediate_value_type) VALUES ($1, $2, $3, $4)",
            {key, step, number, type});
      }
    } else {
      key = ids_.at(trial.number);
      db_->run(
          "UPDATE trials SET state = $2, datetime_start = $3, datetime_complete = $4 WHERE "
          "trial_id = $1 AND state IN ('RUNNING', 'WAITING')",
          {key, std::string(state_name(trial.state)), iso_time(trial.started), ended});
      if (change.taken_up) write_parameters(key, trial);
      // What waits is tried from its beginning.
      if (trial.state == TrialState::waiting)
        db_->run("DELETE FROM trial_intermediate_values WHERE trial_id = $1", {key});
    }
    for (size_t k = 0; k < trial.values.size(); ++k) {
      const auto [number, type] = stored_number(trial.values[k]);
      db_->run(
          "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES ($1, $2, "
          "$3, $4)",
          {key, static_cast<int64_t>(k), number, type});
    }
    write_attributes("trial_user_attributes", key, trial.user_attributes);
    write_attributes("trial_system_attributes", key, stored_attributes(trial));
  }

  void write_parameters(int64_t key, const Trial& trial) {
    for (size_t i = 0; i < trial.point.size(); ++i)
      if (!std::isnan(trial.point[i]))
        db_->run(
            "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
            "VALUES ($1, $2, $3, $4) ON CONFLICT (trial_id, param_name) DO NOTHING",
            {key, space_->parameters()[i].name, trial.point[i], distribution_text(i)});
  }

  void write_attributes(const char* table, int64_t key, const Dict& attributes) {
    for (const auto& [name, value] : attributes)
      db_->run(fmt::format("INSERT INTO {} (trial_id, key, value_json) VALUES ($1, $2, $3) ON "
                           "CONFLICT (trial_id, key) DO UPDATE SET value_json = $3",
                           table),
               {key, name, write_python_json(value)});
  }

  const std::string& distribution_text(size_t parameter) {
    std::string& text = distributions_[parameter];
    if (text.empty()) text = distribution_to_json(space_->parameters()[parameter].distribution);
    return text;
  }

  std::unique_ptr<SqlConnection> db_;
  int64_t study_ = 0;
  const Space* space_ = nullptr;
  std::map<int64_t, Change> pending_;
  std::map<int64_t, int64_t> ids_;  // trial_id by our number
  std::map<size_t, std::string> distributions_;
  std::chrono::steady_clock::time_point last_write_ = std::chrono::steady_clock::now();
};

}  // namespace

std::unique_ptr<Storage> make_sql_storage(std::unique_ptr<SqlConnection> connection) {
  return std::make_unique<SqlStorage>(std::move(connection));
}

}  // namespace mase::search
