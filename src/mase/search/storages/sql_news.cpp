// SPDX-License-Identifier: Apache-2.0
// Trials of a study that are new or have changed in the database.
#include <algorithm>
#include <utility>

#include "mase/base/text.h"
#include "mase/search/storages/python_json.h"
#include "mase/search/storages/sql_rows.h"
#include "mase/search/storages/sql_study.h"
#include "mase/search/storages/sql_transaction.h"

namespace mase::search {

// By their ids: the index of studies would give all trials that the study has.
SqlStatement SqlStudy::news_statement() const {
  const std::string columns = "SELECT trial_id, number, state, datetime_start, datetime_complete ";
  if (last_seen_ < 0)
    return {columns + "FROM trials WHERE study_id = $1 ORDER BY trial_id", {study_}};
  const std::vector<int64_t> open(unfinished_.begin(), unfinished_.end());
  return {columns + "FROM trials WHERE study_id + 0 = $1 AND trial_id > $2 UNION ALL " + columns +
              "FROM trials WHERE " + db_->among("trial_id", 3) +
              " AND study_id + 0 = $1 AND trial_id <= $2 ORDER BY trial_id",
          {study_, last_seen_, db_->list(open)}};
}

std::vector<Trial> SqlStudy::news(const Space& space) {
  if (inside_) {
    const SqlStatement question = news_statement();
    return trials_of(space, db_->run(question.sql, question.parameters));
  }
  // What belongs to a trial is asked for after the trial, and is to be as old.
  const SqlTransaction transaction(*db_, {db_->snapshot(), news_statement()});
  std::vector<Trial> all = trials_of(space, transaction.results().back());
  transaction.commit();
  return all;
}

std::vector<Trial> SqlStudy::trials_of(const Space& space, const std::vector<SqlRow>& rows) {
  std::vector<Trial> all;
  std::map<int64_t, size_t> place;  // in `all`, by trial_id
  for (const SqlRow& row : rows) {
    const int64_t key = whole(row[0]);
    Trial trial = outline(row);
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
  if (!all.empty()) {
    const auto parameters = fill(place, all);
    for (const auto& [key, at] : place) {
      place_in_space(space, parameters[at], all[at]);
      known_[key].whole = all[at].in_space;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Trial& a, const Trial& b) { return a.stored < b.stored; });
  return all;
}

Trial SqlStudy::outline(const SqlRow& row) const {
  Trial trial;
  trial.stored = whole(row[1]);
  trial.state = state_from_name(row[2].value_or(""), db_->place());
  trial.started = row[3] ? parse_iso_time(*row[3]) : 0;
  trial.ended = row[4] ? parse_iso_time(*row[4]) : 0;
  return trial;
}

std::vector<std::string> SqlStudy::studies() {
  std::vector<std::string> names;
  for (const SqlRow& row : db_->run("SELECT study_name FROM studies ORDER BY study_id"))
    names.push_back(row[0].value_or(""));
  return names;
}

StoredStudy SqlStudy::stored_study(const std::string& name) {
  const SqlTransaction transaction(*db_, {db_->snapshot()});
  StoredStudy result{{name, {}}, {}};
  const int64_t study = id(db_->run("SELECT study_id FROM studies WHERE study_name = $1", {name}));
  for (const SqlRow& row :
       db_->run("SELECT direction FROM study_directions WHERE study_id = $1 ORDER BY objective",
                {study}))
    result.header.maximise.push_back(row[0] == "MAXIMIZE");
  const auto metrics =
      db_->run("SELECT value_json FROM study_system_attributes WHERE study_id = $1 AND key = $2",
               {study, "study:metric_names"});
  if (!metrics.empty())
    if (const Value names = parse_python_json(metrics[0][0].value_or("null"), db_->place());
        names.is_list())
      result.header.metric_names = names.as_string_list("study:metric_names");
  std::vector<Trial> trials;
  std::map<int64_t, size_t> place;
  for (const SqlRow& row :
       db_->run("SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials "
                "WHERE study_id = $1 ORDER BY number",
                {study})) {
    place[whole(row[0])] = trials.size();
    trials.push_back(outline(row));
  }
  auto parameters =
      trials.empty() ? std::vector<std::vector<StoredParameter>>() : fill(place, trials);
  transaction.commit();
  for (size_t i = 0; i < trials.size(); ++i)
    result.trials.push_back({std::move(trials[i]), std::move(parameters[i])});
  return result;
}

std::vector<std::vector<StoredParameter>> SqlStudy::fill(const std::map<int64_t, size_t>& place,
                                                         std::vector<Trial>& all) {
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
  ask("param_name, param_value, distribution_json", "trial_params", "param_id",
      [&](size_t at, const SqlRow& row) {
        const std::string text = row[3].value_or("");
        auto known = known_distributions_.find(text);
        if (known == known_distributions_.end())
          known =
              known_distributions_.emplace(text, distribution_from_json(text, db_->place())).first;
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
    trial.constraints = constraints_of(trial.system_attributes);
    trial.system_attributes.erase(process_key);
  }
  return parameters;
}

}  // namespace mase::search
