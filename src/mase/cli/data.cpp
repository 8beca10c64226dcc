// SPDX-License-Identifier: Apache-2.0
// ch data: what data sets there are, what is in one, and getting the real jets.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "mase/base/table.h"
#include "mase/cli/command.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/data/dataset.h"
#include "mase/data/download.h"
#include "mase/data/jets.h"
#include "mase/report/progress.h"
#include "mase/run/record_options.h"

namespace mase::data_command {
namespace {

DatasetOptions dataset_options(const Arguments& arguments) {
  const auto text = [&](const char* key) {
    return arguments[key].is_null() ? std::string() : arguments[key].as_string();
  };
  DatasetOptions options;
  options.data_dir = text("data_dir");
  options.validation_split = text("val_split");
  options.target = text("target");
  options.drop_bad_rows = arguments["drop_bad_rows"].as_bool();
  options.notify = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  return options;
}

int list_datasets(const Arguments& arguments) {
  const std::string folder = data_folder(dataset_options(arguments));
  const std::string jets = find_jet_file(folder);
  Table table({"Name", "What it is", "Here"});
  for (const DatasetRecord* record : Registry<DatasetRecord>::instance().all()) {
    std::string here = "built in";
    if (record->name == "jsc")
      here = jets.empty() ? "no: jsc-sim takes its place"
                          : std::filesystem::path(jets).filename().string();
    table.add({record->name, record->summary, here});
  }
  fmt::print("{}\n\nData folder: {}\n", table.str(), folder);
  fmt::print(
      "Any table (.csv, .arff, .npy, .npz, .h5) and any .toml that describes one is a data set.\n");
  return 0;
}

struct FeatureSummary {
  double least = 0, most = 0, mean = 0, deviation = 0;
  std::string histogram;
};

// Over all three splits, in the units of the file.
FeatureSummary summarise(const Dataset& dataset, size_t feature) {
  const size_t width = dataset.preprocessing.feature_names.size();
  const double offset = double{dataset.preprocessing.offset[feature]};
  const double scale = double{dataset.preprocessing.scale[feature]};
  std::vector<const Split*> splits = {&dataset.train, &dataset.test};
  if (dataset.validation.x.raw() != dataset.train.x.raw()) splits.push_back(&dataset.validation);
  const auto each = [&](const auto& visit) {
    for (const Split* split : splits) {
      const float* x = split->x.data<float>();
      for (int64_t row = 0; row < split->rows(); ++row)
        visit(double{x[static_cast<size_t>(row) * width + feature]} * scale + offset);
    }
  };
  FeatureSummary summary;
  summary.least = INFINITY;
  summary.most = -INFINITY;
  double count = 0, squares = 0;
  each([&](double value) {
    summary.least = std::min(summary.least, value);
    summary.most = std::max(summary.most, value);
    summary.mean += value;
    ++count;
  });
  summary.mean /= count;
  each([&](double value) { squares += (value - summary.mean) * (value - summary.mean); });
  summary.deviation = std::sqrt(squares / count);
  // Undoing the scaling leaves rounding noise where a zero was.
  for (double* value : {&summary.least, &summary.most})
    if (std::abs(*value) < 1e-6 * summary.deviation) *value = 0;
  // Tails would squeeze everything into one bar: the ends take what lies beyond three deviations.
  constexpr size_t bars = 16;
  const double low = std::max(summary.least, summary.mean - 3 * summary.deviation);
  const double high = std::min(summary.most, summary.mean + 3 * summary.deviation);
  std::vector<double> heights(bars);
  each([&](double value) {
    const double place = high > low ? (value - low) / (high - low) * bars : 0;
    ++heights[static_cast<size_t>(std::clamp(place, 0.0, double{bars - 1}))];
  });
  const double tallest = *std::max_element(heights.begin(), heights.end());
  static const char* const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  for (const double height : heights)
    summary.histogram += blocks[static_cast<size_t>(std::ceil(height / tallest * 8))];
  return summary;
}

void print_classes(const Dataset& dataset) {
  Table table({"Class", "train", "validation", "test"});
  for (size_t i = 0; i < dataset.class_names.size(); ++i) {
    std::vector<std::string> row = {printable(dataset.class_names[i])};
    for (const Split* split : {&dataset.train, &dataset.validation, &dataset.test}) {
      int64_t count = 0;
      for (const int32_t label : split->labels.values<int32_t>())
        count += label == static_cast<int32_t>(i);
      row.push_back(with_thousands(count));
    }
    table.add(row);
  }
  fmt::print("{}\n\n", table.str());
}

int show_dataset(const Arguments& arguments, const std::string& name) {
  DatasetOptions options = dataset_options(arguments);
  Settings settings;
  settings.values = arguments.values;
  options.arguments = record_options(settings, "dataset", name);
  const Dataset dataset = load_dataset(name, options);
  fmt::print("Name        {}\nVariant     {}\nIdentity    {}\n", printable(dataset.name),
             printable(dataset.variant), dataset.identity);
  if (!dataset.notice.empty()) fmt::print("Notice      {}\n", printable(dataset.notice));
  const bool own_validation = dataset.validation.x.raw() != dataset.train.x.raw();
  const int64_t rows =
      dataset.train.rows() + dataset.test.rows() + (own_validation ? dataset.validation.rows() : 0);
  fmt::print("Rows        {} = {} train + {} validation + {} test\n", with_thousands(rows),
             with_thousands(dataset.train.rows()),
             own_validation ? with_thousands(dataset.validation.rows()) : "the same as",
             with_thousands(dataset.test.rows()));
  fmt::print("Task        {}\nSample      {}\n\n",
             dataset.classification ? "classification" : "regression",
             shape_text(dataset.sample_shape()));
  if (dataset.classification) print_classes(dataset);
  Table table({"Feature", "min", "mean", "std", "max", "histogram"});
  for (size_t i = 0; i < dataset.preprocessing.feature_names.size(); ++i) {
    const FeatureSummary summary = summarise(dataset, i);
    table.add({printable(dataset.preprocessing.feature_names[i]),
               fmt::format("{:.5g}", summary.least), fmt::format("{:.5g}", summary.mean),
               fmt::format("{:.5g}", summary.deviation), fmt::format("{:.5g}", summary.most),
               summary.histogram});
  }
  fmt::print("{}\n", table.str());
  return 0;
}

int fetch_dataset(const Arguments& arguments, const std::string& name) {
  if (name != "jsc") throw Error(name, "is not a data set that can be fetched", "known: jsc");
  const std::string& wanted = arguments["from"].as_string();
  const JetSource* source = nullptr;
  for (const JetSource& candidate : jet_sources())
    if (candidate.variant == wanted) source = &candidate;
  if (!source) throw Error("--from", fmt::format("unknown source '{}'", printable(wanted)));
  const DatasetOptions options = dataset_options(arguments);
  DownloadRequest request;
  request.path = data_folder(options) + "/" + source->file;
  request.address =
      arguments["address"].is_null() ? source->address : arguments["address"].as_string();
  if (!arguments["sha256"].is_null()) request.sha256 = arguments["sha256"].as_string();
  std::error_code ignored;
  if (std::filesystem::exists(request.path, ignored)) {
    fmt::print("{} is there already\n", request.path);
    return 0;
  }
  LiveLine live;
  const auto start = std::chrono::steady_clock::now();
  request.progress = [&](int64_t done, int64_t total) {
    if (!live.due()) return;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    live.draw(progress_text(
        {.title = name, .done = done, .total = std::max(done, total), .seconds = spent.count()},
        live.columns()));
  };
  const DownloadResult result = download(request);
  live.finish("");
  fmt::print("{}: {} bytes, sha256 {}\n", request.path, with_thousands(result.bytes),
             result.sha256);
  if (result.resumed_at > 0)
    fmt::print("continued after the {} an earlier run had left\n",
               human_bytes(double(result.resumed_at)));
  if (request.sha256.empty())
    fmt::print("no checksum was given to compare with; this one is recorded in {}.json\n",
               request.path);
  return 0;
}

int run(const Arguments& arguments) {
  const std::string& action = arguments["action"].as_string();
  const std::string name = arguments["name"].is_null() ? "" : arguments["name"].as_string();
  if (action == "list") return list_datasets(arguments);
  if (action != "info" && action != "fetch")
    throw Error("ch data", fmt::format("unknown action '{}'", printable(action)),
                suggestion(action, {"list", "info", "fetch"}));
  if (name.empty())
    throw Error("ch data " + action, "which data set is not said", "ch data list shows them");
  return action == "info" ? show_dataset(arguments, name) : fetch_dataset(arguments, name);
}

const Register<CommandRecord> registered{
    {.name = "data",
     .group = CommandGroup::data,
     .summary = "List, describe and download data sets",
     .help =
         "list shows the data sets and the data folder (--data-dir, else MASE_DATA, else "
         "~/.cache/mase). info prints rows, classes and features of a data set or a table file. "
         "fetch downloads the real jets; a download that was cut continues.",
     .positionals = {{"action", "list, info or fetch"},
                     {"name", "a data set, a table file or a .toml that describes one", false}},
     .options =
         {std::vector<Field>{
              {.name = "data_dir", .type = FieldType::text, .help = "folder of data files"},
              {.name = "val_split",
               .type = FieldType::text,
               .default_value = "0.1",
               .help = "share of the training rows kept for validation, or 'train'"},
              {.name = "target", .type = FieldType::text, .help = "the target column of a table"},
              {.name = "drop_bad_rows",
               .type = FieldType::boolean,
               .default_value = false,
               .help = "leave out rows with missing or infinite values"},
              {.name = "from",
               .type = FieldType::text,
               .default_value = "openml",
               .help = "which of the two published files to fetch",
               .choices = {"openml", "cernbox"}},
              {.name = "address",
               .type = FieldType::text,
               .help = "fetch from this address instead"},
              {.name = "sha256",
               .type = FieldType::text,
               .help = "refuse the download unless it has this"},
          } +
          record_fields("dataset", "")},
     .examples = {"ch data list", "ch data info jsc", "ch data info iris.csv --target species",
                  "ch data fetch jsc --from cernbox"},
     .run = run}};

}  // namespace
}  // namespace mase::data_command
