// SPDX-License-Identifier: Apache-2.0
// ch test: evaluates a network on the test rows of a data set and prints Lightning's table.
#include <algorithm>
#include <cstdio>

#include "mase/base/figure.h"
#include "mase/base/table.h"
#include "mase/cli/json_option.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/report/text/progress.h"
#include "mase/run/describe.h"
#include "mase/run/experiment.h"

namespace mase::test_command {
namespace {

std::string class_name(const Value& record, size_t index) {
  const List& names = record["classes"].as_list();
  return index < names.size() ? printable(names[index].as_string()) : std::to_string(index);
}

std::string class_table(const Value& record) {
  const List& support = record["support"].as_list();
  Table table({"Class", "Rows", "Precision", "Recall", "AUC"});
  for (size_t c = 0; c < support.size(); ++c) {
    const Value& auc = record["roc"].as_list()[c]["auc"];
    table.add({class_name(record, c), std::to_string(support[c].as_int()),
               figure_text(record["precision"].as_list()[c].as_double()),
               figure_text(record["recall"].as_list()[c].as_double()),
               auc.is_null() ? "NA" : figure_text(auc.as_double())});
  }
  return table.str();
}

// Of many classes: what is taken for what most often.
std::string confusions_table(const Value& record) {
  constexpr size_t most = 20;
  std::vector<std::vector<int64_t>> wrong;
  for (const Value& cell : record["confusion"]["cells"].as_list())
    if (cell.as_list()[0] != cell.as_list()[1]) wrong.push_back(cell.as_int_list());
  std::stable_sort(wrong.begin(), wrong.end(),
                   [](const auto& a, const auto& b) { return a[2] > b[2]; });
  if (wrong.size() > most) wrong.resize(most);
  Table table({"True", "Predicted", "Rows"});
  for (const std::vector<int64_t>& cell : wrong)
    table.add({class_name(record, static_cast<size_t>(cell[0])),
               class_name(record, static_cast<size_t>(cell[1])), std::to_string(cell[2])});
  return fmt::format("The most frequent confusions:\n{}", table.str());
}

std::string confusion_table(const Value& record) {
  if (record["confusion"].is_dict()) return confusions_table(record);
  const List& confusion = record["confusion"].as_list();
  std::vector<std::string> header = {"True \\ predicted"};
  for (size_t c = 0; c < confusion.size(); ++c) header.push_back(class_name(record, c));
  Table table(header);
  for (size_t c = 0; c < confusion.size(); ++c) {
    std::vector<std::string> row = {class_name(record, c)};
    for (const Value& count : confusion[c].as_list()) row.push_back(std::to_string(count.as_int()));
    table.add(row);
  }
  return table.str();
}

// What the network said of each row, so that others can draw their own curves.
constexpr int64_t most_outputs_written = 2'000'000;

void add_outputs(Value& record, const Evaluation& result, const Tensor& of_rows) {
  if (result.outputs.numel() == 0) return;  // texts: there are too many
  const int64_t rows = result.score.rows,
                width = result.outputs.numel() / std::max<int64_t>(1, rows);
  const float* from = result.outputs.data<float>();
  List list, labels;
  for (int64_t row = 0; row < rows; ++row, from += width) list.push_back(List(from, from + width));
  record["outputs"] = std::move(list);
  if (of_rows.numel() > 0)
    for (const int32_t label : of_rows.values<int32_t>()) labels.push_back(int64_t{label});
  if (!labels.empty()) record["labels"] = std::move(labels);
}

int run(const Arguments& arguments) {
  catch_interrupts();
  const Settings settings = merge_settings("test", arguments);
  const Logger log(settings, true);
  log.text(settings_table(settings, settings["show_options"].as_bool()));
  for (const std::string& warning : settings.warnings) log.warning(warning);
  LiveLine live(log.shows_info());
  const std::string split_name = settings["split"].as_string();
  ProgressLine line{.title = split_name == "test" ? "Testing DataLoader 0"
                                                  : "Testing " + split_name + " rows"};
  Observer observer = log.observer();
  observer.progress = [&](const Progress& progress) {
    line.done = progress.done;
    line.total = progress.total;
    line.seconds = progress.seconds;
    if (live.due()) live.draw(progress_text(line, live.columns()));
  };
  ExperimentSpec spec = experiment_spec(settings);
  spec.data.needed = true;
  Experiment experiment(std::move(spec), observer);
  experiment.prepare();
  const Evaluation result = experiment.evaluate(split_name);
  live.finish(progress_text(line, live.columns()));

  const Dataset& dataset = *experiment.dataset();
  const auto figures = named_figures(result, dataset.classification);
  const std::string& split = result.split;
  std::fputs(metric_box(split == "test"         ? "Test metric"
                        : split == "validation" ? "Validation metric"
                        : split == "all"        ? "Metric of all rows"
                                                : "Training metric",
                        figures, terminal_columns(120))
                 .c_str(),
             stdout);
  fmt::print("Data set: {} ({}){}{}\n", printable(dataset.name), printable(dataset.variant),
             split == "test" ? "" : fmt::format(", {} rows", split),
             dataset.notice.empty() ? "" : ": " + printable(dataset.notice));
  if (settings["verbose"].as_bool() && dataset.classification)
    fmt::print("\n{}\n{}", class_table(result.record), confusion_table(result.record));

  OutputSpec output = output_spec(settings);
  Value& record = output.record;
  record["kind"] = "test";
  record["version"] = program_version();
  record["command"] = Value::of(arguments.command_line);
  record["model"] = Dict{{"name", experiment.network().name},
                         {"parameters", experiment.graph().parameter_count()}};
  record["dataset"] = dataset_record(dataset);
  record["summary"] = summary_record(experiment.graph(), experiment.spec().batch_size);
  record["speed"] =
      Dict{{"seconds", result.seconds},
           {"samples_per_second", static_cast<double>(result.score.rows) / result.seconds}};
  record["evaluation"] = result.record;
  for (const auto& [name, value] : figures) record[name] = value;
  if (!settings["no_output"].as_bool()) {
    RunFolder folder = experiment.create_folder(output, "test");
    folder.finish("finished");
    log.info("Run folder: " + folder.path());
  }
  if (settings.has("json")) {
    if (result.outputs.numel() <= most_outputs_written)
      add_outputs(record, result, experiment.split(split_name).labels);
    else
      log.warning(fmt::format("--json: {} outputs are left out; ch predict writes them",
                              with_thousands(result.outputs.numel())));
    write_json(settings["json"].as_string(), record);
  }
  return 0;
}

std::vector<Field> own_options() {
  return {{.name = "verbose",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "figures per class and the confusion matrix",
           .group = "Test options"},
          json_field("write all figures, and the outputs and labels of all rows,", "Test options"),
          {.name = "split",
           .type = FieldType::text,
           .default_value = "test",
           .help = "the rows to use; all: a held-out file as a whole",
           .choices = {"test", "validation", "train", "all"},
           .group = "Test options"},
          {.name = "no_output",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "leave no run folder",
           .group = "Test options"}};
}

const Register<CommandRecord> registered{{
    .name = "test",
    .group = CommandGroup::train,
    .summary = "Evaluate a network on the test rows of a data set",
    .help = "Features are scaled and classes numbered as the checkpoint says, where it says so. "
            "Files of ch train name their data set too: --load best.mz is enough.",
    .positionals = {network_word(), dataset_word()},
    .options = {general_options() + config_options() + data_options() + own_options() +
                machine_options()},
    .tables = {"passes"},
    .examples = {"ch test best.mz", "ch test best.mz data/jsc.csv --target class --split all",
                 "ch test jsc-10x jsc --load best.ckpt --load-type pl",
                 "ch test --load best.mz --verbose --json figures.json"},
    .run = run,
}};

}  // namespace
}  // namespace mase::test_command
