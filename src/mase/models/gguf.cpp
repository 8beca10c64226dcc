// SPDX-License-Identifier: Apache-2.0
#include "mase/models/gguf.h"

#include <algorithm>
#include <map>
#include <utility>

#include "mase/base/text.h"
#include "mase/models/hf_network.h"

namespace mase {
namespace {

const ArchitectureRecord& gguf_family(const std::string& architecture, const std::string& place) {
  std::vector<std::string> known;
  for (const ArchitectureRecord* record : Registry<ArchitectureRecord>::instance().all()) {
    if (record->gguf.architecture.empty()) continue;
    if (record->gguf.architecture == architecture) return *record;
    known.push_back(record->gguf.architecture);
  }
  throw Error(place, fmt::format("a network of architecture '{}'", printable(architecture)),
              "known in GGUF files: " + join(known, ", "));
}

// "blk.12.attn_q" => "blk.#.attn_q" and "12".
std::pair<std::string, std::string> numbered(const std::string& name) {
  const size_t begin = name.find('.');
  if (!starts_with(name, "blk.")) return {name, ""};
  const size_t end = name.find('.', begin + 1);
  if (end == std::string::npos || !parse_integer(name.substr(begin + 1, end - begin - 1)))
    return {name, ""};
  return {"blk.#" + name.substr(end), name.substr(begin + 1, end - begin - 1)};
}

// Rows of each head: those of its first half and of its second one take turns in the file.
Tensor unpaired(const Tensor& tensor, int64_t heads, const std::string& place,
                const std::string& name) {
  const int64_t rows = tensor.shape().empty() ? 0 : tensor.dim(0);
  if (heads < 1 || rows < 1 || rows % (2 * heads) != 0)
    throw Error(place, fmt::format("'{}' has {} rows for {} heads", printable(name), rows, heads));
  const std::byte* from = tensor.packed() ? tensor.blocks().data() : tensor.raw();
  const size_t width = tensor.stored_bytes() / static_cast<size_t>(rows);
  const int64_t half = rows / heads / 2;
  auto bytes = aligned_bytes(tensor.stored_bytes());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t head = row / (2 * half), within = row % (2 * half);
    const int64_t source = head * 2 * half + 2 * (within % half) + within / half;
    std::copy_n(from + static_cast<size_t>(source) * width, width,
                bytes.get() + static_cast<size_t>(row) * width);
  }
  if (tensor.packed()) return {tensor.shape(), tensor.packed_type(), bytes.get(), bytes};
  return {tensor.shape(), tensor.dtype(), bytes.get(), bytes};
}

// The factors of frequencies that a file has as a tensor; all one: none.
void refuse_factors(TensorTable& tensors, const std::string& place) {
  for (auto at = tensors.begin(); at != tensors.end(); ++at) {
    if (at->first != "rope_freqs.weight") continue;
    const Tensor factors = at->second.to(DType::f32);
    for (const float factor : factors.values<float>())
      if (factor != 1)
        throw Error(place, "its positions are scaled by factors of their own (rope_freqs)",
                    "take the network's folder, whose config.json says how");
    tensors.erase(at);
    return;
  }
}

class GgufConfig {
 public:
  GgufConfig(const Value& settings, std::string architecture, std::string place)
      : settings_(settings), prefix_(std::move(architecture) + "."), place_(std::move(place)) {}

  const Value& take(const std::string& key) {
    taken_.push_back(prefix_ + key);
    return settings_[prefix_ + key];
  }
  Value scaling() {
    const Value type = take("rope.scaling.type"), factor = take("rope.scaling.factor"),
                length = take("rope.scaling.original_context_length");
    take("rope.scaling.finetuned");
    if (!type.is_string() || type.as_string() == "none") return Value();
    if (type.as_string() != "linear" && type.as_string() != "yarn")
      throw Error(place_, fmt::format("positions are scaled as '{}'", printable(type.as_string())),
                  "known: none, linear, yarn");
    Dict scaling{{"rope_type", type}, {"factor", factor}};
    if (!length.is_null()) scaling.set("original_max_position_embeddings", length);
    return scaling;
  }
  // What nobody took would be ignored.
  void finish() const {
    for (const auto& [key, value] : settings_.as_dict())
      if (starts_with(key, prefix_) && std::count(taken_.begin(), taken_.end(), key) == 0)
        throw Error(place_, fmt::format("the setting '{}' is not known", printable(key)),
                    "it may change what the network computes");
  }

 private:
  const Value& settings_;
  std::string prefix_, place_;
  std::vector<std::string> taken_;
};

}  // namespace

bool is_gguf(const Value& settings) {
  return settings.is_dict() && settings["general.architecture"].is_string();
}

void gguf_to_hf(Value& settings, TensorTable& tensors, const std::string& place) {
  const Value& named = std::as_const(settings)["general.architecture"];
  const ArchitectureRecord& family = gguf_family(named.is_string() ? named.as_string() : "", place);
  const GgufNames& names = family.gguf;
  GgufConfig given(settings, names.architecture, place);
  Dict config{{"model_type", family.name}};
  for (const GgufNames::Key& key : names.keys) {
    const Value& value = given.take(key.gguf);
    if (!value.is_null())
      config.set(key.hf, value);
    else if (key.required)
      throw Error(place, fmt::format("has no setting '{}.{}'", names.architecture, key.gguf),
                  "the file is damaged");
  }
  if (const Value scaling = given.scaling(); !scaling.is_null())
    config.set("rope_scaling", scaling);
  // Of heads that turn in part only a part of a row is counted.
  const Value turning = given.take("rope.dimension_count"),
              width = given.take("attention.key_length"),
              values = given.take("attention.value_length");
  const auto whole = [&](const char* key) {
    const Value* value = config.find(key);
    return value && value->is_int() ? value->as_int() : 0;
  };
  const int64_t heads = whole("num_attention_heads"),
                usual = heads > 0 ? whole("hidden_size") / heads : 0;
  if (width.is_int()) config.set("head_dim", width);
  const int64_t each = width.is_int() ? width.as_int() : usual;
  for (const Value* one : {&turning, &values})
    if (one->is_int() && heads > 0 && one->as_int() != each)
      throw Error(place, fmt::format("heads of {} with {} of another kind", each, one->as_int()),
                  "heads that turn as a whole are read");
  given.take("vocab_size");
  given.finish();
  for (const char* which : {"bos", "eos", "unk", "pad"}) {
    const std::string long_name = std::string(which) == "unk"   ? "unknown"
                                  : std::string(which) == "pad" ? "padding"
                                                                : which;
    const Value& id = std::as_const(settings)[fmt::format("tokenizer.ggml.{}_token_id", long_name)];
    if (id.is_int()) config.set(fmt::format("{}_token_id", which), id);
  }
  refuse_factors(tensors, place);
  bool head = false, biased = false;
  const std::map<std::string, std::string> known(names.tensors.begin(), names.tensors.end());
  const auto lists = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (auto& [name, tensor] : tensors) {
    const size_t dot = name.rfind('.');
    const std::string part = name.substr(0, dot), kind = dot < name.size() ? name.substr(dot) : "";
    const auto [pattern, number] = numbered(part);
    const auto found = known.find(pattern);
    if (found == known.end() || (kind != ".weight" && kind != ".bias"))
      throw Error(place,
                  fmt::format("the tensor '{}' is none of {}", printable(name), names.architecture),
                  "it may change what the network computes");
    if (lists(names.paired, pattern)) {
      const bool keys = pattern.ends_with("_k");
      const int64_t shared = whole("num_key_value_heads");
      tensor = unpaired(tensor, keys && shared > 0 ? shared : heads, place, name);
    }
    if (lists(names.turned, pattern) && kind == ".weight") tensor = transposed(tensor, place, name);
    if (pattern == "token_embd" && !tensor.shape().empty())
      config.set("vocab_size", tensor.shape()[0]);
    head = head || pattern == "output";
    biased = biased || (kind == ".bias" && pattern == "blk.#.attn_q");
    name = replace_all(found->second, "#", number) + kind;
  }
  config.set("tie_word_embeddings", !head);
  if (biased) config.set("attention_bias", true);
  settings = std::move(config);
}

}  // namespace mase
