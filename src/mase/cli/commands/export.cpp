// SPDX-License-Identifier: Apache-2.0
// ch export: a network of ours as an ONNX file, float or quantised.
#include "mase/io/onnx/write/export.h"

#include <filesystem>

#include "mase/cli/next_steps.h"
#include "mase/cli/options.h"
#include "mase/cli/terminal.h"
#include "mase/io/onnx/file/write_model.h"
#include "mase/models/hf.h"
#include "mase/run/experiment.h"
#include "mase/run/hf_folder.h"
#include "mase/text/tokenizer.h"

namespace mase::export_command {
namespace {

bool is_quantized(const Graph& graph) {
  for (const NodeId id : graph.order())
    if (graph.quantization_of(graph.node(id)).active()) return true;
  return false;
}

// Networks of Hugging Face folders, as such folders.
int export_folder(const Experiment& experiment, const Settings& settings, const std::string& path,
                  const Logger& log) {
  const Graph& graph = experiment.graph();
  if (!is_hf_graph(graph) || !std::filesystem::path(path).extension().empty())
    throw Error("--to", fmt::format("cannot write '{}'", printable(path)),
                is_hf_graph(graph) ? "name an .onnx file, or a folder without a dot in its name"
                                   : "name an .onnx file");
  const bool as_float = settings.has("flavour") && settings["flavour"].as_string() == "float";
  if (is_quantized(graph) && !as_float)
    throw Error("--to", "folders hold weights without number formats",
                "write them as they are before rounding: --flavour float");
  std::string source = experiment.spec().network.load;
  if (const auto& data = experiment.network().notes.data; data && !Tokenizer::is_in(source)) {
    const Value& named =
        data->options.arguments.is_dict() ? data->options.arguments["tokenizer"] : Value();
    if (named.is_string()) source = named.as_string();
  }
  const HfFolderFiles files = write_hf_folder(experiment.network(), source, path);
  log.info(
      fmt::format("Wrote {} to {}: {}", printable(graph.name), path, join(files.written, ", ")));
  if (files.tokenizer.empty()) log.warning("no tokenizer was found to go along");
  return 0;
}

int run(const Arguments& arguments) {
  const Settings settings = merge_settings("export", arguments);
  const Logger log(settings, true);
  for (const std::string& warning : settings.warnings) log.warning(warning);
  if (!settings.has("to"))
    throw Error("--to", "is missing", "name the file to write: --to net.onnx");
  const std::string path = settings["to"].as_string();
  const bool is_onnx = ends_with(lower_case(path), ".onnx");
  ExperimentSpec spec = experiment_spec(settings);
  spec.data.name.clear();
  Experiment experiment(spec, log.observer());
  experiment.prepare();
  experiment.apply_passes();
  const Graph& graph = experiment.graph();
  if (!experiment.network().loaded)
    log.warning(fmt::format("{} has random weights: nothing was loaded", graph.name));
  if (!is_onnx) return export_folder(experiment, settings, path, log);
  onnx::ExportOptions options;
  options.operator_set = settings["opset"].as_int();
  options.flavour = is_quantized(graph) ? onnx::Flavour::qonnx : onnx::Flavour::plain;
  if (settings.has("flavour"))
    options.flavour = onnx::flavour_from_name(settings["flavour"].as_string());
  onnx::Model model = onnx::export_graph(graph, options);
  for (auto& [name, text] : notes_for_others(experiment.network().notes))
    model.metadata.emplace_back(name, text);
  onnx::write_model(path, model);
  log.info(fmt::format("Wrote {} to {}: {} nodes, {} tensors, operator set {}, {}", graph.name,
                       path, model.graph.nodes.size(), model.graph.initializers.size(),
                       options.operator_set, onnx::flavour_name(options.flavour)));
  for (const std::string& line : next_steps({"ch test " + path + " DATASET"})) log.info(line);
  return 0;
}

std::vector<Field> own_options() {
  const char* group = "Export options";
  return {{.name = "to",
           .type = FieldType::text,
           .help = "the .onnx file, or the folder, to write",
           .group = group},
          {.name = "flavour",
           .type = FieldType::text,
           .help = "how number formats are written: float (none), qonnx, qcdq or qdq; qonnx for a "
                   "quantised network if not given",
           .choices = onnx::flavour_names(),
           .group = group},
          {.name = "opset",
           .type = FieldType::integer,
           .default_value = 20,
           .help = "version of ONNX's operators",
           .minimum = static_cast<double>(onnx::oldest_written),
           .maximum = static_cast<double>(onnx::newest_written),
           .group = group}};
}

const Register<CommandRecord> registered{{
    .name = "export",
    .group = CommandGroup::start,
    .summary = "Write a network as ONNX, quantised ones as QONNX, QCDQ or QDQ",
    .help = "The network is built and loaded, and the passes of --config are run on it, as "
            "everywhere. A layer or number format that the chosen flavour cannot express exactly "
            "is an error that says which and why: nothing is approximated.",
    .positionals = {network_word()},
    .options = {without(general_options(),
                        {"task", "batch_size", "threads", "project", "project_dir"}) +
                config_options() + own_options()},
    .tables = {"passes"},
    .examples = {"ch export jsc-toy --load best.ckpt --to jsc.onnx",
                 "ch export --load quantised.mz --to jsc.onnx --flavour qonnx",
                 "ch export jsc-toy --load best.ckpt --config quantize.toml --to jsc.onnx "
                 "--flavour qcdq"},
    .run = run,
}};

}  // namespace
}  // namespace mase::export_command
