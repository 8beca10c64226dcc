// SPDX-License-Identifier: Apache-2.0
// ch train: trains a network on a data set, writes the run folder, resumes a stopped run.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "mase/base/file.h"
#include "mase/cli/network_setup.h"
#include "mase/cli/plot_option.h"
#include "mase/cli/train_display.h"
#include "mase/passes/pass.h"
#include "mase/train/evaluation.h"
#include "mase/train/trainer.h"

namespace mase::train_command {
namespace {

LossKind loss_of(const Settings& settings, const Dataset& dataset) {
  if (!settings.has("loss")) return default_loss(dataset);
  const std::string name = settings["loss"].as_string();
  if (name == "cross-entropy") {
    if (!dataset.classification)
      throw Error("--loss", fmt::format("{} has numbers to predict, not classes", dataset.name),
                  "use --loss mse");
    return LossKind::cross_entropy;
  }
  return name == "mse" ? LossKind::mse : LossKind::bce_with_logits;
}

TrainOptions train_options(const Settings& settings, const Dataset& dataset) {
  TrainOptions options;
  options.optimizer = settings["training_optimizer"].as_string();
  options.optimizer_arguments = Dict{{"weight_decay", settings["weight_decay"].as_double()}};
  if (options.optimizer == "sgd") {
    options.optimizer_arguments["momentum"] = settings["momentum"].as_double();
    options.optimizer_arguments["nesterov"] =
        settings["nesterov"].as_bool() && settings["momentum"].as_double() > 0;
  }
  options.schedule = settings["schedule"].as_string();
  if (options.schedule == "cosine")
    options.schedule_arguments["eta_min"] = settings.has("eta_min")
                                                ? settings["eta_min"].as_double()
                                                : (options.optimizer == "sgd" ? 0.0 : 1e-6);
  if (options.schedule == "step") {
    options.schedule_arguments["step_size"] = settings["step_size"].as_int();
    options.schedule_arguments["gamma"] = settings["gamma"].as_double();
  }
  // The warm-up schedule takes the steps itself; before any other schedule they come first.
  if (options.schedule == "linear-warmup")
    options.schedule_arguments["total_iters"] = settings["warmup_steps"].as_int();
  else
    options.warmup_steps = settings["warmup_steps"].as_int();
  options.learning_rate = settings["learning_rate"].as_double();
  options.max_epochs = settings["max_epochs"].as_int();
  options.max_steps = settings["max_steps"].as_int();
  options.batch_size = settings["batch_size"].as_int();
  options.accumulate = settings["accumulate_grad_batches"].as_int();
  options.clip = settings["gradient_clip_val"].as_double();
  options.clip_values = settings["gradient_clip_algorithm"].as_string() == "value";
  options.early_stopping = settings["early_stopping"].as_int();
  options.freeze_bn_epochs = settings["freeze_bn_epochs"].as_int();
  options.log_every_n_steps = settings["log_every_n_steps"].as_int();
  options.checkpoint_seconds = settings["checkpoint_seconds"].as_double();
  options.checkpoint_steps = settings["checkpoint_steps"].as_int();
  options.loss = loss_of(settings, dataset);
  options.seed = static_cast<uint64_t>(settings["seed"].as_int());
  options.threads = static_cast<int>(settings["threads"].as_int());
  options.sync_batch_norm = settings["sync_bn"].as_bool();
  return options;
}

// The options of the run that is resumed; only what cannot change the result may be typed anew.
Settings resumed_settings(const RunFolder& run, const Arguments& arguments) {
  static const std::set<std::string> free = {"resume",    "threads",     "checkpoint_seconds",
                                             "log_level", "no_warnings", "checkpoint_steps",
                                             "debug",     "plot",        "ascii"};
  for (const std::string& name : arguments.typed)
    if (!free.count(name))
      throw Error("--resume", fmt::format("a resumed run keeps its own '{}'", name),
                  "to change options, start a new run with --load " + run.checkpoint("last"));
  Settings settings;
  settings.values = arguments.values;
  for (const Value& row : run.record()["options"].as_list("options")) {
    const std::string shown = row["name"].as_string(), name = shown == "load_name" ? "load" : shown;
    OptionRow copy{shown, row["default"], row["config"], row["flag"], row["effective"]};
    if (arguments.was_typed(name) && name != "resume") copy.flag = copy.effective = arguments[name];
    if (name != "resume") settings.values[name] = copy.effective;
    settings.rows.push_back(std::move(copy));
  }
  if (settings.has("config")) {
    settings.config_path = settings["config"].as_string();
    // The graph was saved after its passes; the file is needed only if that never happened.
    if (!std::filesystem::exists(run.path() + "/software/training_ckpts/initial.mz"))
      settings.config = read_toml(settings.config_path);
  }
  return settings;
}

// Two processes must not write one run: the lock goes away with the process, however it ends.
struct RunLock {
  int fd = -1;
  explicit RunLock(const std::string& folder) {
    fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      ::close(fd);
      throw Error(folder, "another process is training this run", "wait for it, or stop it first");
    }
  }
  ~RunLock() {
    if (fd >= 0) ::close(fd);
  }
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
};

struct Session {
  Settings settings;
  Logger log;
  std::shared_ptr<Communicator> processes;
  std::optional<RunFolder> run;
  bool resume = false;
};

Value initial_record(const Session& session, const Arguments& arguments) {
  return Dict{{"kind", "train"},
              {"version", program_version()},
              {"command", Value::of(arguments.command_line)},
              {"status", "running"},
              {"seed", session.settings["seed"]},
              {"options", session.settings.rows_value()}};
}

void fold_batch_norms(Graph& graph, const Logger& log) {
  PassContext context;
  const PassResult result = run_pass(graph, "fuse_batch_norm", Dict{{"quantized", true}}, context);
  for (const Value& pair : result.data["fused"].as_list()) log.info("Folded " + pair.as_string());
  for (const auto& [name, why] : result.data["left_alone"].as_dict())
    log.info(fmt::format("{} is not folded: {}", name, why.as_string()));
}

// Evaluates the best weights on the validation rows, for the run's page.
void evaluate_best(Session& session, Graph graph, const Dataset& dataset,
                   const TrainOptions& options) {
  const std::string best = session.run->checkpoint("best");
  if (dataset.validation.rows() == 0 || !std::filesystem::exists(best)) return;
  load_into(graph, load_checkpoint(best, CheckpointType::pl), best);
  CompileOptions compile;
  compile.batch_size = options.batch_size;
  compile.loss = options.loss;
  compile.class_weights = dataset.class_weights;
  compile.threads = options.threads;
  Program program = Program::compile(graph, compile);
  Score score;
  const Tensor logits = predict_rows(program, dataset.validation, &score);
  session.run->record()["evaluation"] =
      evaluation_record("validation", dataset.validation, logits, score, dataset);
  const std::string type = session.settings["save_type"].as_string();
  const std::string stem = best.substr(0, best.size() - 5);
  if (type == "pt") save_state_dict(stem + ".pt", state_dict(graph));
  if (type == "safetensors") save_safetensors(stem + ".safetensors", state_dict(graph));
  if (!graph.modules().empty()) save_mz(stem + ".mz", graph);
}

void record_outcome(Session& session, const TrainOutcome& outcome) {
  Value& record = session.run->record();
  const TrainState& state = outcome.state;
  if (state.best_epoch >= 0) {
    record["best"] =
        Dict{{"epoch", state.best_epoch}, {"path", "software/training_ckpts/best.ckpt"}};
    if (state.best_loss) record["best"]["val_loss_epoch"] = *state.best_loss;
    if (state.best_accuracy) record["best"]["val_acc_epoch"] = *state.best_accuracy;
  }
  if (outcome.run_seconds > 0 && outcome.run_steps > 0)
    record["speed"] = Dict{
        {"seconds", outcome.run_seconds},
        {"steps_per_second", static_cast<double>(outcome.run_steps) / outcome.run_seconds},
        {"samples_per_second", static_cast<double>(outcome.run_samples) / outcome.run_seconds}};
}

int report_outcome(Session& session, const TrainOutcome& outcome) {
  const TrainState& state = outcome.state;
  const Logger& log = session.log;
  const std::string& path = session.run->path();
  if (state.best_epoch >= 0)
    log.info(fmt::format(
        "Best epoch {}: val_loss_epoch {:.4f}{}", state.best_epoch, state.best_loss.value_or(0),
        state.best_accuracy ? fmt::format(", val_acc_epoch {:.4f}", *state.best_accuracy) : ""));
  if (state.best_epoch >= 0) log.info("Best checkpoint: " + session.run->checkpoint("best"));
  if (std::filesystem::exists(session.run->checkpoint("last")))
    log.info("Last checkpoint: " + session.run->checkpoint("last"));
  log.info("Run folder: " + path);
  if (outcome.run_steps > 0)
    log.info(fmt::format("{} steps in {:.2f} s: {:.0f} steps/s, {:.0f} samples/s",
                         with_thousands(outcome.run_steps), outcome.run_seconds,
                         static_cast<double>(outcome.run_steps) / outcome.run_seconds,
                         static_cast<double>(outcome.run_samples) / outcome.run_seconds));
  if (outcome.stopped_early)
    log.info(
        fmt::format("Stopped early: no lower val_loss_epoch for {} epochs", state.stale_epochs));
  switch (outcome.status) {
    case TrainStatus::finished:
      return 0;
    case TrainStatus::interrupted:
      log.warning(fmt::format("Interrupted after step {}; continue with: ch train --resume {}",
                              with_thousands(state.step), path));
      return 130;
    case TrainStatus::diverged:
      log.error(fmt::format(
          "The run diverged: {}. {} Try a lower --learning-rate or --gradient-clip-val.",
          outcome.message,
          state.best_epoch >= 0
              ? fmt::format("The best checkpoint (epoch {}) is intact.", state.best_epoch)
              : "No epoch was finished, so there is no checkpoint."));
      return 1;
  }
  return 1;
}

int run_session(Session& session, const Arguments& arguments) {
  const Settings& settings = session.settings;
  const Logger& log = session.log;
  log.text(settings_table(settings));
  for (const std::string& warning : settings.warnings) log.warning(warning);
  if (!settings.has("dataset"))
    throw Error("DATASET", "no data set is named", "ch train MODEL DATASET; see ch data list");
  std::string task = task_of(settings);

  std::string initial;
  if (session.resume) initial = session.run->path() + "/software/training_ckpts/initial.mz";
  const bool has_initial = session.resume && std::filesystem::exists(initial);
  std::optional<Checkpoint> checkpoint;
  if (!has_initial) checkpoint = load_network_file(settings);
  DatasetOptions data_options = dataset_options(settings);
  data_options.notify = [&](const std::string& line) { log.info(line); };
  // A network trained further keeps the scaling of its features, unless it is on other data.
  const Dataset dataset = load_dataset(settings["dataset"].as_string(), data_options);
  if (!dataset.classification && !settings.given("task")) task = "regression";
  tell_about(dataset, log);

  LoadedNetwork network;
  if (has_initial) {
    network.graph = *load_checkpoint(initial, CheckpointType::mz).graph;
    network.transformed = true;
  } else {
    network = make_network(settings, checkpoint, &dataset, log);
  }
  const std::string model =
      settings.has("model") ? settings["model"].as_string() : network.graph.name;
  const bool leads = session.processes->leads();
  if (!session.run && leads) {
    const std::string project = settings.has("project")
                                    ? settings["project"].as_string()
                                    : default_project(model, task, settings["dataset"].as_string());
    session.run = RunFolder::create(settings["project_dir"].as_string(), project,
                                    initial_record(session, arguments));
  }
  std::optional<RunLock> lock;
  if (leads) lock.emplace(session.run->path());
  try {
    if (!has_initial) {
      const std::string save_dir =
          leads ? session.run->path() + "/software/transform" : std::string();
      network.transformed |= run_configured_passes(network.graph, settings, dataset, save_dir, log);
    }
    if (!has_initial) take_quantizer_state(network, log);
    TrainOptions options = train_options(settings, dataset);
    if (settings["fold_bn"].as_bool())
      options.fold_batch_norm = [&](Graph& graph) { fold_batch_norms(graph, log); };
    const Value summary = summary_record(network.graph, options.batch_size);
    log.text(summary_text(summary, network.graph));
    CheckpointNotes notes{model, preprocessing_to_value(dataset.preprocessing),
                          dataset.class_names};
    if (leads) {
      RunFolder& run = *session.run;
      run.record()["model"] =
          Dict{{"name", model}, {"parameters", network.graph.parameter_count()}};
      run.record()["dataset"] = dataset_record(dataset);
      run.record()["summary"] = summary;
      if (!has_initial) save_mz(run.software("training_ckpts") + "/initial.mz", network.graph);
      if (!session.resume) write_file_atomically(run.software() + "/config.toml", settings.toml());
      run.record()["status"] = "running";
      run.record().dict().erase("finished");
      run.save();
    }
    log.info(fmt::format("Training model '{}' on '{}'...", model, dataset.name));
    TrainDisplay display(leads ? &*session.run : nullptr, dataset, log, session.resume);
    RunFolder* files = session.run ? &*session.run : nullptr;
    const TrainOutcome outcome = train(network.graph, dataset, options, files, session.resume,
                                       notes, display.observer(), *session.processes);
    display.close();
    if (!leads)
      return outcome.status == TrainStatus::finished      ? 0
             : outcome.status == TrainStatus::interrupted ? 130
                                                          : 1;
    record_outcome(session, outcome);
    if (outcome.status == TrainStatus::finished)
      evaluate_best(session, network.graph, dataset, options);
    session.run->finish(status_name(outcome.status));
    const int code = report_outcome(session, outcome);
    if (arguments["plot"].as_bool()) log.text(display.plot(plot_style(arguments)));
    return code;
  } catch (const std::exception&) {
    // Say so in the run record if the disk lets us; the error itself goes to the user either way.
    if (leads) {
      try {
        session.run->finish("failed");
      } catch (const Error&) {
      }
    }
    throw;
  }
}

int start_or_resume(Session& session, const Arguments& arguments) {
  if (!arguments["resume"].is_null()) {
    session.run = RunFolder::open(arguments["resume"].as_string());
    session.resume = true;
    session.settings = resumed_settings(*session.run, arguments);
    session.log = Logger(session.settings, session.processes->leads());
    if (session.run->record()["status"] == Value("finished")) {
      session.log.info("The run is finished already: " + session.run->path());
      return 0;
    }
  } else {
    session.settings = merge_settings("train", arguments);
    session.log = Logger(session.settings, session.processes->leads());
  }
  return run_session(session, arguments);
}

int run(const Arguments& arguments) {
  catch_interrupts();
  Session session;
  session.processes = communicator();
  if (session.processes->size() == 1) return start_or_resume(session, arguments);
  // A process that leaves must take the others with it, or they wait for it for ever. Mistakes are
  // the same on all of them: the leading one speaks, the others only if it does not.
  try {
    return start_or_resume(session, arguments);
  } catch (const std::exception& error) {
    if (!session.processes->leads()) std::this_thread::sleep_for(std::chrono::seconds(2));
    fmt::print(stderr, "ch: {}\n", error.what());
    std::fflush(stderr);
    session.processes->abort(2);
    throw;
  }
}

std::vector<Field> own_options() {
  return {{.name = "resume",
           .type = FieldType::text,
           .help = "continue this run folder; the result is that of an uninterrupted run",
           .group = "Training options"},
          {.name = "sync_bn",
           .type = FieldType::boolean,
           .default_value = true,
           .help = "under mpirun: batch-norm statistics over all processes",
           .group = "Training options"}};
}

const Register<CommandRecord> registered{{
    .name = "train",
    .summary = "Train a network on a data set",
    .help =
        "Writes mase_output/{model}_{task}_{dataset}_{date}/ with checkpoints, metrics and the "
        "run record. Ctrl-C finishes the step, saves and exits with 130. Under mpirun the batch "
        "is shared by all processes.",
    .positionals = {{"model", "a built-in network (ch info models) or a .toml that describes one",
                     false},
                    {"dataset", "a data set (ch data list) or the path of a table", false}},
    .options = {general_options() + data_options() + trainer_options() + own_options() +
                plot_fields() + machine_options()},
    .examples = {"ch train jsc-tiny jsc-sim --max-epochs 10 --batch-size 256",
                 "ch train --config configs/jsc_toy_by_type.toml",
                 "ch train --resume mase_output/jsc-tiny_classification_jsc_2024-02-10",
                 "mpirun -n 2 ch train jsc-10x jsc-sim"},
    .run = run,
}};

}  // namespace
}  // namespace mase::train_command
