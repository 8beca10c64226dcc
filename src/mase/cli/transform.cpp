// SPDX-License-Identifier: Apache-2.0
// ch transform: runs the passes of a TOML file on a network and keeps what they did. Everything the
// file says is checked before the first pass runs.
#include <algorithm>
#include <filesystem>

#include "mase/base/file.h"
#include "mase/cli/pass_setup.h"
#include "mase/cli/terminal.h"
#include "mase/io/checkpoint.h"
#include "mase/passes/metadata.h"
#include "mase/passes/quantize_plan.h"
#include "mase/passes/transform_record.h"
#include "mase/train/run_folder.h"

namespace mase::transform_command {
namespace {

bool is_pass(const PassCall& call, const char* name) {
  const PassRecord* record = Registry<PassRecord>::instance().find(call.name);
  return record && record->name == name;
}

// MASE prints the histogram after quantising; so do we, unless the file asks for it itself.
void add_summary(std::vector<PassCall>& calls) {
  const auto is = [](const char* name) {
    return [name](const PassCall& call) { return is_pass(call, name); };
  };
  if (std::any_of(calls.begin(), calls.end(), is("summarize_quantization"))) return;
  const auto last = std::find_if(calls.rbegin(), calls.rend(), is("quantize"));
  if (last != calls.rend())
    calls.insert(last.base(), {"summarize_quantization", Value(), "summarize_quantization"});
}

// The merged options; on a mistake among them the passes of the file are checked all the same, so
// that every problem of the file is told at once.
struct Prepared {
  Settings settings;
  std::vector<PassCall> calls;
  std::optional<Dataset> dataset;
  PassNetwork network;
};

template <class Step>
bool attempt(Problems& problems, const Step& step) {
  try {
    step();
    return true;
  } catch (const Error& error) {
    problems.add(error);
    return false;
  }
}

void check_dataset_name(const Value& name, const std::string& config_path) {
  if (name.is_null()) return;
  const std::string& text = name.as_string("dataset");
  const auto& known = Registry<DatasetRecord>::instance();
  if (known.find(text) || std::filesystem::exists(path_beside(text, config_path))) return;
  throw Error(name.position(), "dataset", fmt::format("unknown data set '{}'", printable(text)),
              suggestion(text, known.names()));
}

Prepared prepare(const Arguments& arguments) {
  Prepared prepared;
  Problems problems;
  const bool options_fine =
      attempt(problems, [&] { prepared.settings = merge_settings("transform", arguments); });
  Settings& settings = prepared.settings;
  if (!options_fine) {  // go on with what can be read
    if (!arguments.was_typed("config")) problems.throw_if_any();
    settings.config_path = arguments["config"].as_string();
    if (!attempt(problems, [&] { settings.config = read_toml(settings.config_path); })) {
      problems = {};
      settings.config = read_toml(settings.config_path);  // not even TOML: one error is enough
    }
    settings.values = arguments.values;
    for (const char* key : {"model", "dataset"})
      if (settings.values[key].is_null()) settings.values[key] = settings.config[key];
    settings.values["load"] = settings.config["load_name"];
    settings.values["seed"] = 0;
  }
  if (settings.config.is_null())
    throw Error("--config", "transform needs a file that lists passes",
                "write a TOML file with [passes.quantize], or run one pass with ch pass");
  if (settings.config["passes"].is_null())
    problems.add(Error(Position{std::make_shared<const std::string>(settings.config_path), 0, 0},
                       "passes", "the file lists no passes",
                       "add a table such as [passes.quantize]"));
  attempt(problems, [&] { prepared.calls = pass_calls(settings.config["passes"], "passes"); });
  // Where the file names the checkpoint, its own line is the place of a mistake.
  for (const char* key : {"load_name", "load"})
    if (!arguments.was_typed("load") && settings.config[key].is_string())
      settings.values["load"] = settings.config[key];
  for (const char* key : {"model", "dataset"})
    if (!arguments.was_typed(key) && settings.config[key].is_string())
      settings.values[key] = settings.config[key];
  attempt(problems, [&] { check_dataset_name(settings["dataset"], settings.config_path); });
  // Data take a while to load, mistakes do not: the network's own sizes are enough to find them.
  const bool has_network = attempt(problems, [&] {
    prepared.network =
        pass_network(settings["model"], settings.values, settings.config_path, nullptr);
  });
  if (has_network) {
    attempt(problems, [&] { check_passes(prepared.network.graph, prepared.calls); });
  } else {
    attempt(problems, [&] {  // names and arguments can be judged without a network
      Problems inner;
      for (const PassCall& call : prepared.calls) {
        const PassRecord* record = Registry<PassRecord>::instance().find(call.name);
        if (!record)
          inner.add(Error(call.args.position(), call.path,
                          fmt::format("unknown pass '{}'", printable(call.name)),
                          suggestion(call.name, Registry<PassRecord>::instance().names())));
        else
          validate(call.args, record->schema, call.path, inner);
      }
      inner.throw_if_any();
    });
  }
  problems.throw_if_any();
  return prepared;
}

// The data, and the network once more if they want it of another size.
void load_data(Prepared& prepared) {
  const Settings& settings = prepared.settings;
  if (!settings.has("dataset")) return;
  DatasetOptions options = dataset_options(settings);
  options.notify = [](const std::string& line) { fmt::print("{}\n", line); };
  prepared.dataset =
      load_dataset(path_beside(settings["dataset"].as_string(), settings.config_path), options);
  prepared.network =
      pass_network(settings["model"], settings.values, settings.config_path, &*prepared.dataset);
  check_passes(prepared.network.graph, prepared.calls);
}

void print_plan(const Prepared& prepared) {
  for (const PassCall& call : prepared.calls) {
    const PassRecord& record = Registry<PassRecord>::instance().get(call.name);
    fmt::print("{}: {}\n", record.name, record.summary);
    if (record.name == "quantize") {
      Problems problems;
      const Value args = validate(call.args, record.schema, call.path, problems);
      fmt::print("{}\n",
                 plan_text(prepared.network.graph,
                           plan_quantize(prepared.network.graph, args, call.path, problems)));
    } else if (!call.args.is_null() && !call.args.as_dict().empty()) {
      fmt::print("{}\n", python_pprint(call.args));
    }
  }
  fmt::print("Nothing was run (--dry-run).\n");
}

Value results_value(const std::vector<PassOutcome>& outcomes) {
  List list;
  for (const PassOutcome& outcome : outcomes)
    list.push_back(Dict{{"pass", outcome.name},
                        {"seconds", outcome.seconds},
                        {"changed", outcome.result.changed},
                        {"result", outcome.result.data}});
  return list;
}

Value first_record(const Prepared& prepared, const Arguments& arguments) {
  const Graph& graph = prepared.network.graph;
  Dict record{{"kind", "transform"},
              {"version", program_version()},
              {"command", Value::of(arguments.command_line)},
              {"status", "running"},
              {"started", utc_now()},
              {"seed", prepared.settings["seed"]},
              {"machine", machine_record()},
              {"model", Dict{{"name", graph.name}, {"parameters", graph.parameter_count()}}},
              {"options", prepared.settings.rows_value()}};
  if (prepared.dataset) {
    const Dataset& data = *prepared.dataset;
    record.set("dataset", Dict{{"name", data.name},
                               {"variant", data.variant},
                               {"identity", data.identity},
                               {"notice", data.notice},
                               {"train_rows", data.train.rows()},
                               {"validation_rows", data.validation.rows()},
                               {"test_rows", data.test.rows()},
                               {"classes", Value::of(data.class_names)}});
  }
  return record;
}

Value metadata_value(const Graph& graph) {
  Dict nodes;
  for (const NodeId id : graph.order()) nodes.set(graph.node(id).name, graph.node(id).meta);
  return nodes;
}

// What MASE leaves behind, and the graph in one file.
void save_results(const RunFolder& folder, const Graph& graph, const Prepared& prepared,
                  const std::vector<PassOutcome>& outcomes) {
  const std::string base = folder.software("transform");
  write_file_atomically(base + "/results.json", to_json(results_value(outcomes), 1) + "\n");
  save_mz(base + "/transformed.mz", graph, prepared.network.checkpoint_extra);
  const std::string checkpoint = folder.software("transform/transformed_ckpt");
  save_mz(checkpoint + "/graph_module.mz", graph, prepared.network.checkpoint_extra);
  save_state_dict(checkpoint + "/state_dict.pt", state_dict(graph));
  write_file_atomically(checkpoint + "/node_meta_param.toml", to_toml(metadata_value(graph)));
  write_file_atomically(folder.software() + "/config.toml", prepared.settings.toml());
}

int run(const Arguments& arguments) {
  Prepared prepared = prepare(arguments);
  const Settings& settings = prepared.settings;
  const Logger log(settings, true);
  if (settings["dry_run"].as_bool()) {
    print_plan(prepared);
    return 0;
  }
  load_data(prepared);
  add_summary(prepared.calls);
  log.text(settings_table(settings));
  for (const std::string& warning : settings.warnings) log.warning(warning);
  for (const std::string& note : prepared.network.notes) log.info(note);
  if (prepared.dataset && !prepared.dataset->notice.empty()) log.info(prepared.dataset->notice);

  Graph graph = prepared.network.graph;
  const Graph original = graph;
  const std::string dataset = prepared.dataset ? prepared.dataset->name : "none";
  RunFolder folder = RunFolder::create(settings["project_dir"].as_string(),
                                       settings.has("project")
                                           ? settings["project"].as_string()
                                           : default_project(graph.name, "classification", dataset),
                                       first_record(prepared, arguments));
  PassContext context = pass_context(prepared.dataset ? &*prepared.dataset : nullptr, settings);
  context.original = &original;
  context.save_dir = folder.software("transform");
  log.info(fmt::format("Transforming {} with {} passes", graph.name, prepared.calls.size()));
  try {
    ensure_metadata(graph, context);
    const std::vector<PassOutcome> outcomes = run_passes(graph, prepared.calls, context);
    for (const PassOutcome& outcome : outcomes)
      if (Registry<PassRecord>::instance().get(outcome.name).pass_kind == PassKind::transform &&
          !outcome.result.changed)
        log.info(fmt::format("{}: unchanged", outcome.name));
    if (std::any_of(prepared.calls.begin(), prepared.calls.end(),
                    [](const PassCall& call) { return is_pass(call, "report_graph"); })) {
      PassContext quiet = context;
      quiet.print = {};
      run_pass(graph, "report_graph", Dict{{"file_name", "report_graph.txt"}}, quiet);
    }
    save_results(folder, graph, prepared, outcomes);
    folder.record()["transform"] = transform_record(original, graph, context);
  } catch (const Error&) {
    folder.finish("failed");
    throw;
  }
  const Value& accuracy = folder.record()["transform"]["accuracy"];
  if (accuracy.is_dict())
    log.info(
        fmt::format("Accuracy on {} test rows of {} ({}): {:.4f} before, {:.4f} after, {:+.4f}",
                    context.test_labels.numel(), prepared.dataset->name, prepared.dataset->variant,
                    accuracy["before"].as_double(), accuracy["after"].as_double(),
                    accuracy["after"].as_double() - accuracy["before"].as_double()));
  folder.finish("finished");
  log.info(fmt::format("Transformed graph saved to {}/transformed.mz", context.save_dir));
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "transform",
    .summary = "Run the passes of a TOML file on a network",
    .help = "The tables [passes.NAME] run in the order of the file; [[passes.run]] entries with a\n"
            "name may list a pass more than once. Results go to\n"
            "mase_output/PROJECT/software/transform: results.json, transformed.mz, quantize/*.csv.",
    .positionals = {{.name = "model", .help = "a model, or the path of one", .required = false},
                    {.name = "dataset",
                     .help = "a data set, or the path of one",
                     .required = false}},
    .options = {general_options() + data_options() + trainer_options() + machine_options() +
                std::vector<Field>{{.name = "dry_run",
                                    .type = FieldType::boolean,
                                    .default_value = false,
                                    .help = "print what each pass would do, and do nothing",
                                    .group = "General options"}}},
    .examples = {"ch transform --config configs/examples/jsc_toy_by_type.toml",
                 "ch transform jsc-toy jsc --config quantize.toml --load best.ckpt --load-type pl"},
    .run = run,
}};

}  // namespace
}  // namespace mase::transform_command
