// SPDX-License-Identifier: Apache-2.0
// ch pass: one pass on one network, its arguments taken from [passes.NAME] of a TOML file and given
// as --set key=value, which wins.
#include <cstdio>

#include "mase/base/text.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/run/experiment.h"
#include "mase/run/set_option.h"

namespace mase::pass_command {
namespace {

// The file's call of the pass, changed by --set; other passes of the file are not run.
PassCall call_of(const std::string& name, const PassList& listed, const Settings& settings) {
  Problems problems;  // a misspelt table would be nobody's
  check_pass_arguments(listed.calls, problems);
  problems.throw_if_any();
  const Value changes = set_table(settings["set"]);
  const PassCall* found = nullptr;
  for (const PassCall& call : listed.calls) {
    if (call.name != name) continue;
    if (found)
      throw Error(call.args.position(), call.path,
                  fmt::format("{} lists '{}' more than once", settings.config_path, name),
                  "run them all with ch transform, or leave one");
    found = &call;
  }
  if (!found) return {name, changes, name};
  Value args = with_changes(found->args, changes, found->path);
  args.set_position(found->args.position());
  return {name, std::move(args), found->path};
}

int run(const Arguments& arguments) {
  const Settings settings = merge_settings("pass", arguments);
  const std::string& name = arguments["name"].as_string();
  Registry<PassRecord>::instance().get(name, "NAME");
  ExperimentSpec spec = experiment_spec(settings);
  // Files that the pass writes go where the user stands, whatever file named them.
  spec.passes = {{call_of(name, spec.passes, settings)}, ""};
  bool printed = false;  // a pass that says nothing has its result printed
  Observer observer;
  const Logger log(settings, true);
  observer.log = [&](LogLevel level, const std::string& line) {
    if (level == LogLevel::warning)
      log.warning(line);
    else if (log.shows_info())
      fmt::print("{}\n", line);
  };
  observer.print = [&](const std::string& text) {
    printed = true;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
  Experiment experiment(std::move(spec), observer);
  experiment.prepare();
  const PassResult result =
      experiment
          .apply_passes(settings.has("output_dir") ? settings["output_dir"].as_string() : "", true)
          .at(0)
          .result;
  if (settings["json"].as_bool())
    fmt::print("{}\n", to_json(result.data, 1));
  else if (!printed)
    fmt::print("{}\n", python_pprint(result.data));
  if (settings.has("save")) {
    save_mz(settings["save"].as_string(), experiment.graph(), experiment.file_contents());
    fmt::print("saved to {}\n", settings["save"].as_string());
  }
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "pass",
    .group = CommandGroup::quantise,
    .summary = "Run one pass on a network",
    .help = "The arguments are those of [passes.NAME] in the --config, if it has such a table, and "
            "what --set says, which wins: TOML values; text needs no quotes. The passes: "
            "ch --info pass.",
    .positionals = {{.name = "name", .help = "the pass", .required = true},
                    network_word(),
                    dataset_word()},
    .options = {without(general_options(), {"task", "threads", "project", "project_dir"}) +
                data_options() +
                std::vector<Field>{{.name = "set",
                                    .type = FieldType::list,
                                    .help = "an argument, key=value; may be repeated"},
                                   {.name = "json",
                                    .type = FieldType::boolean,
                                    .default_value = false,
                                    .help = "print the result as JSON too"},
                                   {.name = "output_dir",
                                    .type = FieldType::text,
                                    .help = "where the pass writes its files"},
                                   {.name = "save",
                                    .type = FieldType::text,
                                    .help = "save the graph after the pass (.mz)"}}},
    .examples = {"ch pass report_graph jsc-tiny",
                 "ch pass calculate_flops jsc-toy10x --set batch_size=8",
                 "ch pass quantize jsc-toy --set linear.config.name=integer "
                 "--set linear.config.data_in_width=8 --set linear.config.weight_width=8 "
                 "--save toy.mz",
                 "ch pass quantize --config configs/examples/jsc_toy_by_type.toml --save toy.mz"},
    .run = run,
}};

}  // namespace
}  // namespace mase::pass_command
