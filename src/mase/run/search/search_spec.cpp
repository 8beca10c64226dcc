// SPDX-License-Identifier: Apache-2.0
#include "mase/run/search/search_spec.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "mase/base/text.h"
#include "mase/ir/op.h"
#include "mase/run/search/search_training.h"
#include "mase/search/measure/figure.h"
#include "mase/search/pruners/pruner.h"
#include "mase/search/spaces/option_space.h"

namespace mase {
namespace {

using search::find_sampler;
using search::SamplerRecord;

const Schema& space_schema() {
  static const Schema schema{{{.name = "name", .type = FieldType::text},
                              {.name = "setup", .type = FieldType::table},
                              {.name = "seed", .type = FieldType::table},
                              {.name = "train", .type = FieldType::table}}};
  return schema;
}

Schema setup_schema(const SamplerRecord* sampler) {
  Schema schema{
      {{.name = "n_jobs",
        .type = FieldType::integer,
        .default_value = 1,
        .minimum = 1,
        .maximum = 1024},
       {.name = "n_trials", .type = FieldType::integer, .minimum = 1},
       {.name = "timeout", .type = FieldType::number, .minimum = 0},
       {.name = "sampler", .type = FieldType::text},
       {.name = "sum_scaled_metrics", .type = FieldType::boolean, .default_value = false},
       {.name = "direction", .type = FieldType::text, .choices = {"maximize", "minimize"}},
       {.name = "window", .type = FieldType::integer, .minimum = 1},
       {.name = "repeats", .type = FieldType::boolean, .default_value = false},
       {.name = "pruner"},
       {.name = "racing"},
       // Optuna's pickles have no meaning here: every trial is in the study's storage.
       {.name = "pkl_ckpt", .type = FieldType::text},
       {.name = "save_every_n_trials", .type = FieldType::integer, .minimum = 1}}};
  // Of a sampler that is not known any option may be.
  for (const SamplerRecord* one : Registry<SamplerRecord>::instance().all())
    if (one == sampler || !sampler)
      for (const Field& field : one->schema.fields)
        if (!schema.find(field.name)) schema.fields.push_back(field);
  return schema;
}

// The splits behind MASE's names of loaders.
std::string split_of(const Value& loader, Problems& problems, const std::string& path) {
  if (loader.is_null()) return "validation";
  const std::string& name = loader.as_string(path);
  static const std::map<std::string, std::string> splits = {{"val_dataloader", "validation"},
                                                            {"validation_dataloader", "validation"},
                                                            {"test_dataloader", "test"},
                                                            {"train_dataloader", "train"}};
  if (const auto known = splits.find(name); known != splits.end()) return known->second;
  problems.add(Error(loader.position(), path, fmt::format("unknown loader '{}'", printable(name)),
                     "known: val_dataloader, test_dataloader, train_dataloader")
                   .as(Mistake::unknown_name));
  return "validation";
}

void read_software(const Value& runners, SearchSpec& spec, Problems& problems) {
  if (runners.is_null()) return;
  const std::string path = "search.strategy.sw_runner";
  for (const auto& [name, table] : runners.as_dict(path)) {
    const std::string inner = path + "." + name;
    if (name == "basic_train") {
      read_basic_train(table, inner, spec, problems);
      continue;
    }
    if (name != "basic_evaluation") {
      problems.add(Error(table.position(), inner,
                         fmt::format("'{}' is not available", printable(name)),
                         "known: basic_evaluation, basic_train")
                       .as(Mistake::unknown_name));
      continue;
    }
    const Schema schema{{{.name = "data_loader", .type = FieldType::text},
                         {.name = "dataloader", .type = FieldType::text},
                         {.name = "num_samples", .type = FieldType::integer, .minimum = 1}}};
    const Value read = validate(table, schema, inner, problems);
    const char* key = read["data_loader"].is_null() ? "dataloader" : "data_loader";
    spec.split = split_of(read[key], problems, inner + "." + key);
    if (read["num_samples"].is_int()) spec.rows = read["num_samples"].as_int();
  }
}

void read_hardware(const Value& runners, SearchSpec& spec, Problems& problems) {
  if (runners.is_null()) return;
  const std::string path = "search.strategy.hw_runner";
  // Every figure that needs no rows is a runner; one of MASE's gives nothing.
  const Registry<search::FigureRecord>& figures = Registry<search::FigureRecord>::instance();
  const std::string nothing = "hw_dummy";
  std::vector<std::string> known = {nothing};
  for (const search::FigureRecord* record : figures.all())
    if (!record->is_software()) known.push_back(record->name);
  for (const auto& [name, table] : runners.as_dict(path)) {
    const std::string inner = path + "." + name;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      problems.add(Error(table.position(), inner,
                         fmt::format("'{}' is not available", printable(name)),
                         suggestion(name, known))
                       .as(Mistake::unknown_name));
      continue;
    }
    const Schema schema{{{.name = "compare_to", .type = FieldType::number, .minimum = 1}}};
    const Value read = validate(table, schema, inner, problems);
    if (read["compare_to"].is_number()) spec.compare_to = read["compare_to"].as_double();
    if (name == nothing) continue;
    spec.hardware.push_back(name);
    for (const std::string& companion : figures.get(name).companions)
      spec.hardware.push_back(companion);
  }
}

void read_metrics(const Value& metrics, SearchSpec& spec, Problems& problems) {
  const std::string path = "search.strategy.metrics";
  if (!metrics.is_dict() || metrics.as_dict().empty()) {
    problems.add(Error(metrics.position(), path, "no metric is named",
                       "write accuracy.direction = \"maximize\" below [" + path + "]"));
    return;
  }
  static const Schema schema{
      {{.name = "scale", .type = FieldType::number, .default_value = 1.0},
       {.name = "direction", .type = FieldType::text, .choices = {"maximize", "minimize"}},
       {.name = "lower_bound", .type = FieldType::number},
       {.name = "upper_bound", .type = FieldType::number}}};
  for (const auto& [name, table] : metrics.as_dict()) {
    const Value read = validate(table, schema, path + "." + name, problems);
    SearchMetric metric;
    metric.name = name;
    metric.position = table.position();
    if (read["scale"].is_number()) metric.scale = read["scale"].as_double();
    if (read["direction"].is_string())
      metric.maximise = read["direction"].as_string() == "maximize";
    if (read["lower_bound"].is_number()) metric.lower_bound = read["lower_bound"].as_double();
    if (read["upper_bound"].is_number()) metric.upper_bound = read["upper_bound"].as_double();
    if (!metric.maximise && !metric.lower_bound && !metric.upper_bound)
      problems.add(Error(table.position(), path + "." + name, "has neither a direction nor a bound",
                         "say direction = \"maximize\" or \"minimize\""));
    spec.metrics.push_back(std::move(metric));
  }
  std::sort(spec.metrics.begin(), spec.metrics.end(),
            [](const SearchMetric& a, const SearchMetric& b) { return a.name < b.name; });
}

// MASE's strategy is "optuna"; its users gave their own brute force a name of its own.
const SamplerRecord* choose_sampler(const Value& name, const Value& sampler, SearchSpec& spec,
                                    Problems& problems) {
  const Registry<SamplerRecord>& all = Registry<SamplerRecord>::instance();
  const std::string strategy = name.is_string() ? lower_case(name.as_string()) : "optuna";
  const SamplerRecord* by_strategy = all.find(strategy);
  if (by_strategy) {
    if (sampler.is_string() && all.find(lower_case(sampler.as_string())) != by_strategy)
      spec.notices.push_back(fmt::format("strategy '{}' is a sampler: '{}' is not used", strategy,
                                         printable(sampler.as_string())));
    return by_strategy;
  }
  if (strategy != "optuna")
    spec.notices.push_back(
        fmt::format("strategy '{}' is not known here; the sampler of search.strategy.setup is used",
                    printable(strategy)));
  const std::string wanted = sampler.is_string() ? lower_case(sampler.as_string()) : "tpe";
  if (const SamplerRecord* found = all.find(wanted)) return found;
  problems.add(Error(sampler.position(), "search.strategy.setup.sampler",
                     fmt::format("unknown sampler '{}'", printable(wanted)),
                     suggestion(wanted, all.names()))
                   .as(Mistake::unknown_name));
  return nullptr;
}

void read_strategy(const Value& strategy, SearchSpec& spec, Problems& problems) {
  static const Schema schema{{{.name = "name", .type = FieldType::text},
                              {.name = "eval_mode", .type = FieldType::boolean},
                              {.name = "sw_runner", .type = FieldType::table},
                              {.name = "hw_runner", .type = FieldType::table},
                              {.name = "setup", .type = FieldType::table},
                              {.name = "metrics", .type = FieldType::table}}};
  const std::string path = "search.strategy";
  const Value read = validate(strategy, schema, path, problems);
  if (read["eval_mode"].is_bool() && !read["eval_mode"].as_bool())
    spec.notices.push_back(
        "eval_mode = false: networks are evaluated as they are used, with the "
        "statistics that training kept");
  read_software(read["sw_runner"], spec, problems);
  read_hardware(read["hw_runner"], spec, problems);
  read_metrics(read["metrics"], spec, problems);
  const Value given = read["setup"].is_dict() ? read["setup"] : Value(Dict{});
  spec.sampler = choose_sampler(read["name"], given["sampler"], spec, problems);
  const Value setup = validate(given, setup_schema(spec.sampler), path + ".setup", problems);
  if (spec.sampler)
    for (const Field& field : spec.sampler->schema.fields)
      spec.sampler_options[field.name] = setup[field.name];
  if (setup["n_jobs"].is_int()) spec.study.jobs = static_cast<int>(setup["n_jobs"].as_int());
  if (setup["n_trials"].is_int()) spec.study.trials = setup["n_trials"].as_int();
  if (setup["timeout"].is_number()) spec.study.seconds = setup["timeout"].as_double();
  if (setup["window"].is_int()) spec.study.window = setup["window"].as_int();
  if (setup["repeats"].is_bool()) spec.study.repeats = setup["repeats"].as_bool();
  const Value& racing = setup["racing"];
  constexpr double usual_risk = 0.01;
  if (racing.is_bool() && racing.as_bool()) spec.racing = usual_risk;
  if (racing.is_number()) spec.racing = racing.as_double();
  if ((!racing.is_null() && !racing.is_bool() && !racing.is_number()) ||
      (spec.racing && !(*spec.racing >= 0 && *spec.racing < 0.5)))
    problems.add(Error(racing.position(), path + ".setup.racing",
                       "expected true, or the risk as a number from 0 to 0.5"));
  spec.pruner = setup["pruner"];
  if (!spec.pruner.is_null()) {
    try {
      search::make_pruner(spec.pruner, path + ".setup.pruner");
    } catch (const Error& error) {
      problems.add(error);
    }
  }
  spec.sum_scaled = setup["sum_scaled_metrics"].is_bool() && setup["sum_scaled_metrics"].as_bool();
  if (spec.sum_scaled && !setup["direction"].is_string())
    problems.add(Error(given.position(), path + ".setup", "sum_scaled_metrics needs 'direction'",
                       "say direction = \"maximize\" or \"minimize\""));
  if (setup["direction"].is_string())
    spec.sum_maximise = setup["direction"].as_string() == "maximize";
}

// Users gave spaces of their own names of their own: what the seeds hold says what they are.
const search::SpaceRecord* choose_space(const Value& name, const Value& seed, SearchSpec& spec,
                                        Problems& problems) {
  const Registry<search::SpaceRecord>& all = Registry<search::SpaceRecord>::instance();
  if (name.is_null()) return all.find("graph/quantize/mixed_precision_ptq");
  const std::string wanted = lower_case(name.as_string());
  if (const search::SpaceRecord* found = all.find(wanted)) return found;
  for (const search::SpaceRecord* record : all.all()) {
    if (record->telling_key.empty()) continue;
    bool tells = false;
    for (const auto& [key, rule] : seed.is_dict() ? seed.as_dict() : Dict{}) {
      const bool used = spec.by != "name" || !Registry<OpRecord>::instance().find(key);
      tells = tells || (used && rule.is_dict() && rule["config"].is_dict() &&
                        rule["config"].as_dict().contains(record->telling_key));
    }
    if (!tells) continue;
    spec.notices.push_back(
        fmt::format("search space '{}' is not known here; its seeds give {}: {} is searched",
                    printable(name.as_string()), record->telling_key, record->name));
    return record;
  }
  problems.add(Error(name.position(), "search.search_space.name",
                     fmt::format("unknown search space '{}'", printable(name.as_string())),
                     suggestion(wanted, all.names()))
                   .as(Mistake::unknown_name));
  return nullptr;
}

void read_space(const Value& given, SearchSpec& spec, Problems& problems) {
  const Value read = validate(given, space_schema(), "search.search_space", problems);
  const Schema setup{{{.name = "by",
                       .type = FieldType::text,
                       .default_value = "name",
                       .choices = {"name", "type", "regex_name"}}}};
  const Value by = validate(read["setup"].is_dict() ? read["setup"] : Value(Dict{}), setup,
                            "search.search_space.setup", problems);
  if (by["by"].is_string()) spec.by = by["by"].as_string();
  if (read["seed"].is_dict()) spec.seed = read["seed"];
  search::check_seed_keys(spec.seed, "search.search_space.seed", problems);
  spec.train = read["train"];
  if (read["seed"].is_dict() || spec.train.is_null())
    spec.space = choose_space(read["name"], read["seed"], spec, problems);
  else if (!read["name"].is_null())
    problems.add(Error(given.position(), "search.search_space", "'seed' is missing",
                       "write [search.search_space.seed.default.config], or leave 'name' out to "
                       "search over training alone"));
}

// "bits=2..8" as a seed: every product's weights and inputs in fixed point of these widths.
Value seed_of_flag(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string range = equals == std::string::npos ? "" : text.substr(equals + 1);
  List widths;
  const size_t dots = range.find("..");
  if (dots != std::string::npos) {
    const auto low = parse_integer(range.substr(0, dots));
    const auto high = parse_integer(range.substr(dots + 2));
    if (low && high && *high - *low < 64)
      for (int64_t w = *low; w <= *high; ++w) widths.emplace_back(w);
  } else {
    for (const std::string& part : split(range, ','))
      if (const auto width = parse_integer(part)) widths.emplace_back(*width);
  }
  if (name != "bits" || widths.empty())
    throw Error("--space", fmt::format("'{}' is no space", printable(text)),
                "write bits=2..8 or bits=2,4,8");
  const List half = {Value("NA")};
  const Dict config{{"name", List{Value("integer")}}, {"data_in_width", widths},
                    {"data_in_frac_width", half},     {"weight_width", widths},
                    {"weight_frac_width", half},      {"bias_width", List{widths.back()}},
                    {"bias_frac_width", half}};
  Dict seed{{"default", Dict{{"config", Dict{{"name", List{Value("NA")}}}}}}};
  for (const OpRecord* op : Registry<OpRecord>::instance().all())
    if (op->multiplies_weights()) seed.set(op->name, Dict{{"config", config}});
  return seed;
}

// Flags win over the file.
void read_flags(const Settings& settings, SearchSpec& spec, Problems& problems) {
  if (settings.has("space")) {
    spec.by = "type";
    spec.space =
        Registry<search::SpaceRecord>::instance().find("graph/quantize/mixed_precision_ptq");
    spec.seed = seed_of_flag(settings["space"].as_string());
    spec.seed_path = "--space";
  }
  if (settings.has("objective")) {
    spec.metrics.clear();
    for (const std::string& name : split(settings["objective"].as_string(), ',')) {
      SearchMetric metric;
      metric.name = strip(name);
      const auto* figure = Registry<search::FigureRecord>::instance().find(metric.name);
      metric.maximise = figure && figure->higher_is_better;
      spec.metrics.push_back(std::move(metric));
    }
    std::sort(spec.metrics.begin(), spec.metrics.end(),
              [](const SearchMetric& a, const SearchMetric& b) { return a.name < b.name; });
  }
  if (settings.has("sampler")) {
    spec.sampler = &find_sampler(settings["sampler"].as_string(), "--sampler");
    spec.sampler_options = validate(Value(Dict{}), spec.sampler->schema, "--sampler", problems);
  }
  if (settings.has("n_trials")) spec.study.trials = settings["n_trials"].as_int();
  if (settings.has("window")) spec.study.window = settings["window"].as_int();
  if (settings.has("heartbeat")) spec.study.heartbeat = settings["heartbeat"].as_double();
  if (settings.has("accept_differences"))
    spec.accept_differences = settings["accept_differences"].as_bool();
  if (settings.has("rows")) spec.rows = settings["rows"].as_int();
  if (settings.has("n_jobs")) spec.study.jobs = static_cast<int>(settings["n_jobs"].as_int());
  if (settings.has("timeout")) spec.study.seconds = settings["timeout"].as_double();
}

void check_training_space(const Value& table, const Value& chosen, Problems& problems) {
  search::OptionSpace(table, "search.search_space.train", training_options(), chosen, problems);
}

void read_tables(const Settings& settings, SearchSpec& spec, Problems& problems) {
  const Value& table = settings.config.is_dict() ? settings.config["search"] : Value();
  if (!table.is_dict()) return;
  static const Schema schema{{{.name = "search_space", .type = FieldType::table},
                              {.name = "strategy", .type = FieldType::table}}};
  const Value read = validate(table, schema, "search", problems);
  if (read["search_space"].is_dict()) read_space(read["search_space"], spec, problems);
  if (read["strategy"].is_dict()) read_strategy(read["strategy"], spec, problems);
}

}  // namespace

void check_search_keys(const Settings& settings, Problems& problems) {
  SearchSpec unused;
  Problems found;
  try {
    read_tables(settings, unused, found);
    if (unused.train.is_dict()) check_training_space(unused.train, Dict{}, found);
  } catch (const Error&) {  // of a value, which only a search is to judge
  }
  for (const Error& error : found.errors())
    if (error.mistake() == Mistake::unknown_key) problems.add(error);
}

Value chosen_members(const SearchSpec& spec) {
  const TrainSpec base = spec.training({});
  return Dict{{"training_optimizer", base.options.optimizer},
              {"schedule", base.options.schedule},
              {"loss", base.options.loss}};
}

SearchSpec search_spec(const Settings& settings, Problems& problems) {
  SearchSpec spec;
  spec.study.seed = static_cast<uint64_t>(settings["seed"].as_int());
  read_tables(settings, spec, problems);
  read_flags(settings, spec, problems);
  const Settings& base = settings;
  spec.training = [base, always = spec.train_changes](const Dict& changes) {
    Settings changed = base;
    for (const Dict* one : {&always, &changes})
      for (const auto& [name, value] : *one) changed.values[name] = value;
    return train_spec(changed);
  };
  for (const search::TrainingOption& option : training_options())
    if (const Value& value = settings[option.field.name]; !value.is_null())
      spec.training_settings.set(option.field.name, value);
  for (const auto& [name, value] : spec.train_changes) spec.training_settings.set(name, value);
  // Before any data are read.
  if (!spec.train.is_null() && problems.empty())
    check_training_space(spec.train, chosen_members(spec), problems);
  if (!spec.train.is_null() && !spec.trained)
    problems.add(Error(spec.train.position(), "search.search_space.train",
                       "options of training are searched over, and nothing is trained",
                       "add [search.strategy.sw_runner.basic_train]"));
  if (spec.seed.as_dict().empty() && spec.train.is_null() && problems.empty())
    problems.add(Error("ch search", "there is nothing to search over",
                       "give --config with [search.search_space], or --space bits=2..8"));
  if (spec.metrics.empty() && problems.empty())
    problems.add(Error("ch search", "there is nothing to search for",
                       "give [search.strategy.metrics], or --objective accuracy,bitops"));
  return spec;
}

}  // namespace mase
