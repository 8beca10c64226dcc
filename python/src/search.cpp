// SPDX-License-Identifier: Apache-2.0
// Searches over number formats, as ch search does them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "convert.h"
#include "experiment.h"
#include "mase/base/file.h"
#include "mase/run/search_experiment.h"
#include "module.h"

namespace mase::python {
namespace {

Value trial_value(const search::Trial& trial) {
  List values;
  for (const double value : trial.values) values.push_back(value);
  return Dict{{"number", trial.number},
              {"state", search::state_name(trial.state)},
              {"values", values},
              {"user_attributes", trial.user_attributes}};
}

Value score_value(const TestScore& score) {
  return Dict{{"number", score.number},
              {"accuracy", score.accuracy},
              {"low", score.low},
              {"high", score.high},
              {"loss", score.loss},
              {"rows", score.rows},
              {"searched", score.searched},
              {"difference", score.difference},
              {"difference_low", score.difference_low},
              {"difference_high", score.difference_high}};
}

struct Found {
  search::StudyEnd end = search::StudyEnd::all_done;
  Value best;
  std::string table, folder;
  List trials, scores, configurations;
  std::vector<Graph> networks;
  std::vector<std::string> objectives;
};

// The caller's `finished(trial, count)` is told of every trial.
nb::dict run_search(Session& session, bool save, const std::optional<std::string>& storage_address,
                    const std::string& study, nb::object finished, size_t networks) {
  Problems problems;
  SearchSpec spec = search_spec(session.settings(), problems);
  problems.throw_if_any();
  Found found;
  session.run([&] {
    for (const std::string& notice : spec.notices) session.observer().warning(notice);
    SearchExperiment search(session.experiment(), std::move(spec));
    for (const std::string& seed : search.unused_seeds())
      session.observer().info(fmt::format("seed '{}' is not used: layers are chosen by {}",
                                          printable(seed), search.spec().by));
    std::unique_ptr<search::Storage> storage;
    if (storage_address) storage = search::open_storage(*storage_address);
    std::optional<RunFolder> folder;
    if (save) folder = session.create_folder("search");
    const std::string results = folder ? folder->software("search_ckpts") : "";
    if (folder && !storage) storage = search::open_storage(results + "/study.db");
    search::StudyObserver observer;
    observer.stop_requested = [&session] { return session.callbacks().stop_requested(); };
    observer.finished = [&](const search::Trials& trials, const search::Trial& trial) {
      if (finished.is_none()) return;
      session.callbacks().call([&] { finished(from_value(trial_value(trial)), trials.size()); });
    };
    try {
      found.end = search.run(storage.get(), study, observer);
    } catch (const std::exception&) {
      if (folder) folder->finish("failed");
      throw;
    }
    found.best = search.best_record();
    found.table = search.best_table();
    found.objectives = search.objectives();
    for (const search::Trial& trial : search.trials()) found.trials.push_back(trial_value(trial));
    for (const TestScore& score : search.test_best()) found.scores.push_back(score_value(score));
    const std::vector<int64_t> best = search::best_trials(search.trials());
    for (size_t i = 0; i < std::min(best.size(), networks); ++i) {
      found.networks.push_back(search.network(best[i]));
      found.configurations.push_back(
          Dict{{"number", best[i]}, {"config", search.configuration(best[i])}});
    }
    if (!folder) return;
    found.folder = folder->path();
    search.write_log(results + "/log.json");
    write_file_atomically(results + "/best.json", to_json(found.best, 1) + "\n");
    for (size_t i = 0; i < found.networks.size(); ++i) {
      const std::string name = fmt::format("{}/best_{}", results, best[i]);
      write_file_atomically(name + ".toml", to_toml(search.configuration(best[i])));
      save_mz(name + ".mz", found.networks[i], session.experiment().file_contents());
    }
    folder->finish(found.end == search::StudyEnd::interrupted ? "interrupted" : "finished");
  });
  nb::dict result;
  const char* ends[] = {"finished", "space_exhausted", "timeout", "interrupted"};
  result["status"] = ends[static_cast<size_t>(found.end)];
  result["best"] = from_value(found.best);
  result["table"] = found.table;
  result["folder"] = found.folder;
  result["trials"] = from_value(found.trials);
  result["test"] = from_value(found.scores);
  result["configurations"] = from_value(found.configurations);
  result["objectives"] = from_value(Value::of(found.objectives));
  nb::list graphs;
  for (Graph& graph : found.networks) graphs.append(nb::cast(std::move(graph)));
  result["networks"] = graphs;
  return result;
}

}  // namespace

void bind_search(nb::module_& module) {
  module.def("search", &run_search, nb::arg("experiment"), nb::arg("save"),
             nb::arg("storage").none(), nb::arg("study"), nb::arg("finished").none(),
             nb::arg("networks"));
}

}  // namespace mase::python
