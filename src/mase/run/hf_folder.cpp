// SPDX-License-Identifier: Apache-2.0
#include "mase/run/hf_folder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/models/hf.h"
#include "mase/text/tokenizer.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

const char* const tokenizer_files[] = {"tokenizer.json",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.txt",
                                       "vocab.json",
                                       "merges.txt",
                                       "generation_config.json",
                                       "preprocessor_config.json"};

// "BertForMaskedLM" => "BertForSequenceClassification"
std::string classifier_name(const Value& config) {
  const Value& listed = config["architectures"];
  std::string name =
      listed.is_list() && !listed.as_list().empty() && listed.as_list()[0].is_string()
          ? listed.as_list()[0].as_string()
          : "";
  for (const char* end : {"For", "Model", "LMHead"})
    if (const size_t at = name.find(end); at != std::string::npos) name.resize(at);
  return name.empty() ? "" : name + "ForSequenceClassification";
}

Dict config_of(const Network& network) {
  Dict config = hf_config(network.graph).as_dict();
  const Dict notes = network.graph.meta.at("hf").as_dict();
  const Value* classifies = notes.find("classifies");
  if (classifies && classifies->is_bool() && classifies->as_bool()) {
    if (const std::string name = classifier_name(Value(config)); !name.empty())
      config.set("architectures", List{name});
    if (network.notes.task == "regression") {
      config.set("problem_type", "regression");
      config.set("num_labels", network.notes.outputs);
    }
  }
  if (const std::vector<std::string>& names = network.notes.class_names; !names.empty()) {
    Dict labels, numbers;
    for (size_t i = 0; i < names.size(); ++i) {
      labels.add(std::to_string(i), names[i]);
      numbers.set(names[i], static_cast<int64_t>(i));
    }
    config.set("id2label", std::move(labels));
    config.set("label2id", std::move(numbers));
  }
  config.erase("torch_dtype");
  config.set("dtype", "float32");
  return config;
}

// From a folder its files; from another kind of file what it says.
std::string copy_tokenizer(const std::string& source, const fs::path& to,
                           std::vector<std::string>& written) {
  std::error_code none;
  if (fs::is_directory(source, none)) {
    std::string from;
    for (const char* name : tokenizer_files) {
      const fs::path file = fs::path(source) / name;
      if (!fs::is_regular_file(file, none)) continue;
      write_file_atomically((to / name).string(), read_text_file(file.string()));
      written.emplace_back(name);
      from = source;
    }
    return Tokenizer::is_in(source) ? from : "";
  }
  if (source.empty() || !Tokenizer::is_in(source)) return "";
  write_file_atomically((to / "tokenizer.json").string(), to_json(tokenizer_file(source)));
  written.emplace_back("tokenizer.json");
  return source;
}

}  // namespace

HfFolderFiles write_hf_folder(const Network& network, const std::string& source,
                              const std::string& to) {
  const Dict config = config_of(network);
  TensorTable tensors = hf_tensors(network.graph);
  for (auto& [name, tensor] : tensors) tensor = tensor.to(DType::f32);
  std::error_code failure;
  if (fs::exists(to, failure) && !(fs::is_directory(to, failure) && fs::is_empty(to, failure)))
    throw Error(to, "is there already", "name a folder that is not there yet");
  // Everything beside it first: a folder that is there is whole.
  const fs::path part = to + ".part";
  fs::remove_all(part, failure);
  make_directories(part.string());
  HfFolderFiles files;
  try {
    save_safetensors((part / "model.safetensors").string(), tensors, Dict{{"format", "pt"}});
    write_file_atomically((part / "config.json").string(), to_json(Value(config), 2) + "\n");
    files.written = {"config.json", "model.safetensors"};
    files.tokenizer = copy_tokenizer(source, part, files.written);
    fs::remove(to, failure);
    fs::rename(part, to, failure);
    if (failure) throw Error(to, "cannot be written: " + failure.message());
  } catch (...) {
    fs::remove_all(part, failure);
    throw;
  }
  return files;
}

}  // namespace mase
