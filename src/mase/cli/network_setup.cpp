// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/network_setup.h"

#include <algorithm>
#include <filesystem>

#include "mase/base/table.h"
#include "mase/cli/load_options.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"
#include "mase/train/trainer.h"

namespace mase {
namespace {

// The settings name a checkpoint whose kind may be given.
std::optional<CheckpointType> wanted_type(const Settings& settings) {
  if (!settings.has("load_type")) return {};
  return checkpoint_type_from_name(settings["load_type"].as_string());
}

bool has_passes(const Settings& settings) {
  return settings.has("quant_config") ||
         (settings.config.is_dict() && !settings.config["passes"].is_null());
}

// Takes tensors out of the checkpoint that only a quantised layer has ("weight_scale"): the network
// gets them after its passes.
TensorTable take_out_quantizer_state(Checkpoint& checkpoint, const Graph& graph) {
  TensorTable taken;
  std::erase_if(checkpoint.tensors, [&](const auto& entry) {
    const size_t dot = entry.first.rfind('.');
    if (dot == std::string::npos) return false;
    const auto module = graph.modules().find(entry.first.substr(0, dot));
    const std::string name = entry.first.substr(dot + 1);
    if (module == graph.modules().end() || module->second.find(name)) return false;
    const std::vector<std::string>& operands = find_op(module->second.op).operands;
    if (std::none_of(operands.begin(), operands.end(),
                     [&](const std::string& operand) { return starts_with(name, operand + "_"); }))
      return false;
    taken.push_back(entry);
    return true;
  });
  return taken;
}

}  // namespace

std::string task_of(const Settings& settings) {
  const std::string task = settings.has("task") ? settings["task"].as_string() : "classification";
  if (task == "cls") return "classification";
  if (task == "classification" || task == "regression") return task;
  throw Error("--task", fmt::format("'{}' needs a language model; there is none here", task),
              "use classification or regression");
}

std::optional<Checkpoint> load_network_file(const Settings& settings) {
  if (!settings.has("load")) {
    if (settings.given("load_type"))
      throw Error("--load-type", "is given without --load", "add --load FILE");
    return {};
  }
  return load_checkpoint(settings["load"].as_string(), wanted_type(settings));
}

LoadedNetwork make_network(const Settings& settings, const std::optional<Checkpoint>& checkpoint,
                           const Dataset* dataset, const Logger& log) {
  LoadedNetwork network;
  const std::string path = checkpoint ? settings["load"].as_string() : "";
  if (checkpoint && checkpoint->graph) {
    network.graph = *checkpoint->graph;
    network.transformed = true;
  } else {
    if (!settings.has("model"))
      throw Error("MODEL", "no network is named", "see ch info models, or give --load graph.mz");
    ModelInputs inputs;
    if (dataset) {
      inputs.sample_shape = dataset->sample_shape();
      inputs.outputs = dataset->outputs();
    } else if (checkpoint && checkpoint->contents.is_dict() &&
               checkpoint->contents["mase"].is_dict()) {
      // No data set to say it: a checkpoint of ours knows the sizes its network was built for.
      const Value& ours = checkpoint->contents["mase"];
      constexpr int64_t largest = 1 << 20;  // the file may be anybody's
      Shape sample;
      if (ours["sample_shape"].is_list()) sample = ours["sample_shape"].as_int_list();
      const bool sane = std::all_of(sample.begin(), sample.end(),
                                    [](int64_t dim) { return dim >= 1 && dim <= largest; });
      if (sane && sample.size() <= 4) inputs.sample_shape = sample;
      if (ours["outputs"].is_int() && ours["outputs"].as_int() >= 1 &&
          ours["outputs"].as_int() <= largest)
        inputs.outputs = ours["outputs"].as_int();
    }
    inputs.seed = static_cast<uint64_t>(settings["seed"].as_int());
    network.graph = make_model(settings["model"].as_string(), inputs);
    if (checkpoint) {
      const bool partial = settings.has("load_partial") && settings["load_partial"].as_bool();
      Checkpoint weights = *checkpoint;
      if (has_passes(settings))
        network.quantizer_state = take_out_quantizer_state(weights, network.graph);
      const LoadReport report = load_into(network.graph, weights, path, partial, guess_model);
      log.info(fmt::format("Loaded {} tensors from {}{}", report.taken.size(), path,
                           partial ? ": " + printable(join(report.taken, ", ")) : ""));
      for (const auto& [what, names] : {std::pair{"not in the file", &report.missing},
                                        {"not in the network", &report.unexpected},
                                        {"of another shape", &report.mismatched}})
        if (!names->empty())
          log.warning(fmt::format("{}: {}", what, printable(join(*names, ", "))));
    }
  }
  if (checkpoint) {
    network.preprocessing = preprocessing_of(*checkpoint);
    if (checkpoint->contents.is_dict() && checkpoint->contents["mase"].is_dict() &&
        checkpoint->contents["mase"]["classes"].is_list())
      network.class_names = checkpoint->contents["mase"]["classes"].as_string_list();
  }
  return network;
}

bool run_configured_passes(Graph& graph, const Settings& settings, const Dataset& dataset,
                           const std::string& save_dir, const Logger& log) {
  Value passes = settings.config.is_dict() ? settings.config["passes"] : Value();
  std::string file = settings.config_path;
  if (passes.is_null() && settings.has("quant_config")) {
    file = settings["quant_config"].as_string();
    passes = read_toml(file)["passes"];
    if (passes.is_null())
      throw Error(file, "holds no [passes.quantize]", "see docs/formats.md for an example");
  }
  if (passes.is_null()) return false;
  const std::vector<PassCall> calls = pass_calls(passes, "passes");
  if (calls.empty()) return false;
  check_passes(graph, calls);
  const Graph original = graph;
  PassContext context;
  context.original = &original;
  context.samples = dataset.train.x;
  context.labels = dataset.train.labels;
  context.test_x = dataset.test.x;
  context.test_labels = dataset.test.labels;
  context.save_dir = save_dir;
  context.base_dir = std::filesystem::path(file).parent_path().string();
  context.batch_size = settings["batch_size"].as_int();
  context.seed = static_cast<uint64_t>(settings["seed"].as_int());
  context.print = [&](const std::string& text) { log.text(text + "\n"); };
  for (const PassOutcome& outcome : run_passes(graph, calls, context))
    log.info(fmt::format("Pass {}: {} ({:.2f} s)", outcome.name,
                         outcome.result.changed ? "changed the graph" : "graph unchanged",
                         outcome.seconds));
  return true;
}

void take_quantizer_state(LoadedNetwork& network, const Logger& log) {
  for (const auto& [name, tensor] : network.quantizer_state) {
    const size_t dot = name.rfind('.');
    const auto module = network.graph.modules().find(name.substr(0, dot));
    Tensor* own = module == network.graph.modules().end()
                      ? nullptr
                      : module->second.find(name.substr(dot + 1));
    if (own && own->shape() == tensor.shape())
      *own = tensor.to(own->dtype());
    else
      log.warning(
          fmt::format("{} of the checkpoint is not used: the configuration quantises "
                      "otherwise than the run did",
                      printable(name)));
  }
  network.quantizer_state.clear();
}

Value summary_record(const Graph& graph, int64_t batch_size) {
  const std::vector<Shape> shapes = infer_shapes(graph, batch_size);
  List layers;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::call_module && node.kind != NodeKind::call_function &&
        node.kind != NodeKind::call_method)
      continue;
    const BoundCall call = bind_call(graph, node);
    std::vector<Shape> inputs;
    for (const NodeId input : call.inputs) inputs.push_back(shapes.at(static_cast<size_t>(input)));
    const Shape& out = shapes.at(static_cast<size_t>(id));
    int64_t parameters = 0;
    if (call.module)
      for (const auto& [name, tensor] : call.module->parameters) parameters += tensor.numel();
    const OpCost cost = call.op->cost ? call.op->cost(call.attributes, inputs, out) : OpCost{};
    layers.push_back(Dict{{"layer", node.kind == NodeKind::call_module ? node.target : node.name},
                          {"type", class_text(graph, node)},
                          {"input_shape", inputs.empty() ? Value() : Value::of(inputs[0])},
                          {"output_shape", Value::of(out)},
                          {"parameters", parameters},
                          {"macs", cost.macs}});
  }
  return layers;
}

std::string summary_text(const Value& summary, const Graph& graph) {
  Table table({"", "Name", "Type", "In", "Out", "Params", "MACs"});
  int64_t index = 0;
  for (const Value& layer : summary.as_list()) {
    const auto shape = [&](const char* key) {
      return layer[key].is_null() ? std::string() : shape_text(layer[key].as_int_list());
    };
    table.add({std::to_string(index++), layer["layer"].as_string(), layer["type"].as_string(),
               shape("input_shape"), shape("output_shape"),
               with_thousands(layer["parameters"].as_int()),
               with_thousands(layer["macs"].as_int())});
  }
  const int64_t trainable = graph.parameter_count(true), all = graph.parameter_count(false);
  const auto line = [](const std::string& number, const char* what) {
    return pad_right(number, 10) + what + "\n";
  };
  return table.str() + line(human_count(static_cast<double>(trainable)), "Trainable params") +
         line(human_count(static_cast<double>(all - trainable)), "Non-trainable params") +
         line(human_count(static_cast<double>(all)), "Total params") +
         line(fmt::format("{:.3f}", static_cast<double>(all) * 4e-6),
              "Total estimated model params size (MB)");
}

Value dataset_record(const Dataset& dataset) {
  return Dict{{"name", dataset.name},
              {"variant", dataset.variant},
              {"identity", dataset.identity},
              {"notice", dataset.notice},
              {"train_rows", dataset.train.rows()},
              {"validation_rows", dataset.validation.rows()},
              {"test_rows", dataset.test.rows()},
              {"classes", Value::of(dataset.class_names)}};
}

void tell_about(const Dataset& dataset, const Logger& log) {
  log.info(fmt::format(
      "Data set {} ({}): {} training, {} validation, {} test rows", printable(dataset.name),
      printable(dataset.variant), with_thousands(dataset.train.rows()),
      with_thousands(dataset.validation.rows()), with_thousands(dataset.test.rows())));
  if (!dataset.notice.empty()) log.warning(printable(dataset.notice));
}

}  // namespace mase
