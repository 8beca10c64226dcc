// SPDX-License-Identifier: Apache-2.0
#include "mase/data/table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "mase/base/memory.h"
#include "mase/data/row_hash.h"

namespace mase {
namespace {

constexpr size_t block_bytes = size_t{1} << 18;  // of cells: stays in the cache
constexpr size_t most_code_classes = 100;

// How the cells of a block become features and a target.
class Encoder {
 public:
  Encoder(TableSource& source, const TablePlan& plan) : source_(source), plan_(plan) {
    std::vector<size_t> columns;
    for (const FeaturePlan& feature : plan.features) columns.push_back(select(feature.column));
    for (const std::string& name : plan.target_columns) columns.push_back(select(name));
    for (size_t i = 0; i < plan.features.size(); ++i) {
      const FeaturePlan& feature = plan.features[i];
      const TableColumn& column = source.columns()[columns[i]];
      if (feature.role == ColumnRole::number && column.text)
        throw Error(source.path(), fmt::format("column '{}' holds words where numbers are expected",
                                               printable(column.name)));
      if (feature.role != ColumnRole::number && !column.text)
        throw Error(source.path(), fmt::format("column '{}' holds numbers where words are expected",
                                               printable(column.name)));
      recode_.push_back(recoding(column, feature.categories));
      const bool own = !feature.categories.empty() && feature.categories.back() == missing_category;
      of_missing_.push_back(own ? static_cast<int>(feature.categories.size()) - 1 : -1);
      width_ += feature.role == ColumnRole::one_hot ? feature.categories.size() : 1;
    }
    if (plan.target == TargetRole::words) {
      const TableColumn& column = source.columns()[columns.back()];
      if (!column.text)
        throw Error(
            source.path(),
            fmt::format("the target '{}' holds numbers, not class names", printable(column.name)),
            "the classes are " + join(plan.classes, ", "));
      target_recode_ = recoding(column, plan.classes);
    }
    source.select(std::move(columns));
    for (const std::string& word : plan.missing)
      if (const auto number = parse_number(word)) sentinels_.push_back(*number);
    missing_.resize(plan.features.size());
  }

  size_t width() const { return width_; }
  // How many cells of each feature's column were missing and kept.
  const std::vector<int64_t>& missing() const { return missing_; }

  // False for a row with a missing or infinite number, if `skip` allows that.
  bool features(const double* cells, int64_t row, bool skip, float* out) {
    for (size_t i = 0; i < plan_.features.size(); ++i) {
      const FeaturePlan& feature = plan_.features[i];
      double cell = cells[i];
      if (feature.role == ColumnRole::number && is_sentinel(cell)) cell = missing_cell;
      if (std::isnan(cell) && plan_.fill_missing) {
        ++missing_[i];
        out = put_missing(i, row, out);
        continue;
      }
      const auto number = static_cast<float>(cell);
      if (!std::isfinite(number)) {
        if (skip) return false;
        bad(feature.column, cell, row);
      }
      if (feature.role == ColumnRole::number) {
        *out++ = number;
        continue;
      }
      const int code = recode_[i][static_cast<size_t>(cell)];
      if (code < 0)
        throw Error(source_.place(row),
                    fmt::format("column '{}': category '{}' is unknown", printable(feature.column),
                                word(i, cell)),
                    "known: " + join(feature.categories, ", "));
      if (feature.role == ColumnRole::ordinal) {
        *out++ = static_cast<float>(code);
      } else {
        for (size_t k = 0; k < feature.categories.size(); ++k)
          *out++ = k == static_cast<size_t>(code) ? 1.0f : 0.0f;
      }
    }
    return true;
  }

  // The target's cells as numbers: a class number, or the value of each target column.
  bool target(const double* cells, int64_t row, bool skip, std::vector<double>& out) const {
    cells += plan_.features.size();
    const size_t count = plan_.target_columns.size();
    for (size_t i = 0; i < count; ++i) {
      const bool number = plan_.target != TargetRole::words;
      if (std::isfinite(static_cast<float>(cells[i])) && !(number && is_sentinel(cells[i])))
        continue;
      if (skip) return false;
      bad(plan_.target_columns[i], std::isinf(cells[i]) ? cells[i] : missing_cell, row);
    }
    if (plan_.target == TargetRole::words) {
      const int code = target_recode_[static_cast<size_t>(cells[0])];
      if (code < 0)
        throw Error(source_.place(row),
                    fmt::format("class '{}' is unknown", word(plan_.features.size(), cells[0])),
                    "the classes are " + join(plan_.classes, ", "));
      out.push_back(code);
    } else if (plan_.target == TargetRole::one_hot) {
      size_t best = 0;
      for (size_t i = 1; i < count; ++i)
        if (cells[i] > cells[best]) best = i;
      if (!(cells[best] > 0))
        throw Error(source_.place(row), "the row belongs to no class",
                    "one of " + join(plan_.target_columns, ", ") + " must be set");
      out.push_back(static_cast<double>(best));
    } else {
      out.insert(out.end(), cells, cells + count);
    }
    return true;
  }

 private:
  size_t select(const std::string& name) const {
    if (const auto column = find_column(source_, name)) return *column;
    return source_.column(name);  // which explains what is missing
  }

  bool is_sentinel(double cell) const {
    return std::find(sentinels_.begin(), sentinels_.end(), cell) != sentinels_.end();
  }

  float* put_missing(size_t i, int64_t row, float* out) const {
    const FeaturePlan& feature = plan_.features[i];
    const int code = of_missing_[i];
    if (feature.role == ColumnRole::number) {
      *out++ = std::numeric_limits<float>::quiet_NaN();
      return out;
    }
    if (code < 0)
      throw Error(source_.place(row),
                  fmt::format("column '{}' is missing, and was in no row that the network was "
                              "trained on",
                              printable(feature.column)),
                  "known: " + join(feature.categories, ", "));
    if (feature.role == ColumnRole::ordinal) {
      *out++ = static_cast<float>(code);
      return out;
    }
    for (size_t k = 0; k < feature.categories.size(); ++k)
      *out++ = k == static_cast<size_t>(code) ? 1.0f : 0.0f;
    return out;
  }

  // Category numbers of the file as numbers of the plan.
  static std::vector<int> recoding(const TableColumn& column,
                                   const std::vector<std::string>& categories) {
    std::unordered_map<std::string_view, int> numbers;
    for (size_t i = 0; i < categories.size(); ++i)
      numbers.emplace(categories[i], static_cast<int>(i));
    std::vector<int> codes;
    for (const std::string& category : column.categories) {
      const auto found = numbers.find(category);
      codes.push_back(found == numbers.end() ? -1 : found->second);
    }
    return codes;
  }

  std::string word(size_t position, double cell) const {
    const TableColumn& column = source_.columns()[source_.selected()[position]];
    return printable(column.categories[static_cast<size_t>(cell)].substr(0, 40));
  }

  [[noreturn]] void bad(const std::string& column, double cell, int64_t row) const {
    throw Error(source_.place(row),
                fmt::format("column '{}' is {}", printable(column),
                            std::isnan(cell)   ? "missing or not a number"
                            : std::isinf(cell) ? "infinite"
                                               : "too large for float32"),
                std::isnan(cell) && !plan_.fill_missing
                    ? "--drop-bad-rows leaves such rows out, --fill-missing fills what is missing"
                    : "--drop-bad-rows leaves such rows out");
  }

  TableSource& source_;
  const TablePlan& plan_;
  std::vector<std::vector<int>> recode_;
  std::vector<int> target_recode_;
  std::vector<int> of_missing_;  // the category of missing words; -1: none
  std::vector<double> sentinels_;
  std::vector<int64_t> missing_;
  size_t width_ = 0;
};

void check_memory(const std::string& path, int64_t rows, size_t width) {
  const double needed = static_cast<double>(rows) * static_cast<double>(width) * sizeof(float);
  if (rows > int64_t{1} << 31)
    throw Error(path, fmt::format("{} rows are more than 2^31", with_thousands(rows)),
                "split the table");
  const auto memory = available_memory();
  if (memory && needed > static_cast<double>(*memory))
    throw Error(path,
                fmt::format("{} rows of {} features need {}, and {} of memory are free",
                            with_thousands(rows), width, human_bytes(needed),
                            human_bytes(static_cast<double>(*memory))),
                "read fewer rows, or use a machine with more memory");
}

// One numeric target column: whole numbers of few kinds are classes.
void decide_target(const std::vector<double>& values, TablePlan& plan, const std::string& path) {
  std::map<double, int64_t> kinds;
  bool whole = true;
  for (const double value : values) {
    whole = whole && value == std::floor(value) && std::abs(value) < 1e9;
    if (kinds.size() <= most_code_classes) ++kinds[value];
  }
  const bool classes = whole && kinds.size() <= most_code_classes;
  if (plan.target == TargetRole::undecided)
    plan.target =
        classes && kinds.size() * 2 <= values.size() ? TargetRole::codes : TargetRole::numbers;
  if (plan.target != TargetRole::codes || !plan.classes.empty()) return;
  if (!classes)
    throw Error(path,
                fmt::format("the target '{}' is not made of at most {} whole numbers",
                            printable(plan.target_columns[0]), most_code_classes),
                "use it for regression, or give classes as words");
  for (const auto& [value, count] : kinds)
    plan.classes.push_back(fmt::format("{}", static_cast<int64_t>(value)));
}

void set_labels(const std::vector<double>& values, TableResult& result, const std::string& path) {
  result.table.labels.reserve(values.size());
  if (result.plan.target != TargetRole::codes) {
    for (const double value : values) result.table.labels.push_back(static_cast<int32_t>(value));
    return;
  }
  std::map<double, int32_t> codes;
  for (size_t i = 0; i < result.plan.classes.size(); ++i) {
    const auto value = parse_number(result.plan.classes[i]);
    if (!value)
      throw Error(path, fmt::format("the target '{}' holds numbers, but class '{}' is a word",
                                    printable(result.plan.target_columns[0]),
                                    printable(result.plan.classes[i])));
    codes[*value] = static_cast<int32_t>(i);
  }
  for (size_t row = 0; row < values.size(); ++row) {
    const auto found = codes.find(values[row]);
    if (found == codes.end())
      throw Error(fmt::format("{}: row {}", path, row),
                  fmt::format("class '{}' is unknown", values[row]),
                  "the classes are " + join(result.plan.classes, ", "));
    result.table.labels.push_back(found->second);
  }
}

void check_classes(const TableResult& result, const std::string& path) {
  std::vector<int64_t> count(result.plan.classes.size());
  for (const int32_t label : result.table.labels) ++count[static_cast<size_t>(label)];
  for (size_t i = 0; i < count.size(); ++i)
    if (count[i] == 0)
      throw Error(path, fmt::format("class '{}' has no rows", printable(result.plan.classes[i])),
                  "a network cannot learn it; leave it out of the classes or add rows");
  if (count.size() < 2)
    throw Error(path, "there is only one class", "a classification needs at least two");
}

}  // namespace

TableResult read_table(TableSource& source, TablePlan plan, const TableCleaning& cleaning) {
  TableResult result;
  Encoder encoder(source, plan);
  check_memory(source.path(), source.rows(), encoder.width());
  RawTable& table = result.table;
  table.feature_names = plan.feature_names();
  table.x = aligned_bytes(static_cast<size_t>(source.rows()) * encoder.width() * sizeof(float));
  std::vector<double> targets;
  if (plan.target != TargetRole::none) {
    const bool several = plan.target == TargetRole::numbers;
    targets.reserve(static_cast<size_t>(source.rows()) *
                    (several ? plan.target_columns.size() : 1));
  }
  RowSet seen(cleaning.drop_duplicates ? static_cast<size_t>(source.rows()) : 0);
  const size_t columns = source.selected().size();
  const auto block_rows = static_cast<int64_t>(
      std::max<size_t>(1, block_bytes / sizeof(double) / std::max<size_t>(1, columns)));
  std::vector<double> cells(static_cast<size_t>(block_rows) * columns);
  int64_t in_file = 0;
  while (const int64_t count = source.read(cells.data(), block_rows)) {
    in_file += count;
    if (in_file > source.rows()) throw Error(source.path(), "the file grows while it is read");
    for (int64_t row = 0; row < count; ++row) {
      const std::span<const double> one(&cells[static_cast<size_t>(row) * columns], columns);
      if (cleaning.drop_duplicates && !seen.insert(hash_row(one))) {
        ++result.duplicates;
        continue;
      }
      float* out = table.data() + static_cast<size_t>(table.rows) * encoder.width();
      const bool skip = cleaning.drop_bad_rows;
      if (!encoder.features(one.data(), row, skip, out) ||
          (plan.target != TargetRole::none && !encoder.target(one.data(), row, skip, targets))) {
        constexpr size_t shown_places = 10;
        if (result.bad_rows.size() < shown_places) result.bad_places.push_back(source.place(row));
        result.bad_rows.push_back(in_file - count + row);
        continue;
      }
      ++table.rows;
    }
  }
  if (table.rows == 0) throw Error(source.path(), "no usable rows are left");
  for (size_t i = 0; i < plan.features.size(); ++i)
    if (encoder.missing()[i] > 0)
      result.filled.emplace_back(plan.features[i].column, encoder.missing()[i]);
  result.plan = std::move(plan);
  if (result.plan.target == TargetRole::none) return result;
  if (result.plan.target == TargetRole::undecided || result.plan.target == TargetRole::codes)
    decide_target(targets, result.plan, source.path());
  if (result.plan.target == TargetRole::numbers) {
    table.targets.assign(targets.begin(), targets.end());
  } else {
    set_labels(targets, result, source.path());
    if (cleaning.every_class) check_classes(result, source.path());
  }
  return result;
}

void tell_what_was_dropped(const TableResult& result, const std::string& path,
                           const DatasetOptions& options) {
  if (options.notify && !result.bad_rows.empty()) {
    const size_t more = result.bad_rows.size() - result.bad_places.size();
    options.notify(fmt::format(
        "{}: {} with missing or infinite values left out: {}{}", path,
        result.bad_rows.size() == 1
            ? "1 row"
            : with_thousands(static_cast<int64_t>(result.bad_rows.size())) + " rows",
        join(result.bad_places, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
  }
  if (options.notify && !result.filled.empty()) {
    constexpr size_t shown = 10;
    std::vector<std::string> columns;
    for (const auto& [column, count] : result.filled)
      if (columns.size() < shown)
        columns.push_back(fmt::format("{} ({})", printable(column), with_thousands(count)));
    const size_t more = result.filled.size() - columns.size();
    options.notify(fmt::format(
        "{}: missing values of {}{}: numbers take the median of the training rows, words are the "
        "category '{}'",
        path, join(columns, ", "), more > 0 ? fmt::format(" and {} more columns", more) : "",
        missing_category));
  }
  if (options.notify && result.duplicates > 0)
    options.notify(
        fmt::format("{}: {} duplicate rows dropped", path, with_thousands(result.duplicates)));
}

bool fit_target(const TableSource& source, TablePlan& plan) {
  const auto all_there = [&](const std::vector<std::string>& names) {
    return !names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return find_column(source, name).has_value();
    });
  };
  if (all_there(plan.target_columns)) return true;
  if (plan.target == TargetRole::words && all_there(plan.classes)) {
    plan.target = TargetRole::one_hot;
    plan.target_columns = plan.classes;
    return true;
  }
  if (plan.target == TargetRole::one_hot && find_column(source, "class")) {
    plan.target = TargetRole::words;
    plan.target_columns = {"class"};
    return true;
  }
  return false;
}

Split load_rows(const std::string& path, const Preprocessing& preprocessing,
                const DatasetOptions& options, std::vector<int64_t>* left_out, bool with_target) {
  TablePlan plan = TablePlan::from_value(preprocessing.description);
  if (FeatureNames(plan.feature_names()) != preprocessing.feature_names)
    throw Error(path, "the stored preprocessing does not describe its own features");
  TableOptions table_options;
  for (const FeaturePlan& feature : plan.features)
    if (feature.role != ColumnRole::number) table_options.text_columns.push_back(feature.column);
  if (!with_target) {
    plan.target = TargetRole::none;
    plan.target_columns.clear();
  }
  if (plan.target == TargetRole::words)
    table_options.text_columns.insert(table_options.text_columns.end(), plan.target_columns.begin(),
                                      plan.target_columns.end());
  table_options.missing = plan.missing;
  const std::unique_ptr<TableSource> source = open_table(path, table_options);
  if (!fit_target(*source, plan)) {
    plan.target = TargetRole::none;
    plan.target_columns.clear();
  }
  TableResult result = read_table(*source, std::move(plan),
                                  {.drop_bad_rows = options.drop_bad_rows, .every_class = false});
  tell_what_was_dropped(result, path, options);
  if (left_out) *left_out = result.bad_rows;
  RawTable& table = result.table;
  scale_rows(table.data(), table.rows, preprocessing);
  Split split;
  split.x = Tensor({table.rows, table.features()}, DType::f32, table.x.get(), table.x);
  if (!table.labels.empty())
    split.labels = Tensor::of<int32_t>({table.rows}, std::span<const int32_t>(table.labels));
  if (!table.targets.empty())
    split.targets = Tensor::of(
        {table.rows, static_cast<int64_t>(table.targets.size()) / table.rows}, table.targets);
  return split;
}

}  // namespace mase
