// SPDX-License-Identifier: Apache-2.0
#include "mase/models/hf.h"

#include <algorithm>
#include <map>

#include "mase/base/text.h"
#include "mase/ir/op.h"
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

// What passes put behind a node in the place of its result (adapters, corrections), behind the same
// node of the network made anew.
class AddedNodes {
 public:
  AddedNodes(const Graph& old, Graph& made) : old_(old), made_(made) {}

  void splice() {
    std::vector<NodeId> added;
    for (const NodeId id : old_.order()) {
      const Node& node = old_.node(id);
      const Node* same = made_.find(node.name);
      const bool known = same && same->kind == node.kind &&
                         (node.kind != NodeKind::call_module || same->target == node.target);
      if (known)
        places_[id] = same->id;
      else if (node.kind == NodeKind::call_module || node.kind == NodeKind::call_function)
        added.push_back(id);
    }
    for (const NodeId id : added) copy(id);
    for (const NodeId id : added) take_place(id, added);
  }

 private:
  [[noreturn]] void refuse(const Node& node) const {
    throw Error(old_.name, fmt::format("'{}' was put into the network", printable(node.name)),
                "a network that was changed so cannot be made for another length");
  }

  Argument moved(const Argument& argument, const Node& owner) const {
    if (argument.is_node()) {
      const auto place = places_.find(argument.id());
      if (place == places_.end()) refuse(owner);
      return Argument::node(place->second);
    }
    const auto* list = std::get_if<std::vector<Argument>>(&argument.data);
    if (!list) return argument;
    std::vector<Argument> items;
    for (const Argument& item : *list) items.push_back(moved(item, owner));
    return Argument::list(std::move(items));
  }

  void copy(NodeId id) {
    const Node& node = old_.node(id);
    if (old_.inputs_of(id).empty()) refuse(node);
    Node fresh = node;
    for (Argument& argument : fresh.args) argument = moved(argument, node);
    for (auto& [key, argument] : fresh.kwargs) argument = moved(argument, node);
    if (node.kind == NodeKind::call_module)
      made_.modules()[node.target] = old_.modules().at(node.target);
    const std::vector<NodeId>& order = made_.order();
    size_t last = 0;
    for (const NodeId input : old_.inputs_of(id))
      last = std::max(last,
                      static_cast<size_t>(std::find(order.begin(), order.end(), places_.at(input)) -
                                          order.begin()));
    if (last + 1 < order.size()) made_.insert_before(order[last + 1]);
    places_[id] = made_.add_node(std::move(fresh));
    made_.append();
  }

  // An added node that others use stands for the node it comes from, all of whose users are added.
  void take_place(NodeId id, const std::vector<NodeId>& added) {
    const auto is_added = [&](NodeId one) {
      return std::find(added.begin(), added.end(), one) != added.end();
    };
    const std::vector<NodeId> users = old_.users(id);
    if (std::all_of(users.begin(), users.end(), is_added)) return;
    NodeId base = id;
    while (is_added(base)) base = old_.inputs_of(base).front();
    for (const NodeId user : old_.users(base))
      if (!is_added(user)) refuse(old_.node(id));
    std::vector<NodeId> copies;
    for (const NodeId one : added) copies.push_back(places_.at(one));
    std::vector<std::pair<NodeId, Node>> kept;
    for (const NodeId one : copies) kept.emplace_back(one, made_.node(one));
    made_.replace_uses(places_.at(base), places_.at(id));
    for (auto& [one, node] : kept) made_.node(one) = std::move(node);
  }

  const Graph& old_;
  Graph& made_;
  std::map<NodeId, NodeId> places_;  // in the network made anew
};

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

std::string cache_name(bool keys, int64_t layer) {
  return fmt::format("cache.{}_{}", keys ? "key" : "value", layer);
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

void check_hf_tensors(const Graph& graph, const TensorTable& tensors, const std::string& place) {
  std::map<std::string, Shape> wanted;
  for (const auto& [name, tensor] : state_dict(graph)) wanted[name] = tensor.shape();
  std::string first;
  size_t count = 0;
  const auto tell = [&](const std::string& cause) {
    if (count++ == 0) first = cause;
  };
  for (const auto& [name, tensor] : tensors) {
    const auto own = wanted.find(name);
    if (own == wanted.end())
      tell(fmt::format("'{}' is in the file only", printable(name)));
    else if (own->second != tensor.shape())
      tell(fmt::format("'{}' is {} in the file and {} in the network", printable(name),
                       shape_text(tensor.shape()), shape_text(own->second)));
    if (own != wanted.end()) wanted.erase(own);
  }
  for (const auto& [name, shape] : wanted)
    tell(fmt::format("'{}' {} is in no file", printable(name), shape_text(shape)));
  if (count == 0) return;
  throw Error(
      place,
      fmt::format("the tensors are not those of the network that config.json describes: {}{}",
                  first, count > 1 ? fmt::format(", and {} more", count - 1) : ""),
      "--load-partial takes the tensors that fit and says which");
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
    if (options.cached > 0 && cache_name(true, 0).substr(0, path.size() + 1) == path + ".")
      continue;
    const auto old = graph.modules().find(path);
    if (old == graph.modules().end())
      throw Error(graph.name, fmt::format("the network has no '{}' any more", printable(path)),
                  "a network whose layers were changed cannot be made for another length");
    // A product may have got a bias since.
    if (!module.op.empty() && find_op(module.op).product)
      module.attributes = old->second.attributes;
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
  AddedNodes(graph, made).splice();
  return made;
}

}  // namespace mase
