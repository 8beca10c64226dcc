// SPDX-License-Identifier: Apache-2.0
// From a table file to feature rows: which columns, how words become numbers, what the target is,
// duplicates and bad rows. The plan of it is what a checkpoint keeps, so that later files are read
// the same way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/data/prepare.h"
#include "mase/io/tables/table_source.h"

namespace mase {

enum class ColumnRole { number, one_hot, ordinal };

struct FeaturePlan {
  std::string column;
  ColumnRole role = ColumnRole::number;
  std::vector<std::string> categories = {};
};

enum class TargetRole {
  none,
  words,     // one column of words
  codes,     // one column of whole numbers, each a class
  one_hot,   // one column per class, the largest wins
  numbers,   // regression: one or more columns
  undecided  // one column of numbers: classes if few and whole, else regression
};

struct TablePlan {
  std::vector<FeaturePlan> features;
  TargetRole target = TargetRole::none;
  std::vector<std::string> target_columns = {};
  std::vector<std::string> classes = {};
  // Missing numbers stay missing (NaN) and missing words are a category of their own; else a row
  // with one is a bad row.
  bool fill_missing = false;
  std::vector<std::string> missing = {};  // further words and numbers for what is missing

  std::vector<std::string> feature_names() const;  // one-hot: "colour=red"
  Value to_value() const;
  static TablePlan from_value(const Value& value);
};

struct TableRequest {
  std::vector<std::string> features = {};  // empty: all columns but the target and `ignore`
  std::vector<std::string> ignore = {};
  std::vector<std::string> target = {};
  std::vector<std::string> classes = {};  // empty: those found
  std::string task = "auto";              // classification, regression
  std::string categorical = "one-hot";
  bool fill_missing = false;
  std::vector<std::string> missing = {};
};

// What a missing word is called among the categories of its column.
inline constexpr const char* missing_category = "(missing)";

TablePlan make_plan(const TableSource& source, const TableRequest& request);

struct TableResult {
  RawTable table;
  TablePlan plan;  // with the target decided
  int64_t duplicates = 0;
  std::vector<int64_t> bad_rows = {};        // left out: their numbers in the file, from 0
  std::vector<std::string> bad_places = {};  // of the first few: "a.csv:17"
  std::vector<std::pair<std::string, int64_t>> filled = {};  // columns, and how many were missing
};

struct TableCleaning {
  bool drop_duplicates = false;  // exactly as pandas.DataFrame.drop_duplicates
  bool drop_bad_rows = false;    // NaN, infinity, missing; else the first is an error
  // An error when a class has no rows: wanted for training, not for a file to predict.
  bool every_class = true;
};

TableResult read_table(TableSource& source, TablePlan plan, const TableCleaning& cleaning);

// Says which rows were left out, if any, and what was missing.
void tell_what_was_dropped(const TableResult& result, const std::string& path,
                           const DatasetOptions& options);

// Whether the file has the target's columns. Classes may stand in one column of names or in one
// column each: the plan is changed to the form the file has.
bool fit_target(const TableSource& source, TablePlan& plan);

// The rows of a file as a network trained with `preprocessing` wants them, in file order. Labels or
// targets are filled if the file has the target's columns, unless nobody wants them: rows to
// predict may have empty ones. Rows left out (drop_bad_rows) are told, and their numbers in the
// file given if asked for.
Split load_rows(const std::string& path, const Preprocessing& preprocessing,
                const DatasetOptions& options, std::vector<int64_t>* left_out = nullptr,
                bool with_target = true);

// The column of that name, or of the same name with the jet files' prefix "j_"; nothing if absent.
std::optional<size_t> find_column(const TableSource& source, const std::string& name);

}  // namespace mase
