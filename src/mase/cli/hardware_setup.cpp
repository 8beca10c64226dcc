// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/hardware_setup.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/hardware/fixed_network.h"
#include "mase/hardware/interpreter.h"
#include "mase/io/checkpoint.h"
#include "mase/run/experiment.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

std::string text_of(const Arguments& arguments, const char* name) {
  return arguments[name].is_null() ? "" : arguments[name].as_string();
}

// The network and, where one is named, its data, as every command gets them.
std::unique_ptr<Experiment> load_experiment(const Arguments& arguments) {
  ExperimentSpec spec;
  spec.network.model = text_of(arguments, "model");
  spec.network.load = text_of(arguments, "load");
  spec.data.name = text_of(arguments, "dataset");
  if (const std::string config = text_of(arguments, "config"); !config.empty()) {
    const Value file = read_toml(config);
    if (file["passes"].is_null())
      throw Error(config, "lists no passes", "add a table such as [passes.quantize]");
    spec.passes = {pass_calls(file["passes"], "passes"), fs::path(config).parent_path().string()};
  }
  auto experiment = std::make_unique<Experiment>(std::move(spec));
  experiment->prepare();
  experiment->apply_passes();
  return experiment;
}

Tensor drawn_rows(const Graph& graph, int64_t count, uint64_t seed) {
  const Shape& sample = graph.node(graph.placeholders().at(0)).sample_shape;
  Shape shape = {count};
  shape.insert(shape.end(), sample.begin(), sample.end());
  Tensor rows(shape);
  Random random(seed, "hardware inputs");
  float* values = rows.mutable_data<float>();
  for (int64_t i = 0; i < rows.numel(); ++i) {
    // Standardised features, and now and then one far outside every format.
    const double size = random.below(50) == 0 ? 1000 : 1.5;
    values[i] = static_cast<float>(size * random.normal());
  }
  return rows;
}

// The node whose value the interpreter gets wrong first, by the graph's order.
std::string first_difference(const Graph& graph, const LoweredNetwork& lowered, const Tensor& row,
                             const std::vector<int64_t>& codes) {
  const std::vector<int64_t> all = interpret_all(lowered.graph, codes.data());
  std::string found;
  for (const auto& value : lowered.values) {
    if (!found.empty()) break;
    const NodeId node = value.first;
    const auto& ids = value.second;
    run_observed(graph, {row}, {node}, 1, [&](NodeId, const Tensor& result) {
      for (size_t i = 0; i < ids.size(); ++i) {
        const IntegerNode& integer = lowered.graph.at(ids[i]);
        const double mine =
            std::ldexp(static_cast<double>(all[static_cast<size_t>(ids[i])]), -integer.frac);
        if (mine != result.item(static_cast<int64_t>(i)) && found.empty())
          found = fmt::format("{} feature {}: {} in integers, {} in the engine",
                              graph.node(node).name, i, mine, result.item(static_cast<int64_t>(i)));
      }
    });
  }
  return found;
}

}  // namespace

std::vector<Positional> hardware_positionals() {
  return {{"model", "the network's name; a .mz or a fixed-point network needs none", false}};
}

std::vector<Field> hardware_network_options() {
  return {{.name = "load",
           .type = FieldType::text,
           .help = "the quantised network (.mz), a checkpoint of MODEL, or a fixed-point network "
                   "(NAME.json beside NAME.safetensors)",
           .required = true},
          {.name = "config",
           .type = FieldType::text,
           .help = "passes that quantise it (.toml); they run on the loaded network"},
          {.name = "dataset",
           .type = FieldType::text,
           .help = "compare with the engine on all test rows of this data set"},
          {.name = "rows",
           .type = FieldType::integer,
           .default_value = 2000,
           .help = "without a data set: so many drawn rows",
           .minimum = 2,
           .maximum = 10000000}};
}

std::vector<Field> design_options() {
  return {{.name = "style",
           .type = FieldType::text,
           .default_value = "unrolled",
           .help = "how it is built",
           .choices = Registry<EmitterRecord>::instance().names(),
           .group = "design"},
          {.name = "top",
           .type = FieldType::text,
           .default_value = "top",
           .help = "name of the module",
           .group = "design"},
          {.name = "levels",
           .type = FieldType::number,
           .default_value = 0,
           .help = "registers at most so many levels of logic apart; 0: none, combinational",
           .minimum = 0,
           .group = "design"},
          {.name = "valid",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "a valid bit travels with the data",
           .group = "design"},
          {.name = "argmax",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "give the number of the largest output instead of the outputs",
           .group = "design"},
          {.name = "effort",
           .type = FieldType::integer,
           .default_value = 1,
           .help = "of the search for shared additions: each step doubles it",
           .minimum = 0,
           .maximum = 10,
           .group = "design"},
          {.name = "seed",
           .type = FieldType::integer,
           .default_value = 0,
           .help = "of that search and of drawn rows",
           .minimum = 0,
           .group = "design"}};
}

HardwareNetwork load_hardware_network(const Arguments& arguments) {
  const std::string path = text_of(arguments, "load");
  HardwareNetwork result;
  result.origin = path;
  if (fs::path(path).extension() == ".json") {
    const std::string weights = fs::path(path).replace_extension(".safetensors").string();
    result.graph = lower(fixed_network(fs::path(path).stem().string(), read_json(path),
                                       load_safetensors(weights), weights));
    return result;
  }
  const std::unique_ptr<Experiment> experiment = load_experiment(arguments);
  result.network = experiment->graph();
  if (const Dataset* dataset = experiment->dataset()) {
    result.test_rows = dataset->test.x;
    result.rows_origin = fmt::format("{} test rows of {} ({})", dataset->test.rows(),
                                     printable(dataset->name), printable(dataset->variant));
  }
  result.source = lower(*result.network);
  result.graph = result.source->graph;
  return result;
}

DesignOptions read_design_options(const Arguments& arguments) {
  DesignOptions options;
  options.style = arguments["style"].as_string();
  options.top = arguments["top"].as_string();
  options.levels = arguments["levels"].as_double();
  options.valid = arguments["valid"].as_bool();
  options.argmax = arguments["argmax"].as_bool();
  options.effort = static_cast<int>(arguments["effort"].as_int());
  options.seed = static_cast<uint64_t>(arguments["seed"].as_int());
  return options;
}

Compared compare_with_engine(const HardwareNetwork& network, const Arguments& arguments) {
  const int64_t wanted = arguments["rows"].as_int();
  const uint64_t seed = static_cast<uint64_t>(arguments["seed"].as_int());
  Compared result;
  if (!network.source) {
    if (!text_of(arguments, "dataset").empty())
      throw Error("--dataset", "a fixed-point network has no features to feed",
                  "leave it out: rows are drawn over all input codes");
    DesignRows rows = random_rows(network.graph, static_cast<size_t>(wanted), seed);
    return {std::move(rows.inputs), std::move(rows.origin), false};
  }
  const Graph& graph = *network.network;
  Tensor x;
  if (network.test_rows) {
    x = *network.test_rows;
    result.origin = network.rows_origin;
  } else {
    x = drawn_rows(graph, wanted, seed);
    result.origin = fmt::format("{} drawn rows", wanted);
  }
  // Inputs and outputs of one and the same run: what stays in software is single precision, and
  // another program may round it differently.
  std::vector<NodeId> observed = graph.outputs();
  for (const LoweredNetwork::Source& source : network.source->sources)
    if (graph.node(source.node).kind != NodeKind::placeholder) observed.push_back(source.node);
  std::sort(observed.begin(), observed.end());
  observed.erase(std::unique(observed.begin(), observed.end()), observed.end());
  std::map<NodeId, std::vector<float>> collected;
  std::map<NodeId, Shape> shapes;
  run_observed(graph, {x}, observed, 256, [&](NodeId node, const Tensor& part) {
    std::vector<float>& all = collected[node];
    all.insert(all.end(), part.data<float>(), part.data<float>() + part.numel());
    shapes[node] = part.shape();
  });
  const auto result_of = [&](NodeId node) {
    Shape shape = shapes[node];
    shape[0] = x.shape()[0];
    return Tensor::of(shape, collected[node]);
  };
  std::vector<Tensor> values;
  for (const LoweredNetwork::Source& source : network.source->sources)
    values.push_back(
        graph.node(source.node).kind == NodeKind::placeholder ? x : result_of(source.node));
  result.inputs = input_codes(*network.source, values);
  const std::vector<double> mine =
      output_values(network.graph, IntegerProgram(network.graph).run(result.inputs));
  size_t offset = 0;
  const size_t rows = static_cast<size_t>(x.shape()[0]), width = network.graph.outputs.size();
  std::vector<Tensor> outputs;
  for (const NodeId node : graph.outputs()) outputs.push_back(result_of(node));
  for (const Tensor& output : outputs) {
    const size_t own = static_cast<size_t>(output.numel()) / std::max<size_t>(1, rows);
    for (size_t row = 0; row < rows; ++row)
      for (size_t i = 0; i < own; ++i) {
        const double engine = output.item(static_cast<int64_t>(row * own + i));
        if (engine == mine[row * width + offset + i]) continue;
        const size_t per_row = static_cast<size_t>(x.numel()) / rows;
        Shape one = x.shape();
        one[0] = 1;
        const Tensor single =
            Tensor::of(one, std::vector<float>(x.data<float>() + row * per_row,
                                               x.data<float>() + (row + 1) * per_row));
        const std::vector<int64_t> codes(
            result.inputs.begin() + static_cast<std::ptrdiff_t>(row * network.graph.inputs.size()),
            result.inputs.begin() +
                static_cast<std::ptrdiff_t>((row + 1) * network.graph.inputs.size()));
        throw Error(fmt::format("row {}, output {}", row, offset + i),
                    fmt::format("the engine has {}, integers have {}", engine,
                                mine[row * width + offset + i]),
                    first_difference(graph, *network.source, single, codes));
      }
    offset += own;
  }
  result.engine = true;
  return result;
}

}  // namespace mase
