// SPDX-License-Identifier: Apache-2.0
// ch train: trains a network on a data set, writes the run folder, resumes a stopped run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>

#include "mase/base/figure.h"
#include "mase/cli/learn_bits.h"
#include "mase/cli/learn_tables.h"
#include "mase/cli/next_steps.h"
#include "mase/cli/options.h"
#include "mase/cli/plot_option.h"
#include "mase/cli/portable.h"
#include "mase/cli/train_display.h"
#include "mase/report/pages/run_folder.h"
#include "mase/report/text/training_plot.h"
#include "mase/run/experiment.h"
#include "mase/run/resume.h"

namespace mase::train_command {
namespace {

bool asks_for_more(const Arguments& arguments) {
  return arguments.was_typed("max_epochs") || arguments.was_typed("max_steps");
}

// The options of the run, with what was typed for this time. What concerns the terminal is free.
Settings settings_of_run(const RunFolder& run, const Arguments& arguments) {
  static const std::set<std::string> terminal = {"resume", "log_level", "no_warnings", "debug",
                                                 "plot",   "ascii",     "show_options"};
  Dict anew;
  for (const std::string& name : arguments.typed)
    if (!terminal.count(name)) anew.set(name, arguments[name]);
  Settings settings = resumed_settings(run, arguments.values, anew);
  for (const std::string& name : arguments.typed)
    if (terminal.count(name)) settings.values[name] = arguments[name];
  return settings;
}

// What says which command this is cannot stand in a file that others read too.
void refuse_in_file(const Settings& settings, const std::vector<std::string>& names) {
  for (const OptionRow& row : settings.rows)
    if (std::count(names.begin(), names.end(), row.name) > 0 && !row.config.is_null())
      throw Error(row.config.position(), row.name, "is for the command line only",
                  fmt::format("ch train --{} ...", row.name));
}

ExperimentSpec session_spec(const Settings& settings, const RunFolder* resumed) {
  ExperimentSpec spec = experiment_spec(settings);
  spec.data.keep_scaling = false;
  spec.data.needed = true;
  if (resumed) take_up(spec, *resumed);
  return spec;
}

int exit_code(TrainStatus status) {
  return status == TrainStatus::finished ? 0 : status == TrainStatus::interrupted ? 130 : 1;
}

std::string figures_text(const Dict& figures) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : figures)
    parts.push_back(name + " " + figure_text(value.as_double()));
  return join(parts, ", ");
}

void report_outcome(const TrainResult& result, const RunFolder& folder, const Logger& log) {
  const TrainOutcome& outcome = result.outcome;
  const TrainState& state = outcome.state;
  if (state.best_epoch >= 0)
    log.info(fmt::format("Best epoch {} (by {}): {}", state.best_epoch, outcome.monitor,
                         figures_text(state.best_figures)));
  if (result.test) {
    std::string figures;
    for (const auto& [name, value] : named_figures(*result.test, state.best_accuracy.has_value()))
      figures += fmt::format("{}{} {}", figures.empty() ? "" : ", ", name, figure_text(value));
    log.info(fmt::format("Test of the best epoch on {} rows: {}",
                         with_thousands(result.test->score.rows), figures));
  }
  if (state.best_epoch >= 0) log.info("Best checkpoint: " + folder.checkpoint("best"));
  if (std::filesystem::exists(folder.checkpoint("last")))
    log.info("Last checkpoint: " + folder.checkpoint("last"));
  log.info("Run folder: " + folder.path());
  if (outcome.run_steps == 0 && outcome.status == TrainStatus::finished)
    log.info(fmt::format("Nothing was left to train: the run has {} epochs", state.epoch));
  if (outcome.run_steps > 0) {
    const double rate = static_cast<double>(outcome.run_steps) / outcome.step_seconds;
    log.info(fmt::format(
        "{} steps in {:.3g} s: {:.{}f} steps/s, {:.0f} samples/s; with validation and files {:.2f} "
        "s",
        with_thousands(outcome.run_steps), outcome.step_seconds, rate, rate < 100 ? 2 : 0,
        static_cast<double>(outcome.run_samples) / outcome.step_seconds, outcome.run_seconds));
  }
  if (outcome.stopped_early)
    log.info(fmt::format("Stopped early: no better {} for {} epochs", outcome.monitor,
                         state.stale_epochs));
  if (outcome.status == TrainStatus::interrupted)
    log.warning(fmt::format("Interrupted after step {}; continue with: ch train --resume {}",
                            with_thousands(state.step), folder.path()));
  if (outcome.status == TrainStatus::diverged)
    log.error(
        fmt::format("The run diverged: {}. {} {}", outcome.message,
                    state.best_epoch >= 0
                        ? fmt::format("The best checkpoint (epoch {}) is intact.", state.best_epoch)
                        : "No epoch was finished, so there is no checkpoint.",
                    outcome.remedy));
}

// A run that ends while it still learns says so: its figures are not what the network can do.
void tell_if_unfinished(const TrainResult& result, const std::vector<double>& losses,
                        const Logger& log) {
  const TrainState& state = result.outcome.state;
  if (result.outcome.status != TrainStatus::finished || losses.size() < 3) return;
  if (state.best_epoch + 1 != state.epoch) return;
  const double before = losses[losses.size() - 2], last = losses.back();
  constexpr double clear_fall = 0.01;  // of the loss, in one epoch
  if (!(last < before * (1 - clear_fall))) return;
  log.info(
      fmt::format("The loss was still falling ({:.4f} to {:.4f} in the last epoch): a higher "
                  "--learning-rate or "
                  "more --max-epochs gives a better network",
                  before, last));
}

bool takes_pictures(const Shape& sample) {
  return sample.size() == 3 && (sample[0] == 1 || sample[0] == 3);
}

void tell_what_next(const RunFolder& folder, const Experiment& experiment, const Logger& log) {
  const Graph& graph = experiment.graph();
  const Node& input = graph.node(graph.placeholders().at(0));
  const char* rows = input.element == DType::i64          ? "ids.npy"
                     : takes_pictures(input.sample_shape) ? "picture.png"
                                                          : "rows.csv";
  const std::string best = folder.path() + "/software/training_ckpts/best.mz";
  for (const std::string& line :
       next_steps({fmt::format("ch test --load {} --verbose", best),
                   fmt::format("ch predict --load {} --input {}{}", best, rows,
                               experiment.dataset()->classification ? " --classes" : ""),
                   "ch report " + folder.path()}))
    log.info(line);
}

int start_or_resume(const Arguments& arguments, const std::shared_ptr<Communicator>& processes) {
  std::optional<RunFolder> folder;
  const bool resume = !arguments["resume"].is_null();
  if (resume) folder = RunFolder::open(arguments["resume"].as_string());
  const Settings settings =
      resume ? settings_of_run(*folder, arguments) : merge_settings("train", arguments);
  const Logger log(settings, processes->leads());
  if (resume && folder->status() == "finished" && !asks_for_more(arguments)) {
    log.info("The run is finished already: " + folder->path());
    log.info("To train it further: ch train --resume " + folder->path() + " --max-epochs N");
    return 0;
  }
  if (!resume) refuse_in_file(settings, {"resume", "seeds"});
  log.text(settings_table(settings, settings["show_options"].as_bool()));
  for (const std::string& warning : settings.warnings) log.warning(warning);

  const TrainSpec training = train_spec(settings);
  if (!training.notice.empty()) log.warning(training.notice);
  Observer observer = log.observer();
  std::optional<TrainDisplay> display;
  if (processes->leads()) display.emplace(observer, log);
  Experiment experiment(session_spec(settings, folder ? &*folder : nullptr), observer, processes);
  experiment.prepare();
  OutputSpec output = output_spec(settings);
  output.record["version"] = program_version();
  output.record["command"] = Value::of(arguments.command_line);
  if (!folder && processes->leads()) folder = experiment.create_folder(output, "train");
  if (resume && processes->leads()) folder->record()["options"] = settings.rows_value();
  // Only the leading process writes; the others read where a resumed run stands.
  const TrainResult result = experiment.train(training, folder ? &*folder : nullptr, resume);
  if (!processes->leads()) return exit_code(result.outcome.status);
  display->close();
  report_outcome(result, *folder, log);
  tell_if_unfinished(result, display->validation_losses(), log);
  if (result.outcome.status == TrainStatus::finished) tell_what_next(*folder, experiment, log);
  // From the file, so that a resumed run is drawn whole.
  if (settings["plot"].as_bool())
    log.text(plot_training(read_run_leniently(folder->path()).curves, plot_style(settings.values)));
  return exit_code(result.outcome.status);
}

int start_or_resume_learning_bits(const Arguments& arguments) {
  if (arguments["resume"].is_null()) {
    const Settings settings = merge_settings("train", arguments);
    return train_and_learn_bits(arguments, settings, session_spec(settings, nullptr), {});
  }
  RunFolder folder = RunFolder::open(arguments["resume"].as_string());
  if (asks_for_more(arguments))
    throw Error("--resume", "what bits cost rises over the epochs that the run was begun with",
                "leave --max-epochs and --max-steps out");
  const Settings settings = settings_of_run(folder, arguments);
  if (folder.status() == "finished") {
    Logger(settings, true).info("The run is finished already: " + folder.path());
    return 0;
  }
  const ExperimentSpec spec = session_spec(settings, &folder);
  return train_and_learn_bits(arguments, settings, spec, std::move(folder));
}

// Several seeds are a sweep over them.
int run_seeds(const Arguments& arguments) {
  Arguments sweep;
  sweep.values = Dict{{"command", "train"},
                      {"vary", Value()},
                      {"seeds", arguments["seeds"]},
                      {"jobs", Value()},
                      {"project_dir", arguments["project_dir"]},
                      {"project", arguments["project"]}};
  const std::vector<std::string>& words = arguments.command_line;
  for (size_t i = 2; i < words.size(); ++i) {
    bool taken = false;
    for (const char* flag : {"--seeds", "--project", "--project-dir"}) {
      if (words[i] == flag) ++i, taken = true;
      if (i < words.size() && starts_with(words[i], std::string(flag) + "=")) taken = true;
      if (taken) break;
    }
    if (!taken) sweep.rest.push_back(words[i]);
  }
  return Registry<CommandRecord>::instance().get("sweep").run(sweep);
}

// A yes-or-no option of this run, or of the one that is resumed. (Before MPI or anything else is
// started.)
bool is_chosen(const Arguments& arguments, const char* option) {
  if (arguments["resume"].is_null()) return merge_settings("train", arguments)[option].as_bool();
  const RunFolder run = RunFolder::open(arguments["resume"].as_string());
  for (const Value& row : run.record()["options"].as_list("options"))
    if (row["name"] == Value(option)) return row["effective"].as_bool();
  return false;
}

int run(const Arguments& arguments) {
  if (is_chosen(arguments, "deterministic")) run_portably(arguments.command_line);
  catch_interrupts();
  if (arguments.was_typed("seeds")) {
    if (arguments.was_typed("resume"))
      throw Error("--seeds", "does not go with --resume",
                  "the same --seeds command goes on itself");
    return run_seeds(arguments);
  }
  const std::shared_ptr<Communicator> processes = communicator();
  if (is_chosen(arguments, "learn_bits")) {
    if (processes->size() > 1) throw Error("--learn-bits", "runs in one process");
    return start_or_resume_learning_bits(arguments);
  }
  if (processes->size() == 1) return start_or_resume(arguments, processes);
  // A process that leaves must take the others with it, or they wait for it for ever. Mistakes are
  // the same on all of them: the leading one speaks, the others only if it does not.
  try {
    return start_or_resume(arguments, processes);
  } catch (const std::exception& error) {
    if (!processes->leads()) std::this_thread::sleep_for(std::chrono::seconds(2));
    complain(error.what());
    processes->abort(2);
    throw;
  }
}

std::vector<Field> own_options() {
  return {{.name = "resume",
           .type = FieldType::text,
           .help = "continue this run folder; the result is that of an uninterrupted run",
           .group = "Training options"},
          {.name = "seeds",
           .type = FieldType::integer,
           .help = "train with so many seeds, from --seed on, and compare: as ch sweep",
           .minimum = 1,
           .maximum = 10000,
           .group = "Training options"},
          {.name = "test",
           .type = FieldType::boolean,
           .default_value = true,
           .help = "at the end, measure the best checkpoint on the test rows",
           .group = "Training options"},
          {.name = "sync_bn",
           .type = FieldType::boolean,
           .default_value = true,
           .help = "under mpirun: batch-norm statistics over all processes",
           .group = "Training options"}};
}

const Register<CommandRecord> registered{{
    .name = "train",
    .group = CommandGroup::train,
    .summary = "Train a network on a data set",
    .help =
        "Writes mase_output/{model}_{task}_{dataset}_{date}/ with checkpoints, metrics and the "
        "run record. Ctrl-C finishes the step, saves and exits with 130. Under mpirun the batch "
        "is shared by all processes.",
    .positionals = {network_word(), dataset_word()},
    .options = {general_options() + config_options() + data_options() + trainer_options() +
                own_options() + learn_bits_options() + learn_tables_options() + plot_fields() +
                machine_options()},
    .tables = {"passes"},
    .examples = {"ch train jsc-tiny jsc --learning-rate 1e-2 --max-epochs 10 --project tiny",
                 "ch train --config configs/examples/jsc_toy_by_type.toml --max-epochs 2",
                 "ch train jsc-tiny jsc --seeds 3 --max-epochs 5",
                 "ch train --resume mase_output/tiny --max-epochs 20",
                 "mpirun -n 2 ch train jsc-10x jsc --max-epochs 2"},
    .run = run,
}};

}  // namespace
}  // namespace mase::train_command
