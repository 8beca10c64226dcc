// SPDX-License-Identifier: Apache-2.0
// ch data: what data sets there are, what is in one, and getting its files.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "mase/base/file.h"
#include "mase/base/table.h"
#include "mase/cli/command.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/data/dataset.h"
#include "mase/data/download.h"
#include "mase/data/jets.h"
#include "mase/report/text/progress.h"
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
  options.fill_missing = arguments["fill_missing"].as_bool();
  options.missing_values = text("missing_values");
  options.ignore = text("ignore");
  options.notify = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  return options;
}

int list_datasets(const Arguments& arguments) {
  const DatasetOptions options = dataset_options(arguments);
  Table table({"Name", "What it is", "Where"});
  for (const DatasetRecord* record : Registry<DatasetRecord>::instance().all()) {
    std::string where = record->where ? record->where(options) : "built in";
    if (where.empty()) where = "not here: ch data fetch " + record->name;
    table.add({record->name, record->summary, printable(where)});
  }
  fmt::print("{}\n\nData folder: {}\n", table.str(), printable(data_folder(options)));
  fmt::print(
      "Any table (.csv, .arff, .npy, .npz, .h5), any .toml that describes one and any folder of "
      "images is a data set.\n");
  return 0;
}

struct FeatureSummary {
  double least = 0, most = 0, mean = 0, deviation = 0;
  std::string histogram;
};

// Over all three splits, in the units of the file: `count` values of a sample that lie side by
// side.
FeatureSummary summarise(const Dataset& dataset, size_t feature, size_t count) {
  const auto width = static_cast<size_t>(element_count(dataset.sample_shape()));
  const std::vector<float>&offset = dataset.preprocessing.offset,
        &scale = dataset.preprocessing.scale;
  std::vector<const Split*> splits = {&dataset.train, &dataset.test};
  if (dataset.validation.x.raw() != dataset.train.x.raw()) splits.push_back(&dataset.validation);
  const auto each = [&](const auto& visit) {
    for (const Split* split : splits) {
      for (int64_t i = 0; i < split->rows() * static_cast<int64_t>(count); ++i) {
        const size_t value = feature + static_cast<size_t>(i) % count;
        const size_t at = static_cast<size_t>(i) / count * width + value;
        visit(split->bytes ? static_cast<double>(split->x.data<uint8_t>()[at])
                           : double{split->x.data<float>()[at]} * double{scale[value]} +
                                 double{offset[value]});
      }
    }
  };
  FeatureSummary summary;
  summary.least = INFINITY;
  summary.most = -INFINITY;
  double values = 0, squares = 0;
  each([&](double value) {
    summary.least = std::min(summary.least, value);
    summary.most = std::max(summary.most, value);
    summary.mean += value;
    ++values;
  });
  summary.mean /= values;
  each([&](double value) { squares += (value - summary.mean) * (value - summary.mean); });
  summary.deviation = std::sqrt(squares / values);
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
  // Values of images and sequences are too many to list: their channels are.
  const Shape sample = dataset.sample_shape();
  const bool channels = sample.size() > 1;
  const auto rows_of_table = static_cast<size_t>(sample.at(0));
  const auto values =
      channels ? static_cast<size_t>(element_count(sample)) / rows_of_table : size_t{1};
  Table table({channels ? "Channel" : "Feature", "min", "mean", "std", "max", "histogram"});
  for (size_t i = 0; i < rows_of_table; ++i) {
    const FeatureSummary summary = summarise(dataset, i * values, values);
    table.add({channels ? std::to_string(i) : printable(dataset.preprocessing.feature_names[i]),
               fmt::format("{:.5g}", summary.least), fmt::format("{:.5g}", summary.mean),
               fmt::format("{:.5g}", summary.deviation), fmt::format("{:.5g}", summary.most),
               summary.histogram});
  }
  fmt::print("{}\n", table.str());
  return 0;
}

void fetch_file(const DownloadRequest& wanted, const std::string& title) {
  std::error_code ignored;
  if (std::filesystem::exists(wanted.path, ignored)) {
    fmt::print("{} is there already\n", wanted.path);
    return;
  }
  make_directories(std::filesystem::path(wanted.path).parent_path().string());
  LiveLine live;
  const auto start = std::chrono::steady_clock::now();
  DownloadRequest request = wanted;
  request.progress = [&](int64_t done, int64_t total) {
    if (!live.due()) return;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    live.draw(progress_text(
        {.title = title, .done = done, .total = std::max(done, total), .seconds = spent.count()},
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
}

std::vector<std::string> published_datasets() {
  std::vector<std::string> names;
  for (const DatasetRecord* record : Registry<DatasetRecord>::instance().all())
    if (!record->files.empty()) names.push_back(record->name);
  return names;
}

int fetch_dataset(const Arguments& arguments, const std::string& name) {
  std::vector<std::string> variants;
  const DatasetRecord* record = Registry<DatasetRecord>::instance().find(name);
  if (!record || record->files.empty())
    throw Error(printable(name), "is not a data set that can be fetched",
                "known: " + join(published_datasets(), ", "));
  const std::string wanted =
      arguments["from"].is_null() ? record->files[0].variant : arguments["from"].as_string();
  std::vector<DatasetFile> files;
  for (const DatasetFile& file : record->files) {
    if (file.variant == wanted) files.push_back(file);
    if (std::find(variants.begin(), variants.end(), file.variant) == variants.end())
      variants.push_back(file.variant);
  }
  if (files.empty())
    throw Error("--from", fmt::format("{} has no variant '{}'", record->name, printable(wanted)),
                "known: " + join(variants, ", "));
  const bool single = files.size() == 1;
  if (!single && !(arguments["address"].is_null() && arguments["sha256"].is_null()))
    throw Error(arguments["address"].is_null() ? "--sha256" : "--address",
                fmt::format("{} has {} files", record->name, files.size()),
                "put them into the data folder by hand");
  const std::string folder = data_folder(dataset_options(arguments));
  for (const DatasetFile& file : files) {
    DownloadRequest request;
    request.path = folder + "/" + file.file;
    request.address = file.address;
    request.sha256 = file.sha256;
    if (!arguments["address"].is_null()) request.address = arguments["address"].as_string();
    if (!arguments["sha256"].is_null()) request.sha256 = arguments["sha256"].as_string();
    fetch_file(request, single ? name : std::filesystem::path(file.file).filename().string());
  }
  return 0;
}

int run(const Arguments& arguments) {
  const std::string& action = arguments["action"].as_string();
  const std::string name = arguments["name"].is_null() ? "" : arguments["name"].as_string();
  if (action != "list" && action != "info" && action != "fetch")
    throw Error("ch data", fmt::format("unknown action '{}'", printable(action)),
                suggestion(action, {"list", "info", "fetch"}));
  std::set<std::string> useful = {"data_dir"};
  if (action == "fetch") useful.insert({"name", "from", "address", "sha256"});
  if (action == "info") {
    useful.insert({"name", "val_split", "target", "drop_bad_rows", "fill_missing", "missing_values",
                   "ignore"});
    for (const Field& field : record_fields("dataset", "")) useful.insert(field.name);
  }
  check_typed(arguments, "data", action, useful);
  if (action == "list") return list_datasets(arguments);
  if (name.empty())
    throw Error("ch data " + action, "which data set is not said", "ch data list shows them");
  return action == "info" ? show_dataset(arguments, name) : fetch_dataset(arguments, name);
}

const Register<CommandRecord> registered{
    {.name = "data",
     .group = CommandGroup::data,
     .summary = "List, describe and download data sets",
     .help =
         fmt::format("list shows the data sets and the data folder (--data-dir, else MASE_DATA, "
                     "else ~/.cache/mase). info prints rows, classes and features of a data set or "
                     "a table file. fetch downloads the published files of one ({}) and compares "
                     "them with their checksums; a download that was cut continues.",
                     join(published_datasets(), ", ")),
     .positionals = {{"action", "list, info or fetch"},
                     {"name", "a data set, a table file or a .toml that describes one", false}},
     .options =
         {only(data_options(), {"data_dir", "val_split", "target", "drop_bad_rows", "fill_missing",
                                "missing_values", "ignore"}) +
          std::vector<Field>{
              {.name = "from",
               .type = FieldType::text,
               .help =
                   "which of the published variants to fetch: openml or cernbox (jsc), binary or "
                   "python (cifar10, cifar100)"},
              {.name = "address",
               .type = FieldType::text,
               .help = "fetch from this address instead"},
              {.name = "sha256",
               .type = FieldType::text,
               .help = "refuse the download unless it has this"},
          } +
          record_fields("dataset", "")},
     .examples = {"ch data list", "ch data info jsc", "ch data info iris.csv --target species",
                  "ch data fetch jsc --from cernbox", "ch data fetch mnist"},
     .run = run}};

}  // namespace
}  // namespace mase::data_command
