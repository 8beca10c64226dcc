// SPDX-License-Identifier: Apache-2.0
// ch summary MODEL: a network layer by layer, in the style of torchinfo.
#include <algorithm>
#include <cstdio>
#include <set>

#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/cli/json_option.h"
#include "mase/cli/options.h"
#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/ir/parameter_counts.h"
#include "mase/models/model.h"
#include "mase/run/describe.h"
#include "mase/run/experiment.h"
#include "mase/run/network.h"
#include "mase/train/loss.h"

namespace mase::summary_command {
namespace {

struct Totals {
  int64_t trainable = 0, frozen = 0, macs = 0, flops = 0, input = 0, results = 0;
};

std::string megabytes(int64_t values) {
  return fmt::format("{:.3f}", static_cast<double>(values) * 4 / 1e6);
}

// A tensor that is read as a value: a parameter of the network itself, or one of a layer.
void add_constant(const Graph& graph, const Node& node, std::set<std::string>& counted,
                  Table& table, Totals& totals) {
  const auto [path, name] = *graph.owner_of(node.target);
  const Module& module = graph.modules().at(path);
  const Tensor& tensor = *graph.tensor(node.target);
  const bool trained =
      std::any_of(module.parameters.begin(), module.parameters.end(),
                  [&, own = name](const auto& entry) { return entry.first == own; });
  std::string parameters = "--";
  if (!module.op.empty() || !counted.insert(node.target).second) {
    parameters = "(shared)";
  } else if (trained) {
    parameters = with_thousands(tensor.numel());
    (module.frozen ? totals.frozen : totals.trainable) += tensor.numel();
  }
  table.add({fmt::format("{} (constant)", node.target), "", shape_text(tensor.shape()), parameters,
             "--"});
}

std::string summary_table(const Graph& graph, int64_t batch_size, Totals& totals) {
  const std::vector<Shape> shapes = infer_shapes(graph, batch_size);
  const auto shape_of = [&](NodeId id) { return shapes[static_cast<size_t>(id)]; };
  Table table({"Layer (type)", "Input Shape", "Output Shape", "Param #", "Mult-Adds"});
  std::set<std::string> counted;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::output) continue;
    if (node.kind == NodeKind::placeholder) {
      totals.input += element_count(shape_of(id));
      continue;
    }
    if (node.kind == NodeKind::get_attr) {
      add_constant(graph, node, counted, table, totals);
      continue;
    }
    const BoundCall call = bind_call(graph, node);
    std::vector<Shape> inputs;
    std::vector<std::string> input_texts;
    for (const NodeId input : call.inputs) {
      inputs.push_back(shape_of(input));
      input_texts.push_back(shape_text(shape_of(input)));
    }
    const OpCost cost =
        call.op->cost ? call.op->cost(call.attributes, inputs, shape_of(id)) : OpCost{};
    std::string parameters = "--";
    if (call.module) {
      int64_t count = 0;
      for (const auto& [name, tensor] : call.module->parameters) count += tensor.numel();
      if (!counted.insert(node.target).second) {
        parameters = "(shared)";
      } else if (count > 0) {
        parameters = with_thousands(count);
        (call.module->frozen ? totals.frozen : totals.trainable) += count;
      }
    }
    totals.macs += cost.macs;
    totals.flops += cost.flops;
    totals.results += element_count(shape_of(id));
    table.add({fmt::format("{} ({})", node.kind == NodeKind::call_module ? node.target : node.name,
                           class_text(graph, node)),
               join(input_texts, ", "), shape_text(shape_of(id)), parameters,
               cost.macs > 0 ? with_thousands(cost.macs) : "--"});
  }
  return table.str();
}

std::string summary_text(const Graph& graph, int64_t batch_size) {
  Totals totals;
  std::string layers = summary_table(graph, batch_size, totals);
  if (layers.empty() || layers.back() != '\n') layers += '\n';
  size_t width = 0;
  for (const std::string& line : split(layers, '\n'))
    width = std::max(width, static_cast<size_t>(display_width(line)));
  const std::string rule(width, '=');
  const int64_t parameters = totals.trainable + totals.frozen;
  std::string text = graph.name + "\n" + rule + "\n" + layers + rule + "\n";
  text += fmt::format("Total params: {}\n", with_thousands(parameters));
  text += fmt::format("Trainable params: {}\n", with_thousands(totals.trainable));
  text += fmt::format("Non-trainable params: {}\n", with_thousands(totals.frozen));
  if (const int64_t pruned = count_parameters(graph).pruned; pruned > 0)
    text += fmt::format("Pruned params, counted above: {}\n", with_thousands(pruned));
  text += fmt::format("Total mult-adds: {}\n", with_thousands(totals.macs));
  text += fmt::format("Total FLOPs: {}\n", with_thousands(totals.flops));
  text += rule + "\n";
  text += fmt::format("Input size (MB): {}\n", megabytes(totals.input));
  text += fmt::format("Forward/backward pass size (MB): {}\n", megabytes(2 * totals.results));
  text += fmt::format("Params size (MB): {}\n", megabytes(parameters));
  text += fmt::format("Estimated Total Size (MB): {}\n",
                      megabytes(totals.input + 2 * totals.results + parameters));
  return text + rule + "\n";
}

// As training on these data would build it.
Graph network_for_data(const Arguments& arguments) {
  for (const char* own : {"input_shape", "outputs"})
    if (arguments.was_typed(own))
      throw Error("--" + replace_all(own, "_", "-"), "the data set says it",
                  "leave one of them out");
  Observer quiet;
  Experiment experiment(experiment_spec(merge_settings("summary", arguments)), quiet);
  experiment.prepare();
  return experiment.graph();
}

Graph network_alone(const Arguments& arguments) {
  ModelInputs inputs;
  if (!arguments["input_shape"].is_null())
    for (const Value& size : arguments["input_shape"].as_list())
      for (const std::string& part : split(size.as_string(), ',')) {
        const auto number = parse_integer(strip(part));
        if (!number || *number < 1)
          throw Error("--input-shape", fmt::format("'{}' is no size", printable(part)),
                      "write --input-shape 1,28,28");
        inputs.sample_shape.push_back(*number);
      }
  inputs.outputs = arguments["outputs"].as_int();
  const std::string& model = arguments["model"].as_string();
  const bool is_file = is_network_file(model);
  if (is_file && inputs.outputs > 0)
    throw Error("MODEL", fmt::format("'{}' is a whole network: its sizes are its own", model),
                "leave out --outputs");
  std::vector<Shape> shapes;  // for sizes that the file leaves open
  if (is_file && !inputs.sample_shape.empty()) {
    shapes = {inputs.sample_shape};
    shapes[0].insert(shapes[0].begin(), 0);
  }
  return is_file ? graph_of_file(model, shapes) : make_model(model, inputs);
}

int run(const Arguments& arguments) {
  const Graph graph =
      arguments.was_typed("dataset") ? network_for_data(arguments) : network_alone(arguments);
  verify(graph);
  if (arguments["json"].is_string()) {
    write_json(arguments["json"].as_string(),
               summary_record(graph, arguments["batch_size"].as_int()));
    return 0;
  }
  std::fputs(summary_text(graph, arguments["batch_size"].as_int()).c_str(), stdout);
  if (arguments["graph"].as_bool()) std::fputs(("\n" + graph.text()).c_str(), stdout);
  if (arguments["program"].as_bool()) {
    CompileOptions options;
    options.batch_size = arguments["batch_size"].as_int();
    std::fputs(("\n" + Program::compile(graph, options).dump()).c_str(), stdout);
    options.training = true;
    options.loss = make_loss("cross_entropy");
    if (infer_shapes(graph, 2).at(static_cast<size_t>(graph.outputs().at(0))).size() == 2)
      std::fputs(("\n" + Program::compile(graph, options).dump()).c_str(), stdout);
  }
  return 0;
}

const Register<CommandRecord> registered{{
    .name = "summary",
    .group = CommandGroup::start,
    .summary = "a network layer by layer: shapes, parameters, multiply-adds, sizes",
    .positionals = {network_word(true),
                    dataset_word("build the network for this data set: its samples, its classes")},
    .options =
        {std::vector<Field>{
             {.name = "batch_size",
              .type = FieldType::integer,
              .default_value = 1,
              .help = "the shapes shown are for this many samples",
              .minimum = 1,
              .maximum = 1 << 20},
             {.name = "input_shape",
              .type = FieldType::list,
              .help = "shape of one sample, such as 16 or 1,28,28, instead of the network's own"},
             {.name = "outputs",
              .type = FieldType::integer,
              .default_value = 0,
              .help = "number of classes instead of the network's own; 0: its own",
              .minimum = 0,
              .maximum = 1 << 24},
             {.name = "graph",
              .type = FieldType::boolean,
              .default_value = false,
              .help = "print the graph too, as torch.fx does"},
             {.name = "program",
              .type = FieldType::boolean,
              .default_value = false,
              .help = "print the compiled programs too: steps, kernels, buffer offsets, memory"},
             json_field("write the layers as JSON"),
         } +
         data_options()},
    .examples = {"ch summary jsc-toy", "ch summary lenet mnist",
                 "ch summary configs/skip.toml --graph"},
    .run = run,
}};

}  // namespace
}  // namespace mase::summary_command
