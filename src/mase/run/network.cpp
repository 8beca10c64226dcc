// SPDX-License-Identifier: Apache-2.0
#include "mase/run/network.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "mase/base/random.h"
#include "mase/base/text.h"
#include "mase/data/text_rows.h"
#include "mase/data/token_rows.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/models/gguf.h"
#include "mase/models/hf.h"
#include "mase/models/model.h"
#include "mase/run/sentences.h"

namespace mase {
namespace {

bool is_description(const std::string& model) {
  return ends_with(model, ".toml") || model.find('/') != std::string::npos;
}

[[noreturn]] void unknown_model(const NetworkSpec& spec, const std::string& held = "") {
  const std::vector<std::string> names = Registry<ModelRecord>::instance().names();
  std::string remedy = suggestion(spec.model, names);
  if (!held.empty())
    remedy = fmt::format("{} holds {}: leave the model out", spec.load, printable(held));
  else
    remedy += " (or the path of a .toml file)";
  throw Error(spec.model_position, spec.model_position ? "model" : "",
              fmt::format("unknown model '{}'", printable(spec.model)), remedy)
      .as(Mistake::unknown_name);
}

// What the model's name stands for, as graphs call it.
std::string graph_name_of(const NetworkSpec& spec) {
  if (const ModelRecord* record = Registry<ModelRecord>::instance().find(spec.model))
    return record->name;
  if (!is_description(spec.model)) return "";
  const Value file = read_toml(spec.model);
  return file["name"].is_string() ? file["name"].as_string()
                                  : std::filesystem::path(spec.model).stem().string();
}

// A file that holds its own network is used as it is; another name beside it is a mistake.
void check_name_of(const NetworkSpec& spec, const Graph& held) {
  if (spec.model.empty() || spec.model == held.name) return;
  const std::string wanted = graph_name_of(spec);
  if (wanted.empty()) unknown_model(spec, held.name);
  if (wanted != held.name)
    throw Error(
        spec.load,
        fmt::format("holds the network {}, not {}", printable(held.name), printable(wanted)),
        "leave the model out, or load its own checkpoint");
}

// NAME.toml where model = "NAME" was written, or here.
std::string description_beside(const NetworkSpec& spec) {
  if (spec.model.empty() || spec.model == "." || spec.model == "..") return "";
  std::filesystem::path folder = ".";
  if (spec.model_position && spec.model_position.file->find('/') != std::string::npos)
    folder = std::filesystem::path(*spec.model_position.file).parent_path();
  const std::filesystem::path path = folder / (spec.model + ".toml");
  std::error_code none;
  return std::filesystem::is_regular_file(path, none) ? path.string() : "";
}

// The model to build for a file that holds weights only: as named, as the file says, or the one
// whose tensors these are. A name that a configuration gives to a network of its own is no mistake
// if the tensors say which it is.
std::string model_to_build(const NetworkSpec& spec, const std::optional<Checkpoint>& checkpoint,
                           const NetworkNotes& notes, const Observer& observer) {
  const auto& models = Registry<ModelRecord>::instance();
  if (models.find(spec.model) || is_description(spec.model)) return spec.model;
  if (const std::string beside = description_beside(spec); !beside.empty()) return beside;
  if (!checkpoint) {
    if (!spec.model.empty()) unknown_model(spec);
    throw Error("MODEL", "no network is named", "see ch --info model, or name a file: graph.mz");
  }
  if (!spec.model.empty() && !spec.model_position) unknown_model(spec);
  if (spec.model.empty() && models.find(notes.model)) return notes.model;
  const std::string guess = guess_model(checkpoint->tensors);
  if (guess.empty()) {
    if (!spec.model.empty()) unknown_model(spec);
    if (checkpoint->graph)
      throw Error(
          "MODEL",
          fmt::format("{} holds a quantised network, which the configuration would quantise "
                      "again",
                      printable(spec.load)),
          "name the network before quantisation too, or leave the configuration out");
    throw Error("MODEL", fmt::format("{} holds weights but no network", printable(spec.load)),
                "name the model too");
  }
  observer.info(fmt::format(
      "the checkpoint's tensors are those of {}: it is used{}", guess,
      spec.model.empty() ? "" : fmt::format(", there is no network '{}'", printable(spec.model))));
  return guess;
}

// Takes tensors out of the checkpoint that only a quantised layer has ("weight_scale"): the network
// gets them after its passes.
TensorTable take_out_quantizer_state(Checkpoint& checkpoint, const Graph& graph) {
  TensorTable taken;
  std::erase_if(checkpoint.tensors, [&](const auto& entry) {
    // An operand's own name may have a dot: attention.out_proj.weight_scale.
    for (size_t dot = entry.first.rfind('.'); dot != std::string::npos && dot > 0;
         dot = entry.first.rfind('.', dot - 1)) {
      const auto module = graph.modules().find(entry.first.substr(0, dot));
      if (module == graph.modules().end() || module->second.op.empty()) continue;
      const std::string name = entry.first.substr(dot + 1);
      const std::vector<std::string> operands =
          operand_rules(find_op(module->second.op)).prefixes();
      if (module->second.find(name) ||
          std::none_of(operands.begin(), operands.end(), [&](const std::string& operand) {
            return starts_with(name, operand + "_");
          }))
        return false;
      taken.push_back(entry);
      return true;
    }
    return false;
  });
  return taken;
}

bool is_quantized(const Graph& graph) {
  for (const auto& [path, module] : graph.modules())
    if (!module.quantization.config.is_null()) return true;
  return std::any_of(graph.order().begin(), graph.order().end(),
                     [&](NodeId id) { return !graph.node(id).quantization.config.is_null(); });
}

// "3 LinearInteger, 2 ReLUInteger"
std::string quantized_layers(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const auto module = graph.modules().find(node.target);
    const bool own = !node.quantization.config.is_null();
    if (own || (node.kind == NodeKind::call_module && module != graph.modules().end() &&
                !module->second.quantization.config.is_null()))
      ++counts[class_text(graph, node)];
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} {}", count, name));
  return join(parts, ", ");
}

// The network that a checkpoint of the trainer describes, with its weights. Reading a description
// makes tensors of the sizes it claims: each must be in the file.
std::optional<Graph> described_graph(const Checkpoint& checkpoint, const std::string& path) {
  const Value& ours = checkpoint.contents.is_dict() ? checkpoint.contents["mase"] : Value();
  const Value& description = ours.is_dict() ? ours["graph"] : ours;
  if (!description.is_dict() || !description["modules"].is_dict()) return {};
  for (const auto& [module, entry] : description["modules"].as_dict())
    if (entry.is_dict() && entry["unfinished"].is_string())
      throw Error(path,
                  fmt::format("holds a network in the middle of its training: of {}, {}",
                              printable(module), printable(entry["unfinished"].as_string())),
                  "finish it with ch train --resume RUN, whose networks can be loaded");
  std::map<std::string, const Tensor*> given;
  for (const auto& [name, tensor] : checkpoint.tensors) given[name] = &tensor;
  for (const auto& [module, entry] : description["modules"].as_dict())
    for (const char* table : {"parameters", "buffers", "masks"}) {
      if (!entry.is_dict() || !entry[table].is_dict()) continue;
      for (const auto& [name, claim] : entry[table].as_dict()) {
        const std::string own = tensor_name(module, name);
        auto found = given.find(own);
        // A network that is itself called "model" has lost that with the wrapper's prefix.
        if (found == given.end() && starts_with(own, "model.") &&
            ends_with(checkpoint.prefix, "model."))
          found = given.find(own.substr(6));
        if (found == given.end() || claim["shape"].as_int_list("shape") != found->second->shape())
          throw Error(path,
                      fmt::format("describes a tensor '{}' that it does not hold",
                                  printable(tensor_name(module, name))),
                      "the file is damaged");
      }
    }
  try {
    Graph graph = graph_from_value(description);
    load_into(graph, checkpoint, path);
    return graph;
  } catch (const Error& error) {  // names in it are anybody's
    if (starts_with(error.what(), path)) throw;
    throw Error(path, fmt::format("describes no network: {}", printable(error.what())),
                "the file is damaged");
  }
}

std::string named(const std::vector<std::string>& names) {
  constexpr size_t most = 8;
  std::vector<std::string> shown;
  for (const std::string& name : names)
    if (shown.size() < most) shown.push_back(printable(name));
  if (names.size() > most) shown.push_back(fmt::format("... ({} in all)", names.size()));
  return join(shown, ", ");
}

void tell_what_was_taken(const NetworkSpec& spec, const LoadReport& report, size_t wanted,
                         const Observer& observer) {
  observer.info(fmt::format(
      "Loaded {} tensors from {}{}", report.taken.size(), spec.load,
      spec.load_partial ? fmt::format(", of the network's {}: {}", wanted, named(report.taken))
                        : ""));
  for (const auto& [what, names] : {std::pair{"not in the file", &report.missing},
                                    {"not in the network", &report.unexpected},
                                    {"of another shape", &report.mismatched}})
    if (!names->empty()) observer.warning(fmt::format("{}: {}", what, named(*names)));
}

// Whether the file's own network is used: always an .mz's; a checkpoint's if no model is named that
// passes would quantise again.
bool uses_own_graph(const NetworkSpec& spec, const std::optional<Checkpoint>& checkpoint,
                    bool passes_follow) {
  if (!checkpoint || !checkpoint->graph || spec.load_partial) return false;
  if (checkpoint->type == CheckpointType::mz || checkpoint->type == CheckpointType::onnx)
    return true;
  if (passes_follow && is_quantized(*checkpoint->graph)) return false;
  return spec.model.empty() || (spec.model == checkpoint->graph->name &&
                                !Registry<ModelRecord>::instance().find(spec.model));
}

// The weights of a head that the file lacks, drawn anew.
void draw_head(const Graph& graph, TensorTable& tensors, const NetworkSpec& spec,
               const Observer& observer) {
  std::set<std::string> given;
  for (const auto& [name, tensor] : tensors) given.insert(name);
  std::vector<std::string> drawn;
  for (const auto& [name, tensor] : state_dict(graph)) {
    const bool of_head = name.find("classifier.") != std::string::npos ||
                         name.find("pooler.") != std::string::npos || starts_with(name, "score.");
    if (given.contains(name) || !of_head) continue;
    Tensor values(tensor.shape());
    constexpr double deviation = 0.02;
    Random random(spec.seed, "init:" + name);
    if (values.shape().size() > 1)
      for (float& value :
           std::span(values.mutable_data<float>(), static_cast<size_t>(values.numel())))
        value = static_cast<float>(deviation * random.normal());
    tensors.emplace_back(name, std::move(values));
    drawn.push_back(name);
  }
  if (!drawn.empty())
    observer.warning(
        fmt::format("{} has no such head, its weights are random: {}", spec.load, named(drawn)));
}

// A folder, or a GGUF file, that describes its network itself.
bool is_hf_network(const NetworkSpec& spec, const std::optional<Checkpoint>& checkpoint) {
  return checkpoint && checkpoint->type == CheckpointType::hf && spec.model.empty();
}

// Of what a network is to take, without the rows.
std::vector<Shape> sample_shapes(const NetworkSpec& spec) {
  std::vector<Shape> shapes = spec.input_shapes;
  for (Shape& shape : shapes)
    if (!shape.empty()) shape.erase(shape.begin());
  return shapes;
}

// A float network with the weights of a quantised one is neither.
void refuse_lost_quantization(const NetworkSpec& spec, const std::optional<Checkpoint>& checkpoint,
                              bool passes_follow) {
  if (!checkpoint || !checkpoint->graph || spec.load_partial || passes_follow) return;
  if (!is_quantized(*checkpoint->graph)) return;
  std::set<std::string> learned;
  for (const auto& [name, tensor] : checkpoint->tensors)
    if (ends_with(name, "_scale") || ends_with(name, "_clip"))
      learned.insert(printable(name.substr(name.rfind('.') + 1)));
  throw Error(spec.load,
              fmt::format("is a checkpoint of a quantised network: it has {}{}; {} has not",
                          quantized_layers(*checkpoint->graph),
                          learned.empty() ? "" : fmt::format(" and {}", fmt::join(learned, ", ")),
                          printable(spec.model)),
              "leave the model out and the file's own network is used, or give the --config that "
              "quantises it");
}

}  // namespace

std::string guess_model(const TensorTable& tensors) {
  std::map<std::string, Shape> given;
  for (const auto& [name, tensor] : tensors) given[name] = tensor.shape();
  for (const ModelRecord* model : Registry<ModelRecord>::instance().all()) {
    try {
      std::map<std::string, Shape> wanted;
      for (const auto& [name, tensor] : state_dict(model->build({}))) wanted[name] = tensor.shape();
      if (!wanted.empty() && wanted == given) return model->name;
    } catch (const Error&) {
      continue;  // a network that needs to be told its sizes
    }
  }
  return "";
}

bool is_network_file(const std::string& word) {
  for (const char* extension : {".mz", ".ckpt", ".pt", ".pth", ".safetensors", ".onnx", ".gguf"})
    if (ends_with(lower_case(word), extension)) return true;
  std::error_code none;  // a Hugging Face folder
  return !word.empty() &&
         std::filesystem::exists(std::filesystem::path(word) / "config.json", none);
}

std::optional<Checkpoint> open_checkpoint(const NetworkSpec& spec) {
  if (spec.held) return *spec.held;
  if (spec.load.empty()) return {};
  std::error_code failure;  // a name that cannot be, no permission: opening it says which
  if (!std::filesystem::exists(spec.load, failure) && !failure)
    throw Error(spec.load_position, spec.load_position ? "load_name" : "--load",
                fmt::format("no such file: {}", printable(spec.load)));
  Checkpoint checkpoint = load_checkpoint(spec.load, spec.load_type, {}, spec.input_shapes);
  if (is_gguf(checkpoint.contents)) gguf_to_hf(checkpoint.contents, checkpoint.tensors, spec.load);
  if (!checkpoint.graph) checkpoint.graph = described_graph(checkpoint, spec.load);
  return checkpoint;
}

std::optional<Graph> outline_network(const NetworkSpec& spec,
                                     const std::optional<Checkpoint>& checkpoint,
                                     bool passes_follow) {
  if (uses_own_graph(spec, checkpoint, passes_follow)) {
    check_name_of(spec, *checkpoint->graph);
    return checkpoint->graph;
  }
  refuse_lost_quantization(spec, checkpoint, passes_follow);
  const NetworkNotes notes = checkpoint ? notes_of(*checkpoint) : NetworkNotes{};
  if (is_hf_network(spec, checkpoint)) {
    TensorTable tensors = checkpoint->tensors;
    return make_hf_network(checkpoint->contents, tensors, {.shapes = sample_shapes(spec)},
                           spec.load);
  }
  const std::string model = model_to_build(spec, checkpoint, notes, {});
  if (is_description(model) && notes.sample_shape.empty() && read_toml(model)["input"].is_null())
    return {};
  // How many outputs an open layer gets, the data set says later: here any number will do.
  const int64_t outputs = notes.outputs > 0 ? notes.outputs : is_description(model) ? 1 : 0;
  return make_model(model, {.sample_shape = notes.sample_shape, .outputs = outputs});
}

Network make_network(const NetworkSpec& spec, const std::optional<Checkpoint>& checkpoint,
                     const Dataset* dataset, bool passes_follow, const Observer& observer) {
  Network network;
  if (checkpoint) network.notes = notes_of(*checkpoint);
  if (uses_own_graph(spec, checkpoint, passes_follow)) {
    check_name_of(spec, *checkpoint->graph);
    network.graph = *checkpoint->graph;
    network.name = network.graph.name;
    network.loaded = true;
    if (checkpoint->type == CheckpointType::mz) network.extra = checkpoint->contents;
    // What the importer of another tool's file did that its user should know.
    if (checkpoint->type == CheckpointType::onnx && checkpoint->contents.is_dict() &&
        checkpoint->contents["notes"].is_list())
      for (const Value& note : checkpoint->contents["notes"].as_list())
        observer.warning(printable(note.as_string()));
    if (is_quantized(network.graph))
      observer.info(fmt::format("{} holds a quantised network: {}", spec.load,
                                quantized_layers(network.graph)));
    for (const auto& [name, tensor] : checkpoint->tensors) network.taken.push_back(name);
    return network;
  }
  refuse_lost_quantization(spec, checkpoint, passes_follow);
  ModelInputs inputs;
  if (dataset) {
    inputs.sample_shape = dataset->sample_shape();
    inputs.outputs = dataset->outputs();
  } else {  // no data to say it: a file of ours knows the sizes its network was built for
    inputs.sample_shape = network.notes.sample_shape;
    if (spec.input_shapes.size() == 1 && !spec.input_shapes[0].empty())
      inputs.sample_shape.assign(spec.input_shapes[0].begin() + 1, spec.input_shapes[0].end());
    inputs.outputs = network.notes.outputs;
  }
  inputs.seed = spec.seed;
  Checkpoint weights = checkpoint ? *checkpoint : Checkpoint{};
  if (is_hf_network(spec, checkpoint)) {
    HfOptions options{.shapes = sample_shapes(spec), .outputs = inputs.outputs};
    if (options.shapes.size() < 2 && !inputs.sample_shape.empty())
      options.shapes = {inputs.sample_shape};
    if (dataset && has_packed_tokens(*dataset)) {
      options.packed = second_sentence;
      options.classify = true;
    }
    network.graph = make_hf_network(weights.contents, weights.tensors, options, spec.load);
    for (const std::string& note : hf_notes(network.graph)) observer.warning(note);
    if (options.classify) draw_head(network.graph, weights.tensors, spec, observer);
    if (!spec.load_partial) check_hf_tensors(network.graph, weights.tensors, spec.load);
  } else {
    network.graph = make_model(model_to_build(spec, checkpoint, network.notes, observer), inputs);
  }
  network.name = network.graph.name;
  if (is_hf_network(spec, checkpoint) && network.notes.class_names.empty())
    network.notes.class_names = hf_class_names(weights.contents, weights.tensors);
  if (!checkpoint) return network;
  if (passes_follow) network.quantizer_state = take_out_quantizer_state(weights, network.graph);
  const LoadReport report =
      load_into(network.graph, weights, spec.load, spec.load_partial, guess_model);
  network.loaded = true;
  network.taken = report.taken;
  tell_what_was_taken(spec, report, state_dict(network.graph).size(), observer);
  return network;
}

Graph graph_of_file(const std::string& path, const std::vector<Shape>& input_shapes) {
  NetworkSpec spec;
  spec.load = path;
  spec.input_shapes = input_shapes;
  return make_network(spec, open_checkpoint(spec), nullptr, false, {}).graph;
}

void take_quantizer_state(Network& network, const Observer& observer) {
  for (const auto& [name, tensor] : network.quantizer_state) {
    Tensor* own = network.graph.tensor(name);
    if (own && own->shape() == tensor.shape())
      *own = tensor.to(own->dtype());
    else
      observer.warning(
          fmt::format("{} of the checkpoint is not used: the configuration quantises "
                      "otherwise than the run did",
                      printable(name)));
  }
  network.quantizer_state.clear();
}

}  // namespace mase
