// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/value_type.h"

#include <algorithm>
#include <cmath>

#include "mase/ir/typed_graph.h"

namespace mase {

bool is_index(const BoundCall& call, size_t input) {
  const auto& numbers = call.op->index_inputs;
  return std::find(numbers.begin(), numbers.end(), input) != numbers.end();
}

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
  const BoundGraph bound(graph);
  const std::vector<Shape> shapes = bound.shapes(1);
  int64_t limit = int64_t{1} << 24;
  for (const NodeId user : graph.users(placeholder)) {
    if (!bound.has_value(user)) continue;
    const BoundCall& call = bound.call(user);
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

}  // namespace mase
