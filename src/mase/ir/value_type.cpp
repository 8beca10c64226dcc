// SPDX-License-Identifier: Apache-2.0
// Types by one walk over the graph. Ops infer shapes of numbers, and the batch goes through them as
// a number too: one so large that no size is near it, and prime, so that no product of sizes is a
// multiple of it. A result k * prime + r with a small r is then k * N + r. Whatever else comes out
// (half the batch) is near no multiple and has no type. So each op has one rule for shapes and
// the batch is still a symbol; docs/rationale/engine.md has the argument.
#include "mase/ir/value_type.h"

#include <algorithm>
#include <cmath>

#include "mase/base/text.h"
#include "mase/ir/evaluate.h"
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

bool is_index(const BoundCall& call, size_t input) {
  const auto& numbers = call.op->index_inputs;
  return std::find(numbers.begin(), numbers.end(), input) != numbers.end();
}

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

}  // namespace

std::string Dim::text() const {
  if (is_fixed()) return std::to_string(constant);
  std::string result = batches == 1 ? "N" : fmt::format("{}N", batches);
  if (constant != 0) result += fmt::format(" {} {}", constant < 0 ? '-' : '+', std::abs(constant));
  return result;
}

bool ValueType::is_fixed() const {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_fixed(); });
}

bool ValueType::is_sample_by_sample() const {
  return !shape.empty() && shape[0].is_batch() &&
         std::all_of(shape.begin() + 1, shape.end(), [](const Dim& dim) { return dim.is_fixed(); });
}

Shape ValueType::at(int64_t batch_size) const {
  Shape result;
  for (const Dim& dim : shape) result.push_back(dim.at(batch_size));
  return result;
}

std::string ValueType::text() const {
  std::vector<std::string> dims;
  for (const Dim& dim : shape) dims.push_back(dim.text());
  return fmt::format("{}[{}]", dtype_name(element), fmt::join(dims, ", "));
}

DType element_of(DType dtype) {
  if (dtype == DType::boolean) return DType::boolean;
  const bool real =
      dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  return real ? DType::f32 : DType::i64;
}

std::vector<DType> infer_elements(const Graph& graph, NodeId before) {
  std::vector<DType> elements(graph.id_limit(), DType::f32);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    DType& own = elements[static_cast<size_t>(id)];
    if (id == before) break;
    if (node.kind == NodeKind::output) continue;
    if (is_size(node)) {
      own = DType::i64;
    } else if (node.kind == NodeKind::placeholder) {
      own = element_of(node.element);
    } else if (node.kind == NodeKind::get_attr) {
      own = element_of(graph.tensor(node.target)->dtype());
    } else {
      const BoundCall call = bind_value(graph, node);
      const std::vector<DType> inputs = input_elements(graph, node, call, elements);
      try {
        own = result_element(call, inputs);
      } catch (const Error& error) {  // only we know where
        throw Error(node.name, error.cause(), error.remedy());
      }
    }
  }
  return elements;
}

void declare_index_inputs(Graph& graph) {
  const std::vector<std::vector<NodeId>> users = graph.use_lists();
  for (const NodeId id : graph.placeholders()) {
    const std::vector<NodeId>& own = users[static_cast<size_t>(id)];
    const bool indices = std::all_of(own.begin(), own.end(), [&](NodeId user) {
      if (graph.node(user).kind == NodeKind::output) return false;
      const BoundCall call = bind_call(graph, graph.node(user));
      for (size_t i = 0; i < call.inputs.size(); ++i)
        if (call.inputs[i] == id && !is_index(call, i)) return false;
      return true;
    });
    if (indices && !own.empty() && graph.node(id).element == DType::f32)
      graph.node(id).element = DType::i64;
  }
}

std::optional<int64_t> index_limit(const Graph& graph, NodeId placeholder) {
  if (element_of(graph.node(placeholder).element) == DType::f32) return {};
  if (element_of(graph.node(placeholder).element) == DType::boolean) return 2;
  const std::vector<Shape> shapes = infer_shapes(graph, 1);
  int64_t limit = int64_t{1} << 24;
  for (const NodeId user : graph.users(placeholder)) {
    if (!has_value(graph, graph.node(user))) continue;
    const BoundCall call = bind_value(graph, graph.node(user));
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.inputs[i] != placeholder || !is_index(call, i)) continue;
      const size_t table = i == 0 ? 1 : 0;  // a function's other input, or the module's parameter
      int64_t rows = 1;
      if (call.module && !call.module->parameters.empty())
        rows = call.module->parameters.front().second.dim(0);
      else if (table < call.inputs.size()) {
        const Shape& shape = shapes[static_cast<size_t>(call.inputs[table])];
        rows = shape.empty() ? 1 : *std::min_element(shape.begin(), shape.end());
      }
      limit = std::min(limit, rows);
    }
  }
  return limit;
}

void resolve_sizes(Graph& graph) {
  for (const NodeId id : graph.order()) {
    Node& node = graph.node(id);
    if (!is_size(node)) continue;
    const Value* dim = node.args.size() == 2 ? std::get_if<Value>(&node.args[1].data) : nullptr;
    if (!dim || !dim->is_int() || !node.args[0].is_node())
      throw Error(node.name, "size wants a tensor and a dimension", "write x.size(0)");
    const auto types = infer_types(graph, id);
    const std::vector<ValueType>& input = types[static_cast<size_t>(node.args[0].id())];
    if (input.empty())
      throw Error(node.name, "the shape depends on the batch in too involved a way");
    const auto rank = static_cast<int64_t>(input[0].shape.size());
    const int64_t place = dim->as_int() < 0 ? dim->as_int() + rank : dim->as_int();
    if (place < 0 || place >= rank)
      throw Error(node.name, fmt::format("dimension {} of {}", dim->as_int(), rank));
    const Dim& size = input[0].shape[static_cast<size_t>(place)];
    if (!size.is_fixed() && !size.is_batch())
      throw Error(node.name, fmt::format("the size is {}, N being the batch", size.text()),
                  "take a size that is fixed, or the batch itself");
    node.size = size.is_batch() ? 0 : size.constant;
  }
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

std::vector<std::vector<ValueType>> infer_types(const Graph& graph, NodeId before) {
  const std::vector<DType> elements = infer_elements(graph, before);
  std::vector<std::vector<ValueType>> types(graph.id_limit());
  std::vector<Shape> shapes(graph.id_limit());  // with the symbol for the batch
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const auto place = static_cast<size_t>(id);
    if (id == before) break;
    if (node.kind == NodeKind::output) continue;
    if (is_size(node)) {
      types[place] = {{elements[place], {}}};
      continue;
    }
    if (node.kind == NodeKind::get_attr) {  // as it is: a table may have more rows than we look at
      shapes[place] = graph.tensor(node.target)->shape();
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
    BoundCall call = bind_value(graph, node);
    std::vector<Shape> inputs;
    std::vector<DType> given;
    bool known = true;
    for (const NodeId input : call.inputs) {
      known = known && !types[static_cast<size_t>(input)].empty();
      inputs.push_back(shapes[static_cast<size_t>(input)]);
      given.push_back(elements[static_cast<size_t>(input)]);
    }
    if (!known) continue;
    try {
      const bool several = has_several_results(graph, node);
      const int64_t count = several ? call.op->results->count(call.attributes, inputs) : 1;
      for (int64_t i = 0; i < count; ++i) {
        if (several) call.attributes["result"] = i;
        const Shape shape = call.op->infer(call.attributes, inputs);
        if (i == 0) shapes[place] = shape;
        auto dims = read_shape(shape);
        if (!dims) {
          types[place].clear();
          break;
        }
        types[place].push_back({result_element(call, given), std::move(*dims)});
      }
    } catch (const Error&) {  // fits some sizes of the batch only, or its square is too large
      types[place].clear();
    }
  }
  return types;
}

}  // namespace mase
