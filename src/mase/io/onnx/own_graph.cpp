// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/own_graph.h"

#include <algorithm>
#include <set>

#include "mase/base/text.h"
#include "mase/io/checkpoint_file.h"
#include "mase/io/onnx/tensor_moves.h"
#include "mase/ir/serialize.h"

namespace mase::onnx {
namespace {

constexpr int64_t description_version = 1;

// A tensor of one number that no node takes, such as a count of batches, is written as it is.
std::optional<Value> lone_number(const Tensor& tensor) {
  if (tensor.numel() != 1 || tensor.dtype() != DType::i64) return {};
  return Value(tensor.data<int64_t>()[0]);
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> back(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= static_cast<int64_t>(order.size()) ||
        back[static_cast<size_t>(order[i])] >= 0)
      throw Error("", "no order of dimensions");
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return back;
}

class Restoration {
 public:
  Restoration(const Model& model, ExternalFiles& files, const std::string& place,
              MemoryBudget& budget)
      : model_(model), files_(files), place_(place), budget_(budget) {
    for (const TensorData& tensor : model.graph.initializers) initializers_[tensor.name] = &tensor;
  }

  Graph graph(const std::string& text) {
    charge_json(text, budget_, place_);
    const Value description = parse_json(text, place_);
    if (description["version"].as_int("version") != description_version)
      throw Error("", "another version of this program wrote it");
    tensors_ = description["tensors"].as_dict("tensors");
    Graph graph = graph_from_value(
        description["graph"], [this](const std::string& name, const Shape& shape, DType dtype) {
          return tensor(name, shape, dtype);
        });
    const WritingTrial trial{
        .budget = &budget_,
        .source = [this](const std::string& name, const std::vector<int64_t>& order) {
          const auto found = sources_.find(name);
          if (found == sources_.end() || found->second.order != order)
            return static_cast<const TensorData*>(nullptr);
          return initializers_.at(found->second.initializer);
        }};
    compare(export_graph(graph,
                         {.flavour = flavour_from_name(description["flavour"].as_string("flavour")),
                          .operator_set = model_.operator_set("").value_or(0),
                          .trial = &trial}));
    return graph;
  }

 private:
  [[noreturn]] static void differ(const std::string& what) {
    throw Error("", printable(what) + " differs");
  }

  const TensorData& initializer(const std::string& name) const {
    const auto found = initializers_.find(name);
    if (found == initializers_.end()) throw Error("", fmt::format("there is no '{}'", name));
    return *found->second;
  }

  Tensor tensor(const std::string& name, const Shape& shape, DType dtype) {
    const Value* entry = tensors_.find(name);
    if (!entry) throw Error("", fmt::format("nothing is said of '{}'", name));
    if (entry->is_int()) {
      if (dtype != DType::i64 || element_count(shape) != 1) differ(name);
      const int64_t number = entry->as_int();
      return Tensor::of<int64_t>(shape, std::span<const int64_t>(&number, 1));
    }
    const std::string from = (*entry)["from"].as_string("from");
    std::vector<int64_t> order;
    if (!(*entry)["order"].is_null()) order = (*entry)["order"].as_int_list("order");
    const TensorData& data = initializer(from);
    const size_t before = budget_.left();
    Tensor found = read_constant(data, files_, budget_, place_).tensor;
    const size_t copied = before - std::min(before, budget_.left());
    if (!order.empty()) {
      const std::vector<int64_t> back = inverse(order);
      if (back.size() != found.shape().size()) differ(name);
      budget_.charge(found.bytes(), place_);
      found = transposed(found, back);
      budget_.give_back(copied);  // what stood here in the other order
    }
    if (found.shape() != shape || found.dtype() != dtype) differ(name);
    // Numbers that stand in the file as they are need not be made from the graph's to be compared.
    if (data.bytes.size() == found.bytes()) sources_.emplace(name, WrittenTensor{from, order});
    return found;
  }

  void compare(const Model& written) {
    const GraphData &file = model_.graph, &again = written.graph;
    if (file.name != again.name || !model_.functions.empty() || file.sparse_initializers > 0)
      differ("its graph");
    for (const OperatorSet& set : written.operator_sets)
      if (model_.operator_set(set.domain) != set.version) differ("an operator set");
    if (file.nodes.size() != again.nodes.size()) differ("the number of nodes");
    for (size_t i = 0; i < file.nodes.size(); ++i)
      if (!same(file.nodes[i], again.nodes[i]))
        differ(fmt::format("node '{}' ({})", file.nodes[i].name, file.nodes[i].op));
    compare(file.inputs, again.inputs);
    compare(file.outputs, again.outputs);
    if (initializers_.size() != file.initializers.size() ||
        file.initializers.size() != again.initializers.size())
      differ("the number of initialisers");
    for (const TensorData& tensor : again.initializers) {
      const TensorData& stored = initializer(tensor.name);
      if (stored.element != tensor.element || stored.dims != tensor.dims)
        differ(fmt::format("tensor '{}'", tensor.name));
      if (stored.bytes.data() == tensor.bytes.data() && stored.bytes.size() == tensor.bytes.size())
        continue;
      const MemoryBudget before = budget_;
      const Tensor values = read_constant(stored, files_, budget_, place_).tensor;
      budget_ = before;
      if (!std::equal(tensor.bytes.begin(), tensor.bytes.end(), values.raw(),
                      values.raw() + values.bytes()))
        differ(fmt::format("tensor '{}'", tensor.name));
    }
  }

  static void compare(const std::vector<ValueInfo>& file, const std::vector<ValueInfo>& again) {
    if (file.size() != again.size()) differ("the number of inputs or outputs");
    for (size_t i = 0; i < file.size(); ++i) {
      const ValueInfo &a = file[i], &b = again[i];
      const bool alike =
          a.name == b.name && a.element == b.element && a.is_tensor && a.shape && b.shape &&
          std::equal(a.shape->begin(), a.shape->end(), b.shape->begin(), b.shape->end(),
                     [](const Dimension& x, const Dimension& y) { return x.size == y.size; });
      if (!alike) differ(fmt::format("'{}'", a.name));
    }
  }

  // What a node computes; its name and its own metadata are nobody's business.
  static bool same(const NodeData& a, const NodeData& b) {
    return a.op == b.op && a.domain == b.domain && a.overload == b.overload &&
           a.inputs == b.inputs && a.outputs == b.outputs &&
           std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(),
                      b.attributes.end(), [](const Attribute& x, const Attribute& y) {
                        return x.name == y.name && x.type == y.type && x.number == y.number &&
                               x.integer == y.integer && x.text == y.text &&
                               x.numbers == y.numbers && x.integers == y.integers &&
                               x.texts == y.texts && x.reference == y.reference && !x.tensor &&
                               !y.tensor && !x.graph && !y.graph;
                      });
  }

  const Model& model_;
  ExternalFiles& files_;
  std::string place_;
  MemoryBudget& budget_;
  std::map<std::string, const TensorData*> initializers_;
  std::map<std::string, WrittenTensor> sources_;  // of tensors of the graph
  Dict tensors_;
};

}  // namespace

void describe_graph(const Graph& graph, const ExportOptions& options,
                    const std::map<std::string, WrittenTensor>& tensors, Model& model) {
  Graph plain = graph;
  plain.meta = {};  // what passes found out they can find out again
  for (const NodeId id : plain.order()) plain.node(id).meta = {};
  Dict places;
  for (const auto& [path, module] : plain.modules()) {
    if (!module.masks.empty()) return;
    for (const TensorTable* table : {&module.parameters, &module.buffers})
      for (const auto& [name, tensor] : *table) {
        const std::string full = tensor_name(path, name);
        const auto found = tensors.find(full);
        if (found != tensors.end()) {
          Dict entry{{"from", found->second.initializer}};
          if (!found->second.order.empty()) entry.set("order", Value::of(found->second.order));
          places.set(full, entry);
        } else if (const auto number = lone_number(tensor)) {
          places.set(full, *number);
        } else {
          return;
        }
      }
  }
  model.metadata.emplace_back(graph_property,
                              to_json(Dict{{"version", description_version},
                                           {"flavour", flavour_name(options.flavour)},
                                           {"tensors", places},
                                           {"graph", graph_to_value(plain)}}));
}

std::optional<Graph> own_graph(const Model& model, ExternalFiles& files, const std::string& place,
                               MemoryBudget& budget, std::string& why) {
  const std::string* text = find_property(model.metadata, graph_property);
  if (model.producer != own_producer || !text) return {};
  const MemoryBudget before = budget;
  try {
    return Restoration(model, files, place, budget).graph(*text);
  } catch (const Error& error) {
    why = split(error.what(), '\n').front();
    budget = before;
    files.close();
    return {};
  }
}

}  // namespace mase::onnx
