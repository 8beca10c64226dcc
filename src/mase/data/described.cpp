// SPDX-License-Identifier: Apache-2.0
#include "mase/data/described.h"

#include <filesystem>

#include "mase/base/fields.h"
#include "mase/data/digest.h"
#include "mase/data/jets.h"
#include "mase/data/prepared_cache.h"

namespace mase {
namespace fs = std::filesystem;
namespace {

const Schema& description_schema() {
  static const Schema schema{{
      text_field("name", "what results call it"),
      text_field("file", "the table, beside this file").needed(),
      text_field("table", "the data set inside an HDF5 or .npz file"),
      any_field("target", "the target column, or a list of them"),
      text_field("task", "by default the target's type decides", "auto",
                 {"auto", "classification", "regression"}),
      list_field("features", "columns to use; all others by default"),
      list_field("ignore", "columns to leave out"),
      list_field("classes", "class names in order"),
      list_field("text_columns", "columns whose numbers are names"),
      text_field("categorical", {}, {}, {"one-hot", "ordinal"}),
      text_field("scaling", {}, {}, {"standardise", "min-max", "quantile", "none"}),
      any_field("class_weights", "\"none\", \"balanced\", or a list in class order"),
      boolean_field("drop_duplicates", {}, false),
      boolean_field("drop_bad_rows", {}, false),
      boolean_field(
          "fill_missing",
          "medians of the training rows for missing numbers, a category for missing words", false),
      any_field("missing_values", "what else is a missing value: [-999, \"unknown\"]"),
      any_field("val_split", "share of the training rows, or \"train\""),
      text_field("notice", "what a reader of figures must know"),
      list_field("shape", "of a sample, such as [1, 8, 8]"),
  }};
  return schema;
}

std::vector<std::string> texts_of(const Value& value, const std::string& what) {
  if (value.is_null()) return {};
  if (value.is_string()) return {value.as_string()};
  return value.as_string_list(what);
}

// "a, b" as its names.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& name : split(text, ','))
    if (!strip(name).empty()) names.push_back(strip(name));
  return names;
}

// Numbers and words, as a table writes them.
std::vector<std::string> cells_of(const Value& value) {
  if (value.is_null()) return {};
  std::vector<std::string> cells;
  for (const Value& cell : value.is_list() ? value.as_list() : List{value})
    cells.push_back(cell.is_int()      ? fmt::format("{}", cell.as_int())
                    : cell.is_double() ? fmt::format("{}", cell.as_double())
                                       : cell.as_string("missing_values"));
  return cells;
}

Value request_value(const TableDescription& description) {
  List weights;
  for (const float weight : description.class_weights) weights.emplace_back(double{weight});
  return Dict{{"kind", "table"},
              {"name", description.name},
              {"table", description.reading.table},
              {"text_columns", Value::of(description.reading.text_columns)},
              {"features", Value::of(description.request.features)},
              {"ignore", Value::of(description.request.ignore)},
              {"target", Value::of(description.request.target)},
              {"classes", Value::of(description.request.classes)},
              {"task", description.request.task},
              {"categorical", description.request.categorical},
              {"fill_missing", description.request.fill_missing},
              {"missing", Value::of(description.request.missing)},
              {"drop_duplicates", description.drop_duplicates},
              {"notice", description.notice},
              {"shape", Value::of(description.shape)},
              {"class_weights", std::move(weights)}};
}

void reshape(Split& split, const Shape& sample) {
  Shape shape = {split.rows()};
  shape.insert(shape.end(), sample.begin(), sample.end());
  split.x = split.x.reshaped(shape);
}

Dataset prepare_table(const TableDescription& description, const DatasetOptions& options) {
  const std::string& path = description.file;
  TablePlan plan;
  TableOptions reading = description.reading;
  reading.missing = description.request.missing;
  if (options.apply) {
    plan = TablePlan::from_value(options.apply->description);
    reading.missing = plan.missing;
    for (const FeaturePlan& feature : plan.features)
      if (feature.role != ColumnRole::number) reading.text_columns.push_back(feature.column);
    if (plan.target == TargetRole::words)
      for (const std::string& name : plan.target_columns) reading.text_columns.push_back(name);
  }
  const std::unique_ptr<TableSource> source = open_table(path, reading);
  if (!options.apply)
    plan = make_plan(*source, description.request);
  else if (!fit_target(*source, plan))
    for (const std::string& name : plan.target_columns) source->column(name);  // names the missing
  TableResult read = read_table(*source, std::move(plan),
                                {.drop_duplicates = description.drop_duplicates,
                                 .drop_bad_rows = options.drop_bad_rows,
                                 .every_class = !options.apply});
  tell_what_was_dropped(read, path, options);
  Dataset dataset;
  dataset.name = description.name.empty() ? fs::path(path).stem().string() : description.name;
  dataset.variant = lower_case(fs::path(path).extension().string());
  if (!dataset.variant.empty()) dataset.variant.erase(0, 1);
  dataset.notice = description.notice;
  dataset.identity = "sha256:" + sha256_of_file(path);
  dataset.classification = read.plan.target != TargetRole::numbers;
  if (dataset.classification) dataset.class_names = read.plan.classes;
  const Value plan_value = read.plan.to_value();
  prepare(std::move(read.table), options, path, dataset);
  dataset.preprocessing.description = plan_value;
  if (!description.class_weights.empty()) {
    if (description.class_weights.size() != dataset.class_names.size())
      throw Error(path, fmt::format("{} class weights for {} classes",
                                    description.class_weights.size(), dataset.class_names.size()));
    dataset.class_weights = description.class_weights;
  }
  if (!description.shape.empty()) {
    if (element_count(description.shape) != dataset.train.x.dim(1))
      throw Error(path, fmt::format("{} features do not fill samples of shape {}",
                                    dataset.train.x.dim(1), shape_text(description.shape)));
    for (Split* split : {&dataset.train, &dataset.validation, &dataset.test})
      reshape(*split, description.shape);
  }
  return dataset;
}

}  // namespace

Dataset load_described_table(const TableDescription& description, const DatasetOptions& options) {
  const fs::path file(description.file);
  std::error_code failure;  // reading says what is wrong
  if (fs::is_directory(file, failure)) throw Error(description.file, "is a folder, not a file");
  // Small tables are read faster than a cache file is found.
  constexpr uintmax_t worth_keeping = 8u << 20;
  const uintmax_t size = fs::file_size(file, failure);
  if (failure || size < worth_keeping) return prepare_table(description, options);
  const PreparedKey key =
      prepared_key(file.filename().string(), description.file, options, request_value(description));
  return load_or_prepare(key, options, [&] { return prepare_table(description, options); });
}

Dataset load_table_file(const std::string& path, const DatasetOptions& options) {
  TableDescription description;
  description.file = path;
  description.request.target = names_in(options.target);
  description.request.task = options.task;
  description.request.categorical = options.categorical;
  description.request.ignore = names_in(options.ignore);
  description.request.fill_missing = options.fill_missing;
  description.request.missing = names_in(options.missing_values);
  std::error_code ignored;
  // The jets' own columns have one order of classes, whether the target is named or not.
  const bool as_it_is = description.request.ignore.empty() && description.request.missing.empty() &&
                        !options.fill_missing &&
                        (options.target.empty() || options.target == "class");
  if (as_it_is && !fs::is_directory(path, ignored)) {
    const std::unique_ptr<TableSource> source = open_table(path);
    if (is_jet_table(*source) && (options.target.empty() || has_jet_columns_only(*source))) {
      Dataset dataset = load_jet_file(path, options);
      dataset.name = fs::path(path).stem().string();
      return dataset;
    }
  }
  return load_described_table(description, options);
}

Dataset load_toml_dataset(const std::string& path, DatasetOptions options) {
  const Value toml = read_toml(path);
  const Value values = validate(toml, description_schema(), "");
  const DatasetOptions defaults;
  TableDescription description;
  const auto text = [&](const char* key) {
    return values[key].is_null() ? std::string() : values[key].as_string(key);
  };
  description.name = text("name").empty() ? fs::path(path).stem().string() : text("name");
  const fs::path file(text("file"));
  description.file =
      file.is_absolute() ? file.string() : (fs::path(path).parent_path() / file).string();
  description.reading.table = text("table");
  description.reading.text_columns = texts_of(values["text_columns"], "text_columns");
  TableRequest& request = description.request;
  request.features = texts_of(values["features"], "features");
  request.ignore =
      options.ignore.empty() ? texts_of(values["ignore"], "ignore") : names_in(options.ignore);
  options.fill_missing |= values["fill_missing"].as_bool();
  request.fill_missing = options.fill_missing;
  request.missing = options.missing_values.empty() ? cells_of(values["missing_values"])
                                                   : names_in(options.missing_values);
  request.classes = texts_of(values["classes"], "classes");
  // What is typed wins over what the file says.
  request.target =
      options.target.empty() ? texts_of(values["target"], "target") : split(options.target, ',');
  request.task = options.task == defaults.task ? text("task") : options.task;
  if (options.categorical == defaults.categorical && !values["categorical"].is_null())
    options.categorical = text("categorical");
  request.categorical = options.categorical;
  if (options.scaling == defaults.scaling && !values["scaling"].is_null())
    options.scaling = text("scaling");
  if (options.validation_split == defaults.validation_split && !values["val_split"].is_null())
    options.validation_split = values["val_split"].is_string()
                                   ? values["val_split"].as_string()
                                   : fmt::format("{}", values["val_split"].as_double("val_split"));
  options.drop_bad_rows |= values["drop_bad_rows"].as_bool();
  description.drop_duplicates = values["drop_duplicates"].as_bool();
  description.notice = text("notice");
  if (!values["shape"].is_null()) description.shape = values["shape"].as_int_list("shape");
  const Value& weights = values["class_weights"];
  if (weights.is_string()) {
    if (weights.as_string() != "none" && weights.as_string() != "balanced")
      throw Error(weights.position(), "class_weights",
                  fmt::format("unknown value '{}'", printable(weights.as_string())),
                  "\"none\", \"balanced\" or a list of numbers");
    if (options.class_weighting == defaults.class_weighting)
      options.class_weighting = weights.as_string();
  } else if (!weights.is_null()) {
    for (const Value& weight : weights.as_list("class_weights"))
      description.class_weights.push_back(static_cast<float>(weight.as_double("class_weights")));
  }
  return load_described_table(description, options);
}

}  // namespace mase
