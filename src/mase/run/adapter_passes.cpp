// SPDX-License-Identifier: Apache-2.0
// Adapters from and to PEFT's folders, as passes: load_lora_adapter, save_lora_adapter. They stand
// here because the passes' folder knows no files of others.
#include <filesystem>

#include "mase/base/text.h"
#include "mase/io/networks/peft.h"
#include "mase/passes/lora.h"
#include "mase/passes/output.h"

namespace mase::adapter_passes {
namespace {

// The linear layer that an adapter is for: of its path, or the only one whose path ends so.
std::string layer_for(const Graph& graph, const std::string& path, const std::string& place) {
  std::vector<std::string> found;
  for (const auto& [own, module] : graph.modules()) {
    if (module.op != "linear" || is_lora_part(own)) continue;
    if (own == path) return own;
    if (ends_with(path, "." + own) || ends_with(own, "." + path)) found.push_back(own);
  }
  if (found.size() == 1) return found[0];
  std::vector<std::string> known;
  for (const auto& [own, module] : graph.modules())
    if (module.op == "linear") known.push_back(own);
  throw Error(place,
              fmt::format("the network has {} linear layer '{}'",
                          found.empty() ? "no" : "more than one", printable(path)),
              suggestion(path, known));
}

PassResult load(Graph& graph, const Value& args, PassContext& context) {
  std::string folder = args["folder"].as_string();
  if (!std::filesystem::path(folder).is_absolute() && !context.base_dir.empty())
    folder = (std::filesystem::path(context.base_dir) / folder).string();
  const PeftAdapter adapter = read_peft(folder);
  Graph changed = graph;  // whole or not at all
  List layers;
  for (const PeftLayer& layer : adapter.layers) {
    const std::string path = layer_for(changed, layer.path, folder);
    const Shape& weight = changed.modules().at(path).find("weight")->shape();
    if (weight != Shape{layer.b.dim(0), layer.a.dim(1)})
      throw Error(
          folder,
          fmt::format("{} is for a layer of shape {}; the network's has {}", printable(layer.path),
                      shape_text({layer.b.dim(0), layer.a.dim(1)}), shape_text(weight)));
    insert_lora(changed, path,
                {.rank = layer.a.dim(0), .scale = layer.scale, .dropout = adapter.dropout});
    *changed.modules().at(lora_a_path(path)).find("weight") = layer.a;
    *changed.modules().at(lora_b_path(path)).find("weight") = layer.b;
    layers.push_back(path);
  }
  train_adapters_only(changed);
  for (const auto& [name, tensor] : adapter.saved) {
    Tensor* own = changed.tensor(name);
    if (!own || own->shape() != tensor.shape())
      throw Error(folder, fmt::format("the network has no tensor '{}' of shape {}", printable(name),
                                      shape_text(tensor.shape())));
    *own = tensor;
    changed.modules().at(changed.owner_of(name)->first).frozen = false;
  }
  graph = std::move(changed);
  return {Dict{{"layers", std::move(layers)},
               {"trainable", graph.parameter_count(true)},
               {"total", graph.parameter_count(false)}},
          true};
}

PassResult save(Graph& graph, const Value& args, PassContext& context) {
  const std::vector<LoraAdapter> adapters = lora_adapters(graph);
  if (adapters.empty())
    throw Error("save_lora_adapter", "the network has no adapters",
                "insert_lora_adapter gives it some");
  PeftAdapter file;
  List layers;
  for (const LoraAdapter& adapter : adapters) {
    if (!adapter.obstacle.empty()) throw Error(adapter.path, adapter.obstacle);
    file.dropout = std::max(file.dropout, adapter.dropout);
    file.layers.push_back(
        {adapter.path, *graph.modules().at(lora_a_path(adapter.path)).find("weight"),
         *graph.modules().at(lora_b_path(adapter.path)).find("weight"), adapter.scale});
    layers.push_back(adapter.path);
  }
  for (const std::string& path : graph.module_order()) {
    const Module& module = graph.modules().at(path);
    if (module.frozen || is_lora_part(path)) continue;
    for (const auto& [name, tensor] : module.parameters)
      file.saved.emplace_back(tensor_name(path, name), tensor);
  }
  const std::string folder = output_path(context, args["folder"].as_string());
  write_peft(folder, file);
  return {Dict{{"folder", folder}, {"layers", std::move(layers)}}, false};
}

Field folder_field(const char* help) {
  return {.name = "folder", .type = FieldType::text, .help = help, .required = true};
}

const Register<PassRecord> loading{{
    .name = "load_lora_adapter",
    .aliases = {"load_lora_adapter_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "Adapters of a folder that PEFT wrote",
    .help = "Puts the adapters beside the linear layers they are named after. Layers that were\n"
            "trained whole (modules_to_save) take the folder's weights and stay trainable.",
    .schema = {{folder_field("with adapter_config.json and adapter_model.safetensors")}},
    .run = load,
    .tolerance = -1,
}};

const Register<PassRecord> saving{{
    .name = "save_lora_adapter",
    .aliases = {"save_lora_adapter_analysis_pass"},
    .pass_kind = PassKind::analysis,
    .summary = "Writes a network's adapters to a folder that PEFT loads",
    .help = "Other layers that are trained are written whole, as PEFT's modules_to_save.",
    .schema = {{folder_field("where adapter_config.json and adapter_model.safetensors go")}},
    .run = save,
}};

}  // namespace
}  // namespace mase::adapter_passes
