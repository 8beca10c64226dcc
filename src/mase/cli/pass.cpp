// SPDX-License-Identifier: Apache-2.0
// ch pass: one pass on one network, its arguments given as --set key=value.
#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/cli/pass_setup.h"
#include "mase/cli/set_option.h"
#include "mase/io/checkpoint.h"
#include "mase/passes/metadata.h"

namespace mase::pass_command {
namespace {

int run(const Arguments& arguments) {
  const Settings settings = merge_settings("pass", arguments);
  const std::string& name = arguments["name"].as_string();
  Registry<PassRecord>::instance().get(name, "NAME");
  const Value args = set_table(settings["set"]);
  std::optional<Dataset> dataset;
  if (settings.has("dataset")) {
    DatasetOptions options = dataset_options(settings);
    options.notify = [](const std::string& line) { fmt::print("{}\n", line); };
    dataset = load_dataset(settings["dataset"].as_string(), options);
  }
  PassNetwork network = pass_network(settings["model"], settings.values, settings.config_path,
                                     dataset ? &*dataset : nullptr);
  for (const std::string& note : network.notes) fmt::print("{}\n", note);
  check_passes(network.graph, {{name, args, name}});
  const Graph original = network.graph;
  PassContext context = pass_context(dataset ? &*dataset : nullptr, settings);
  context.original = &original;
  bool printed = false;  // a pass that says nothing has its result printed
  context.print = [&, print = context.print](const std::string& text) {
    printed = true;
    print(text);
  };
  if (settings.has("output_dir")) context.save_dir = settings["output_dir"].as_string();
  ensure_metadata(network.graph, context);
  const PassResult result = run_pass(network.graph, name, args, context);
  if (settings["json"].as_bool())
    fmt::print("{}\n", to_json(result.data, 1));
  else if (!printed)
    fmt::print("{}\n", python_pprint(result.data));
  if (settings.has("save")) {
    save_mz(settings["save"].as_string(), network.graph, network.checkpoint_extra);
    fmt::print("saved to {}\n", settings["save"].as_string());
  }
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "pass",
    .summary = "Run one pass on a network",
    .help = "Arguments are TOML values; text needs no quotes. The passes: ch --info pass.",
    .positionals = {{.name = "name", .help = "the pass", .required = true},
                    {.name = "model", .help = "a model, or the path of one", .required = false},
                    {.name = "dataset",
                     .help = "a data set, or the path of one",
                     .required = false}},
    .options = {general_options() + data_options() +
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
                 "--save toy.mz"},
    .run = run,
}};

}  // namespace
}  // namespace mase::pass_command
