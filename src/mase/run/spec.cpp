// SPDX-License-Identifier: Apache-2.0
#include "mase/run/spec.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "mase/base/text.h"
#include "mase/io/tables/table_source.h"
#include "mase/models/model.h"
#include "mase/run/metric_options.h"
#include "mase/run/network.h"
#include "mase/run/record_options.h"
#include "mase/train/loss.h"
#include "mase/train/optimizer.h"
#include "mase/train/schedule.h"
#include "mase/train/task.h"
#include "mase/train/validation.h"

namespace mase {
namespace {

std::string text_of(const Settings& settings, const std::string& name) {
  return settings.has(name) ? settings[name].as_string(name) : std::string();
}

// --load FILE DATASET: a file that holds its network needs no model before the data.
Settings with_data_in_its_place(Settings settings) {
  const std::string name = text_of(settings, "model");
  const bool takes_data = settings.values.as_dict().contains("dataset");
  if (!settings.has("load") || !takes_data || settings.has("dataset") || name.empty() ||
      Registry<ModelRecord>::instance().find(name))
    return settings;
  if (Registry<DatasetRecord>::instance().find(name) || has_table_extension(name))
    std::swap(settings.values["model"], settings.values["dataset"]);
  return settings;
}

bool is_set(const Settings& settings, const std::string& name) {
  return settings[name].is_bool() && settings[name].as_bool();
}

uint64_t seed_of(const Settings& settings) {
  return settings.has("seed") ? static_cast<uint64_t>(settings["seed"].as_int()) : 0;
}

// MASE's files name the FPGA as "target" (xcu250-figd2104-2L-e): that is no column.
bool is_fpga(const std::string& name) {
  return starts_with(name, "xc") && std::count(name.begin(), name.end(), '-') >= 2;
}

// Names stay names; a file that the configuration names may lie beside it.
std::string found_path(const Settings& settings, const std::string& name) {
  const std::string text = text_of(settings, name);
  return settings[name].position() ? path_beside(text, settings.config_path) : text;
}

NetworkSpec network_spec(const Settings& settings) {
  NetworkSpec spec;
  spec.model = text_of(settings, "model");
  if (!Registry<ModelRecord>::instance().find(spec.model))
    spec.model = found_path(settings, "model");
  spec.model_position = settings["model"].position();
  spec.load = found_path(settings, "load");
  spec.load_position = settings["load"].position();
  // A file that holds a network may stand in the place of the model's name.
  if (!Registry<ModelRecord>::instance().find(spec.model) && is_network_file(spec.model)) {
    if (!spec.load.empty())
      throw Error(spec.model_position, spec.model_position ? "model" : "MODEL",
                  fmt::format("'{}' is a network with its weights; --load names others",
                              printable(spec.model)),
                  "leave one of them out");
    spec.load = std::exchange(spec.model, "");
    spec.load_position = spec.model_position;
  }
  if (settings.has("load_type"))
    spec.load_type = checkpoint_type_from_name(settings["load_type"].as_string());
  if (spec.load.empty() && spec.load_type)
    throw Error(settings["load_type"].position(), "--load-type", "is given without --load",
                "add --load FILE");
  spec.load_partial = is_set(settings, "load_partial");
  spec.seed = seed_of(settings);
  return spec;
}

}  // namespace

std::string task_name(const std::string& given) {
  if (const TaskRecord* task = Registry<TaskRecord>::instance().find(given)) return task->name;
  throw Error(
      "--task",
      fmt::format("'{}' needs a network that translates; there is none here", printable(given)),
      "use lm, mlm, classification or regression");
}

DataSpec data_spec(const Settings& settings) {
  DataSpec spec;
  spec.name = text_of(settings, "dataset");
  if (!Registry<DatasetRecord>::instance().find(spec.name))
    spec.name = found_path(settings, "dataset");
  spec.position = settings["dataset"].position();
  DatasetOptions& options = spec.options;
  options.data_dir = text_of(settings, "data_dir");
  if (settings.has("val_split")) options.validation_split = text_of(settings, "val_split");
  options.seed = seed_of(settings);
  options.drop_bad_rows = is_set(settings, "drop_bad_rows");
  options.fill_missing = is_set(settings, "fill_missing");
  options.missing_values = text_of(settings, "missing_values");
  options.ignore = text_of(settings, "ignore");
  options.use_cache = !is_set(settings, "disable_dataset_cache");
  options.target = text_of(settings, "target");
  if (settings["target"].position() && is_fpga(options.target)) options.target.clear();
  if (settings.given("task")) {
    const TaskRecord* task =
        Registry<TaskRecord>::instance().find(task_name(text_of(settings, "task")));
    options.task = task->each_token ? task->name : task->classes ? "classification" : "regression";
    const DatasetRecord* record = spec.name.empty() ? nullptr : find_dataset(spec.name);
    if (task->each_token && !spec.name.empty() && !(record && record->options.find("tokenizer")))
      throw Error(settings["task"].position(), "task",
                  fmt::format("{} are no data for '{}'", printable(spec.name), task->name),
                  "data for it: running_text");
  }
  if (settings.has("categorical")) options.categorical = text_of(settings, "categorical");
  if (settings.has("scaling")) options.scaling = text_of(settings, "scaling");
  if (settings.has("class_weights")) options.class_weighting = text_of(settings, "class_weights");
  for (const char* option : {"task", "val_split", "drop_bad_rows", "fill_missing", "missing_values",
                             "ignore", "target", "categorical", "scaling", "class_weights"})
    if (settings.given(option)) spec.given.push_back(option);
  spec.given_arguments = given_record_options(settings, "dataset");
  if (!spec.name.empty()) {
    const DatasetRecord* record = find_dataset(spec.name);
    const Value own = record_options(settings, "dataset", record ? record->name : spec.name);
    if (record) options.arguments = own;  // a table has none of its own
  }
  return spec;
}

PassList pass_list(const Settings& settings) {
  PassList list;
  Value passes = settings.config.is_dict() ? settings.config["passes"] : Value();
  std::string file = settings.config_path;
  if (settings.has("quant_config")) {
    if (!passes.is_null())
      throw Error(settings["quant_config"].position(), "quant_config",
                  fmt::format("{} lists passes already", settings.config_path),
                  "leave one of them out");
    file = found_path(settings, "quant_config");
    passes = passes_of_file(file, settings.elsewhere);
  }
  if (passes.is_null()) return list;
  list.calls = pass_calls(passes, "passes");
  list.base_dir = std::filesystem::path(file).parent_path().string();
  return list;
}

void check_pass_arguments(const std::vector<PassCall>& calls, Problems& problems) {
  for (const PassCall& call : calls) {
    const PassRecord* record = Registry<PassRecord>::instance().find(call.name);
    if (!record)
      problems.add(Error(call.args.position(), call.path,
                         fmt::format("unknown pass '{}'", printable(call.name)),
                         suggestion(call.name, Registry<PassRecord>::instance().names()))
                       .as(Mistake::unknown_name));
    else
      validate(call.args, record->schema, call.path, problems);
  }
}

void take_from_memory(ExperimentSpec& spec, const InMemory& memory) {
  if (memory.network) {
    spec.network.held = memory.network;
    spec.network.load = "the graph " + printable(memory.network->graph->name);
  }
  if (!memory.rows) return;
  spec.data.name = memory.rows->name;
  spec.data.arrays = memory.rows;
  if (memory.rows->test) spec.data.options.validation_split = "train";  // nothing is split
}

ExperimentSpec experiment_spec(const Settings& given) {
  ExperimentSpec spec;
  const Settings settings = with_data_in_its_place(given);
  Problems problems;
  const auto attempt = [&](const auto& step) {
    try {
      step();
    } catch (const Error& error) {
      problems.add(error);
    }
  };
  attempt([&] { spec.network = network_spec(settings); });
  attempt([&] { spec.data = data_spec(settings); });
  attempt([&] { spec.passes = pass_list(settings); });
  attempt([&] {
    if (settings.given("task")) spec.task = task_name(text_of(settings, "task"));
  });
  problems.throw_if_any();
  if (settings.has("batch_size")) spec.batch_size = settings["batch_size"].as_int();
  if (settings.has("threads")) spec.threads = static_cast<int>(settings["threads"].as_int());
  spec.seed = seed_of(settings);
  return spec;
}

TrainSpec train_spec(const Settings& settings) {
  TrainSpec spec;
  TrainOptions& options = spec.options;
  const auto& optimizers = Registry<OptimizerRecord>::instance();
  const auto& schedules = Registry<ScheduleRecord>::instance();
  const OptimizerRecord& optimizer = optimizers.get(text_of(settings, "training_optimizer"));
  const ScheduleRecord& schedule = schedules.get(text_of(settings, "schedule"));
  options.optimizer = optimizer.name;
  options.optimizer_arguments = record_options(settings, "optimizer", optimizer.name);
  options.schedule = schedule.name;
  options.schedule_arguments = record_options(settings, "schedule", schedule.name);
  options.warmup_steps = settings["warmup_steps"].as_int();
  // A schedule that is a warm-up takes the steps itself; before any other they come first.
  if (schedule.arguments.find("total_iters") && !settings.has("schedule_total_iters")) {
    options.schedule_arguments["total_iters"] = options.warmup_steps;
    options.warmup_steps = 0;
  }
  options.learning_rate = settings["learning_rate"].as_double();
  if (schedule.notice)
    spec.notice = schedule.notice(options.schedule_arguments, options.learning_rate);
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
  options.seed = seed_of(settings);
  options.threads = static_cast<int>(settings["threads"].as_int());
  if (settings.has("sync_bn")) options.sync_batch_norm = settings["sync_bn"].as_bool();
  if (settings.given("task")) options.task = task_name(text_of(settings, "task"));
  options.loss = text_of(settings, "loss");
  if (!options.loss.empty()) {
    options.loss = Registry<LossRecord>::instance().get(options.loss, "--loss").name;
    options.loss_options = record_options(settings, "loss", options.loss);
  } else {
    for (const Field& field : record_fields("loss", ""))
      if (settings.has(field.name))
        throw Error(field.name, "is an option of a loss, and none is named",
                    "add --loss cross_entropy");
  }
  options.monitor = text_of(settings, "monitor");
  options.metrics = metrics_of(text_of(settings, "metrics"));
  check_metrics(options.metrics, options.monitor);
  spec.fold_bn = is_set(settings, "fold_bn");
  if (settings["test"].is_bool()) spec.test = settings["test"].as_bool();
  spec.save_type = text_of(settings, "save_type");
  return spec;
}

OutputSpec output_spec(const Settings& settings) {
  OutputSpec spec;
  spec.project_dir = text_of(settings, "project_dir");
  spec.project = text_of(settings, "project");
  spec.record = Dict{{"seed", settings["seed"]}, {"options", settings.rows_value()}};
  spec.config = settings.toml();
  return spec;
}

}  // namespace mase
