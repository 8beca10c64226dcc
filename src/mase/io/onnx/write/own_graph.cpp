// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/write/own_graph.h"

#include <algorithm>
#include <set>

#include "mase/base/text.h"
#include "mase/io/networks/checkpoint_file.h"
#include "mase/ir/serialize.h"

namespace mase::onnx {
namespace {

constexpr int64_t description_version = 1;

// A tensor of one number that no node takes, such as a count of batches, is written as it is.
std::optional<Value> lone_number(const Tensor& tensor) {
  if (tensor.numel() != 1 || tensor.dtype() != DType::i64) return {};
  return Value(tensor.data<int64_t>()[0]);
}

// Masks are told by the weights, which are zero where nothing is kept: only zeros that are kept all
// the same have to be listed.
std::optional<List> kept_zeros(const Tensor& weight, const Tensor& mask) {
  if (weight.dtype() != DType::f32 || mask.dtype() != DType::f32) return {};
  constexpr size_t most = 1000;
  List kept;
  for (int64_t i = 0; i < weight.numel(); ++i) {
    const float value = weight.data<float>()[i], keep = mask.data<float>()[i];
    if ((keep != 0 && keep != 1) || (keep == 0 && value != 0)) return {};
    if (keep == 1 && value == 0) kept.emplace_back(i);
    if (kept.size() > most) return {};
  }
  return kept;
}

Tensor mask_of(const Tensor& weight, const Value& kept) {
  if (weight.dtype() != DType::f32) throw Error("", "no weights for a mask");
  Tensor mask(weight.shape());
  for (int64_t i = 0; i < weight.numel(); ++i)
    mask.mutable_data<float>()[i] = weight.data<float>()[i] != 0;
  for (const int64_t i : kept.as_int_list("masks")) {
    if (i < 0 || i >= weight.numel()) throw Error("", "no such weight");
    mask.mutable_data<float>()[i] = 1;
  }
  return mask;
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
    for (const auto& [path, module] : description["graph"]["modules"].as_dict("modules"))
      if (!module["masks"].is_null()) throw Error("", "masks stand beside the graph");
    Graph graph = graph_from_value(
        description["graph"], [this](const std::string& name, const Shape& shape, DType dtype) {
          return tensor(name, shape, dtype);
        });
    const WritingTrial trial{
        .budget = &budget_,
        .source = [this](const std::string& name, const TensorView& view) -> const TensorData* {
          for (const WrittenPart& part : sources_[name])
            if (part.view == view) return initializers_.at(part.initializer);
          return nullptr;
        }};
    add_masks(graph, description["masks"]);
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
    if (!entry->is_list()) return part(name, *entry, shape, dtype);
    if (shape.empty() || shape.front() < 1) differ(name);
    const auto row = static_cast<size_t>(element_count(shape) / shape.front()) * dtype_size(dtype);
    budget_.charge(static_cast<size_t>(shape.front()) * row, place_);
    Tensor whole(shape, dtype);
    int64_t rows = 0;
    for (const Value& piece : entry->as_list()) {
      if (piece["first"].as_int("first") != rows) differ(name);
      const size_t before = budget_.left();
      const Tensor found = part(name, piece, shape, dtype);
      if (found.shape().front() > shape.front() - rows) differ(name);
      std::copy_n(found.raw(), found.bytes(),
                  whole.mutable_raw() + static_cast<size_t>(rows) * row);
      budget_.give_back(before - std::min(before, budget_.left()));
      rows += found.shape().front();
    }
    if (rows != shape.front()) differ(name);
    return whole;
  }

  Tensor part(const std::string& name, const Value& entry, const Shape& whole, DType dtype) {
    const std::string from = entry["from"].as_string("from");
    const TensorView view = view_from_value(entry);
    const TensorData& data = initializer(from);
    const size_t before = budget_.left();
    Tensor found = read_constant(data, files_, budget_, place_).tensor;
    const size_t copied = before - std::min(before, budget_.left());
    if (!view.order.empty()) budget_.charge(found.bytes(), place_);
    found = unviewed(found, view, whole);
    if (!view.order.empty()) budget_.give_back(copied);  // what stood here in the other order
    if (found.dtype() != dtype) differ(name);
    // Numbers that stand in the file as they are need not be made from the graph's to be compared.
    if (data.bytes.size() == found.bytes()) sources_[name].push_back({from, view});
    return found;
  }

  void add_masks(Graph& graph, const Value& masks) {
    if (masks.is_null()) return;
    for (auto& [path, module] : graph.modules())
      for (const auto& [name, tensor] : module.parameters)
        if (const Value* kept = masks.as_dict("masks").find(tensor_name(path, name))) {
          budget_.charge(tensor.bytes(), place_);
          module.masks.emplace_back(name, mask_of(tensor, *kept));
        }
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
  std::map<std::string, std::vector<WrittenPart>> sources_;  // of tensors of the graph
  Dict tensors_;
};

// One part that is all of the tensor, or several in the order of their rows.
Value places_of(const std::vector<WrittenPart>& parts) {
  List places;
  for (const WrittenPart& part : parts) {
    Dict entry{{"from", part.initializer}};
    for (const auto& [key, value] : view_to_dict(part.view)) entry.set(key, value);
    places.emplace_back(entry);
  }
  return parts.size() == 1 && parts.front().view.rows < 0 ? places.front() : Value(places);
}

}  // namespace

void describe_graph(const Graph& graph, const ExportOptions& options,
                    const std::map<std::string, std::vector<WrittenPart>>& tensors, Model& model) {
  Graph plain = graph;
  plain.meta = {};  // what passes found out they can find out again
  for (const NodeId id : plain.order()) plain.node(id).meta = {};
  Dict places, masks;
  for (auto& [path, module] : plain.modules()) {
    for (const auto& [name, mask] : module.masks) {
      const auto kept = kept_zeros(*module.find(name), mask);
      if (!kept) return;
      masks.set(tensor_name(path, name), *kept);
    }
    module.masks.clear();
    for (const TensorTable* table : {&module.parameters, &module.buffers})
      for (const auto& [name, tensor] : *table) {
        const std::string full = tensor_name(path, name);
        const auto found = tensors.find(full);
        if (found != tensors.end()) {
          places.set(full, places_of(found->second));
        } else if (const auto number = lone_number(tensor)) {
          places.set(full, *number);
        } else {
          return;
        }
      }
  }
  Dict description{{"version", description_version},
                   {"flavour", flavour_name(options.flavour)},
                   {"tensors", places}};
  if (!masks.empty()) description.set("masks", masks);
  description.set("graph", graph_to_value(plain));
  model.metadata.emplace_back(graph_property, to_json(description));
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
