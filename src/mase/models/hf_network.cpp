// SPDX-License-Identifier: Apache-2.0
#include "mase/models/hf_network.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numbers>

#include "mase/base/text.h"
#include "mase/models/encoder.h"

namespace mase {
namespace {

constexpr int64_t usual_tokens = 128;  // of a sample, where nothing says it
constexpr int64_t largest = int64_t{1} << 24;

// All values that parameters of the network may have: those of the folder, a head that it lacks,
// and tables that are used twice.
int64_t values_of(const TensorTable& tensors) {
  int64_t count = int64_t{1} << 22;
  for (const auto& [name, tensor] : tensors) count += tensor.numel();
  return count;
}

}  // namespace

HfNetwork::HfNetwork(const ArchitectureRecord& record, const Value& config, TensorTable& tensors,
                     const HfOptions& options, std::string place)
    : record_(record),
      config_(config),
      table_(tensors),
      options_(options),
      place_(std::move(place)),
      net_(record.name, values_of(tensors), place_) {
  std::map<std::string, int64_t> counts;
  for (const auto& [name, tensor] : tensors) {
    tensors_.emplace(name, tensor);
    counts[name] = tensor.numel();
  }
  net_.expect(std::move(counts));
  const size_t given = std::max<size_t>(1, options.shapes.size());
  if (given > record.inputs.size())
    throw Error(
        place_,
        fmt::format("the network takes {} inputs, {} are given", record.inputs.size(), given),
        "in this order: " + join(record.inputs, ", "));
  if (record.inputs[0] != "input_ids") {  // an image
    const int64_t size = whole_or("image_size", 224);
    Shape shape = {whole_or("num_channels", 3), size, size};
    if (!options.shapes.empty() && !options.shapes[0].empty()) shape = options.shapes[0];
    inputs_[record.inputs[0]] = net_.placeholder(record.inputs[0], shape, DType::f32);
    return;
  }
  tokens_ = usual_tokens;
  for (const char* key : {"max_position_embeddings", "n_positions"})
    tokens_ = std::min(tokens_, whole_or(key, usual_tokens));
  if (!options.shapes.empty() && !options.shapes[0].empty()) {
    if (options.shapes[0].size() != 1 || options.shapes[0][0] < 1 || options.shapes[0][0] > largest)
      throw Error(place_, fmt::format("the network takes rows of token numbers, not {}",
                                      shape_text(options.shapes[0])));
    tokens_ = options.shapes[0][0];
  }
  for (size_t i = 0; i < (decodes() ? 1 : given); ++i) {
    if (i < options.shapes.size() && i > 0 && options.shapes[i] != Shape{tokens_})
      throw Error(place_,
                  fmt::format("'{}' has {} for a row, '{}' {}", record.inputs[i],
                              shape_text(options.shapes[i]), record.inputs[0], tokens_),
                  "each token has one value");
    inputs_[record.inputs[i]] = net_.placeholder(record.inputs[i], {tokens_}, DType::i64);
  }
  if (options.packed) unpack(*options.packed);
}

// packed => token numbers, a mask and, where the network takes them, kinds of tokens
void HfNetwork::unpack(int64_t second) {
  const NodeId packed = ids();
  const auto takes = [&](const char* name) {
    return std::find(record_.inputs.begin(), record_.inputs.end(), name) != record_.inputs.end();
  };
  const NodeId kinds = net_.function("mul", {net_.function("ge", {packed}, {second})}, {1});
  const NodeId moved = net_.function("mul", {kinds}, {second});
  mask_ = net_.function("mul", {net_.function("ge", {packed}, {0})}, {1});
  inputs_["input_ids"] = net_.function("mul", {net_.function("sub", {packed, moved}), *mask_});
  if (takes("token_type_ids")) inputs_["token_type_ids"] = kinds;
  if (takes("attention_mask")) inputs_["attention_mask"] = *mask_;
}

void HfNetwork::refuse(const std::string& cause, const std::string& remedy) const {
  throw Error(place_, "config.json: " + cause, remedy);
}

int64_t HfNetwork::whole(const std::string& key) const {
  const Value& value = config_[key];
  if (!value.is_int() || value.as_int() < 1 || value.as_int() > largest)
    refuse(fmt::format("'{}' is no whole number from 1 to 2^24", key));
  return value.as_int();
}

int64_t HfNetwork::whole_or(const std::string& key, int64_t otherwise) const {
  return config_[key].is_null() ? otherwise : whole(key);
}

double HfNetwork::number(const std::string& key, double otherwise) const {
  const Value& value = config_[key];
  if (value.is_null()) return otherwise;
  if (!value.is_number() || !std::isfinite(value.as_double()))
    refuse(fmt::format("'{}' is no number", key));
  return value.as_double();
}

bool HfNetwork::flag(const std::string& key, bool otherwise) const {
  const Value& value = config_[key];
  if (value.is_null()) return otherwise;
  if (!value.is_bool()) refuse(fmt::format("'{}' is neither true nor false", key));
  return value.as_bool();
}

std::string HfNetwork::word(const std::string& key, const std::string& otherwise) const {
  const Value& value = config_[key];
  if (value.is_null()) return otherwise;
  if (!value.is_string()) refuse(fmt::format("'{}' is no word", key));
  return value.as_string();
}

int64_t HfNetwork::layers(const std::string& key) const {
  constexpr int64_t most = 1000;
  if (whole(key) > most) refuse(fmt::format("{} layers", whole(key)), "up to 1000 are read");
  return whole(key);
}

HfHead HfNetwork::head(HfHead usual) const {
  if (options_.classify) return HfHead::sequence;
  const Value& listed = config_["architectures"];
  if (!listed.is_list() || listed.as_list().empty()) return usual;
  const std::string name = listed.as_list()[0].as_string("architectures");
  if (ends_with(name, "ForCausalLM") || ends_with(name, "LMHeadModel"))
    return record_.causal ? HfHead::causal_lm
                          : (refuse(fmt::format("'{}' is not known", printable(name))), usual);
  if (ends_with(name, "ForMaskedLM") || ends_with(name, "ForPreTraining")) return HfHead::masked_lm;
  if (ends_with(name, "ForSequenceClassification") || ends_with(name, "ForImageClassification"))
    return HfHead::sequence;
  if (ends_with(name, "ForTokenClassification")) return HfHead::token;
  if (ends_with(name, "ForQuestionAnswering")) return HfHead::question;
  if (ends_with(name, "Model")) return HfHead::none;
  refuse(fmt::format("a network '{}' is not known", printable(name)),
         "known: ...Model, ...ForCausalLM, ...ForMaskedLM, ...ForSequenceClassification, "
         "...ForTokenClassification, ...ForQuestionAnswering, ...ForImageClassification");
}

int64_t HfNetwork::classes(const std::string& weight) const {
  if (options_.outputs > 0) return options_.outputs;
  const auto found = tensors_.find(weight);
  if (found != tensors_.end() && !found->second.shape().empty()) return found->second.shape()[0];
  if (config_["id2label"].is_dict())
    return std::max<int64_t>(1, static_cast<int64_t>(config_["id2label"].as_dict().size()));
  return whole_or("num_labels", 2);
}

std::string HfNetwork::prefix(const std::string& prefix, const std::string& tensor) const {
  return has(prefix + tensor) || !has(tensor) ? prefix : "";
}

void HfNetwork::leave_out(const std::string& name) {
  tensors_.erase(name);
  std::erase_if(table_, [&](const auto& entry) { return entry.first == name; });
}

void HfNetwork::leave_out_unused(const std::string& begin) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_)
    if (starts_with(name, begin)) names.push_back(name);
  if (names.empty()) return;
  notes_.push_back(
      fmt::format("{} tensors are not used by this network: {}*", names.size(), printable(begin)));
  for (const std::string& name : names) leave_out(name);
}

void HfNetwork::turned(const std::string& weight) { turned_.push_back(weight); }

std::optional<NodeId> HfNetwork::input(const std::string& name) const {
  const auto found = inputs_.find(name);
  return found == inputs_.end() ? std::nullopt : std::optional(found->second);
}

void HfNetwork::begin_cache(int64_t layers, int64_t key_heads, int64_t width) {
  if (!decodes()) return;
  MASE_CHECK(tokens_ == 1, "a text goes on by one token, not by {}", tokens_);
  positions_ = net_.placeholder("position_ids", {tokens_}, DType::i64);
  for (int64_t i = 0; i < layers; ++i) {
    earlier_.push_back(net_.buffer(cache_name(true, i), {key_heads, width, options_.cached}));
    earlier_.push_back(net_.buffer(cache_name(false, i), {key_heads, options_.cached, width}));
  }
}

NodeId HfNetwork::ones_of_mask() {
  if (!mask_)
    mask_ = net_.function("mul", {net_.function("ne", {inputs_.at("attention_mask")}, {0})}, {1});
  return *mask_;
}

bool HfNetwork::has_positions() const {
  return positions_ || input("position_ids") || input("attention_mask");
}

NodeId HfNetwork::token_positions() {
  if (!positions_) positions_ = input("position_ids");
  if (!positions_) {
    const NodeId seen = ones_of_mask();
    const NodeId count = net_.function("cumsum", {seen}, {1});
    positions_ = net_.function("mul", {net_.function("sub", {count}, {1}), seen});
  }
  return *positions_;
}

NodeId HfNetwork::linear(const std::string& path, NodeId x, int64_t features, bool bias) {
  return net_.module(path, "linear", {{"out_features", features}, {"bias", bias}}, x);
}

NodeId HfNetwork::layer_norm(const std::string& path, NodeId x, double eps, bool affine) {
  Dict attributes{{"normalized_shape", net_.shape(x).back()}, {"eps", eps}};
  if (!affine) attributes.set("elementwise_affine", false);
  return net_.module(path, "layer_norm", std::move(attributes), x);
}

NodeId HfNetwork::rms_norm(const std::string& path, NodeId x, double eps) {
  return net_.module(path, "rms_norm", {{"normalized_shape", net_.shape(x).back()}, {"eps", eps}},
                     x);
}

NodeId HfNetwork::embedding(const std::string& path, int64_t rows, int64_t width, NodeId x) {
  return net_.module(path, "embedding", {{"num_embeddings", rows}, {"embedding_dim", width}}, x);
}

NodeId HfNetwork::add_positions(const std::string& path, NodeId x, int64_t rows, int64_t offset) {
  if (!decodes() && tokens_ + offset > rows)
    throw Error(place_, fmt::format("the network takes up to {} token numbers, the data give {}",
                                    rows - offset, tokens_));
  if (!has_positions())
    return net_.module(path, "position_embedding", {{"num_embeddings", rows}, {"offset", offset}},
                       x);
  NodeId at = token_positions();
  if (offset > 0) at = net_.function("add", {at}, {offset});
  return add(x, embedding(path, rows, net_.shape(x).back(), at));
}

NodeId HfNetwork::activation(const std::string& name, NodeId x) {
  if (name == "gelu" || name == "gelu_python") return net_.function("gelu", {x});
  for (const char* same :
       {"gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_fast", "gelu_accurate"})
    if (name == same) return net_.function("gelu", {x}, {"tanh"});
  if (name == "gelu_10") return net_.function("clamp", {net_.function("gelu", {x})}, {-10.0, 10.0});
  if (name == "laplace") {  // Ma et al., 2022
    constexpr double middle = 0.707107, spread = 0.282095;
    const NodeId from = net_.function("sub", {x}, {middle});
    const NodeId erf =
        net_.function("erf", {net_.function("div", {from}, {spread * std::numbers::sqrt2})});
    return net_.function("mul", {net_.function("add", {erf}, {1.0})}, {0.5});
  }
  if (name == "sqrtsoftplus") return net_.function("sqrt", {net_.function("softplus", {x})});
  if (name == "quick_gelu") {
    constexpr double slope = 1.702;
    return net_.function("mul",
                         {x, net_.function("sigmoid", {net_.function("mul", {x}, {slope})})});
  }
  if (name == "relu2") return net_.function("square", {net_.function("relu", {x})});
  if (name == "swish") return net_.function("silu", {x});
  if (name == "linear") return x;
  for (const char* same :
       {"relu", "silu", "tanh", "sigmoid", "mish", "relu6", "leaky_relu", "hardswish"})
    if (name == same) return net_.function(name, {x});
  refuse(fmt::format("activation '{}' is not known", printable(name)),
         "known: gelu, gelu_10, gelu_accurate, gelu_fast, gelu_new, gelu_python, "
         "gelu_python_tanh, gelu_pytorch_tanh, hardswish, laplace, leaky_relu, linear, mish, "
         "quick_gelu, relu, relu2, relu6, sigmoid, silu, sqrtsoftplus, swish, tanh");
}

NodeId HfNetwork::first_token(NodeId x) {
  const Value all = Dict{{"slice", List{Value(), Value(), Value()}}};
  return net_.function("getitem", {x}, {Value(List{all, 0})});
}

// 0 for a key that may be seen, the lowest number for one that may not: [N, 1, 1, S].
NodeId HfNetwork::see(NodeId keys_mask) {
  const NodeId hidden = net_.function("mul", {net_.function("sub", {keys_mask}, {1})},
                                      {static_cast<double>(FLT_MAX)});
  return net_.function("reshape", {hidden}, {Value(List{-1, 1, 1, tokens_})});
}

NodeId HfNetwork::attention(int64_t layer, const AttentionParts& parts) {
  NodeId q = split_heads(net_, parts.q, parts.heads),
         k = split_heads(net_, parts.k, parts.key_heads),
         v = split_heads(net_, parts.v, parts.key_heads);
  if (parts.norm_eps > 0) {
    q = rms_norm(parts.norm_path + "q_norm", q, parts.norm_eps);
    k = rms_norm(parts.norm_path + "k_norm", k, parts.norm_eps);
  }
  if (parts.rope) {
    List frequencies;
    for (const float frequency : parts.rope->frequencies)
      frequencies.emplace_back(static_cast<double>(frequency));
    const auto turn = [&](NodeId x) {
      std::vector<std::pair<std::string, Value>> named;
      named.emplace_back("frequencies", Value(frequencies));
      if (parts.rope->scale != 1) named.emplace_back("scale", parts.rope->scale);
      if (!has_positions()) return net_.function("rotary_embedding", {x}, {}, named);
      int64_t positions = options_.cached + tokens_;
      if (input("position_ids")) positions = std::max(tokens_, whole("max_position_embeddings"));
      named.emplace_back("positions", positions);
      return net_.function("rotary_embedding", {x, token_positions()}, {}, named);
    };
    q = turn(q);
    k = turn(k);
  }
  std::vector<NodeId> operands = {q, k, v};
  std::vector<std::pair<std::string, Value>> named;
  if (decodes()) {
    const auto at = static_cast<size_t>(2 * layer);
    if (at + 1 >= earlier_.size())
      refuse("the network does not go on with texts", "give one that predicts the next token");
    operands.insert(operands.end(), {earlier_.at(at), earlier_.at(at + 1), *positions_});
    named.emplace_back("cached", true);
  } else {
    if (input("attention_mask")) {
      if (!bias_) bias_ = see(ones_of_mask());
      operands.push_back(*bias_);
    }
    if (parts.causal) named.emplace_back("is_causal", true);
    if (keeps()) kept_.insert(kept_.end(), {k, v});
  }
  if (parts.window > 0) named.emplace_back("window", parts.window);
  if (parts.scale) named.emplace_back("scale", *parts.scale);
  return join_heads(net_, net_.function("scaled_dot_product_attention", operands, {}, named));
}

NodeId HfNetwork::vocabulary_head(const std::string& head, const std::string& table, NodeId x,
                                  int64_t vocabulary, const std::string& bias) {
  const auto own = tensors_.find(head + ".weight"), shared = tensors_.find(table);
  bool tied = flag("tie_word_embeddings", true);
  if (tied && own != tensors_.end() && shared != tensors_.end() &&
      !own->second.same_bits(shared->second)) {
    notes_.push_back(
        fmt::format("'{}' and '{}' differ, though the config ties them: each is used "
                    "for itself",
                    head + ".weight", table));
    tied = false;
  }
  // A head of its own has a bias of its own, too, where files hold two that differ.
  const auto of_head = tensors_.find(head + ".bias"), beside = tensors_.find(bias);
  const bool two = of_head != tensors_.end() && beside != tensors_.end() && bias != head + ".bias";
  if (two && !tied && !of_head->second.same_bits(beside->second))
    leave_out_unused(bias);
  else if (two)
    leave_out(head + ".bias");
  if (!tied) {
    const bool own_bias = has(head + ".bias") || bias == head + ".bias";
    x = linear(head, x, vocabulary, own_bias);
    return own_bias || bias.empty() ? x : add(x, net_.parameter(bias, {vocabulary}, 0));
  }
  leave_out(head + ".weight");
  std::vector<NodeId> operands = {x, net_.tensor(table)};
  if (!bias.empty()) operands.push_back(net_.parameter(bias, {vocabulary}, 0));
  return net_.function("linear", operands);
}

void HfNetwork::finish_causal(HfHead head, NodeId x, const std::string& table, int64_t vocabulary) {
  if (head == HfHead::none) return finish({x});
  if (keeps()) {
    const Value all = Dict{{"slice", List{Value(), Value(), Value()}}},
                last = Dict{{"slice", List{Value(-1), Value(), Value()}}};
    x = net_.function("getitem", {x}, {Value(List{all, last})});
  }
  if (head == HfHead::causal_lm) return finish({vocabulary_head("lm_head", table, x, vocabulary)});
  if (head == HfHead::token) {
    const std::string name = has("classifier.weight") ? "classifier" : "score";
    return finish({linear(name, x, classes(name + ".weight"))});
  }
  if (head == HfHead::question) return finish({linear("qa_outputs", x, 2)});
  if (head != HfHead::sequence)
    refuse("the head that 'architectures' names is not known for this family");
  x = linear("score", x, classes("score.weight"), false);
  const Value& padding = config_["pad_token_id"];
  if (!padding.is_int() && !options_.packed) {
    const Value all = Dict{{"slice", List{Value(), Value(), Value()}}};
    return finish({net_.function("getitem", {x}, {Value(List{all, -1})})});
  }
  // What the last token that is no padding gives.
  const NodeId real = options_.packed
                          ? *mask_
                          : net_.function("mul", {net_.function("ne", {ids()}, {padding})}, {1});
  const NodeId count = net_.function("cumsum", {real}, {1});
  const NodeId all = net_.function("sum", {real}, {1, true});
  const NodeId last = net_.function("mul", {net_.function("eq", {count, all}), real});
  const NodeId column = net_.function("reshape", {last}, {Value(List{-1, tokens_, 1})});
  finish({net_.function("sum", {net_.function("mul", {x, column})}, {1})});
}

void HfNetwork::finish(std::vector<NodeId> results) {
  results.insert(results.end(), kept_.begin(), kept_.end());
  graph_ = net_.finish(std::move(results));
  Dict notes{{"config", config_}, {"turned", Value::of(turned_)}, {"notes", Value::of(notes_)}};
  if (options_.classify) notes.set("classifies", true);
  if (options_.packed) notes.set("packed", *options_.packed);
  graph_.meta.set("hf", Value(std::move(notes)));
  for (auto& [name, tensor] : table_) {
    if (std::find(turned_.begin(), turned_.end(), name) == turned_.end()) continue;
    tensor = transposed(tensor, place_, name);
  }
}

Graph HfNetwork::take() { return std::move(graph_); }

}  // namespace mase
