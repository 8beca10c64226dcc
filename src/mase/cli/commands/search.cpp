// SPDX-License-Identifier: Apache-2.0
// ch search: tries configurations of a network and keeps the best.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "mase/base/text.h"
#include "mase/cli/options.h"
#include "mase/cli/plot_option.h"
#include "mase/cli/search_compare.h"
#include "mase/cli/search_progress.h"
#include "mase/report/pages/search_page.h"
#include "mase/run/search/search_run.h"
#include "mase/train/communicator.h"

namespace mase::search_command {
namespace {

int work_in(PreparedSearch& prepared, const Logger& log, const std::string& address) {
  LiveLine live(log.shows_info());
  int64_t done = 0, known = 0;
  const auto text = [&] {
    return fmt::format("{} trials measured here, {} in the study", with_thousands(done),
                       with_thousands(known));
  };
  SearchCalls calls;
  calls.finished = [&](const search::Trials& trials, const search::Trial&) {
    ++done;
    known = static_cast<int64_t>(trials.size());
    if (live.due()) live.draw(text());
  };
  calls.trials_done = [&] {
    known = static_cast<int64_t>(prepared.search->trials().size());
    live.finish(text());
  };
  if (work_along(prepared, address, calls) != search::StudyEnd::interrupted) return 0;
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

RunFolder create_folder(const PreparedSearch& prepared, const Arguments& arguments) {
  OutputSpec output = output_spec(prepared.settings);
  output.record["version"] = program_version();
  output.record["command"] = Value::of(arguments.command_line);
  return prepared.experiment->create_folder(output, "search");
}

int search_once(const Arguments& arguments, PreparedSearch& prepared, const Logger& log,
                Communicator& processes) {
  const bool named = !prepared.address().empty();
  if (!processes.leads()) return work_in(prepared, log, shared_address(processes, "", named));
  // A storage that cannot be opened leaves no folder behind.
  std::unique_ptr<search::Storage> storage;
  if (named) storage = search::open_storage(prepared.address());
  RunFolder folder = create_folder(prepared, arguments);
  LiveLine live(log.shows_info());
  ProgressText progress(*prepared.search, prepared.planned());
  SearchCalls calls;
  calls.opened = [&](const std::string& address) {
    if (processes.size() == 1) return;
    shared_address(processes, named ? address : "sqlite:///" + address, named);
    log.info(fmt::format("{} processes take trials of one study", processes.size()));
  };
  calls.finished = [&](const search::Trials& trials, const search::Trial& trial) {
    progress.take(trials, trial);
    if (live.due()) live.draw(progress.str());
  };
  calls.trials_done = [&] {
    progress.take_all(prepared.search->trials());
    live.finish(progress.str());
  };
  const SearchOutcome outcome = run_search(prepared, &folder, std::move(storage), calls);
  const Settings& settings = prepared.settings;
  if (settings["plot"].as_bool())
    log.text(search_plots(outcome.record, plot_style(settings.values)));
  log.info(fmt::format("Results: {}; study '{}' in {}", printable(outcome.results),
                       printable(prepared.study()),
                       named ? printable(outcome.storage) : "study.db"));
  if (!outcome.stopped) {
    log.info(fmt::format("Next:  ch report {}", printable(folder.path())));
    return 0;
  }
  log.info(fmt::format("Interrupted. The same command with --storage {}{} goes on with it.",
                       named ? "" : "sqlite:///", printable(outcome.storage)));
  return 130;
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
  const std::shared_ptr<Communicator> processes = communicator();
  SearchSpec spec = checked_search_spec(settings, std::move(problems), processes->size());
  if (settings.has("further"))
    throw Error("ch search", fmt::format("'{}' is one word too many",
                                         printable(settings["further"].as_string())));
  if (!comparing && (settings.given("samplers") || settings.given("seeds")))
    throw Error("ch search", "--samplers and --seeds are of ch search compare",
                "write ch search compare ..., or --sampler");
  const Logger log(settings, processes->leads());
  log.text(settings_table(settings, settings["show_options"].as_bool()));
  try {
    PreparedSearch prepared(std::move(settings), std::move(spec), log.observer());
    if (comparing && processes->size() > 1)
      throw Error("ch search compare", "runs in one process", "use --n-jobs for several threads");
    if (comparing)
      return compare_samplers(prepared, log, [&] { return create_folder(prepared, arguments); });
    if (prepared.settings["worker"].as_bool()) return work_in(prepared, log, prepared.address());
    return search_once(arguments, prepared, log, *processes);
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
                    dataset_word(),
                    {"further", "compare: the data set, after 'compare' and the network", false}},
    .options = {general_options() + config_options() + data_options() + trainer_options() +
                search_options() + compare_options() + plot_fields() + machine_options()},
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
