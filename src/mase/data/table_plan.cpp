// SPDX-License-Identifier: Apache-2.0
// The plan of a table: made from a file and a request, kept in checkpoints as plain values.
#include <algorithm>
#include <set>

#include "mase/data/table.h"

namespace mase {
namespace {

struct RoleName {
  ColumnRole role;
  const char* name;
};
constexpr RoleName role_names[] = {{ColumnRole::number, "number"},
                                   {ColumnRole::one_hot, "one-hot"},
                                   {ColumnRole::ordinal, "ordinal"}};
struct TargetName {
  TargetRole role;
  const char* name;
};
constexpr TargetName target_names[] = {
    {TargetRole::none, "none"},       {TargetRole::words, "words"},
    {TargetRole::codes, "codes"},     {TargetRole::one_hot, "one-hot"},
    {TargetRole::numbers, "numbers"}, {TargetRole::undecided, "undecided"}};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Columns people call the target, when none is given.
std::vector<std::string> guess_target(const TableSource& source) {
  for (const char* name : {"class", "target", "label"})
    for (const TableColumn& column : source.columns())
      if (lower_case(column.name) == name) return {column.name};
  std::vector<std::string> names;
  for (const TableColumn& column : source.columns()) names.push_back(printable(column.name));
  if (names.size() > 12) {
    names.resize(12);
    names.emplace_back("...");
  }
  throw Error(source.path(), "which column is the target is not said",
              "name it with --target: " + join(names, ", "));
}

}  // namespace

std::optional<size_t> find_column(const TableSource& source, const std::string& name) {
  const std::optional<size_t> column = source.find(name);
  return column ? column : source.find("j_" + name);
}

std::vector<std::string> TablePlan::feature_names() const {
  std::vector<std::string> names;
  for (const FeaturePlan& feature : features) {
    if (feature.role != ColumnRole::one_hot) names.push_back(feature.column);
    if (feature.role == ColumnRole::one_hot)
      for (const std::string& category : feature.categories)
        names.push_back(feature.column + "=" + category);
  }
  return names;
}

Value TablePlan::to_value() const {
  List columns;
  for (const FeaturePlan& feature : features) {
    Dict column{{"name", feature.column}};
    for (const RoleName& role : role_names)
      if (role.role == feature.role) column.set("kind", role.name);
    if (feature.role != ColumnRole::number) column.set("categories", Value::of(feature.categories));
    columns.emplace_back(std::move(column));
  }
  Dict target_value{{"columns", Value::of(target_columns)}, {"classes", Value::of(classes)}};
  for (const TargetName& role : target_names)
    if (role.role == target) target_value.set("kind", role.name);
  Dict value{{"columns", std::move(columns)}, {"target", std::move(target_value)}};
  if (fill_missing) value.set("fill_missing", true);
  if (!missing.empty()) value.set("missing", Value::of(missing));
  return value;
}

TablePlan TablePlan::from_value(const Value& value) {
  TablePlan plan;
  for (const Value& column : value["columns"].as_list("columns")) {
    FeaturePlan feature{column["name"].as_string("columns.name")};
    const std::string& kind = column["kind"].as_string("columns.kind");
    bool known = false;
    for (const RoleName& role : role_names) {
      if (kind != role.name) continue;
      feature.role = role.role;
      known = true;
    }
    if (!known)
      throw Error(column.position(), "columns.kind",
                  fmt::format("unknown kind '{}'", printable(kind)));
    if (feature.role != ColumnRole::number)
      feature.categories = column["categories"].as_string_list("columns.categories");
    plan.features.push_back(std::move(feature));
  }
  plan.fill_missing = value["fill_missing"].is_bool() && value["fill_missing"].as_bool();
  if (!value["missing"].is_null()) plan.missing = value["missing"].as_string_list("missing");
  const Value& target = value["target"];
  if (target.is_null()) return plan;
  plan.target_columns = target["columns"].as_string_list("target.columns");
  plan.classes = target["classes"].as_string_list("target.classes");
  const std::string& kind = target["kind"].as_string("target.kind");
  for (const TargetName& role : target_names)
    if (kind == role.name) plan.target = role.role;
  // A checkpoint is anybody's: what reading relies on is checked here.
  const size_t count = plan.target_columns.size();
  const bool one = plan.target == TargetRole::words || plan.target == TargetRole::codes ||
                   plan.target == TargetRole::undecided;
  if ((one && count != 1) || (plan.target == TargetRole::one_hot && count != plan.classes.size()) ||
      (plan.target == TargetRole::numbers && count == 0))
    throw Error(target.position(), "target",
                fmt::format("{} columns and {} classes do not make a target of kind '{}'", count,
                            plan.classes.size(), printable(kind)));
  return plan;
}

TablePlan make_plan(const TableSource& source, const TableRequest& request) {
  TablePlan plan;
  plan.target_columns = request.target.empty() ? guess_target(source) : request.target;
  plan.classes = request.classes;
  plan.fill_missing = request.fill_missing;
  plan.missing = request.missing;
  for (const std::string& name : plan.target_columns) source.column(name);  // must be there
  for (const std::string& name : request.ignore) source.column(name);

  std::vector<std::string> names = request.features;
  if (names.empty())
    for (const TableColumn& column : source.columns())
      if (!contains(plan.target_columns, column.name) && !contains(request.ignore, column.name))
        names.push_back(column.name);
  if (names.empty()) throw Error(source.path(), "there is no column beside the target");
  const bool one_hot = request.categorical == "one-hot";
  if (!one_hot && request.categorical != "ordinal")
    throw Error("--categorical", fmt::format("unknown value '{}'", printable(request.categorical)),
                suggestion(request.categorical, {"one-hot", "ordinal"}));
  std::set<std::string> seen;
  size_t width = 0;
  for (const std::string& name : names) {
    if (contains(plan.target_columns, name))
      throw Error(source.path(),
                  fmt::format("column '{}' is the target and a feature", printable(name)));
    if (!seen.insert(name).second)
      throw Error(source.path(), fmt::format("column '{}' is named twice", printable(name)));
    const TableColumn& column = source.columns()[source.column(name)];
    FeaturePlan feature{name};
    if (column.text) {
      feature.role = one_hot ? ColumnRole::one_hot : ColumnRole::ordinal;
      feature.categories = column.categories;
      if (plan.fill_missing && !column.complete) feature.categories.emplace_back(missing_category);
    }
    width += feature.role == ColumnRole::one_hot ? feature.categories.size() : 1;
    if (feature.role == ColumnRole::one_hot && feature.categories.size() > 4096)
      throw Error(
          source.path(),
          fmt::format("column '{}' has {} categories", printable(name), feature.categories.size()),
          "leave it out, or use --categorical ordinal");
    plan.features.push_back(std::move(feature));
  }
  if (width > 1 << 20) throw Error(source.path(), fmt::format("{} features are too many", width));

  if (plan.target_columns.size() > 1) {
    plan.target = request.task == "classification" ? TargetRole::one_hot : TargetRole::numbers;
    if (plan.target == TargetRole::one_hot && plan.classes.empty())
      plan.classes = plan.target_columns;
    return plan;
  }
  const TableColumn& column = source.columns()[source.column(plan.target_columns[0])];
  if (column.text && request.task == "regression")
    throw Error(source.path(),
                fmt::format("the target '{}' holds words, not numbers", printable(column.name)),
                "a regression needs numbers");
  if (column.text) {
    plan.target = TargetRole::words;
    if (plan.classes.empty()) plan.classes = column.categories;
  } else if (request.task == "regression") {
    plan.target = TargetRole::numbers;
  } else {
    plan.target = request.task == "classification" || !plan.classes.empty() ? TargetRole::codes
                                                                            : TargetRole::undecided;
  }
  return plan;
}

}  // namespace mase
