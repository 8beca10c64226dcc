// SPDX-License-Identifier: Apache-2.0
// A search from its settings to its files, for commands and notebooks alike: they show what they
// are told and decide nothing.
//
//   SearchSpec spec = checked_search_spec(settings, problems, 1);
//   PreparedSearch prepared(settings, std::move(spec), observer);
//   RunFolder folder = ...; SearchOutcome outcome = run_search(prepared, &folder);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mase/run/search/search_experiment.h"

namespace mase {

// What the tables and options of a search say, or all their mistakes. `processes`: that share it.
SearchSpec checked_search_spec(const Settings& settings, Problems problems, int64_t processes);

// Everything before the first trial: network and data at hand, the space checked and told.
struct PreparedSearch {
  Settings settings;
  Observer observer;
  std::unique_ptr<Experiment> experiment;
  std::unique_ptr<SearchExperiment> search;

  PreparedSearch(Settings read, SearchSpec spec, Observer told, const InMemory& memory = {});
  std::string study() const;    // its name
  std::string address() const;  // of its storage; empty: none was named
  int64_t planned() const;      // trials
};

struct SearchCalls {
  std::function<void(const search::Trials& trials, const search::Trial& trial)> finished = {};
  std::function<void()> trials_done = {};  // nothing is measured any more: files follow
  std::function<void(const std::string& address)> opened = {};  // where the study is
};

struct SearchOutcome {
  search::StudyEnd end = search::StudyEnd::all_done;
  bool stopped = false;      // before everything was done
  std::string results = {};  // the folder of its files; empty: none
  std::string storage = {};  // as it may be shown; empty: nothing is kept
  std::vector<TestScore> scores = {};
  std::vector<TrainedBest> trained = {};
  Value record = {};  // search.json
};

// Where `folder` is not null: study.db, best.json, log.json, search.json, trained.json, a .toml and
// a network for each member of the front, and how it ended in run.json, whatever happens. `storage`
// null: the one that is named, or study.db in the folder, or none. What follows the last trial is
// short after Ctrl-C and after a timeout.
SearchOutcome run_search(PreparedSearch& prepared, RunFolder* folder,
                         std::unique_ptr<search::Storage> storage = {},
                         const SearchCalls& calls = {});
// Takes trials of a study that is somewhere else until there are none left.
search::StudyEnd work_along(PreparedSearch& prepared, const std::string& address,
                            const SearchCalls& calls = {});

const char* end_name(search::StudyEnd end);  // "finished", "space_exhausted", ...
void write_search_record(const std::string& results, const Value& record);  // search.json

}  // namespace mase
