// SPDX-License-Identifier: Apache-2.0
// ch search: tries configurations of a network and keeps the best.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/cli/plot_option.h"
#include "mase/cli/search_compare.h"
#include "mase/cli/search_progress.h"
#include "mase/cli/search_results.h"
#include "mase/cli/search_setup.h"
#include "mase/report/search_page.h"
#include "mase/train/communicator.h"

namespace mase::search_command {
namespace {

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

// `storage` null: a study of its own in the folder.
int search_in(RunFolder& folder, std::unique_ptr<search::Storage> storage, const Prepared& prepared,
              Communicator& processes) {
  const Settings& settings = prepared.settings;
  const Logger& log = prepared.log;
  SearchExperiment& search = *prepared.search;
  const bool alone = processes.size() == 1;
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
  const search::StudyEnd end = search.run(storage.get(), study, observer);
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
  log.info(fmt::format(
      "Results: {}; study '{}' in {}", printable(results), printable(study),
      printable(settings.has("storage") ? search::without_password(address) : "study.db")));
  const bool stopped = end == search::StudyEnd::interrupted;
  folder.finish(stopped ? "interrupted" : "finished");
  if (stopped)
    log.info(fmt::format("Interrupted. The same command with --storage {}{} goes on with it.",
                         settings.has("storage") ? "" : "sqlite:///",
                         printable(search::without_password(address))));
  else
    log.info(fmt::format("Next:  ch report {}", printable(folder.path())));
  return stopped ? 130 : 0;
}

int search_once(const Arguments& arguments, const Prepared& prepared, Communicator& processes) {
  const Settings& settings = prepared.settings;
  if (!processes.leads()) {
    const std::string address = shared_address(processes, "", settings.has("storage"));
    return work_along(prepared, address);
  }
  // A storage that cannot be opened leaves no folder behind.
  std::unique_ptr<search::Storage> storage;
  if (settings.has("storage")) storage = search::open_storage(settings["storage"].as_string());
  RunFolder folder = prepared.create_folder(arguments);
  return folder.guard([&] { return search_in(folder, std::move(storage), prepared, processes); });
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
  check_pass_arguments(pass_list(settings).calls, problems);  // they run in other commands
  // What a mistyped word stood for is missing elsewhere: the word is told alone.
  Problems mistyped;
  for (const Error& problem : problems.errors())
    for (const Error& error : problem.parts())
      if (error.mistake() == Mistake::unknown_key || error.mistake() == Mistake::unknown_name)
        mistyped.add(error);
  mistyped.throw_if_any();
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
    if (comparing) return compare_samplers(arguments, prepared);
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
    .positionals = {network_word(),
                    {"dataset", "a data set or the path of a table", false},
                    {"further", "compare: the data set, after 'compare' and the network", false}},
    .options = {general_options() + config_options() + data_options() + trainer_options() +
                search_options() + plot_fields() + machine_options()},
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
