// SPDX-License-Identifier: Apache-2.0
// Which kind of checkpoint a file is, by its content, and the reading of PyTorch's kinds.
#include "mase/io/networks/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "mase/base/cut_files.h"
#include "mase/base/text.h"
#include "mase/io/gguf/gguf_file.h"
#include "mase/io/networks/checkpoint_file.h"
#include "mase/io/networks/safetensors.h"
#include "mase/io/onnx/file/read_model.h"
#include "mase/io/torch/torch_file.h"
#include "mase/io/zip/zip_reader.h"

namespace mase {
namespace {

constexpr std::pair<CheckpointType, const char*> names[] = {
    {CheckpointType::pt, "pt"},
    {CheckpointType::pl, "pl"},
    {CheckpointType::mz, "mz"},
    {CheckpointType::hf, "hf"},
    {CheckpointType::safetensors, "safetensors"},
    {CheckpointType::onnx, "onnx"}};

// What the content is; pt stands for both of PyTorch's kinds.
CheckpointType family_of(const std::string& path, std::span<const std::byte> bytes) {
  if (looks_like_zip(bytes)) return is_mz(bytes) ? CheckpointType::mz : CheckpointType::pt;
  if (looks_like_legacy_torch(bytes)) return CheckpointType::pt;
  // A folder in one file, by other names.
  if (looks_like_gguf(bytes)) return CheckpointType::hf;
  if (looks_like_safetensors(bytes)) return CheckpointType::safetensors;
  constexpr size_t tar_mark = 257;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() > tar_mark + 5 && text.substr(tar_mark, 5) == "ustar")
    throw Error(path, "is a tar file, as PyTorch wrote before 0.1.10",
                "load and save it again in a newer PyTorch");
  if (text.size() > 2 && text[0] == '\x80' && static_cast<unsigned char>(text[1]) <= 5)
    throw Error(path, "is a plain Python pickle, not a PyTorch file",
                "in PyTorch, save it with torch.save(model.state_dict(), 'weights.pt')");
  if (text.empty()) throw Error(path, "the file is empty");
  if (ends_with(lower_case(path), ".onnx") || onnx::looks_like_model(bytes))
    return CheckpointType::onnx;
  throw Error(path, "is no checkpoint we know",
              "give a .ckpt, .pt, .pth, .safetensors, .mz, .onnx or .gguf file, or a folder with "
              "config.json and safetensors");
}

struct Network {
  PickleId dict;
  bool whole = false;  // the file's root itself
  bool lightning = false;
};

void refuse_objects(const TorchFile& file, const std::string& path) {
  const PickleNode& node = file.node(file.root());
  if (node.kind == PickleNode::Kind::opaque)
    throw Error(path,
                fmt::format("holds a whole Python object of class '{}', not its tensors",
                            printable(node.text)),
                "in PyTorch, save its tensors: torch.save(model.state_dict(), 'weights.pt')");
}

Network find_network(const TorchFile& file) {
  const PickleId root = file.root();
  const bool lightning = file.find(root, "pytorch-lightning_version").has_value();
  for (const char* key : {"state_dict", "model_state_dict", "model"})
    if (auto inner = file.find(root, key);
        inner && file.node(*inner).kind == PickleNode::Kind::dict)
      return {*inner, false, lightning};
  return {root, true, lightning};
}

// A prefix that every name has and that wrappers of networks add.
std::string common_prefix(const TensorTable& tensors) {
  std::string prefix;
  for (bool again = true; again && !tensors.empty();) {
    again = false;
    for (const char* wrapper : {"model.", "module.", "_orig_mod."}) {
      const std::string longer = prefix + wrapper;
      if (!std::all_of(tensors.begin(), tensors.end(),
                       [&](const auto& item) { return starts_with(item.first, longer); }))
        continue;
      prefix = longer;
      again = true;
    }
  }
  return prefix;
}

// A Lightning module keeps the network in its member `model`, other members beside it.
void remove_prefix(Checkpoint& checkpoint, bool lightning) {
  checkpoint.prefix = common_prefix(checkpoint.tensors);
  if (lightning && checkpoint.prefix.empty()) checkpoint.prefix = "model.";
  for (auto& [key, tensor] : checkpoint.tensors)
    if (starts_with(key, checkpoint.prefix)) key.erase(0, checkpoint.prefix.size());
}

}  // namespace

std::optional<CheckpointType> checkpoint_type_from_name(const std::string& name) {
  for (const auto& [type, text] : names)
    if (name == text) return type;
  return {};
}

const char* checkpoint_type_name(CheckpointType type) {
  for (const auto& [known, text] : names)
    if (known == type) return text;
  return "";
}

std::vector<std::string> checkpoint_type_names() {
  std::vector<std::string> all;
  for (const auto& [type, text] : names) all.emplace_back(text);
  return all;
}

void charge_json(std::string_view text, MemoryBudget& budget, const std::string& place) {
  constexpr size_t value_cost = 200;
  const auto values = std::count_if(text.begin(), text.end(), [](char c) {
    return c == ',' || c == '[' || c == '{' || c == ':';
  });
  budget.charge(text.size() + (static_cast<size_t>(values) + 1) * value_cost, place);
}

Checkpoint read_torch_checkpoint(const std::shared_ptr<const MappedFile>& mapped,
                                 std::optional<CheckpointType> type, const ReadLimits& limits,
                                 bool network_needed) {
  const std::string& path = mapped->path();
  TorchFile file(mapped, limits);
  if (network_needed) refuse_objects(file, path);
  const Network network = find_network(file);
  Checkpoint checkpoint;
  checkpoint.type = network.lightning ? CheckpointType::pl : CheckpointType::pt;
  if (type == CheckpointType::pl && network.whole)
    throw Error(path, "is a plain state dict, not a Lightning checkpoint",
                "give --load-type pt, or leave it out");
  const PickleNode& root = file.node(file.root());
  if (root.kind == PickleNode::Kind::tensor) {
    checkpoint.tensors.emplace_back("tensor", file.tensor(file.root()));
    return checkpoint;
  }
  if (root.kind != PickleNode::Kind::dict) {
    checkpoint.contents = file.value(file.root(), "", &checkpoint.others);
    return checkpoint;
  }
  const PickleNode& dict = file.node(network.dict);
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2)
    if (file.node(dict.items[i + 1]).kind == PickleNode::Kind::tensor)
      checkpoint.tensors.emplace_back(file.key_text(dict.items[i]), file.tensor(dict.items[i + 1]));
  std::vector<std::string_view> keys;
  for (const auto& [key, tensor] : checkpoint.tensors) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  if (auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end())
    throw Error(path, fmt::format("two tensors are named '{}'", printable(*twice)));
  remove_prefix(checkpoint, network.lightning);
  checkpoint.contents = network.whole
                            ? file.value(file.root(), "", &checkpoint.others, {.tensors = true})
                            : file.value(file.root(), "", &checkpoint.others, {.id = network.dict});
  if (checkpoint.contents.is_dict() && checkpoint.contents.as_dict().empty())
    checkpoint.contents = {};
  const Value& ours = std::as_const(checkpoint.contents)["mase"];
  if (ours.is_string()) {  // our own table, written as JSON by the trainer
    const std::string text = ours.as_string();
    charge_json(text, file.budget(), path);
    checkpoint.contents.dict().set("mase", parse_json(text, path));
  }
  return checkpoint;
}

namespace {

Checkpoint load(const std::string& path, std::optional<CheckpointType> type,
                const ReadLimits& limits, bool network_needed,
                const std::vector<Shape>& input_shapes = {}) {
  std::error_code unknown;  // opening it says why
  if (std::filesystem::is_directory(path, unknown)) {
    if (type && *type != CheckpointType::hf)
      throw Error(path,
                  fmt::format("is a folder, not a file of type {}", checkpoint_type_name(*type)));
    return read_hf_folder(path, limits);
  }
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const CheckpointType family = family_of(path, file->bytes());
  const bool torch = type == CheckpointType::pt || type == CheckpointType::pl;
  if (type && (torch ? CheckpointType::pt : *type) != family)
    throw Error(path,
                fmt::format("is {}, not of type {}",
                            family == CheckpointType::pt ? "a PyTorch file"
                            : family == CheckpointType::hf
                                ? "a GGUF file"
                                : fmt::format("a .{} file", checkpoint_type_name(family)),
                            checkpoint_type_name(*type)),
                "leave --load-type out and the kind is found out from the content");
  if (family == CheckpointType::onnx) return read_onnx(path, limits, network_needed, input_shapes);
  if (family == CheckpointType::hf) return read_gguf(file, limits, network_needed);
  if (family == CheckpointType::mz) return read_mz(file->bytes(), file, path, limits);
  if (family == CheckpointType::pt)
    return read_torch_checkpoint(file, type, limits, network_needed);
  Checkpoint checkpoint;
  checkpoint.type = CheckpointType::safetensors;
  Dict metadata;
  MemoryBudget budget(limits, file->bytes().size());
  checkpoint.tensors = parse_safetensors(file->bytes(), file, path, &metadata, budget, limits);
  if (!metadata.empty()) checkpoint.contents = metadata;
  remove_prefix(checkpoint, false);
  return checkpoint;
}

}  // namespace

Checkpoint load_checkpoint(const std::string& path, std::optional<CheckpointType> type,
                           const ReadLimits& limits, const std::vector<Shape>& input_shapes) {
  Checkpoint checkpoint = load(path, type, limits, true, input_shapes);
  throw_if_cut();
  return checkpoint;
}

Checkpoint inspect_checkpoint(const std::string& path, const ReadLimits& limits) {
  Checkpoint checkpoint = load(path, {}, limits, false);
  throw_if_cut();
  return checkpoint;
}

}  // namespace mase
