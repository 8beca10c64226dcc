// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/hardware_setup.h"

#include "mase/cli/options.h"
#include "mase/hardware/cost/quick_estimate.h"
#include "mase/run/options.h"

namespace mase {
namespace {

// What is typed, and what the file of --config says about network and data: options of the data,
// too, as ch train reads them.
Settings network_settings(const Arguments& arguments) {
  SettingsRequest request;
  request.options = {only(general_options(), {"load", "task", "seed"}) + data_options()};
  request.positionals = {"model", "dataset"};
  for (const char* name : {"model", "load", "dataset", "seed"})
    if (arguments.was_typed(name)) request.given[name] = arguments[name];
  if (arguments.was_typed("config")) request.config_path = arguments["config"].as_string();
  request.elsewhere = keys_of_all_commands();
  return read_settings(request);
}

}  // namespace

std::vector<Positional> hardware_positionals(const std::string& data_help) {
  Positional network = network_word();
  network.help = "the network's name, or its file (.mz, .ckpt, .onnx, ...)";
  return {network, dataset_word(data_help)};
}

std::vector<Field> hardware_network_options() {
  return {
      {.name = "load",
       .type = FieldType::text,
       .help = "the quantised network (.mz), a checkpoint of MODEL, or a file that ch import "
               "reads (NAME.json beside NAME.safetensors)"},
      {.name = "config",
       .type = FieldType::text,
       .help = "passes that quantise it (.toml); they run on the loaded network. The file's keys "
               "about data count too"}};
}

HardwareSpec read_hardware_spec(const Arguments& arguments) {
  ExperimentSpec read = experiment_spec(network_settings(arguments));
  HardwareSpec spec;
  spec.network = std::move(read.network);
  if (spec.network.load.empty())
    throw spec.network.model.empty()
        ? Error("--load", "is missing", "name the quantised network: --load transformed.mz")
        : Error("--load",
                fmt::format("is missing: '{}' names a network without trained weights",
                            printable(spec.network.model)),
                "name the file that has them: --load best.mz");
  spec.data = std::move(read.data);
  spec.passes = std::move(read.passes);
  spec.seed = read.seed;
  spec.drawn = arguments.was_typed("rows");
  if (spec.drawn && arguments.was_typed("dataset"))
    throw Error("--rows", "is for drawn rows, and --dataset names some", "leave one of them out");
  if (arguments.values.as_dict().contains("rows")) spec.rows = arguments["rows"].as_int();
  spec.data.noted = !spec.drawn;
  // Passes may look at data; nobody else does then.
  if (spec.drawn && spec.passes.calls.empty()) spec.data = {};
  return spec;
}

DesignOptions read_design_options(const Arguments& arguments, const HardwareSpec& spec) {
  DesignOptions options =
      design_options(arguments.values, {arguments.typed.begin(), arguments.typed.end()});
  options.seed = spec.seed;
  return options;
}

std::string folding_note(const IntegerGraph& lowered, const Estimate& folded) {
  const Estimate whole = quick_estimate(lowered);
  if (folded.timed || whole.luts > folded.luts) return "";
  return fmt::format(
      "folding does not pay here: --style unrolled takes about {:.0f} LUTs (quick estimate) and a "
      "row every clock cycle\n",
      whole.luts);
}

}  // namespace mase
