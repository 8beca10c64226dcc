// SPDX-License-Identifier: Apache-2.0
// Searches, as ch search does them: run_search decides and writes, here it is converted.
#include <nanobind/stl/string.h>

#include "convert.h"
#include "experiment.h"
#include "mase/run/search_run.h"
#include "module.h"

namespace mase::python {
namespace {

Value trial_value(const search::Trial& trial) {
  List values;
  for (const double value : trial.values) values.push_back(value);
  return Dict{{"number", trial.shown()},
              {"state", search::state_name(trial.state)},
              {"values", values},
              {"user_attributes", trial.user_attributes}};
}

// The caller's `finished(trial, count)` is told of every trial.
nb::dict run(Session& session, bool save, nb::object finished, size_t networks) {
  SearchOutcome outcome;
  std::unique_ptr<PreparedSearch> prepared;
  std::string folder_path;
  List trials, configurations;
  std::vector<Graph> graphs;
  session.run([&] {
    SearchSpec spec = checked_search_spec(session.settings(), {}, 1);
    prepared = std::make_unique<PreparedSearch>(session.settings(), std::move(spec),
                                                session.observer(), session.memory());
    if (session.callbacks().stop_requested()) return;
    SearchCalls calls;
    calls.finished = [&](const search::Trials& all, const search::Trial& trial) {
      if (finished.is_none()) return;
      session.callbacks().call([&] { finished(from_value(trial_value(trial)), all.size()); });
    };
    // A storage that cannot be opened leaves no folder behind.
    std::unique_ptr<search::Storage> storage;
    if (!prepared->address().empty()) storage = search::open_storage(prepared->address());
    std::optional<RunFolder> folder;
    if (save) folder = session.create_folder("search", *prepared->experiment);
    outcome = run_search(*prepared, folder ? &*folder : nullptr, std::move(storage), calls);
    if (folder) folder_path = folder->path();
    const SearchExperiment& search = *prepared->search;
    for (const search::Trial& trial : search.trials()) trials.push_back(trial_value(trial));
    for (const FrontMember& member : search.front()) {
      if (graphs.size() >= networks) break;
      std::optional<Graph> network =
          search.network(member.place, [&session] { return session.callbacks().stop_requested(); });
      if (!network) break;
      graphs.push_back(std::move(*network));
      configurations.push_back(
          Dict{{"number", member.number}, {"config", search.configuration(member.place)}});
    }
  });
  nb::dict result;
  if (!prepared || !prepared->search->is_over()) return result;  // it was stopped before
  const SearchExperiment& search = *prepared->search;
  List trained;
  for (const TrainedBest& one : outcome.trained)
    trained.push_back(Dict{{"number", one.number}, {"before", one.before}, {"after", one.after}});
  result["status"] = end_name(outcome.end);
  result["best"] = from_value(search.best_record());
  result["table"] = search.best_table();
  result["folder"] = folder_path;
  result["trials"] = from_value(trials);
  result["test"] = from_value(outcome.record["test"]);
  result["test_table"] = outcome.scores.empty() ? "" : search.test_table(outcome.scores);
  result["trained"] = from_value(trained);
  result["record"] = from_value(outcome.record);
  result["configurations"] = from_value(configurations);
  result["objectives"] = from_value(Value::of(search.objectives()));
  result["extra"] = from_value(prepared->experiment->file_contents());
  nb::list list;
  for (Graph& graph : graphs) list.append(nb::cast(std::move(graph)));
  result["networks"] = list;
  return result;
}

}  // namespace

void bind_search(nb::module_& module) {
  module.def("search", &run, nb::arg("experiment"), nb::arg("save"), nb::arg("finished").none(),
             nb::arg("networks"));
}

}  // namespace mase::python
