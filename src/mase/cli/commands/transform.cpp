// SPDX-License-Identifier: Apache-2.0
// ch transform: runs the passes of a TOML file on a network and keeps what they did. Everything the
// file says is checked before the first pass runs.
#include <optional>

#include "mase/base/figure.h"
#include "mase/base/text.h"
#include "mase/cli/next_steps.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/run/experiment.h"

namespace mase::transform_command {
namespace {

void print_plan(const Experiment& experiment) {
  for (const PreparedCall& prepared : experiment.prepared_passes()) {
    const PassRecord& record = Registry<PassRecord>::instance().get(prepared.call.name);
    fmt::print("{}: {}\n", record.name, record.summary);
    const Value& args = prepared.call.args;
    if (record.describe)
      fmt::print("{}\n", record.describe(experiment.graph(), prepared.plan));
    else if (!args.is_null() && !args.as_dict().empty())
      fmt::print("{}\n", python_pprint(args));
  }
  fmt::print("Nothing was run (--dry-run).\n");
}

// What the file says, whole: every mistake in it is told at once, before anything is loaded.
ExperimentSpec checked_spec(const Settings& settings, Problems& problems) {
  if (settings.config.is_null() && !settings.has("quant_config"))
    throw Error("--config", "transform needs a file that lists passes",
                "write a TOML file with [passes.quantize], or run one pass with ch pass");
  if (!settings.has("quant_config") && settings.config["passes"].is_null())
    problems.add(Error(Position{std::make_shared<const std::string>(settings.config_path), 0, 0},
                       "passes", "the file lists no passes",
                       "add a table such as [passes.quantize]"));
  try {
    ExperimentSpec spec = experiment_spec(settings);
    spec.data.noted = true;
    Experiment(spec).check(problems);
    return spec;
  } catch (const Error& error) {
    problems.add(error);
  }
  return {};
}

int run(const Arguments& arguments) {
  catch_interrupts();
  Problems problems;
  const Settings settings = merge_settings("transform", arguments, problems);
  ExperimentSpec spec = checked_spec(settings, problems);
  problems.throw_if_any();
  const Logger log(settings, true);
  const bool dry_run = settings["dry_run"].as_bool();
  if (!dry_run) {
    log.text(settings_table(settings, settings["show_options"].as_bool()));
    for (const std::string& warning : settings.warnings) log.warning(warning);
  }
  Experiment experiment(std::move(spec), dry_run ? Observer{} : log.observer());
  experiment.prepare();
  if (dry_run) {
    print_plan(experiment);
    return 0;
  }
  std::optional<RunFolder> folder;
  if (!settings["no_output"].as_bool()) {
    OutputSpec output = output_spec(settings);
    output.record["version"] = program_version();
    output.record["command"] = Value::of(arguments.command_line);
    folder.emplace(experiment.create_folder(output, "transform"));
  }
  const TransformResult result = experiment.transform(folder ? &*folder : nullptr);
  const std::string saved = folder ? folder->software("transform") + "/transformed.mz" : "";
  const Value& accuracy = result.record["accuracy"];
  if (accuracy.is_dict()) {
    const Dataset& data = *experiment.dataset();
    const double before = accuracy["before"].as_double(), after = accuracy["after"].as_double();
    log.info(fmt::format("Accuracy on {} test rows of {} ({}): {} before, {} after, {}",
                         with_thousands(data.test.rows()), data.name, data.variant,
                         figure_text(before), figure_text(after),
                         signed_figure_text(after - before)));
    if (const std::string advice = lost_accuracy(before, after); !advice.empty()) log.info(advice);
  }
  if (!folder) return 0;
  log.info("Transformed graph saved to " + saved);
  for (const std::string& line :
       next_steps({"ch report " + folder->path(), "ch test " + saved, "ch emit " + saved}))
    log.info(line);
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "transform",
    .group = CommandGroup::quantise,
    .summary = "Run the passes of a TOML file on a network",
    .help = "The tables [passes.NAME] run in the order of the file; [[passes.run]] entries with a\n"
            "name may list a pass more than once. Results go to\n"
            "mase_output/PROJECT/software/transform: results.json, transformed.mz, quantize/*.csv.",
    .positionals = {network_word(), dataset_word()},
    .options = {general_options() + config_options() + data_options() + machine_options() +
                std::vector<Field>{{.name = "dry_run",
                                    .type = FieldType::boolean,
                                    .default_value = false,
                                    .help = "print what each pass would do, and do nothing",
                                    .group = "General options"},
                                   {.name = "no_output",
                                    .type = FieldType::boolean,
                                    .default_value = false,
                                    .help = "leave no run folder",
                                    .group = "General options"}}},
    .tables = {"passes"},
    .examples = {"ch transform best.mz --config quantize.toml",
                 "ch transform --config configs/examples/jsc_toy_by_type.toml",
                 "ch transform jsc-10x jsc --config quantize.toml --load best.ckpt --load-type pl"},
    .run = run,
}};

}  // namespace
}  // namespace mase::transform_command
