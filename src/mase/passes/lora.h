// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (Hu et al., 2021): a linear layer P and beside it P.lora_A and P.lora_B, so
// that
//   y = P(x)  =>  y = P(x) + scale * lora_B(lora_A(dropout(x))),   scale = alpha / rank
// All of them are layers of the ordinary kind: training, number formats and files know them
// already. The names of parameters are PEFT's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

struct LoraOptions {
  int64_t rank = 8;
  double scale = 1;  // alpha / rank
  double dropout = 0;
  uint64_t seed = 0;
};

// Gives every call of the linear layer at `path` an adapter: A drawn as a linear layer's weights
// are, B zero, so that the network computes what it did. An Error where there is one already.
void insert_lora(Graph& graph, const std::string& path, const LoraOptions& options);

// An adapter as it stands in a graph; nodes of each call of its layer.
struct LoraAdapter {
  struct Call {
    NodeId base, dropout, a, b, scaled, sum;  // dropout -1: there is none
  };
  std::string path;  // of the linear layer
  double scale = 1, dropout = 0;
  std::vector<Call> calls;
  std::string obstacle;  // why it cannot be told what it adds; empty: it can

  int64_t rank(const Graph& graph) const;
};
std::vector<LoraAdapter> lora_adapters(const Graph& graph);  // in the order of their layers

// W + scale B A in the layer's place, and no adapter. Summed in double precision.
void fuse_lora(Graph& graph, const LoraAdapter& adapter);

std::string lora_a_path(const std::string& path);  // "fc.lora_A"
std::string lora_b_path(const std::string& path);
bool is_lora_part(const std::string& path);  // lora_A, lora_B or lora_dropout of a layer

// Nothing is trained but the adapters.
void train_adapters_only(Graph& graph);

}  // namespace mase
