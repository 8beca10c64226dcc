// SPDX-License-Identifier: Apache-2.0
// What the records of architectures/ build their networks with: a config that is read with checks,
// the inputs there are, masks, positions, attention with and without earlier keys, heads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mase/models/hf.h"
#include "mase/models/network_builder.h"
#include "mase/models/rope.h"

namespace mase {

// Kinds of networks on the same layers, by the name of the class in config.json.
enum class HfHead { none, causal_lm, masked_lm, sequence, token, question };

struct AttentionParts {
  NodeId q, k, v;  // [N, S, heads * width]
  int64_t heads, key_heads, width;
  bool causal = false;
  int64_t window = 0;  // 0: none
  std::optional<double> scale = {};
  const Rope* rope = nullptr;
  double norm_eps = 0;  // above 0: norms of each head's queries and keys, at `norm_path`
  std::string norm_path = {};
};

class HfNetwork {
 public:
  HfNetwork(const ArchitectureRecord& record, const Value& config, TensorTable& tensors,
            const HfOptions& options, std::string place);

  // The config. Numbers are whole ones from 1 to 2^24.
  int64_t whole(const std::string& key) const;
  int64_t whole_or(const std::string& key, int64_t otherwise) const;  // absent or null
  double number(const std::string& key, double otherwise) const;
  bool flag(const std::string& key, bool otherwise) const;
  std::string word(const std::string& key, const std::string& otherwise) const;
  const Value& config() const { return config_; }
  const std::string& place() const { return place_; }
  [[noreturn]] void refuse(const std::string& cause, const std::string& remedy = "") const;
  int64_t layers(const std::string& key) const;
  HfHead head(HfHead usual) const;
  int64_t classes(const std::string& weight) const;  // rows of that tensor, or as was asked for

  // The folder's tensors.
  bool has(const std::string& name) const { return tensors_.contains(name); }
  // `prefix` if the folder's names have it, else nothing.
  std::string prefix(const std::string& prefix, const std::string& tensor) const;
  void leave_out(const std::string& name);          // carries no weights: not told
  void leave_out_unused(const std::string& begin);  // told
  void turned(const std::string& weight);           // is stored as [in, out]

  // Inputs: token numbers, and what was given beside them.
  NodeId ids() const { return inputs_.at("input_ids"); }
  std::optional<NodeId> input(const std::string& name) const;
  int64_t tokens() const { return tokens_; }
  bool decodes() const { return options_.cached > 0; }
  int64_t cached() const { return options_.cached; }
  bool keeps() const { return options_.keeps; }
  // Buffers for earlier keys and values, if this decodes.
  void begin_cache(int64_t layers, int64_t key_heads, int64_t width);
  NodeId ones_of_mask();     // the mask as 0 and 1
  NodeId token_positions();  // given, or counted by the mask; only if has_positions()
  bool has_positions() const;

  // Layers.
  NetworkBuilder& net() { return net_; }
  NodeId linear(const std::string& path, NodeId x, int64_t features, bool bias = true);
  NodeId layer_norm(const std::string& path, NodeId x, double eps, bool affine = true);
  NodeId rms_norm(const std::string& path, NodeId x, double eps);
  NodeId embedding(const std::string& path, int64_t rows, int64_t width, NodeId x);
  // Adds learned rows of positions, the first of which is `offset`; positions as they are counted,
  // or as the network itself says.
  NodeId add_positions(const std::string& path, NodeId x, int64_t rows, int64_t offset = 0);
  NodeId activation(const std::string& name, NodeId x);
  NodeId add(NodeId a, NodeId b) { return net_.function("add", {a, b}); }
  NodeId first_token(NodeId x);  // [N, S, D] => [N, D]
  NodeId attention(int64_t layer, const AttentionParts& parts);

  // The product with a table of tokens or with a head of its own, as the config and the folder say.
  NodeId vocabulary_head(const std::string& head, const std::string& table, NodeId x,
                         int64_t vocabulary, const std::string& bias = "");
  // A causal network's results: logits of all tokens, a class, or hidden states.
  void finish_causal(HfHead head, NodeId x, const std::string& table, int64_t vocabulary);

  void finish(std::vector<NodeId> results);
  Graph take();

 private:
  void unpack(int64_t second);
  NodeId see(NodeId keys_mask);

  const ArchitectureRecord& record_;
  const Value& config_;
  TensorTable& table_;
  HfOptions options_;
  std::string place_;
  std::map<std::string, Tensor> tensors_;
  NetworkBuilder net_;
  std::map<std::string, NodeId> inputs_;
  int64_t tokens_ = 0;
  std::optional<NodeId> mask_, positions_, bias_;
  std::vector<NodeId> earlier_, kept_;
  std::vector<std::string> turned_, notes_;
  Graph graph_;
};

// A matrix the other way round, as float32; anything else is an error that names it.
Tensor transposed(const Tensor& matrix, const std::string& place, const std::string& name);

}  // namespace mase
