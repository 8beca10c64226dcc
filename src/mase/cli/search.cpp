// SPDX-License-Identifier: Apache-2.0
// ch search: tries configurations of a network and keeps the best.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/cli/options.h"
#include "mase/cli/plot_option.h"
#include "mase/cli/terminal.h"
#include "mase/report/search_page.h"
#include "mase/run/search_experiment.h"
#include "mase/train/communicator.h"

namespace mase::search_command {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string count_text(double count) {
  if (std::isinf(count)) return "any number of";
  return count < 1e15 ? with_thousands(static_cast<int64_t>(count)) : human_count(count);
}

// "Trial 12/48  best 0.712  3.1 trials/s  00:11 left"
class ProgressText {
 public:
  ProgressText(const SearchExperiment& search, int64_t planned)
      : search_(search), planned_(planned) {}

  void take(const search::Trials& trials, const search::Trial& trial) {
    if (first_ < 0) {
      first_ = trial.number;
      for (const search::Trial& before : trials) note(trials, before);
    }
    done_ = static_cast<int64_t>(trials.size());
    note(trials, trial);
  }

  // Those of other processes too.
  void take_all(const search::Trials& trials) {
    done_ = static_cast<int64_t>(trials.size());
    for (const search::Trial& trial : trials) note(trials, trial);
  }

  void note(const search::Trials& trials, const search::Trial& trial) {
    if (trial.state != search::TrialState::complete || !trial.feasible()) return;
    const double loss = trials.loss(trial);
    if (!known_ || loss < loss_) {
      known_ = true;
      loss_ = loss;
      value_ = trial.values[0];
    }
  }

  std::string str() const {
    const double seconds = seconds_since(start_);
    const double rate = static_cast<double>(done_ - std::max<int64_t>(0, first_)) / seconds;
    std::string text = fmt::format("Trial {}/{}", done_, planned_);
    if (known_) text += fmt::format("  best {} {:.4g}", search_.objectives().front(), value_);
    text += fmt::format("  {:.1f} trials/s", rate);
    if (rate > 0 && done_ < planned_)
      text += fmt::format("  {} left", human_seconds(static_cast<double>(planned_ - done_) / rate));
    return text;
  }

 private:
  const SearchExperiment& search_;
  int64_t planned_, done_ = 0, first_ = -1;
  bool known_ = false;
  double loss_ = 0, value_ = 0;
  Clock::time_point start_ = Clock::now();
};

std::string test_table(const std::vector<TestScore>& scores, const std::string& split) {
  Table table({"number", split + " accuracy", "test accuracy", "95 % interval", "difference",
               "95 % interval", "test loss", "test rows"});
  for (const TestScore& score : scores) {
    const bool reference = score.difference_low == 0 && score.difference_high == 0;
    table.add({std::to_string(score.number), fmt::format("{:.4f}", score.searched),
               fmt::format("{:.4f}", score.accuracy),
               fmt::format("{:.4f} to {:.4f}", score.low, score.high),
               reference ? "-" : fmt::format("{:+.4f}", score.difference),
               reference
                   ? "-"
                   : fmt::format("{:+.4f} to {:+.4f}", score.difference_low, score.difference_high),
               fmt::format("{:.4f}", score.loss), with_thousands(score.rows)});
  }
  return table.str(TableStyle::orgtbl);
}

// Configurations and networks of the best trials; a large front is cut to its first members, and
// best.json has them all.
void save_best(const SearchExperiment& search, const Experiment& experiment,
               const std::string& folder, const Logger& log) {
  constexpr size_t most = 20;
  const std::vector<int64_t> best = search.best();
  for (size_t i = 0; i < std::min(best.size(), most); ++i) {
    const std::string name =
        fmt::format("{}/best_{}", folder, search.trials()[static_cast<size_t>(best[i])].shown());
    write_file_atomically(name + ".toml", to_toml(search.configuration(best[i])));
    save_mz(name + ".mz", search.network(best[i]), experiment.file_contents());
  }
  if (best.size() > most)
    log.info(fmt::format("{} best trials; networks of the first {} are saved", best.size(), most));
}

// The second level: the front trained on, beside what it was without.
void train_best(const SearchExperiment& search, const Experiment& experiment,
                const std::string& folder, const Logger& log) {
  LiveLine live(log.shows_info());
  const std::vector<TrainedBest> all = search.train_best([&](size_t index, size_t count) {
    if (live.due()) live.draw(fmt::format("Training {} of {} best trials", index + 1, count));
    return !interrupted();
  });
  if (all.empty()) return;
  live.finish(fmt::format("{} best trials were trained on", all.size()));
  const auto figure = [](const Dict& figures, const char* name) {
    const Value* value = figures.find(name);
    return value && value->is_number() ? fmt::format("{:.4f}", value->as_double()) : "-";
  };
  Table table({"number", "accuracy", "after training", "loss", "after training"});
  List records;
  for (const TrainedBest& one : all) {
    if (!one.failure.empty()) log.warning(fmt::format("trial {}: {}", one.shown, one.failure));
    table.add({std::to_string(one.shown), figure(one.before, "accuracy"),
               figure(one.after, "accuracy"), figure(one.before, "loss"),
               figure(one.after, "loss")});
    records.emplace_back(Dict{{"number", one.shown}, {"before", one.before}, {"after", one.after}});
    if (one.failure.empty())
      save_mz(fmt::format("{}/best_{}_trained.mz", folder, one.shown), one.network,
              experiment.file_contents());
  }
  write_file_atomically(folder + "/trained.json", to_json(Value(std::move(records)), 1) + "\n");
  log.info(fmt::format("The best, trained with their formats ({} rows):", search.spec().split));
  log.text(table.str(TableStyle::orgtbl));
}

void tell_space(const SearchExperiment& search, const Logger& log) {
  const SearchSpec& spec = search.spec();
  const double size = search.space().size();
  log.info(
      fmt::format("Search space: {} parameters, {} configurations; sampler {}, measured on "
                  "{} {} rows",
                  search.space().dimensions(), count_text(size), spec.sampler->name,
                  with_thousands(search.rows()), spec.split));
  for (const std::string& told : search.unused_seeds()) log.info(told);
  if (search.space().empty())
    log.warning("there is one configuration only: it is measured, and nothing is searched");
  const bool exhaustive = spec.sampler->name == "brute-force" || spec.sampler->name == "grid";
  if (!exhaustive && size > 1 && spec.study.trials > 0 &&
      size <= static_cast<double>(spec.study.trials))
    log.info(
        "n_trials covers the whole space: sampler = \"brute-force\" does the same without "
        "sampling");
  if (exhaustive || !(size > static_cast<double>(spec.study.trials))) return;
  const std::optional<SearchExperiment::Pace> pace = search.pace();
  const double asked = pace ? pace->one * static_cast<double>(spec.study.trials) : 0;
  if (!pace || pace->all >= asked) return;
  const double jobs = spec.study.jobs;
  log.info(fmt::format(
      "All {} configurations would take about {:.2g} s with sampler = \"brute-force\", "
      "{} trials one by one about {:.2g} s",
      count_text(size), pace->all / jobs, with_thousands(spec.study.trials), asked / jobs));
}

// Everything before the first trial: settings read and told, network and data at hand.
struct Prepared {
  Settings settings;
  Logger log;
  std::unique_ptr<Experiment> experiment;
  std::unique_ptr<SearchExperiment> search;

  Prepared(Settings read, SearchSpec spec, bool speaks)
      : settings(std::move(read)), log(settings, speaks) {
    log.text(settings_table(settings, settings["show_options"].as_bool()));
    for (const std::string& warning : settings.warnings) log.warning(warning);
    for (const std::string& notice : spec.notices) log.warning(notice);
    ExperimentSpec parts = experiment_spec(settings);
    parts.data.needed = true;
    parts.passes = {};  // [passes] of the file is for ch transform
    experiment = std::make_unique<Experiment>(std::move(parts), log.observer());
    experiment->prepare();
    if (!experiment->network().loaded && !spec.trained)
      log.warning("no --load: the network has its initial random weights");
    search = std::make_unique<SearchExperiment>(*experiment, std::move(spec));
    tell_space(*search, log);
  }

  RunFolder create_folder(const Arguments& arguments) const {
    OutputSpec output = output_spec(settings);
    output.record["version"] = program_version();
    output.record["command"] = Value::of(arguments.command_line);
    return experiment->create_folder(output, "search");
  }
};

void write_record(const std::string& folder, const Value& record) {
  write_file_atomically(folder + "/search.json", to_json(record) + "\n");
}

// The page of a search that is running is drawn anew now and then; the more trials there are, the
// rarer, so that it costs little.
class LiveRecord {
 public:
  LiveRecord(const SearchExperiment& search, std::string folder)
      : search_(search), folder_(std::move(folder)) {}

  void take(const search::Trials& trials) {
    const double now = seconds_since(start_);
    if (now < next_) return;
    write_record(folder_, search_record(search_, trials, search_.spec().sampler->name));
    constexpr double between = 3, share = 20;
    const double took = seconds_since(start_) - now;
    next_ = now + std::max(between, share * took);
  }

 private:
  const SearchExperiment& search_;
  std::string folder_;
  Clock::time_point start_ = Clock::now();
  double next_ = 1;
};

std::string study_name(const Settings& settings) {
  return settings.has("study") ? settings["study"].as_string() : "search";
}

// Takes trials of a study that is somewhere else until there are none left.
int work_along(const Prepared& prepared, const std::string& address) {
  const Logger& log = prepared.log;
  const std::unique_ptr<search::Storage> storage = search::open_storage(address);
  if (!storage->shared())
    throw Error("--storage", "several processes cannot share a journal",
                "give postgresql://USER@HOST/DATABASE, or sqlite:///FILE.db on one machine");
  LiveLine live(log.shows_info());
  int64_t done = 0, known = 0;
  const auto text = [&] {
    return fmt::format("{} trials measured here, {} in the study", with_thousands(done),
                       with_thousands(known));
  };
  search::StudyObserver observer;
  observer.stop_requested = interrupted;
  observer.finished = [&](const search::Trials& trials, const search::Trial&) {
    ++done;
    known = static_cast<int64_t>(trials.size());
    if (live.due()) live.draw(text());
  };
  const search::StudyEnd end =
      prepared.search->run(storage.get(), study_name(prepared.settings), observer);
  known = static_cast<int64_t>(prepared.search->trials().size());
  live.finish(text());
  if (end != search::StudyEnd::interrupted) return 0;
  log.info("Interrupted: what was not finished is left to others.");
  return 130;
}

// Under mpirun every process takes trials of the study of the leading one.
std::string shared_address(Communicator& processes, const std::string& leading, bool given) {
  constexpr size_t most = 4096;
  char host[256] = {}, own[256] = {}, address[most] = {};
  ::gethostname(own, sizeof own - 1);
  std::copy(std::begin(own), std::end(own), std::begin(host));
  processes.broadcast(host, sizeof host);
  double elsewhere = std::string(host) != own;
  processes.sum(std::span<double>(&elsewhere, 1));
  if (elsewhere > 0 && !given)
    throw Error("ch search", "the processes run on several machines, and study.db is for one",
                "give --storage postgresql://USER@HOST/DATABASE");
  if (leading.size() >= most) throw Error("--storage", "is too long");
  std::copy(leading.begin(), leading.end(), std::begin(address));
  processes.broadcast(address, sizeof address);
  return address;
}

int search_once(const Arguments& arguments, const Prepared& prepared, Communicator& processes) {
  const Settings& settings = prepared.settings;
  const Logger& log = prepared.log;
  SearchExperiment& search = *prepared.search;
  const bool alone = processes.size() == 1;
  if (!processes.leads()) {
    const std::string address = shared_address(processes, "", settings.has("storage"));
    return work_along(prepared, address);
  }
  // A storage that cannot be opened leaves no folder behind.
  std::unique_ptr<search::Storage> storage;
  if (settings.has("storage")) storage = search::open_storage(settings["storage"].as_string());
  RunFolder folder = prepared.create_folder(arguments);
  const std::string results = folder.software("search_ckpts");
  const std::string address =
      settings.has("storage") ? settings["storage"].as_string() : results + "/study.db";
  const std::string study = study_name(settings);
  if (!storage) storage = search::open_storage(address);
  if (!alone) {
    shared_address(processes, settings.has("storage") ? address : "sqlite:///" + address,
                   settings.has("storage"));
    log.info(fmt::format("{} processes take trials of one study", processes.size()));
  }

  const double size = search.space().size();
  const int64_t asked = search.spec().study.trials;
  const int64_t planned =
      asked < 0 || static_cast<double>(asked) > size ? static_cast<int64_t>(size) : asked;
  LiveLine live(log.shows_info());
  ProgressText progress(search, planned);
  LiveRecord record(search, results);
  search::StudyObserver observer;
  observer.stop_requested = interrupted;
  observer.finished = [&](const search::Trials& trials, const search::Trial& trial) {
    progress.take(trials, trial);
    if (live.due()) live.draw(progress.str());
    record.take(trials);
  };
  search::StudyEnd end;
  try {
    end = search.run(storage.get(), study, observer);
  } catch (const std::exception&) {
    folder.finish("failed");
    throw;
  }
  progress.take_all(search.trials());
  live.finish(progress.str());
  search.write_log(results + "/log.json");
  write_file_atomically(results + "/best.json", to_json(search.best_record(), 1) + "\n");
  save_best(search, *prepared.experiment, results, log);
  log.info("Best trial(s):");
  log.text(search.best_table());
  const std::vector<TestScore> scores = search.test_best();
  if (!scores.empty()) {
    log.info("The same on rows that the search did not see:");
    log.text(test_table(scores, search.spec().split));
  }
  train_best(search, *prepared.experiment, results, log);
  const Value page = search_record(search, scores);
  write_record(results, page);
  if (settings["plot"].as_bool()) log.text(search_plots(page, plot_style(settings.values)));
  if (end == search::StudyEnd::timeout) log.info("The time given is over.");
  log.info(fmt::format("Results: {}; study '{}' in {}", printable(results), printable(study),
                       printable(settings.has("storage") ? address : "study.db")));
  const bool stopped = end == search::StudyEnd::interrupted;
  folder.finish(stopped ? "interrupted" : "finished");
  if (stopped)
    log.info(fmt::format("Interrupted. The same command with --storage {}{} goes on with it.",
                         settings.has("storage") ? "" : "sqlite:///", printable(address)));
  else
    log.info(fmt::format("Next:  ch report {}", printable(folder.path())));
  return stopped ? 130 : 0;
}

int compare(const Arguments& arguments, const Prepared& prepared) {
  const Settings& settings = prepared.settings;
  const Logger& log = prepared.log;
  std::vector<const search::SamplerRecord*> samplers;
  const std::string names =
      settings.has("samplers") ? settings["samplers"].as_string() : "random,tpe";
  for (const std::string& name : split(names, ','))
    samplers.push_back(&search::find_sampler(strip(name), "--samplers"));
  constexpr int64_t usual_seeds = 10;
  const int64_t seeds = settings.has("seeds") ? settings["seeds"].as_int() : usual_seeds;
  RunFolder folder = prepared.create_folder(arguments);
  LiveLine live(log.shows_info());
  int64_t done = 0;
  search::StudyObserver observer;
  observer.stop_requested = interrupted;
  observer.finished = [&](const search::Trials& trials, const search::Trial&) {
    ++done;
    if (live.due())
      live.draw(fmt::format("{} trials  {}", with_thousands(done), trials.study_name()));
  };
  Comparison comparison;
  try {
    comparison = prepared.search->compare(samplers, seeds, observer);
  } catch (const std::exception&) {
    folder.finish("failed");
    throw;
  }
  live.finish(fmt::format("{} trials of {} samplers with {} seeds; {} configurations measured",
                          with_thousands(done), samplers.size(), seeds,
                          with_thousands(comparison.configurations)));
  if (interrupted()) {
    folder.finish("interrupted");
    log.info("Interrupted: a comparison is not kept.");
    return 130;
  }
  for (const std::string& reason : comparison.left_out) log.warning(reason);
  const search::Trials none(prepared.search->space(), prepared.search->maximise(), "comparison");
  Value record = search_record(*prepared.search, none, names);
  record["comparison"] = comparison_record(comparison);
  record["total"] = done;
  const std::string results = folder.software("search_ckpts");
  write_record(results, record);
  log.info(fmt::format("{} (median over seeds; the best known: {:.6g})", comparison.measure,
                       comparison.best));
  log.text(comparison_table(comparison));
  if (settings["plot"].as_bool()) log.text(search_plots(record, plot_style(settings.values)));
  folder.finish("finished");
  log.info(fmt::format("Figure: ch report {}", printable(folder.path())));
  return 0;
}

// ch search compare MODEL DATASET
Arguments without_word(const Arguments& arguments, const std::string& word, bool& found) {
  found = arguments["model"].is_string() && arguments["model"].as_string() == word;
  if (!found) return arguments;
  Arguments rest = arguments;
  for (const auto& [to, from] : {std::pair("model", "dataset"), std::pair("dataset", "further")}) {
    rest.values[to] = arguments[from];
    if (arguments.was_typed(from))
      rest.typed.insert(to);
    else
      rest.typed.erase(to);
  }
  rest.values["further"] = Value();
  rest.typed.erase("further");
  return rest;
}

int run(const Arguments& given) {
  catch_interrupts();
  bool comparing = false;
  const Arguments arguments = without_word(given, "compare", comparing);
  Problems problems;
  Settings settings = merge_settings("search", arguments, problems);
  SearchSpec spec = search_spec(settings, problems);
  problems.throw_if_any();
  if (settings.has("further"))
    throw Error("ch search", fmt::format("'{}' is one word too many",
                                         printable(settings["further"].as_string())));
  if (!comparing && (settings.given("samplers") || settings.given("seeds")))
    throw Error("ch search", "--samplers and --seeds are of ch search compare",
                "write ch search compare ..., or --sampler");
  const bool worker = settings["worker"].as_bool();
  if (worker && !settings.has("storage"))
    throw Error("--worker", "there is no study to work along with",
                "give the --storage of the others");
  const std::shared_ptr<Communicator> processes = communicator();
  // What several processes try must not depend on how many they are.
  const bool many =
      processes->size() > 1 || worker ||
      (settings.has("storage") && search::is_for_many_machines(settings["storage"].as_string()));
  constexpr int64_t usual_window = 16;
  if (many && spec.study.window < 1) spec.study.window = usual_window;
  try {
    const Prepared prepared(std::move(settings), std::move(spec), processes->leads());
    if (comparing && processes->size() > 1)
      throw Error("ch search compare", "runs in one process", "use --n-jobs for several threads");
    if (comparing) return compare(arguments, prepared);
    if (worker) return work_along(prepared, prepared.settings["storage"].as_string());
    return search_once(arguments, prepared, *processes);
  } catch (const std::exception& error) {
    if (processes->size() == 1) throw;
    // As ch train does: who leaves takes the others along, and the leading one speaks.
    if (!processes->leads()) std::this_thread::sleep_for(std::chrono::seconds(2));
    complain(error.what());
    processes->abort(2);
    throw;
  }
}

std::vector<Field> own_options() {
  constexpr const char* group = "Search options";
  return {{.name = "sampler",
           .type = FieldType::text,
           .help = "what proposes configurations: brute-force, tpe, nsgaii, random, ...",
           .group = group},
          {.name = "n_trials",
           .type = FieldType::integer,
           .help = "configurations to try",
           .minimum = 1,
           .group = group},
          {.name = "n_jobs",
           .type = FieldType::integer,
           .help = "trials at a time",
           .minimum = 1,
           .maximum = 1024,
           .group = group},
          {.name = "timeout",
           .type = FieldType::number,
           .help = "seconds after which no trial is started",
           .minimum = 0,
           .group = group},
          {.name = "space",
           .type = FieldType::text,
           .help = "without a file: widths of every linear layer, as bits=2..8",
           .group = group},
          {.name = "objective",
           .type = FieldType::text,
           .help = "without a file: figures to search for, as accuracy,bitops",
           .group = group},
          {.name = "rows",
           .type = FieldType::integer,
           .help = "rows that a configuration is measured on, the first of the split",
           .minimum = 1,
           .group = group},
          {.name = "storage",
           .type = FieldType::text,
           .help = "where trials are kept: sqlite:///FILE.db, postgresql://USER@HOST/DATABASE or "
                   "journal:FILE (default: study.db in the run folder)",
           .group = group},
          {.name = "study",
           .type = FieldType::text,
           .help = "name of the study in the storage; one that is there goes on",
           .group = group},
          {.name = "worker",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "work along: take trials of the study in --storage until none is left; results "
                   "are written by a search without this",
           .group = group},
          {.name = "window",
           .type = FieldType::integer,
           .help = "a suggestion sees the results of trials so far back: as many can run at a time "
                   "(default: n_jobs; 16 for several processes)",
           .minimum = 1,
           .group = group},
          {.name = "heartbeat",
           .type = FieldType::number,
           .default_value = 10.0,
           .help = "seconds between a process's signs of life; silent for two of them, its trials "
                   "are taken over",
           .minimum = 0.5,
           .maximum = 86400,
           .group = group},
          {.name = "samplers",
           .type = FieldType::text,
           .help = "compare: the samplers, as brute-force,random,nsgaii (default: random,tpe)",
           .group = group},
          {.name = "seeds",
           .type = FieldType::integer,
           .help = "compare: searches with each sampler (default: 10)",
           .minimum = 1,
           .maximum = 10000,
           .group = group}};
}

const Register<CommandRecord> registered{{
    .name = "search",
    .group = CommandGroup::search,
    .summary = "Try configurations of a network and keep the best",
    .help = "The tables [search.search_space] and [search.strategy] of a configuration say what is "
            "searched over and for what. Results go to software/search_ckpts of the run folder: "
            "best.json, log.json, study.db (Optuna's format), and each best configuration as .toml "
            "for ch transform and as a network, .mz. ch search compare runs several samplers "
            "with many seeds over one space. Any number of processes may share a study: under "
            "mpirun, or started anywhere with --worker and the same --storage; what a killed one "
            "had begun is taken over.",
    .positionals = {{"model", "a built-in network or a .toml that describes one", false},
                    {"dataset", "a data set or the path of a table", false},
                    {"further", "compare: the data set, after 'compare' and the network", false}},
    .options = {general_options() + config_options() + data_options() + trainer_options() +
                own_options() + plot_fields() + machine_options()},
    .tables = {"search", "passes"},
    .examples = {"ch search --config configs/examples/search_jsc_tiny.toml",
                 "ch search jsc-10x jsc --load best.ckpt --space bits=4,8 --objective "
                 "accuracy,bitops",
                 "mpirun -n 2 ch search jsc-10x jsc --load best.ckpt --space bits=4,8 --objective "
                 "accuracy,bitops",
                 "ch search compare jsc-tiny jsc --load best.ckpt --space bits=2..9 --objective "
                 "loss --samplers random,tpe,gp --n-trials 40"},
    .run = run,
}};

}  // namespace
}  // namespace mase::search_command
