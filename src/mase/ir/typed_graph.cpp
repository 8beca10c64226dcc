// SPDX-License-Identifier: Apache-2.0
// Types by one walk over the graph. Ops infer shapes of numbers, and the batch goes through them as
// a number too: one so large that no size is near it, and prime, so that no product of sizes is a
// multiple of it. A result k * prime + r with a small r is then k * N + r. Whatever else comes out
// (half the batch) is near no multiple and has no type. So each op has one rule for shapes and
// the batch is still a symbol; docs/rationale/engine.md has the argument.
#include "mase/ir/typed_graph.h"

#include <algorithm>
#include <cmath>

#include "mase/base/text.h"
#include "mase/ir/infer_dims.h"

namespace mase {
namespace {

constexpr int64_t symbol = (int64_t{1} << 31) - 1;  // a Mersenne prime
constexpr int64_t largest_size = int64_t{1} << 24;  // of a dimension; symbol / 127 is larger

std::optional<Dim> read_dim(int64_t size) {
  Dim dim;
  dim.batches = (size + symbol / 2) / symbol;
  dim.constant = size - dim.batches * symbol;
  if (std::abs(dim.constant) > largest_size) return {};
  if (dim.batches > symbol / 2) return {};  // the square of the batch
  return dim;
}

std::optional<std::vector<Dim>> read_shape(const Shape& shape) {
  std::vector<Dim> dims;
  for (const int64_t size : shape) {
    const auto dim = read_dim(size);
    if (!dim) return {};
    dims.push_back(*dim);
  }
  return dims;
}

int element_rank(DType dtype) { return dtype == DType::f32 ? 2 : dtype == DType::i64 ? 1 : 0; }

// PyTorch would cut a fraction off silently.
void check_element(const std::string& name, const Value& number, DType element) {
  if (!number.is_number() || element == DType::f32) return;
  const double value = number.as_double();
  const bool fits = element == DType::boolean ? value == 0 || value == 1
                                              : std::floor(value) == value && std::isfinite(value);
  if (!fits)
    throw Error("", fmt::format("{} is {}, the elements are {}", name, value, dtype_name(element)),
                element == DType::boolean ? "give 0 or 1" : "give a whole number");
}

DType promoted(const BoundCall& call, const std::vector<DType>& inputs) {
  DType result = DType::boolean;
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_index(call, i)) continue;
    if (!any || element_rank(inputs[i]) > element_rank(result)) result = inputs[i];
    any = true;
  }
  if (!any || (call.module && !call.module->parameters.empty())) return DType::f32;
  for (const ScalarAttribute& scalar : call.op->scalars) {
    const Value& number = call.attributes[scalar.name];
    if (!scalar.promotes) {
      check_element(scalar.name, number, result);
      continue;
    }
    if (number.is_double()) result = DType::f32;
    if (number.is_int() && result == DType::boolean) result = DType::i64;
  }
  return result;
}

// The elements of the result that the call's attributes ask for.
DType result_element(const BoundCall& call, const std::vector<DType>& inputs) {
  ElementRule rule = call.op->element;
  if (call.op->results && !call.op->results->elements.empty()) {
    const auto& rules = call.op->results->elements;
    int64_t wanted = call.attributes["result"].as_int();
    if (wanted < 0) wanted += static_cast<int64_t>(rules.size());
    rule = rules.at(static_cast<size_t>(wanted));
  }
  switch (rule) {
    case ElementRule::real:
      return DType::f32;
    case ElementRule::integer:
      return DType::i64;
    case ElementRule::boolean:
      return DType::boolean;
    case ElementRule::promoted:
      break;
  }
  return promoted(call, inputs);
}

std::vector<DType> input_elements(const Graph& graph, const Node& node, const BoundCall& call,
                                  const std::vector<DType>& known) {
  std::vector<DType> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    inputs.push_back(known[static_cast<size_t>(call.inputs[i])]);
    if (is_index(call, i) && inputs.back() == DType::f32)
      throw Error(node.name,
                  fmt::format("'{}' takes whole numbers, and '{}' is float32", call.op->name,
                              graph.node(call.inputs[i]).name),
                  "declare the input as int64");
    const auto& real = call.op->real_inputs;
    if (std::find(real.begin(), real.end(), i) != real.end() && inputs.back() == DType::boolean)
      throw Error(node.name,
                  fmt::format("'{}' takes numbers, and '{}' is true or false", call.op->name,
                              graph.node(call.inputs[i]).name),
                  "turn it into numbers with where");
  }
  return inputs;
}

bool is_call(const Node& node) {
  return node.kind == NodeKind::call_module || node.kind == NodeKind::call_function ||
         (node.kind == NodeKind::call_method && !is_size(node));
}

}  // namespace

BoundGraph::BoundGraph(const Graph& graph, NodeId before)
    : graph_(&graph), nodes_(graph.id_limit()) {
  order_.reserve(graph.order().size());
  for (const NodeId id : graph.order()) {
    if (id == before) break;
    order_.push_back(id);
    const Node& node = graph.node(id);
    Bound& own = nodes_[static_cast<size_t>(id)];
    if (is_call(node)) {
      own.own = bind_call(graph, node);
      own.several = gives_several_results(own.own);
      own.picked = picked_by(node, own.own);
    }
    own.value = node.kind != NodeKind::output && !is_size(node) && !own.several;
  }
}

// One of several results is computed by the call that has them.
std::optional<BoundCall> BoundGraph::picked_by(const Node& node, const BoundCall& own) const {
  if (own.inputs.size() != 1 || own.op->name != "getitem") return {};
  const Bound& source = at(own.inputs[0]);
  if (!source.several) return {};
  return one_result(source.own, own.attributes["index"], node.name,
                    graph_->node(own.inputs[0]).name);
}

Shape BoundGraph::infer(NodeId id, const std::vector<Shape>& shapes) const {
  const Node& node = graph_->node(id);
  const BoundCall& call = this->call(id);
  const int inputs = static_cast<int>(call.inputs.size());
  if (inputs < call.op->min_inputs || (call.op->max_inputs >= 0 && inputs > call.op->max_inputs))
    throw Error(node.name, fmt::format("'{}' takes {} inputs, got {}", call.op->name,
                                       call.op->min_inputs, inputs));
  std::vector<Shape> in;
  for (const NodeId input : call.inputs) in.push_back(shapes[static_cast<size_t>(input)]);
  try {
    return call.op->infer(call.attributes, in);
  } catch (const Error& error) {  // the op knows what is wrong, only we know where
    throw Error(error.place().empty() ? node.name : node.name + ": " + error.place(), error.cause(),
                error.remedy());
  }
}

std::vector<Shape> BoundGraph::shapes(int64_t batch_size) const {
  std::vector<Shape> shapes(graph_->id_limit());
  for (const NodeId id : order_) {
    const Node& node = graph_->node(id);
    Shape& shape = shapes[static_cast<size_t>(id)];
    if (node.kind == NodeKind::placeholder) {
      shape = node.sample_shape;
      shape.insert(shape.begin(), batch_size);
    } else if (is_size(node)) {
      shape = {};
    } else if (node.kind == NodeKind::get_attr) {
      shape = graph_->tensor(node.target)->shape();
    } else if (node.kind == NodeKind::output) {
      const std::vector<NodeId> results = graph_->inputs_of(id);
      if (!results.empty()) shape = shapes[static_cast<size_t>(results.front())];
    } else {
      shape = infer(id, shapes);
    }
    if (shape.size() > largest_rank)
      throw Error(node.name, fmt::format("has {} dimensions", shape.size()),
                  fmt::format("values have at most {}, the batch included", largest_rank));
  }
  return shapes;
}

std::vector<DType> BoundGraph::elements() const {
  std::vector<DType> elements(graph_->id_limit(), DType::f32);
  for (const NodeId id : order_) {
    const Node& node = graph_->node(id);
    DType& own = elements[static_cast<size_t>(id)];
    if (node.kind == NodeKind::output) continue;
    if (is_size(node)) {
      own = DType::i64;
    } else if (node.kind == NodeKind::placeholder) {
      own = element_of(node.element);
    } else if (node.kind == NodeKind::get_attr) {
      own = element_of(graph_->tensor(node.target)->dtype());
    } else {
      const std::vector<DType> inputs = input_elements(*graph_, node, call(id), elements);
      try {
        own = result_element(call(id), inputs);
      } catch (const Error& error) {  // only we know where
        throw Error(node.name, error.cause(), error.remedy());
      }
    }
  }
  return elements;
}

std::vector<std::vector<ValueType>> BoundGraph::types() const {
  const std::vector<DType> elements = this->elements();
  std::vector<std::vector<ValueType>> types(graph_->id_limit());
  std::vector<Shape> shapes(graph_->id_limit());  // with the symbol for the batch
  for (const NodeId id : order_) {
    const Node& node = graph_->node(id);
    const auto place = static_cast<size_t>(id);
    if (node.kind == NodeKind::output) continue;
    if (is_size(node)) {
      types[place] = {{elements[place], {}}};
      continue;
    }
    if (node.kind == NodeKind::get_attr) {  // as it is: a table may have more rows than we look at
      shapes[place] = graph_->tensor(node.target)->shape();
      types[place] = {{elements[place], {}}};
      for (const int64_t size : shapes[place]) types[place][0].shape.push_back({0, size});
      continue;
    }
    if (node.kind == NodeKind::placeholder) {
      shapes[place] = node.sample_shape;
      shapes[place].insert(shapes[place].begin(), symbol);
      if (auto dims = read_shape(shapes[place])) types[place] = {{elements[place], *dims}};
      continue;
    }
    const BoundCall& call = this->call(id);
    std::vector<Shape> inputs;
    std::vector<DType> given;
    bool known = true;
    for (const NodeId input : call.inputs) {
      known = known && !types[static_cast<size_t>(input)].empty();
      inputs.push_back(shapes[static_cast<size_t>(input)]);
      given.push_back(elements[static_cast<size_t>(input)]);
    }
    if (!known) continue;
    // False: it depends on the batch in no way that has a type.
    const auto add = [&](const BoundCall& one) {
      Shape shape = one.op->infer(one.attributes, inputs);
      auto dims = read_shape(shape);
      if (types[place].empty()) shapes[place] = std::move(shape);
      if (dims) types[place].push_back({result_element(one, given), std::move(*dims)});
      return dims.has_value();
    };
    try {
      bool typed = true;
      if (!has_several_results(id)) {
        typed = add(call);
      } else {
        BoundCall one = call;
        const int64_t count = call.op->results->count(call.attributes, inputs);
        for (int64_t i = 0; i < count && typed; ++i) {
          one.attributes["result"] = i;
          typed = add(one);
        }
      }
      if (!typed) types[place].clear();
    } catch (const Error&) {  // fits some sizes of the batch only, or its square is too large
      types[place].clear();
    }
  }
  return types;
}

std::vector<Shape> infer_shapes(const Graph& graph, int64_t batch_size) {
  return BoundGraph(graph).shapes(batch_size);
}

std::vector<DType> infer_elements(const Graph& graph, NodeId before) {
  return BoundGraph(graph, before).elements();
}

std::vector<std::vector<ValueType>> infer_types(const Graph& graph, NodeId before) {
  return BoundGraph(graph, before).types();
}

std::optional<std::vector<Dim>> infer_dims(const OpRecord& op, const Value& attributes,
                                           const std::vector<std::vector<Dim>>& inputs) {
  std::vector<Shape> shapes(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const Dim& dim : inputs[i]) {
      if (dim.batches > symbol / 2 || std::abs(dim.constant) > (int64_t{1} << 62)) return {};
      shapes[i].push_back(dim.at(symbol));
    }
  try {
    return read_shape(op.infer(attributes, shapes));
  } catch (const Error& error) {  // the number that stands for the batch is none for readers
    throw Error(error.place(), replace_all(error.cause(), std::to_string(symbol), "batch"),
                error.remedy());
  }
}

}  // namespace mase
