// SPDX-License-Identifier: Apache-2.0
#include "mase/run/search/search_identity.h"

#include <span>

#include "mase/base/text.h"
#include "mase/data/digest.h"
#include "mase/search/measure/figures.h"
#include "mase/search/measure/last_layer.h"

namespace mase {
namespace {

void add_text(Sha256& digest, const std::string& text) {
  digest.add(std::as_bytes(std::span(text.data(), text.size())));
}

void add_tensor(Sha256& digest, const std::string& name, const Tensor& tensor) {
  add_text(digest, fmt::format("{} {} [{}]", name, dtype_name(tensor.dtype()),
                               fmt::join(tensor.shape(), ",")));
  digest.add({tensor.raw(), tensor.bytes()});
}

// The graph's own form without what only describes it.
Value structure(const Graph& graph) {
  const Value whole = graph_to_value(graph);
  List nodes;
  for (const Value& node : whole["nodes"].as_list()) {
    Dict plain = node.as_dict();
    plain.erase("meta");
    nodes.push_back(std::move(plain));
  }
  return Dict{{"nodes", std::move(nodes)}, {"modules", whole["modules"]}};
}

void add_tensors(Sha256& digest, const Module& module) {
  for (const TensorTable* table : {&module.parameters, &module.buffers, &module.masks})
    for (const auto& [name, tensor] : *table) add_tensor(digest, name, tensor);
}

// The formats of a module's weights by what they make of them; false if these say not all.
bool add_rounded(Sha256& digest, const Module& module) {
  for (const auto& [operand, quantizer] : module.quantization.operands) {
    if (is_activation(operand)) continue;
    const auto values = search::rounded_values(module, operand);
    if (!values || (values->empty() && module.find(operand))) return false;
    add_text(digest, fmt::format("{} {}", operand, values->size()));
    digest.add(std::as_bytes(std::span(*values)));
  }
  return true;
}

}  // namespace

std::string network_digest(const Graph& graph, bool weights) {
  Sha256 digest;
  add_text(digest, to_json(structure(graph)));
  if (weights)
    for (const auto& [path, module] : graph.modules()) add_tensors(digest, module);
  return digest.hex();
}

std::string rows_digest(const Split& split, int64_t rows) {
  const Split used = search::first_rows(split, rows);
  Sha256 digest;
  // Bytes stand for numbers that their scale makes of them.
  add_tensor(digest, "x",
             used.bytes ? used.samples(0, std::min<int64_t>(used.rows(), 64)) : used.x);
  if (used.bytes) add_tensor(digest, "bytes", used.x);
  add_tensor(digest, "labels", used.labels);
  add_tensor(digest, "targets", used.targets);
  return digest.hex();
}

std::string effect_digest(const Graph& graph) {
  Value value = structure(graph);
  Sha256 digest;
  for (const auto& [path, module] : graph.modules()) {
    add_tensors(digest, module);
    if (!module.quantization.active()) continue;
    Sha256 rounded;
    if (!add_rounded(rounded, module)) continue;
    add_text(digest, path + rounded.hex());
    Dict others;  // of the format: what is not about weights
    for (const auto& [key, setting] : module.quantization.config.as_dict())
      if (!starts_with(key, "weight_") && !starts_with(key, "bias_")) others.set(key, setting);
    value["modules"][path]["quantization"] = std::move(others);
  }
  add_text(digest, to_json(value));
  return digest.hex();
}

}  // namespace mase
