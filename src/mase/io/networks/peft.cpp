// SPDX-License-Identifier: Apache-2.0
#include "mase/io/networks/peft.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "mase/base/file.h"
#include "mase/base/pattern.h"
#include "mase/base/text.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/io/networks/safetensors.h"

namespace mase {
namespace {

namespace fs = std::filesystem;
constexpr const char* peft_config_file = "adapter_config.json";
constexpr const char* peft_tensor_file = "adapter_model.safetensors";
constexpr const char* peft_prefix = "base_model.model.";
constexpr int64_t most_rank = 65536;
constexpr uintmax_t largest_peft_config = 1 << 20;

// Keys that say nothing about what the adapter computes, once its tensors are there: names of
// layers, versions, how it was begun or distributed. init_lora_weights is judged by itself.
const std::set<std::string>& idle_keys() {
  static const std::set<std::string> keys = {"auto_mapping",      "base_model_name_or_path",
                                             "exclude_modules",   "inference_mode",
                                             "layers_pattern",    "layers_to_transform",
                                             "loftq_config",      "megatron_config",
                                             "megatron_core",     "peft_version",
                                             "revision",          "target_modules",
                                             "task_type",         "runtime_config",
                                             "fan_in_fan_out",    "init_lora_weights",
                                             "qalora_group_size", "eva_config",
                                             "modules_to_save",   "ensure_weight_tying"};
  return keys;
}

bool says_nothing(const Value& value) {
  return value.is_null() || (value.is_bool() && !value.as_bool()) ||
         (value.is_dict() && value.as_dict().size() == 0) ||
         (value.is_list() && value.as_list().empty());
}

struct PeftConfig {
  int64_t rank = 8;
  double alpha = 8, dropout = 0;
  bool root_scale = false;  // alpha / sqrt(rank): rank-stabilised
  Dict alphas;              // alpha_pattern
  std::string place;

  double alpha_of(const std::string& path) const {
    for (const auto& [pattern, value] : alphas)
      if (Pattern("(.*\\.)?(" + pattern + ")").matches(path))
        return value.as_double(place + ": alpha_pattern");
    return alpha;
  }
};

PeftConfig parse_config(const Value& root, const std::string& place) {
  PeftConfig config;
  config.place = place;
  for (const auto& [key, value] : root.as_dict(place)) {
    const std::string where = place + ": " + key;
    if (key == "peft_type") {
      if (!value.is_string() || value.as_string() != "LORA")
        throw Error(where, "only LORA adapters are read");
    } else if (key == "r") {
      config.rank = value.as_int(where);
    } else if (key == "lora_alpha") {
      config.alpha = value.as_double(where);
    } else if (key == "lora_dropout") {
      config.dropout = value.as_double(where);
    } else if (key == "use_rslora") {
      config.root_scale = value.as_bool(where);
    } else if (key == "alpha_pattern") {
      if (!value.is_null()) config.alphas = value.as_dict(where);
    } else if (key == "rank_pattern") {
      continue;  // the tensors have their ranks
    } else if (key == "bias") {
      if (!value.is_null() && !(value.is_string() && value.as_string() == "none"))
        throw Error(where, "adapters that train biases are not read", "none is");
    } else if (!idle_keys().count(key) && !says_nothing(value)) {
      throw Error(where, "asks for something that adapters here do not have");
    }
  }
  if (!root["peft_type"].is_string()) throw Error(place, "has no peft_type");
  if (config.rank < 1 || config.rank > most_rank)
    throw Error(place + ": r", fmt::format("{} is no rank", config.rank), "1 to 65536 are");
  if (!std::isfinite(config.alpha)) throw Error(place + ": lora_alpha", "is not a finite number");
  if (!(config.dropout >= 0 && config.dropout < 1))
    throw Error(place + ": lora_dropout", "is no share below one");
  return config;
}

}  // namespace

PeftAdapter read_peft(const std::string& folder, const ReadLimits& limits) {
  const std::string config_path = (fs::path(folder) / peft_config_file).string();
  const std::string tensor_path = (fs::path(folder) / peft_tensor_file).string();
  std::error_code failure;
  if (!fs::exists(config_path, failure) || !fs::exists(tensor_path, failure))
    throw Error(folder, fmt::format("holds no {} with {}", peft_config_file, peft_tensor_file),
                "give a folder as PEFT's save_pretrained writes it");
  if (fs::file_size(config_path, failure) > largest_peft_config && !failure)
    throw Error(config_path, "the file is too large");
  const PeftConfig config = parse_config(read_json(config_path), config_path);
  const std::shared_ptr<const MappedFile> file = MappedFile::open(tensor_path);
  MemoryBudget budget(limits, file->bytes().size());
  PeftAdapter adapter;
  adapter.dropout = config.dropout;
  std::map<std::string, PeftLayer> layers;
  std::vector<std::string> order;
  for (const auto& [full, tensor] :
       parse_safetensors(file->bytes(), file, tensor_path, nullptr, budget, limits)) {
    const std::string place = fmt::format("{}: {}", tensor_path, printable(full));
    if (!starts_with(full, peft_prefix))
      throw Error(place, fmt::format("names begin with '{}'", peft_prefix));
    std::string name = full.substr(std::string(peft_prefix).size());
    const bool is_a = ends_with(name, ".lora_A.weight"), is_b = ends_with(name, ".lora_B.weight");
    if (!is_a && !is_b) {
      if (name.find(".lora_") != std::string::npos)
        throw Error(place, "is no part of an adapter of linear layers");
      adapter.saved.emplace_back(replace_all(name, ".modules_to_save.default.", "."),
                                 tensor.to(DType::f32));
      continue;
    }
    if (tensor.shape().size() != 2) throw Error(place, "is no matrix");
    const std::string path = name.substr(0, name.size() - std::string(".lora_A.weight").size());
    const auto [entry, fresh] = layers.try_emplace(path);
    if (fresh) order.push_back(path);
    entry->second.path = path;
    (is_a ? entry->second.a : entry->second.b) = tensor.to(DType::f32);
  }
  if (order.empty()) throw Error(tensor_path, "holds no adapter");
  for (const std::string& path : order) {
    PeftLayer layer = layers.at(path);
    if (layer.a.shape().size() != 2 || layer.b.shape().size() != 2)
      throw Error(tensor_path, fmt::format("{} has one of lora_A and lora_B", printable(path)));
    const int64_t rank = layer.a.dim(0);
    if (rank < 1 || rank > most_rank || layer.b.dim(1) != rank)
      throw Error(tensor_path,
                  fmt::format("{}: lora_A {} and lora_B {} do not belong together", printable(path),
                              shape_text(layer.a.shape()), shape_text(layer.b.shape())));
    const auto size = static_cast<double>(rank);
    layer.scale = config.alpha_of(path) / (config.root_scale ? std::sqrt(size) : size);
    adapter.layers.push_back(std::move(layer));
  }
  return adapter;
}

void write_peft(const std::string& folder, const PeftAdapter& adapter) {
  MASE_CHECK(!adapter.layers.empty(), "no adapters");
  const int64_t rank = adapter.layers[0].a.dim(0);
  const double alpha = adapter.layers[0].scale * static_cast<double>(rank);
  const auto number = [](double value) {
    const auto whole = static_cast<int64_t>(value);
    return static_cast<double>(whole) == value ? Value(whole) : Value(value);
  };
  List targets, saved;
  Dict ranks, alphas;
  TensorTable tensors;
  for (const PeftLayer& layer : adapter.layers) {
    targets.push_back(layer.path);
    const int64_t own = layer.a.dim(0);
    const double own_alpha = layer.scale * static_cast<double>(own);
    const std::string exact = "^" + replace_all(layer.path, ".", "\\.");
    if (own != rank) ranks.set(exact, own);
    if (own_alpha != alpha) alphas.set(exact, number(own_alpha));
    tensors.emplace_back(peft_prefix + layer.path + ".lora_A.weight", layer.a);
    tensors.emplace_back(peft_prefix + layer.path + ".lora_B.weight", layer.b);
  }
  std::set<std::string> whole;
  for (const auto& [name, tensor] : adapter.saved) {
    tensors.emplace_back(peft_prefix + name, tensor);
    const std::string path = name.substr(0, name.rfind('.'));
    if (whole.insert(path).second) saved.push_back(path);
  }
  const Dict config{{"alpha_pattern", std::move(alphas)},
                    {"base_model_name_or_path", Value()},
                    {"bias", "none"},
                    {"fan_in_fan_out", false},
                    {"inference_mode", true},
                    {"init_lora_weights", true},
                    {"lora_alpha", number(alpha)},
                    {"lora_dropout", adapter.dropout},
                    {"modules_to_save", saved.empty() ? Value() : Value(std::move(saved))},
                    {"peft_type", "LORA"},
                    {"r", rank},
                    {"rank_pattern", std::move(ranks)},
                    {"target_modules", std::move(targets)},
                    {"task_type", Value()},
                    {"use_dora", false},
                    {"use_rslora", false}};
  fs::create_directories(folder);
  save_safetensors((fs::path(folder) / peft_tensor_file).string(), tensors, Dict{{"format", "pt"}});
  write_file_atomically((fs::path(folder) / peft_config_file).string(),
                        to_json(Value(config), 2) + "\n");
}

}  // namespace mase
