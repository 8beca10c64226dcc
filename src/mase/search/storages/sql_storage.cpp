// SPDX-License-Identifier: Apache-2.0
#include "mase/search/storages/sql_storage.h"

#include <algorithm>
#include <thread>

#include "mase/base/text.h"
#include "mase/search/storages/python_json.h"
#include "mase/search/storages/sql_study.h"
#include "mase/search/storages/sql_transaction.h"

namespace mase::search {
namespace {

constexpr double most_seconds_unwritten = 0.5;

std::string direction_name(bool maximise) { return maximise ? "MAXIMIZE" : "MINIMIZE"; }

}  // namespace

SqlStudy::SqlStudy(std::function<std::unique_ptr<SqlConnection>()> connect)
    : connect_(std::move(connect)), db_(connect_()), process_(this_process()) {
  db_->make_tables();
  const auto version = db_->run("SELECT schema_version FROM version_info");
  if (version.empty() || version[0][0] != "12")
    throw Error(db_->place(), "has another version of Optuna's tables than 12",
                "upgrade it with 'optuna storage upgrade'");
}

SqlStudy::~SqlStudy() {
  try {
    flush();
  } catch (...) {  // a destructor has nobody to tell; flush() before tells
  }
}

void SqlStudy::open_study(const StudyHeader& header) {
  const SqlTransaction transaction(*db_, {db_->exclusive()});
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
      db_->run("INSERT INTO study_directions (direction, study_id, objective) VALUES ($1, $2, $3)",
               {direction_name(header.maximise[k]), study_, static_cast<int64_t>(k)});
    if (!header.metric_names.empty())
      set_study_attribute("study:metric_names", Value::of(header.metric_names));
  } else {
    std::vector<std::string> theirs, ours;
    for (const SqlRow& row : rows) theirs.push_back(row[0].value_or("NOT_SET"));
    for (const bool maximise : header.maximise) ours.push_back(direction_name(maximise));
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

Dict SqlStudy::said_first(const Dict& attributes) {
  const SqlTransaction transaction(*db_, db_->exclusive(study_));
  Dict said;
  for (const auto& [key, value] : attributes) {
    set_study_attribute(key, value);
    const auto rows =
        db_->run("SELECT value_json FROM study_system_attributes WHERE study_id = $1 AND key = $2",
                 {study_, key});
    if (!rows.empty()) said.set(key, parse_python_json(rows[0][0].value_or("null"), db_->place()));
  }
  transaction.commit();
  return said;
}

int64_t SqlStudy::agreed(const std::string& name, int64_t proposed) {
  const SqlTransaction transaction(*db_, db_->exclusive(study_));
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

void SqlStudy::beat(double seconds) { heartbeat_ = std::make_unique<Heartbeat>(connect_, seconds); }

void SqlStudy::exclusively(const std::function<bool()>& change) {
  const bool ended = !ended_.empty();
  starting_.clear();  // of a transaction that did not come to its end
  later_.clear();
  std::vector<SqlStatement> first = db_->exclusive(study_);
  const size_t before = first.size();
  for (SqlStatement& one : end_statements()) first.push_back(std::move(one));
  const SqlTransaction transaction(*db_, first);
  std::set<int64_t> updated;
  for (size_t i = before; i < first.size(); ++i)
    for (const SqlRow& row : transaction.results()[i]) updated.insert(whole(row.at(0)));
  write_ends(updated);
  begun_ = counted_ = all_seen_ = false;
  inside_ = true;
  bool for_others = false;
  try {
    for_others = change();
  } catch (...) {
    inside_ = false;
    throw;
  }
  inside_ = false;
  write_begun();
  if ((ended || begun_) && for_others)
    for (SqlStatement& one : db_->tell(study_)) later_.push_back(std::move(one));
  std::vector<SqlStatement> last;
  last.swap(later_);
  transaction.commit(std::move(last));
  ended_.clear();
  last_write_ = std::chrono::steady_clock::now();
}

void SqlStudy::flush() {
  last_write_ = std::chrono::steady_clock::now();
  if (!ended_.empty()) exclusively([] { return true; });
}

int64_t SqlStudy::whole(const std::optional<std::string>& text) const {
  const auto number = text ? parse_integer(*text) : std::nullopt;
  if (!number) throw Error(db_->place(), "holds something else than a number where one belongs");
  return *number;
}

void SqlStudy::set_study_attribute(const std::string& key, const Value& value) {
  db_->run(
      "INSERT INTO study_system_attributes (study_id, key, value_json) VALUES ($1, $2, $3) ON "
      "CONFLICT (study_id, key) DO NOTHING",
      {study_, key, write_python_json(value)});
}

void SqlStudy::flush_if_due() {
  const std::chrono::duration<double> past = std::chrono::steady_clock::now() - last_write_;
  if (past.count() >= most_seconds_unwritten) flush();
}

void SqlStudy::write_later() {
  db_->run_all(later_);
  later_.clear();
}

std::vector<std::vector<SqlRow>> SqlConnection::run_all(
    const std::vector<SqlStatement>& statements) {
  std::vector<std::vector<SqlRow>> results;
  for (const SqlStatement& one : statements) results.push_back(run(one.sql, one.parameters));
  return results;
}

void SqlConnection::wait(std::chrono::milliseconds longest) {
  std::this_thread::sleep_for(longest);
}

std::vector<SqlStatement> SqlConnection::exclusive(int64_t study) const {
  std::vector<SqlStatement> both = {exclusive()};
  for (SqlStatement& one : lock_study(study)) both.push_back(std::move(one));
  return both;
}

std::unique_ptr<Storage> make_sql_storage(std::function<std::unique_ptr<SqlConnection>()> connect) {
  return std::make_unique<SqlStudy>(std::move(connect));
}

}  // namespace mase::search
