// SPDX-License-Identifier: Apache-2.0
// The options that several commands share, with MASE's names and defaults.
#include <algorithm>
#include <thread>

#include "mase/run/options.h"
#include "mase/run/record_options.h"
#include "mase/train/loss.h"
#include "mase/train/optimizer.h"
#include "mase/train/schedule.h"
#include "mase/train/task.h"

namespace mase {
namespace {

constexpr const char* general = "General options";
constexpr const char* data = "Data options";
constexpr const char* trainer = "Training options";
constexpr const char* machine = "Options for other machines (accepted, with a warning)";

Field text(const char* group, const char* name, Value fallback, const char* help,
           std::vector<std::string> choices = {}, std::vector<std::string> aliases = {}) {
  return {.name = name,
          .type = FieldType::text,
          .default_value = std::move(fallback),
          .help = help,
          .choices = std::move(choices),
          .group = group,
          .aliases = std::move(aliases)};
}

Field integer(const char* group, const char* name, Value fallback, const char* help,
              std::optional<double> minimum = {}, std::vector<std::string> aliases = {}) {
  return {.name = name,
          .type = FieldType::integer,
          .default_value = std::move(fallback),
          .help = help,
          .minimum = minimum,
          .group = group,
          .aliases = std::move(aliases)};
}

Field number(const char* group, const char* name, Value fallback, const char* help,
             std::optional<double> minimum = {}) {
  return {.name = name,
          .type = FieldType::number,
          .default_value = std::move(fallback),
          .help = help,
          .minimum = minimum,
          .group = group};
}

Field flag(const char* group, const char* name, const char* help,
           std::vector<std::string> aliases = {}) {
  return {.name = name,
          .type = FieldType::boolean,
          .default_value = false,
          .help = help,
          .group = group,
          .aliases = std::move(aliases)};
}

template <class Record>
std::vector<std::string> names_and_aliases(std::vector<std::string> names = {}) {
  for (const Record* record : Registry<Record>::instance().all()) {
    names.push_back(record->name);
    names.insert(names.end(), record->aliases.begin(), record->aliases.end());
  }
  return names;
}

}  // namespace

std::vector<Field> general_options() {
  return {
      text(general, "config", {}, "a TOML file; its top-level keys are options"),
      text(general, "task", {}, "what the network is for (default: what the data are)",
           names_and_aliases<TaskRecord>({"translation", "tran"})),
      text(general, "load", {}, "a checkpoint or a saved graph to start from", {}, {"load_name"}),
      text(general, "load_type", {}, "its kind (default: found out from the content)",
           {"pt", "pl", "mz", "hf", "safetensors"}),
      flag(general, "load_partial", "take the tensors that fit, and say which"),
      integer(general, "batch_size", 128, "samples in a batch", 1),
      integer(general, "seed", 0, "of every random draw", 0),
      integer(general, "threads", 1, "threads of the engine", 1),
      text(general, "project_dir", "mase_output", "where run folders are kept"),
      text(general, "project", {}, "the run folder's name (default: from model, task and date)"),
      flag(general, "debug", "as --log-level debug", {"to_debug"}),
      text(general, "log_level", "info", "how much is printed",
           {"debug", "info", "warning", "error", "critical"}),
      flag(general, "no_warnings", "print no warnings"),
  };
}

std::vector<Field> config_options() {
  return {{.name = "set",
           .type = FieldType::list,
           .help = "a key of the configuration, such as "
                   "passes.quantize.linear.config.weight_width=4; may be repeated",
           .group = general},
          {.name = "plugin",
           .type = FieldType::list,
           .help = "a Python file or a shared library that registers passes; may be repeated",
           .group = general},
          flag(general, "show_options",
               "list every option, not only those that differ from the "
               "defaults")};
}

std::vector<Field> operator+(std::vector<Field> first, const std::vector<Field>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Field> without(std::vector<Field> fields, const std::vector<std::string>& names) {
  std::erase_if(fields, [&](const Field& field) {
    return std::find(names.begin(), names.end(), field.name) != names.end();
  });
  return fields;
}

std::vector<Field> only(std::vector<Field> fields, const std::vector<std::string>& names) {
  std::erase_if(fields, [&](const Field& field) {
    return std::find(names.begin(), names.end(), field.name) == names.end();
  });
  return fields;
}

std::vector<Field> data_options() {
  const std::vector<Field> shared = {
      text(data, "data_dir", {}, "where data files are kept (default: MASE_DATA, ~/.cache/mase)"),
      text(data, "val_split", "0.1",
           "share of the training rows kept for validation, or 'train' to validate on the training "
           "rows as MASE does",
           {}, {"validation_split"}),
      flag(data, "drop_bad_rows", "leave out rows with missing or non-finite values"),
      flag(data, "fill_missing",
           "tables: the median of the training rows for missing numbers, a category of their own "
           "for missing words"),
      text(data, "missing_values", {},
           "tables: what else is a missing value, beside empty cells, NA and ?: -999,unknown"),
      text(data, "ignore", {}, "tables: columns to leave out, such as id,name"),
      flag(data, "disable_dataset_cache", "prepare the data afresh"),
      text(data, "target", {}, "tables: the column to predict"),
      text(data, "categorical", "one-hot", "tables: how words become numbers",
           {"one-hot", "ordinal"}),
      text(data, "scaling", "standardise", "how features are scaled",
           {"standardise", "min-max", "quantile", "none"}),
      text(data, "class_weights", "none", "weigh classes in the loss", {"none", "balanced"}),
  };
  return shared + record_fields("dataset", data);
}

std::vector<Field> trainer_options() {
  const std::vector<Field> shared = {
      text(trainer, "training_optimizer", "adam", "how weights are updated",
           Registry<OptimizerRecord>::instance().names(), {"optimizer"}),
      number(trainer, "learning_rate", 1e-5, "at the start", 0),
      integer(trainer, "max_epochs", 20, "passes over the training rows", 1),
      integer(trainer, "max_steps", -1, "stop after so many optimiser steps; -1: no limit"),
      integer(trainer, "accumulate_grad_batches", 1, "batches to one optimiser step", 1),
      integer(trainer, "log_every_n_steps", 50, "rows of metrics.csv between epochs", 1),
      text(trainer, "loss", {}, "default: cross_entropy for classes, mse for numbers",
           names_and_aliases<LossRecord>()),
      text(trainer, "monitor", {},
           "the figure that chooses the best epoch (default: val_loss_epoch): loss, accuracy, mae, "
           "..."),
      text(trainer, "metrics", {},
           "figures to measure after each epoch besides, with their options: "
           "balanced_accuracy,top_k_accuracy:k=3"),
      flag(trainer, "deterministic",
           "the same bits on every x86-64 machine, with vectors of 4 numbers: up to four times as "
           "slow"),
      text(trainer, "schedule", "cosine", "of the learning rate",
           Registry<ScheduleRecord>::instance().names(), {"lr_schedule"}),
      integer(trainer, "warmup_steps", 0, "rise linearly over so many steps first", 0),
      number(trainer, "gradient_clip_val", 0.0, "clip gradients; 0: do not", 0),
      text(trainer, "gradient_clip_algorithm", "norm", "clip the overall norm or every value",
           {"norm", "value"}),
      integer(trainer, "early_stopping", 0,
              "stop after so many epochs without a better monitored figure; 0: never", 0),
      integer(trainer, "freeze_bn_epochs", 0,
              "in the last so many epochs batch-norms use their running statistics", 0),
      flag(trainer, "fold_bn",
           "fold batch-norms into the linear layers before them when they freeze; at the start if "
           "they never do"),
      number(trainer, "checkpoint_seconds", 30.0, "seconds between checkpoints within an epoch", 0),
      integer(trainer, "checkpoint_steps", 0, "steps between checkpoints; 0: by time only", 0),
      text(trainer, "save_type", "pl", "kind of best and last checkpoints beside Lightning's",
           {"pl", "pt", "safetensors"}),
  };
  return shared + record_fields("optimizer", trainer) + record_fields("schedule", trainer) +
         record_fields("loss", trainer);
}

std::vector<Field> machine_options() {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  return {
      integer(machine, "num_workers", cores, "loader processes; data are in memory here", 0,
              {"cpu"}),
      integer(machine, "num_devices", 1, "GPUs", 0, {"gpu"}),
      integer(machine, "nodes", 1, "machines", 1, {"num_nodes"}),
      text(machine, "accelerator", "auto", "device", {"auto", "cpu", "gpu", "mps"}),
      text(machine, "strategy", "auto", "way to spread work",
           {"auto", "ddp", "ddp_find_unused_parameters_true"}),
      text(machine, "trainer_precision", "32", "bits", {"16-mixed", "32", "64", "bf16"}),
      text(machine, "report_to", "tensorboard", "where curves go", {"wandb", "tensorboard"}),
      flag(machine, "auto_requeue", "cluster: queue again", {"is_to_auto_requeue"}),
      flag(machine, "github_ci", "build farm"),
      integer(machine, "num_targets", 100, "hardware targets", 1),
      flag(machine, "run_emit", "hardware"),
      flag(machine, "skip_build", "hardware"),
      flag(machine, "skip_test", "hardware"),
      flag(machine, "pretrained", "weights from a model hub", {"is_pretrained"}),
      integer(machine, "max_token_len", 512, "language models", 1),
      text(machine, "quant_config", {}, "a TOML file with [passes.quantize]"),
  };
}

}  // namespace mase
