// SPDX-License-Identifier: Apache-2.0
// ch import: a network in somebody else's file becomes an .mz, which every other command takes.
#include <filesystem>

#include "mase/cli/command.h"
#include "mase/cli/next_steps.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/networks/importer.h"
#include "mase/run/network.h"

namespace mase::import_command {
namespace {

std::string known_formats() {
  std::string text = "Reads";
  for (const ImporterRecord* record : Registry<ImporterRecord>::instance().all())
    text +=
        fmt::format("\n  {} ({}): {}", record->name, join(record->suffixes, ", "), record->summary);
  return text;
}

// What later commands want to know: the sizes, so that a data set can be checked against them.
Value file_contents(const ImportedNetwork& network) {
  const Graph& graph = network.graph;
  Checkpoint file;
  file.contents = Dict{{"mase", network.about}};
  NetworkNotes notes = notes_of(file);
  if (notes.model.empty()) notes.model = graph.name;
  if (graph.placeholders().size() == 1)
    notes.sample_shape = graph.node(graph.placeholders()[0]).sample_shape;
  const std::vector<Shape> shapes = infer_shapes(graph, 1);
  if (graph.outputs().size() == 1) {
    const Shape& out = shapes[static_cast<size_t>(graph.outputs()[0])];
    if (out.size() == 2) notes.outputs = out[1];
  }
  return Dict{{"mase", notes_value(notes)}};
}

int run(const Arguments& arguments) {
  const std::string path = arguments["file"].as_string();
  Dict options;
  if (arguments["partial"].as_bool()) options.set("partial", true);
  if (arguments["memory"].as_int() > 0) options.set("memory", arguments["memory"]);
  if (!arguments["input_shape"].is_null()) options.set("input_shape", arguments["input_shape"]);
  const ImportedNetwork network = import_network(
      path, arguments["format"].is_null() ? "" : arguments["format"].as_string(), Value(options));
  const std::string output =
      arguments["output"].is_null()
          ? std::filesystem::path(path).filename().replace_extension(".mz").string()
          : arguments["output"].as_string();
  save_mz(output, network.graph, file_contents(network));
  int64_t quantised = 0;
  for (const auto& [name, module] : network.graph.modules())
    quantised += module.quantization.active();
  fmt::print("{} ({}): {} nodes, {} layers, {} of them quantised, {} parameters\n",
             printable(network.graph.name), network.format, network.graph.order().size(),
             network.graph.modules().size(), quantised,
             with_thousands(network.graph.parameter_count()));
  for (const std::string& note : network.notes) fmt::print("{}\n", printable(note));
  fmt::print("written to {}\n", output);
  for (const std::string& line :
       next_steps({"ch summary " + output, "ch test " + output + " DATASET"}))
    fmt::print("{}\n", line);
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "import",
    .group = CommandGroup::start,
    .summary = "Turn a network in another program's file into an .mz",
    .help = known_formats(),
    .positionals = {{"file", "the network"}},
    .options = {{{.name = "output",
                  .type = FieldType::text,
                  .help = "the .mz to write; if not given the file's name with .mz, here"},
                 {.name = "format",
                  .type = FieldType::text,
                  .help = "of the file, where its name and beginning do not say it"},
                 {.name = "partial",
                  .type = FieldType::boolean,
                  .default_value = false,
                  .help = "keep nodes that cannot be converted: the network can be looked at, not "
                          "run"},
                 {.name = "memory",
                  .type = FieldType::integer,
                  .default_value = 0,
                  .help = "megabytes that a model may make beside what the file holds, for models "
                          "that compute their weights; 0: 40",
                  .minimum = 0,
                  .maximum = 1 << 20},
                 {.name = "input_shape",
                  .type = FieldType::list,
                  .help =
                      "sizes behind the batch that the file leaves open, such as 3,224,224; one "
                      "for each input, in the graph's order"}}},
    .examples = {"ch import model.onnx",
                 "ch import tests/golden/hardware/w4_toy.json --output w4_toy.mz",
                 "ch import text_model.onnx --input-shape 128 128"},
    .word_lists = {"input_shape"},
    .run = run,
}};

}  // namespace
}  // namespace mase::import_command
