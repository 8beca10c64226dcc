// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/sweep_grid.h"

#include <algorithm>
#include <cmath>

#include "mase/base/figure.h"
#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/report/events/event_file.h"

namespace mase {
namespace {

constexpr size_t most_runs = 10000;
constexpr size_t longest_name = 160;

// A folder name from any setting: odd characters become dashes, a long name ends in a checksum.
std::string folder_name(const std::string& text) {
  std::string name;
  for (char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '=' || c == ',' ||
                       c == '.' || c == '_' || c == '-' || c == '+';
    name += plain ? c : '-';
  }
  if (name != text || name.size() > longest_name)
    name = fmt::format("{}-{:08x}", name.substr(0, longest_name), crc32c(text));
  return name;
}

std::string flag(const std::string& option) { return "--" + replace_all(option, "_", "-"); }

std::optional<double> sweep_number(const Value& value) {
  if (!value.is_number()) return {};
  const double found = value.as_double();
  return std::isfinite(found) ? std::optional<double>(found) : std::nullopt;
}

std::optional<double> sweep_best(const RunData& data, const std::string& key) {
  if (const auto direct =
          sweep_number(data.run["best"].is_dict() ? data.run["best"][key] : Value()))
    return direct;
  const Curve* curve = data.curve(key);
  std::optional<double> best;
  const bool lower = key.find("loss") != std::string::npos;
  for (double value : curve ? curve->y : std::vector<double>{})
    if (std::isfinite(value) && (!best || (lower ? value < *best : value > *best))) best = value;
  return best;
}

std::optional<double> member(const RunData& data, const std::string& table,
                             const std::string& key) {
  return data.run[table].is_dict() ? sweep_number(data.run[table][key]) : std::nullopt;
}

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

struct Spread {
  std::vector<double> values;
  void add(const std::optional<double>& value) {
    if (value) values.push_back(*value);
  }
  double mean() const {
    double sum = 0;
    for (double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  double deviation() const {
    double sum = 0;
    for (double value : values) sum += (value - mean()) * (value - mean());
    return std::sqrt(sum / static_cast<double>(values.size() - 1));
  }
  std::string text(int digits) const {
    if (values.empty()) return "-";
    if (values.size() == 1) return figure_text(mean(), digits);
    return figure_text(mean(), digits) + " ± " + figure_text(deviation(), digits);
  }
};

std::vector<std::string> varied_options(const std::vector<SweepResult>& results) {
  std::vector<std::string> names;
  if (results.empty()) return names;
  for (const auto& [name, value] : results.front().run->settings) names.push_back(name);
  return names;
}

}  // namespace

bool is_config_key(const std::string& option) { return option.find('.') != std::string::npos; }

bool is_of_command(const RunData& run, const std::vector<std::string>& words) {
  const Value& command = run.run["command"];
  if (!command.is_list() || command.as_list().size() != words.size() + 1) return false;
  for (size_t i = 0; i < words.size(); ++i)
    if (!(command.as_list()[i + 1] == Value(words[i]))) return false;
  return true;
}

Variation parse_variation(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw Error("--vary", fmt::format("'{}' does not name values", printable(text)),
                "write option=value,value,..., such as batch_size=64,256");
  const std::string name = strip(text.substr(0, equals));
  Variation variation{is_config_key(name) ? name : replace_all(name, "-", "_"), {}};
  for (const std::string& part : split(text.substr(equals + 1), ',')) {
    const std::string value = strip(part);
    if (value.empty())
      throw Error("--vary", fmt::format("'{}' has an empty value", printable(text)));
    if (std::find(variation.values.begin(), variation.values.end(), value) ==
        variation.values.end())
      variation.values.push_back(value);
  }
  return variation;
}

std::vector<SweepRun> sweep_grid(const std::vector<std::string>& base,
                                 const std::vector<Variation>& variations,
                                 std::optional<int64_t> seeds, int64_t first_seed,
                                 const std::string& folder) {
  std::vector<Variation> all = variations;
  if (seeds) {
    Variation seed{"seed", {}};
    for (int64_t i = 0; i < *seeds; ++i) seed.values.push_back(std::to_string(first_seed + i));
    all.push_back(std::move(seed));
  }
  size_t count = 1;
  for (const Variation& variation : all) {
    count *= variation.values.size();
    if (count > most_runs)
      throw Error("--vary", fmt::format("the grid has more than {} runs", most_runs),
                  "vary fewer values");
  }
  std::vector<SweepRun> runs;
  for (size_t index = 0; index < count; ++index) {
    SweepRun run;
    size_t rest = index, block = count;
    run.words = base;
    std::vector<std::string> parts;
    for (const Variation& variation : all) {
      block /= variation.values.size();
      const std::string& value = variation.values[rest / block];
      rest %= block;
      run.settings.emplace_back(variation.option, value);
      parts.push_back(variation.option + "=" + value);
      run.words.push_back(
          (is_config_key(variation.option) ? "--set=" + variation.option : flag(variation.option)) +
          "=" + value);
    }
    run.name = folder_name(join(parts, ","));
    run.words.push_back("--project-dir=" + folder);
    run.words.push_back("--project=" + run.name);
    runs.push_back(std::move(run));
  }
  return runs;
}

void take_over_state(std::vector<SweepRun>& runs, const Value& state, const std::string& folder) {
  const Value& known = state["runs"];
  if (!known.is_list()) return;
  for (const Value& entry : known.as_list()) {
    if (!entry.is_dict() || !entry["name"].is_string() || !entry["words"].is_list()) continue;
    for (SweepRun& run : runs) {
      if (entry["name"].as_string() != run.name || entry["words"] != Value::of(run.words)) continue;
      if (!entry["status"].is_string() || entry["status"].as_string() != "finished") continue;
      if (!is_run_folder(folder + "/" + run.name)) continue;
      const RunData data = read_run_outline(folder + "/" + run.name);
      const Value& status = data.run["status"];
      if (status.is_string() && status != Value("finished") && status != Value("diverged"))
        continue;
      if (data.run["command"].is_list() && !is_of_command(data, run.words)) continue;
      run.status = "finished";
      run.seconds = sweep_number(entry["seconds"]).value_or(0);
    }
  }
}

Value sweep_state(const std::vector<SweepRun>& runs, const std::vector<std::string>& base) {
  List list;
  for (const SweepRun& run : runs) {
    Dict entry{{"name", run.name},
               {"status", run.status},
               {"seconds", run.seconds},
               {"words", Value::of(run.words)}};
    if (!run.cause.empty()) entry.set("cause", run.cause);
    list.emplace_back(std::move(entry));
  }
  return Dict{{"base", Value::of(base)}, {"runs", std::move(list)}};
}

std::string sweep_csv(const std::vector<SweepResult>& results) {
  std::vector<std::string> header = {"run"};
  for (const std::string& name : varied_options(results)) header.push_back(name);
  for (const char* name : {"status", "best_epoch", "val_acc_epoch", "val_loss_epoch",
                           "test_accuracy", "seconds", "samples_per_second"})
    header.emplace_back(name);
  Table table(header);
  for (const SweepResult& result : results) {
    std::vector<std::string> row = {result.run->name};
    for (const auto& [name, value] : result.run->settings) row.push_back(value);
    row.push_back(result.run->status);
    if (result.data) {
      row.push_back(cell(member(*result.data, "best", "epoch")));
      row.push_back(cell(sweep_best(*result.data, "val_acc_epoch")));
      row.push_back(cell(sweep_best(*result.data, "val_loss_epoch")));
      row.push_back(cell(accuracy_on(*result.data, "test")));
      row.push_back(cell(member(*result.data, "speed", "seconds")));
      row.push_back(cell(member(*result.data, "speed", "samples_per_second")));
    }
    row.resize(header.size());
    table.add(row);
  }
  return table.csv();
}

std::string sweep_table(const std::vector<SweepResult>& results) {
  struct Setting {
    std::vector<std::string> values;
    Spread accuracy, loss, test, seconds;
    size_t runs = 0, failed = 0;
  };
  std::vector<Setting> settings;
  std::vector<std::string> names = varied_options(results);
  const bool seeded = !names.empty() && names.back() == "seed";
  if (seeded) names.pop_back();
  for (const SweepResult& result : results) {
    std::vector<std::string> values;
    for (size_t i = 0; i < names.size(); ++i) values.push_back(result.run->settings[i].second);
    auto found = std::find_if(settings.begin(), settings.end(),
                              [&](const Setting& one) { return one.values == values; });
    if (found == settings.end()) {
      Setting fresh;
      fresh.values = values;
      settings.push_back(fresh);
      found = settings.end() - 1;
    }
    ++found->runs;
    if (!result.data) {
      ++found->failed;
      continue;
    }
    found->accuracy.add(sweep_best(*result.data, "val_acc_epoch"));
    found->loss.add(sweep_best(*result.data, "val_loss_epoch"));
    found->test.add(accuracy_on(*result.data, "test"));
    found->seconds.add(member(*result.data, "speed", "seconds"));
  }
  const Setting* best = nullptr;
  for (const Setting& one : settings)
    if (!one.accuracy.values.empty() && (!best || one.accuracy.mean() > best->accuracy.mean()))
      best = &one;
  if (!best)
    for (const Setting& one : settings)
      if (!one.loss.values.empty() && (!best || one.loss.mean() < best->loss.mean())) best = &one;
  const bool tested = std::any_of(settings.begin(), settings.end(),
                                  [](const Setting& one) { return !one.test.values.empty(); });
  std::vector<std::string> header = names;
  for (const char* name : {"runs", "val_acc", "val_loss", "test_acc", "seconds", ""})
    if (tested || std::string_view(name) != "test_acc") header.emplace_back(name);
  Table table(header);
  for (const Setting& one : settings) {
    std::vector<std::string> row = one.values;
    row.push_back(one.failed ? fmt::format("{} ({} failed)", one.runs, one.failed)
                             : std::to_string(one.runs));
    row.push_back(one.accuracy.text(4));
    row.push_back(one.loss.text(4));
    if (tested) row.push_back(one.test.text(4));
    row.push_back(one.seconds.text(1));
    row.emplace_back(&one == best ? "best" : "");
    table.add(row);
  }
  return table.str();
}

}  // namespace mase
