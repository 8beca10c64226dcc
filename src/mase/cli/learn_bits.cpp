// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/learn_bits.h"

#include "mase/base/figure.h"
#include "mase/base/table.h"
#include "mase/cli/learn_tables.h"
#include "mase/cli/options.h"
#include "mase/cli/train_display.h"
#include "mase/run/hardware/learn_bits.h"

namespace mase {
namespace {

constexpr const char* bits_group = "Options of --learn-bits";

LearnBitsSpec read_spec(const Settings& settings) {
  LearnBitsSpec spec;
  spec.first_beta = settings["bits_first_beta"].as_double();
  spec.last_beta = settings["bits_last_beta"].as_double();
  spec.start_bits = settings["bits_start"].as_double();
  spec.overflow = settings["bits_overflow"].as_string();
  spec.points = settings["bits_points"].as_int();
  spec.retrain_epochs = settings["bits_retrain_epochs"].as_int();
  if (spec.first_beta > spec.last_beta)
    throw Error("--bits-first-beta", "is above --bits-last-beta", "beta rises");
  return spec;
}

Value front_value(const LearnBitsResult& result) {
  List list;
  for (const LearnedPoint& point : result.front)
    list.push_back(Dict{{"path", point.path},
                        {"epoch", point.epoch},
                        {"ebops", point.ebops},
                        {"weights", point.weights},
                        {"val_accuracy", point.validation},
                        {"test_accuracy", point.test},
                        {"test_rows", result.test_rows},
                        {"test_rows_with_overflow", point.wrapped}});
  return list;
}

}  // namespace

std::vector<Field> learn_bits_options() {
  return {{.name = "learn_bits",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "find the width of every weight and feature too, and keep a front of networks "
                   "from wide to narrow",
           .group = bits_group},
          {.name = "bits_first_beta",
           .type = FieldType::number,
           .default_value = 1e-6,
           .help = "what a bit operation costs beside the loss, in the first step",
           .minimum = 1e-15,
           .group = bits_group},
          {.name = "bits_last_beta",
           .type = FieldType::number,
           .default_value = 1e-3,
           .help = "and in the last one",
           .minimum = 1e-15,
           .group = bits_group},
          {.name = "bits_start",
           .type = FieldType::number,
           .default_value = 5.0,
           .help = "bits after the point of everything before training",
           .minimum = 0,
           .maximum = 12,
           .group = bits_group},
          {.name = "bits_overflow",
           .type = FieldType::text,
           .default_value = "wrap",
           .help = "what results beyond all that training rows gave become",
           .choices = {"wrap", "saturate"},
           .group = bits_group},
          {.name = "bits_points",
           .type = FieldType::integer,
           .default_value = 16,
           .help = "networks of the front, at most",
           .minimum = 1,
           .maximum = 1000,
           .group = bits_group},
          {.name = "bits_retrain_epochs",
           .type = FieldType::integer,
           .default_value = 30,
           .help = "of every network of the front, its widths kept",
           .minimum = 0,
           .group = bits_group}};
}

int train_and_learn_bits(const Arguments& arguments, const Settings& settings,
                         const ExperimentSpec& experiment_of, std::optional<RunFolder> resumed) {
  const bool resume = resumed.has_value();
  const Logger log(settings, true);
  log.text(settings_table(settings, settings["show_options"].as_bool()));
  for (const std::string& warning : settings.warnings) log.warning(warning);
  const LearnBitsSpec spec = read_spec(settings);
  const TrainSpec training = train_spec(settings);
  if (!training.notice.empty()) log.warning(training.notice);
  Observer observer = log.observer();
  TrainDisplay display(observer, log);
  Experiment experiment(experiment_of, observer);
  experiment.prepare();
  OutputSpec output = output_spec(settings);
  output.record["version"] = program_version();
  output.record["command"] = Value::of(arguments.command_line);
  RunFolder folder = resume ? std::move(*resumed) : experiment.create_folder(output, "train");
  folder.lock();
  if (observer.started) observer.started({folder.path(), "", true});
  if (has_own_training(experiment.graph())) {
    display.close();
    return learn_tables_in(experiment, settings, observer, folder, log, resume);
  }
  const LearnBitsResult result = folder.guard([&] {
    LearnBitsResult learned = learn_bits(experiment, spec, training, observer, &folder, resume);
    folder.record()["front"] = front_value(learned);
    folder.finish(status_name(learned.outcome.status));
    return learned;
  });
  display.close();
  Table table({"EBOPs", "Weights", "Accuracy (val)", "Accuracy (test)", "Overflow", "Network"});
  for (const LearnedPoint& point : result.front)
    table.add({fmt::format("{:.0f}", point.ebops), std::to_string(point.weights),
               figure_text(point.validation), figure_text(point.test),
               std::to_string(point.wrapped), point.path.substr(folder.path().size() + 1)});
  log.text(table.str());
  log.info(fmt::format("Overflow: test rows, of {}, whose outputs it changes",
                       with_thousands(result.test_rows)));
  log.info(fmt::format("{} steps in {:.1f} s", with_thousands(result.outcome.run_steps),
                       result.outcome.run_seconds));
  log.info("Run folder: " + folder.path());
  if (result.outcome.status == TrainStatus::interrupted) {
    log.warning(
        fmt::format("Interrupted: the front is that of the epochs that are done; continue with: ch "
                    "train --resume {}",
                    folder.path()));
    return 130;
  }
  if (result.outcome.status == TrainStatus::finished && !result.front.empty()) {
    const std::string& best = result.front.back().path;
    log.info(fmt::format("Next:  ch test --load {} --verbose", best));
    log.info(fmt::format("       ch emit --load {}", best));
    log.info(fmt::format("       ch shrink --load {}", best));
  }
  return result.outcome.status == TrainStatus::finished ? 0 : 1;
}

}  // namespace mase
