// SPDX-License-Identifier: Apache-2.0
#include "mase/models/hf.h"

#include <algorithm>
#include <map>

#include "mase/base/text.h"
#include "mase/models/hf_network.h"

namespace mase {
namespace {

// What older files have beside weights: numbers of positions, masks, frequencies.
bool carries_no_weights(const std::string& name) {
  for (const char* ending : {"embeddings.position_ids", "rotary_emb.inv_freq", ".attn.masked_bias"})
    if (ends_with(name, ending)) return true;
  return ends_with(name, ".attn.bias") && name.find("h.") != std::string::npos;
}

// LayerNorm.gamma and .beta of files that came from TensorFlow.
void rename_old(std::string& name) {
  for (const auto& [old, now] :
       {std::pair{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}})
    if (ends_with(name, old))
      name.replace(name.size() - std::string_view(old).size(), std::string::npos, now);
}

}  // namespace

Tensor transposed(const Tensor& matrix, const std::string& place, const std::string& name) {
  if (matrix.shape().size() != 2)
    throw Error(place,
                fmt::format("'{}' is no matrix: {}", printable(name), shape_text(matrix.shape())));
  const Tensor from = matrix.to(DType::f32);
  const int64_t rows = from.dim(0), columns = from.dim(1);
  Tensor to({columns, rows});
  float* out = to.mutable_data<float>();
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) *out++ = from.data<float>()[r * columns + c];
  return to;
}

Graph make_hf_network(const Value& config, TensorTable& tensors, const HfOptions& options,
                      const std::string& place) {
  if (!config.is_dict()) throw Error(place, "config.json: is no table");
  const std::string type = config["model_type"].is_string() ? config["model_type"].as_string() : "";
  const auto& families = Registry<ArchitectureRecord>::instance();
  const ArchitectureRecord* record = families.find(type);
  if (!record)
    throw Error(place, fmt::format("config.json: a network of type '{}'", printable(type)),
                "known: " + join(families.names(), ", "));
  std::erase_if(tensors, [](const auto& entry) { return carries_no_weights(entry.first); });
  for (auto& [name, tensor] : tensors) rename_old(name);
  HfNetwork net(*record, config, tensors, options, place);
  if (options.classify)
    for (const char* other : {"cls.", "lm_head.", "qa_outputs.", "vocab_"})
      net.leave_out_unused(other);
  try {
    record->build(net);
  } catch (const Error& error) {  // an op's: sizes that do not go together
    if (starts_with(error.what(), place)) throw;
    throw Error(place, fmt::format("config.json: {}", printable(error.what())));
  }
  return net.take();
}

bool is_hf_graph(const Graph& graph) {
  const Value* notes = graph.meta.find("hf");
  return notes && notes->is_dict() && (*notes)["config"].is_dict();
}

const Value& hf_config(const Graph& graph) {
  if (!is_hf_graph(graph))
    throw Error(graph.name, "the network is none of a Hugging Face folder",
                "give a folder with config.json, or what was made of one");
  return graph.meta.at("hf")["config"];
}

std::vector<std::string> hf_notes(const Graph& graph) {
  return is_hf_graph(graph) ? graph.meta.at("hf")["notes"].as_string_list("notes")
                            : std::vector<std::string>();
}

TensorTable hf_tensors(const Graph& graph) {
  hf_config(graph);
  const std::vector<std::string> turned = graph.meta.at("hf")["turned"].as_string_list("turned");
  TensorTable tensors = state_dict(graph);
  for (auto& [name, tensor] : tensors)
    if (std::find(turned.begin(), turned.end(), name) != turned.end())
      tensor = transposed(tensor, graph.name, name);
  return tensors;
}

Graph resized_hf_network(const Graph& graph, const HfOptions& options) {
  TensorTable tensors = hf_tensors(graph);
  Graph made = make_hf_network(hf_config(graph), tensors, options, graph.name);
  for (auto& [path, module] : made.modules()) {
    const auto old = graph.modules().find(path);
    if (old == graph.modules().end())
      throw Error(graph.name, fmt::format("the network has no '{}' any more", printable(path)),
                  "a network whose layers were changed cannot be made for another length");
    module.parameters = old->second.parameters;
    module.buffers = old->second.buffers;
    module.masks = old->second.masks;
    module.quantization = old->second.quantization;
  }
  for (const NodeId id : made.order()) {
    Node& node = made.node(id);
    const Node* old = graph.find(node.name);
    if (old && old->kind == node.kind && old->target == node.target)
      node.quantization = old->quantization;
  }
  return made;
}

}  // namespace mase
