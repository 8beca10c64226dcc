// SPDX-License-Identifier: Apache-2.0
// ch test: evaluates a network on the test rows of a data set and prints Lightning's table.
#include <chrono>
#include <cstdio>

#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/cli/network_setup.h"
#include "mase/report/progress.h"
#include "mase/train/evaluation.h"
#include "mase/train/run_folder.h"
#include "mase/train/trainer.h"

namespace mase::test_command {
namespace {

// As PyTorch prints a float32 figure: all the digits of the nearest double.
double single(double value) { return static_cast<double>(static_cast<float>(value)); }

std::string class_name(const Value& record, size_t index) {
  const List& names = record["classes"].as_list();
  return index < names.size() ? printable(names[index].as_string()) : std::to_string(index);
}

std::string class_table(const Value& record) {
  const List& confusion = record["confusion"].as_list();
  Table table({"Class", "Rows", "Precision", "Recall", "AUC"});
  for (size_t c = 0; c < confusion.size(); ++c) {
    int64_t rows = 0;
    for (const Value& count : confusion[c].as_list()) rows += count.as_int();
    const Value& auc = record["roc"].as_list()[c]["auc"];
    table.add({class_name(record, c), std::to_string(rows),
               fmt::format("{:.4f}", record["precision"].as_list()[c].as_double()),
               fmt::format("{:.4f}", record["recall"].as_list()[c].as_double()),
               auc.is_null() ? "NA" : fmt::format("{:.4f}", auc.as_double())});
  }
  return table.str();
}

std::string confusion_table(const Value& record) {
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

int run(const Arguments& arguments) {
  catch_interrupts();
  const Settings settings = merge_settings("test", arguments);
  const Logger log(settings, true);
  log.text(settings_table(settings));
  for (const std::string& warning : settings.warnings) log.warning(warning);
  std::string task = task_of(settings);
  if (!settings.has("dataset"))
    throw Error("DATASET", "no data set is named", "ch test MODEL DATASET; see ch data list");
  const std::optional<Checkpoint> checkpoint = load_network_file(settings);
  if (!checkpoint) log.warning("no --load: the network has its initial random weights");

  DatasetOptions data_options = dataset_options(settings);
  data_options.notify = [&](const std::string& line) { log.info(line); };
  std::optional<Preprocessing> fitted;
  if (checkpoint) fitted = preprocessing_of(*checkpoint);
  if (fitted) data_options.apply = &*fitted;
  const Dataset dataset = load_dataset(settings["dataset"].as_string(), data_options);
  if (!dataset.classification && !settings.given("task")) task = "regression";
  tell_about(dataset, log);
  LoadedNetwork network = make_network(settings, checkpoint, &dataset, log);
  run_configured_passes(network.graph, settings, dataset, "", log);
  take_quantizer_state(network, log);
  const std::string split_name = settings["split"].as_string();
  const Split& split = split_name == "train"        ? dataset.train
                       : split_name == "validation" ? dataset.validation
                                                    : dataset.test;
  if (split.rows() == 0) throw Error(dataset.name, fmt::format("has no {} rows", split_name));
  check_split(split, dataset, network.graph);

  CompileOptions compile;
  compile.batch_size = settings["batch_size"].as_int();
  compile.loss = default_loss(dataset);
  compile.threads = static_cast<int>(settings["threads"].as_int());
  Program program = Program::compile(network.graph, compile);
  LiveLine live(log.shows_info());
  const auto start = std::chrono::steady_clock::now();
  ProgressLine line{.title = "Testing DataLoader 0"};
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Score score;
  const Tensor logits = predict_rows(program, split, &score, [&](int64_t batch, int64_t batches) {
    line.done = batch;
    line.total = batches;
    if (!live.due()) return;
    line.seconds = elapsed();
    live.draw(progress_text(line, live.columns()));
  });
  line.seconds = elapsed();
  live.finish(progress_text(line, live.columns()));

  std::vector<std::pair<std::string, double>> figures;
  if (dataset.classification) figures.emplace_back("test_acc_epoch", single(score.accuracy()));
  figures.emplace_back("test_loss_epoch", single(score.loss()));
  std::fputs(metric_box("Test metric", figures, terminal_columns(120)).c_str(), stdout);
  fmt::print("Data set: {} ({}){}\n", printable(dataset.name), printable(dataset.variant),
             dataset.notice.empty() ? "" : ": " + printable(dataset.notice));

  Value record = evaluation_record(split_name, split, logits, score, dataset);
  if (settings["verbose"].as_bool() && dataset.classification)
    fmt::print("\n{}\n{}", class_table(record), confusion_table(record));
  const std::string model =
      settings.has("model") ? settings["model"].as_string() : network.graph.name;
  Value result = Dict{
      {"kind", "test"},
      {"version", program_version()},
      {"command", Value::of(arguments.command_line)},
      {"seed", settings["seed"]},
      {"model", Dict{{"name", model}, {"parameters", network.graph.parameter_count()}}},
      {"dataset", dataset_record(dataset)},
      {"options", settings.rows_value()},
      {"summary", summary_record(network.graph, compile.batch_size)},
      {"speed", Dict{{"seconds", line.seconds},
                     {"samples_per_second", static_cast<double>(split.rows()) / line.seconds}}},
      {"evaluation", record}};
  for (const auto& [name, value] : figures) result[name] = value;
  if (!settings["no_output"].as_bool()) {
    const std::string project =
        settings.has("project")
            ? settings["project"].as_string()
            : default_project(model, task, settings["dataset"].as_string()) + "_test";
    RunFolder folder = RunFolder::create(settings["project_dir"].as_string(), project, result);
    folder.finish("finished");
    log.info("Run folder: " + folder.path());
  }
  if (settings.has("json")) {
    const std::string path = settings["json"].as_string();
    const std::string text = to_json(result, 1) + "\n";
    if (path == "-")
      std::fputs(text.c_str(), stdout);
    else
      write_file_atomically(path, text);
  }
  return 0;
}

std::vector<Field> own_options() {
  return {{.name = "verbose",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "figures per class and the confusion matrix",
           .group = "Test options"},
          {.name = "json",
           .type = FieldType::text,
           .help = "write all figures to this file; - is the terminal",
           .group = "Test options"},
          {.name = "split",
           .type = FieldType::text,
           .default_value = "test",
           .help = "the rows to use",
           .choices = {"test", "validation", "train"},
           .group = "Test options"},
          {.name = "no_output",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "leave no run folder",
           .group = "Test options"}};
}

const Register<CommandRecord> registered{{
    .name = "test",
    .summary = "Evaluate a network on the test rows of a data set",
    .help = "Features are scaled as the checkpoint says, where it says so.",
    .positionals = {{"model", "a built-in network or a .toml that describes one", false},
                    {"dataset", "a data set or the path of a table", false}},
    .options = {general_options() + data_options() + own_options() + machine_options()},
    .examples = {"ch test jsc-10x jsc --load best.ckpt --load-type pl",
                 "ch test jsc-toy jsc-sim --load best.ckpt --verbose --json figures.json"},
    .run = run,
}};

}  // namespace
}  // namespace mase::test_command
