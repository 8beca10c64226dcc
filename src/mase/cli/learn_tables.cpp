// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/learn_tables.h"

#include "mase/base/figure.h"
#include "mase/base/table.h"
#include "mase/cli/terminal.h"
#include "mase/run/hardware/learn_tables.h"
#include "mase/run/hardware/learn_weightless.h"

namespace mase {
namespace {

constexpr const char* tables_group = "Options of --learn-bits for networks of tables";
constexpr const char* weightless_group = "Options of --learn-bits for weightless networks";

Field tables_number(const char* name, double value, double least, double most, const char* help) {
  return {.name = name,
          .type = FieldType::number,
          .default_value = value,
          .help = help,
          .minimum = least,
          .maximum = most,
          .group = tables_group};
}

Field tables_count(const char* name, int64_t value, int64_t least, int64_t most, const char* help) {
  Field field = tables_number(name, 0, static_cast<double>(least), static_cast<double>(most), help);
  field.type = FieldType::integer;
  field.default_value = value;
  return field;
}

LearnTablesSpec read_tables_spec(const Settings& settings) {
  return {.teachers = settings["tables_teachers"].as_int(),
          .teacher_share = settings["tables_teacher_share"].as_double(),
          .start_epochs = settings["tables_start_epochs"].as_int(),
          .step = settings["tables_step"].as_double(),
          .step_epochs = settings["tables_step_epochs"].as_int(),
          .points = settings["tables_points"].as_int(),
          .point_epochs = settings["tables_point_epochs"].as_int(),
          .luts = settings["tables_luts"].as_double(),
          .smoothness = settings["tables_smoothness"].as_double()};
}

Value tables_front_value(const LearnTablesResult& result) {
  List list;
  for (const LearnedTables& point : result.front)
    list.push_back(Dict{{"path", point.path},
                        {"step", point.step},
                        {"tables", point.tables},
                        {"features", point.inputs},
                        {"luts_estimate", point.luts},
                        {"levels_estimate", point.levels},
                        {"val_loss", point.loss},
                        {"val_accuracy", point.validation},
                        {"test_accuracy", point.test},
                        {"test_rows", result.test_rows}});
  return list;
}

std::vector<Field> weightless_options() {
  const WeightlessTraining spec;
  std::vector<Field> fields = {
      tables_count("weightless_epochs", spec.epochs, 1, 1000000,
                   "of training; samples are moved as --crop says"),
      tables_number("weightless_scale", spec.scale, 0, 1000,
                    "what a counted bit says; 0: by how many bits a class has"),
      tables_number("weightless_wired", spec.wired, 0, 1,
                    "the share of the epochs in which tables look for what they read"),
      tables_number("weightless_smoothing", spec.smoothing, 0, 0.9,
                    "the share of the labels that all classes have alike"),
  };
  for (Field& field : fields) field.group = weightless_group;
  return fields;
}

int finish_interrupted(const RunFolder& folder, const Logger& log) {
  log.info("Run folder: " + folder.path());
  log.warning(fmt::format("Interrupted: continue with: ch train --resume {}", folder.path()));
  return 130;
}

int learn_weightless_in(Experiment& experiment, const Settings& settings, const Observer& observer,
                        RunFolder& folder, const Logger& log, bool resume) {
  WeightlessTraining spec;
  spec.epochs = settings["weightless_epochs"].as_int();
  spec.scale = settings["weightless_scale"].as_double();
  spec.wired = settings["weightless_wired"].as_double();
  spec.smoothing = settings["weightless_smoothing"].as_double();
  const LearnedWeightless result = folder.guard([&] {
    LearnedWeightless learned = learn_weightless(experiment, spec, observer, &folder, resume);
    if (!learned.interrupted)
      folder.record()["network"] = Dict{{"path", learned.path},
                                        {"luts_estimate", learned.luts},
                                        {"levels_estimate", learned.levels},
                                        {"train_accuracy", learned.train},
                                        {"val_accuracy", learned.validation},
                                        {"test_accuracy", learned.test},
                                        {"test_rows", learned.test_rows}};
    folder.finish(learned.interrupted ? "interrupted" : "finished");
    return learned;
  });
  if (result.interrupted) return finish_interrupted(folder, log);
  Table table({"LUTs (estimate)", "Levels (estimate)", "Accuracy (train)", "Accuracy (val)",
               "Accuracy (test)", "Network"});
  table.add({fmt::format("{:.0f}", result.luts), fmt::format("{:.0f}", result.levels),
             figure_text(result.train), figure_text(result.validation), figure_text(result.test),
             result.path.substr(folder.path().size() + 1)});
  log.text(table.str());
  log.info("LUTs and levels: by the model, with --target xcup, the arg-max apart");
  log.info("Run folder: " + folder.path());
  log.info(fmt::format("Next:  ch emit --load {} --target xcup --argmax", result.path));
  return 0;
}

}  // namespace

bool has_own_training(const Graph& graph) {
  return is_table_network(graph) || is_weightless_network(graph);
}

std::vector<Field> learn_tables_options() {
  const LearnTablesSpec spec;
  std::vector<Field> fields = {
      tables_number("tables_luts", spec.luts, 1, 1e9,
                    "go on until about so many look-up tables are left"),
      tables_number("tables_step", spec.step, 0.001, 0.5,
                    "the share of them that is taken away at a time"),
      tables_count("tables_step_epochs", spec.step_epochs, 1, 1000000,
                   "of training after each time"),
      tables_count("tables_start_epochs", spec.start_epochs, 1, 1000000,
                   "of training before the first"),
      tables_count("tables_points", spec.points, 1, 1000, "networks of the front, at most"),
      tables_count("tables_point_epochs", spec.point_epochs, 0, 1000000,
                   "of every network of the front, its widths kept"),
      tables_count("tables_teachers", spec.teachers, 0, 1000,
                   "networks whose shares of the classes, for rows that they have not seen, are "
                   "learned beside the labels; 0: labels alone"),
      tables_number("tables_teacher_share", spec.teacher_share, 0, 1, "how much these count"),
      tables_number("tables_smoothness", spec.smoothness, 0, 1,
                    "how hard tables are held to be smooth"),
  };
  for (const Field& field : weightless_options()) fields.push_back(field);
  return fields;
}

int learn_tables_in(Experiment& experiment, const Settings& settings, const Observer& observer,
                    RunFolder& folder, const Logger& log, bool resume) {
  if (is_weightless_network(experiment.graph()))
    return learn_weightless_in(experiment, settings, observer, folder, log, resume);
  const LearnTablesSpec spec = read_tables_spec(settings);
  const LearnTablesResult result = folder.guard([&] {
    LearnTablesResult learned = learn_tables(experiment, spec, observer, &folder, resume);
    folder.record()["front"] = tables_front_value(learned);
    folder.finish(learned.interrupted ? "interrupted" : "finished");
    return learned;
  });
  if (result.interrupted) return finish_interrupted(folder, log);
  Table table({"LUTs (estimate)", "Levels (estimate)", "Tables", "Features", "Loss (val)",
               "Accuracy (val)", "Accuracy (test)", "Network"});
  for (const LearnedTables& point : result.front)
    table.add({fmt::format("{:.0f}", point.luts), fmt::format("{:.0f}", point.levels),
               std::to_string(point.tables), std::to_string(point.inputs),
               figure_text(point.loss, 5), figure_text(point.validation), figure_text(point.test),
               point.path.substr(folder.path().size() + 1)});
  log.text(table.str());
  log.info("LUTs and levels: by the model, with --target xcup, the arg-max apart");
  log.info("Run folder: " + folder.path());
  if (!result.front.empty()) {
    const std::string& best = result.front.back().path;
    log.info(fmt::format("Next:  ch test --load {} --verbose", best));
    log.info(fmt::format("       ch emit --load {} --target xcup", best));
  }
  return 0;
}

}  // namespace mase
