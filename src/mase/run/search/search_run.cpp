// SPDX-License-Identifier: Apache-2.0
#include "mase/run/search/search_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <mutex>

#include "mase/base/address.h"
#include "mase/base/figure.h"
#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/base/text.h"

namespace mase {
namespace {

using search::StudyEnd;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string count_text(double count) {
  if (std::isinf(count)) return "any number of";
  return count < 1e15 ? with_thousands(static_cast<int64_t>(count)) : human_count(count);
}

void tell_space(const SearchExperiment& search, const Observer& observer) {
  const SearchSpec& spec = search.spec();
  const double size = search.space().size();
  observer.info(fmt::format(
      "Search space: {} parameters, {} configurations; sampler {}, measured on {}",
      search.space().dimensions(), count_text(size), spec.sampler->name, search.rows_text()));
  if (!search.folded().empty())
    observer.info(fmt::format("Batch norms are folded first, for a figure of hardware: {}",
                              join(search.folded(), ", ")));
  for (const std::string& told : search.unused_seeds()) observer.info(told);
  if (search.space().empty())
    observer.warning("there is one configuration only: it is measured, and nothing is searched");
  const bool exhaustive = spec.sampler->exhaustive;
  if (!exhaustive && size > 1 && spec.study.trials > 0 &&
      size <= static_cast<double>(spec.study.trials))
    observer.info(
        "n_trials covers the whole space: sampler = \"brute-force\" does the same without "
        "sampling");
  if (exhaustive || !(size > static_cast<double>(spec.study.trials))) return;
  const std::optional<SearchExperiment::Pace> pace = search.pace();
  const double asked = pace ? pace->one * static_cast<double>(spec.study.trials) : 0;
  if (!pace || pace->all >= asked) return;
  const double jobs = spec.study.jobs;
  observer.info(fmt::format(
      "All {} configurations would take about {:.2g} s with sampler = \"brute-force\", "
      "{} trials one by one about {:.2g} s",
      count_text(size), pace->all / jobs, with_thousands(spec.study.trials), asked / jobs));
}

// [passes] of the file is for other commands. A key that nobody reads is a mistake here too; what
// only does not fit this network is none.
void check_passes(ExperimentSpec parts) {
  parts.data = {};
  Problems found, mistyped, missing;
  Experiment(std::move(parts)).check(found);
  for (const Error& problem : found.errors())
    for (const Error& error : problem.parts()) {  // one may stand for many
      if (error.mistake() == Mistake::unknown_key) mistyped.add(error);
      if (error.mistake() == Mistake::missing_key) missing.add(error);
    }
  mistyped.throw_if_any();
  missing.throw_if_any();
}

// The page of a search that is running is drawn anew now and then; the more trials there are, the
// rarer, so that it costs little.
class LiveRecord {
 public:
  LiveRecord(const SearchExperiment& search, std::string folder)
      : search_(search), folder_(std::move(folder)) {}

  void take(const search::Trials& trials) {
    const double now = since(start_);
    if (folder_.empty() || now < next_) return;
    write_search_record(folder_, search_record(search_, trials, search_.spec().sampler->name));
    constexpr double between = 3, share = 20;
    next_ = now + std::max(between, share * (since(start_) - now));
  }

 private:
  const SearchExperiment& search_;
  std::string folder_;
  Clock::time_point start_ = Clock::now();
  double next_ = 1;
};

// What follows the last trial: as long as it takes, or shortly if somebody waits for the end.
class Ending {
 public:
  // `given`: the seconds that the search was allowed.
  Ending(const Observer& observer, StudyEnd end, double given) : observer_(observer) {
    constexpr double after_interrupt = 1, most_after_timeout = 2, share = 0.25;
    if (end == StudyEnd::interrupted) seconds_ = after_interrupt;
    if (end == StudyEnd::timeout) seconds_ = std::min(most_after_timeout, share * given);
    heeds_ = end != StudyEnd::interrupted;  // one Ctrl-C was heeded already
  }
  bool over() const { return since(start_) > seconds_ || interrupted(); }
  bool interrupted() const { return heeds_ && observer_.cancelled && observer_.cancelled(); }
  bool is_short() const { return std::isfinite(seconds_); }

 private:
  const Observer& observer_;
  Clock::time_point start_ = Clock::now();
  double seconds_ = std::numeric_limits<double>::infinity();
  bool heeds_ = true;
};

// A configuration and a network for each member of the front.
void save_front(const PreparedSearch& prepared, const std::string& results, const Ending& ending) {
  const SearchExperiment& search = *prepared.search;
  size_t saved = 0;
  for (const FrontMember& member : search.front()) {
    const std::string name = fmt::format("{}/best_{}", results, member.number);
    write_file_atomically(name + ".toml", to_toml(search.configuration(member.place)));
    const std::optional<Graph> network =
        ending.over() ? std::nullopt : search.network(member.place, [&] { return ending.over(); });
    if (!network) continue;
    save_mz(name + ".mz", *network, prepared.experiment->file_contents());
    ++saved;
  }
  if (saved < search.front().size())
    prepared.observer.warning(fmt::format(
        "networks of {} of {} best trials are saved, for want of time; best.json and the .toml "
        "files have them all",
        saved, search.front().size()));
}

std::string shown_figure(const Dict& figures, const char* name) {
  const Value* value = figures.find(name);
  return value && value->is_number() ? figure_text(value->as_double()) : "-";
}

// The second level: the front trained on, beside what it was without.
std::vector<TrainedBest> train_front(const PreparedSearch& prepared, const std::string& results,
                                     const Ending& ending) {
  const SearchExperiment& search = *prepared.search;
  const Observer& observer = prepared.observer;
  const Clock::time_point start = Clock::now();
  std::vector<TrainedBest> all = search.train_best([&](size_t index, size_t count) {
    if (observer.progress)
      observer.progress({"Training the best trials", static_cast<int64_t>(index),
                         static_cast<int64_t>(count), since(start)});
    return !ending.over();
  });
  if (all.empty()) return all;
  Table table({"number", "accuracy", "after training", "loss", "after training"});
  List records;
  for (const TrainedBest& one : all) {
    if (!one.failure.empty())
      observer.warning(fmt::format("trial {}: {}", one.number, one.failure));
    table.add({std::to_string(one.number), shown_figure(one.before, "accuracy"),
               shown_figure(one.after, "accuracy"), shown_figure(one.before, "loss"),
               shown_figure(one.after, "loss")});
    records.emplace_back(
        Dict{{"number", one.number}, {"before", one.before}, {"after", one.after}});
    if (one.failure.empty() && !results.empty())
      save_mz(fmt::format("{}/best_{}_trained.mz", results, one.number), one.network,
              prepared.experiment->file_contents());
  }
  if (!results.empty())
    write_file_atomically(results + "/trained.json", to_json(Value(std::move(records)), 1) + "\n");
  observer.info(fmt::format("The best, trained with their formats ({}):", search.rows_text()));
  observer.text(table.str(TableStyle::orgtbl));
  return all;
}

void tell_failures(const SearchExperiment& search, const Observer& observer) {
  size_t failed = 0;
  std::string reason;
  for (const search::Trial& trial : search.trials()) {
    if (trial.state != search::TrialState::fail) continue;
    const Value* why = trial.user_attributes.find("failure");
    if (why && why->is_string() && reason.empty()) reason = why->as_string();
    ++failed;
  }
  if (failed > 0)
    observer.warning(fmt::format("{} of {} trials failed{}", with_thousands(failed),
                                 with_thousands(search.trials().size()),
                                 reason.empty() ? "" : "; the first: " + printable(reason)));
}

SearchOutcome search_in(PreparedSearch& prepared, RunFolder* folder,
                        std::unique_ptr<search::Storage> storage, const SearchCalls& calls) {
  SearchExperiment& search = *prepared.search;
  const Observer& observer = prepared.observer;
  SearchOutcome outcome;
  if (folder) outcome.results = folder->software("search_ckpts");
  const std::string own = folder ? outcome.results + "/study.db" : "";
  const std::string address = prepared.address().empty() ? own : prepared.address();
  if (!storage && !address.empty()) storage = search::open_storage(address);
  if (storage) outcome.storage = prepared.address().empty() ? own : masked_address(address);
  if (calls.opened) calls.opened(address);

  LiveRecord record(search, outcome.results);
  std::once_flag told_stop;
  bool told_failure = false;
  search::StudyObserver watching;
  watching.stop_requested = [&] {
    if (!observer.cancelled || !observer.cancelled()) return false;
    // A second Ctrl-C ends the process: the record is right by then.
    std::call_once(told_stop, [&] {
      if (folder) folder->finish("interrupted");
    });
    return true;
  };
  watching.finished = [&](const search::Trials& trials, const search::Trial& trial) {
    if (trial.state == search::TrialState::fail && !told_failure) {
      told_failure = true;
      const Value* why = trial.user_attributes.find("failure");
      if (why && why->is_string())
        observer.warning(
            fmt::format("trial {} failed: {}", trial.shown(), printable(why->as_string())));
    }
    if (calls.finished) calls.finished(trials, trial);
    record.take(trials);
  };
  outcome.end = search.run(storage.get(), prepared.study(), watching);
  if (calls.trials_done) calls.trials_done();
  const Ending ending(observer, outcome.end, search.spec().study.seconds);
  if (outcome.end == StudyEnd::interrupted && folder) folder->finish("interrupted");
  if (ending.is_short())
    observer.info(
        fmt::format("{}: the best of {} trials are written and tested, in some seconds",
                    outcome.end == StudyEnd::timeout ? "The time given is over" : "Interrupted",
                    with_thousands(search.trials().size())));
  for (const std::string& difference : search.differences())
    observer.warning(fmt::format("the study's earlier trials were measured with {}", difference));
  tell_failures(search, observer);
  if (folder) {
    search.write_log(outcome.results + "/log.json");
    write_file_atomically(outcome.results + "/best.json", to_json(search.best_record(), 1) + "\n");
    save_front(prepared, outcome.results, ending);
  }
  observer.info("Best trial(s):");
  observer.text(search.best_table());
  outcome.scores = search.test_best([&] { return ending.over(); });
  if (!outcome.scores.empty()) {
    observer.info("The same with their costs, on rows that the search did not see:");
    observer.text(search.test_table(outcome.scores));
  }
  if (!ending.is_short()) outcome.trained = train_front(prepared, outcome.results, ending);
  outcome.record = search_record(search, outcome.scores, [&] { return ending.over(); });
  outcome.stopped = outcome.end == StudyEnd::interrupted || ending.interrupted();
  if (!folder) return outcome;
  write_search_record(outcome.results, outcome.record);
  folder->finish(outcome.stopped ? "interrupted" : "finished");
  return outcome;
}

}  // namespace

const char* end_name(StudyEnd end) {
  static constexpr std::array<const char*, 4> names = {"finished", "space_exhausted", "timeout",
                                                       "interrupted"};
  return names[static_cast<size_t>(end)];
}

void write_search_record(const std::string& results, const Value& record) {
  write_file_atomically(results + "/search.json", to_json(record) + "\n");
}

SearchSpec checked_search_spec(const Settings& settings, Problems problems, int64_t processes) {
  SearchSpec spec = search_spec(settings, problems);
  check_pass_arguments(pass_list(settings).calls, problems);  // they run in other commands
  // What a mistyped word stood for is missing elsewhere: the word is told alone.
  Problems mistyped;
  for (const Error& problem : problems.errors())
    for (const Error& error : problem.parts())
      if (error.mistake() == Mistake::unknown_key || error.mistake() == Mistake::unknown_name)
        mistyped.add(error);
  mistyped.throw_if_any();
  problems.throw_if_any();
  const bool worker = settings.has("worker") && settings["worker"].as_bool();
  const bool named = settings.has("storage");
  if (worker && !named)
    throw Error("--worker", "there is no study to work along with",
                "give the --storage of the others");
  // What several processes try must not depend on how many they are.
  constexpr int64_t usual_window = 16;
  const bool many = processes > 1 || worker ||
                    (named && search::is_for_many_machines(settings["storage"].as_string()));
  if (many && spec.study.window < 1) spec.study.window = usual_window;
  return spec;
}

PreparedSearch::PreparedSearch(Settings read, SearchSpec spec, Observer told,
                               const InMemory& memory)
    : settings(std::move(read)), observer(std::move(told)) {
  for (const std::string& warning : settings.warnings) observer.warning(warning);
  for (const std::string& notice : spec.notices) observer.warning(notice);
  ExperimentSpec parts = experiment_spec(settings);
  take_from_memory(parts, memory);
  if (!parts.passes.calls.empty()) check_passes(parts);
  parts.data.needed = true;
  parts.passes = {};
  experiment = std::make_unique<Experiment>(std::move(parts), observer);
  experiment->prepare();
  if (!experiment->network().loaded && !spec.trained)
    observer.warning("no --load: the network has its initial random weights");
  search = std::make_unique<SearchExperiment>(*experiment, std::move(spec));
  tell_space(*search, observer);
}

std::string PreparedSearch::study() const {
  return settings.has("study") ? settings["study"].as_string() : "search";
}

std::string PreparedSearch::address() const {
  return settings.has("storage") ? settings["storage"].as_string() : "";
}

int64_t PreparedSearch::planned() const {
  const double size = search->space().size();
  const int64_t asked = search->spec().study.trials;
  return asked < 0 || static_cast<double>(asked) > size ? static_cast<int64_t>(size) : asked;
}

SearchOutcome run_search(PreparedSearch& prepared, RunFolder* folder,
                         std::unique_ptr<search::Storage> storage, const SearchCalls& calls) {
  if (!folder) return search_in(prepared, nullptr, std::move(storage), calls);
  return folder->guard([&] { return search_in(prepared, folder, std::move(storage), calls); });
}

StudyEnd work_along(PreparedSearch& prepared, const std::string& address,
                    const SearchCalls& calls) {
  const std::unique_ptr<search::Storage> storage = search::open_storage(address);
  if (!storage->shared())
    throw Error("--storage", "several processes cannot share a journal",
                "give postgresql://USER@HOST/DATABASE, or sqlite:///FILE.db on one machine");
  search::StudyObserver watching;
  watching.stop_requested = prepared.observer.cancelled;
  watching.finished = calls.finished;
  const StudyEnd end = prepared.search->run(storage.get(), prepared.study(), watching);
  if (calls.trials_done) calls.trials_done();
  return end;
}

}  // namespace mase
