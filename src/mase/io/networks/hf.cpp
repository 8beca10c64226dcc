// SPDX-License-Identifier: Apache-2.0
// A Hugging Face folder: config.json, and the tensors in model.safetensors or in several files that
// an index lists; or in PyTorch's pytorch_model.bin likewise, which is read without running it.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "mase/base/text.h"
#include "mase/io/networks/checkpoint_file.h"
#include "mase/io/networks/safetensors.h"

namespace mase {
namespace {

namespace fs = std::filesystem;
constexpr const char* single_files[] = {"model.safetensors", "pytorch_model.bin"};
constexpr const char* index_files[] = {"model.safetensors.index.json",
                                       "pytorch_model.bin.index.json"};
constexpr uintmax_t largest_json = 16 << 20;

Value read_small_json(const std::string& path, const ReadLimits& limits) {
  std::error_code failure;
  if (fs::file_size(path, failure) > largest_json && !failure)
    throw Error(path, "the file is too large");
  const std::string text = read_text_file(path);
  MemoryBudget budget(limits, text.size());
  charge_json(text, budget, path);
  return parse_json(text, path);
}

// The files of an index, in order of their names. They must stay in the folder.
std::vector<std::string> indexed_files(const std::string& index, const ReadLimits& limits) {
  std::set<std::string> names;
  const Value listed = read_small_json(index, limits);
  if (!listed.is_dict()) throw Error(index, "is no table");
  for (const auto& [tensor, file] : listed["weight_map"].as_dict(index + ": weight_map")) {
    const std::string& name = file.as_string(index + ": weight_map");
    if (name.empty() || name.find('/') != std::string::npos || name[0] == '.' ||
        name.find('\0') != std::string::npos)
      throw Error(index, fmt::format("the file name '{}' leaves the folder", printable(name)));
    names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> tensor_files(const std::string& folder, const ReadLimits& limits) {
  std::error_code failure;
  for (size_t kind = 0; kind < std::size(single_files); ++kind) {
    if (fs::exists(fs::path(folder) / single_files[kind], failure)) return {single_files[kind]};
    const std::string index = (fs::path(folder) / index_files[kind]).string();
    if (fs::exists(index, failure)) return indexed_files(index, limits);
  }
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, failure))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());
  return files;
}

TensorTable tensors_of(const std::string& path, const ReadLimits& limits) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (!ends_with(path, ".bin")) {
    MemoryBudget budget(limits, file->bytes().size());
    return parse_safetensors(file->bytes(), file, path, nullptr, budget, limits);
  }
  Checkpoint read = read_torch_checkpoint(file, CheckpointType::pt, limits);
  for (auto& [name, tensor] : read.tensors) name.insert(0, read.prefix);  // the folder's own names
  return std::move(read.tensors);
}

}  // namespace

Checkpoint read_hf_folder(const std::string& folder, const ReadLimits& limits) {
  const std::string config = (fs::path(folder) / "config.json").string();
  std::error_code failure;
  if (!fs::exists(config, failure))
    throw Error(folder, "the folder holds no config.json",
                "give a folder as Hugging Face writes it, or a single file");
  Checkpoint checkpoint;
  checkpoint.type = CheckpointType::hf;
  checkpoint.contents = read_small_json(config, limits);
  const std::vector<std::string> files = tensor_files(folder, limits);
  if (files.empty())
    throw Error(folder, "the folder holds neither safetensors files nor pytorch_model.bin",
                "in Python, save with model.save_pretrained(FOLDER, safe_serialization=True)");
  std::set<std::string> seen;
  for (const std::string& name : files) {
    const std::string path = (fs::path(folder) / name).string();
    for (auto& item : tensors_of(path, limits)) {
      if (!seen.insert(item.first).second)
        throw Error(path, fmt::format("the tensor '{}' is in two files", printable(item.first)));
      checkpoint.tensors.push_back(std::move(item));
    }
  }
  return checkpoint;
}

}  // namespace mase
