// SPDX-License-Identifier: Apache-2.0
// Searches, as ch search does them: run_search decides and writes, here it is converted.
#include <nanobind/stl/string.h>

#include <map>

#include "convert.h"
#include "experiment.h"
#include "mase/run/search/search_run.h"
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

// Functions of Python by the name of their figure. Never freed: the registry outlives Python.
std::map<std::string, nb::object>& figure_functions() {
  static auto* functions = new std::map<std::string, nb::object>();
  return *functions;
}

double figure_value(const std::string& name, const Graph& network) {
  nb::gil_scoped_acquire lock;
  try {
    return nb::cast<double>(figure_functions().at(name)(Graph(network)));
  } catch (nb::python_error& error) {
    throw Error(name, printable(error.what()));
  } catch (const nb::cast_error&) {
    throw Error(name, "the function gave no number");
  }
}

// A cell of a notebook may be run again: the last function counts.
void register_figure(const std::string& name, nb::object function, bool higher_is_better,
                     const std::string& summary) {
  Registry<search::FigureRecord>& figures = Registry<search::FigureRecord>::instance();
  if (const auto* known = figures.find(name)) {
    if (!figure_functions().count(name))
      throw Error("figure", fmt::format("'{}' is there already", printable(name)),
                  "choose another name");
    if (known->higher_is_better != higher_is_better)
      throw Error("figure", fmt::format("'{}' had the other direction", printable(name)),
                  "choose another name");
  }
  const bool fresh = figure_functions().insert_or_assign(name, std::move(function)).second;
  if (fresh)
    figures.add({.name = name,
                 .summary = summary,
                 .needs = search::FigureNeeds::network,
                 .higher_is_better = higher_is_better,
                 .value = [name](const search::Measured& known) {
                   return figure_value(name, *known.network);
                 }});
}

}  // namespace

void bind_search(nb::module_& module) {
  module.def("search", &run, nb::arg("experiment"), nb::arg("save"), nb::arg("finished").none(),
             nb::arg("networks"));
  module.def("register_figure", &register_figure, nb::arg("name"), nb::arg("function"),
             nb::arg("higher_is_better"), nb::arg("summary"));
}

}  // namespace mase::python
