// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/lora.h"

#include <algorithm>

#include "mase/base/text.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/learned.h"

namespace mase {
namespace {

std::string lora_dropout_path(const std::string& path) { return path + ".lora_dropout"; }

std::vector<NodeId> calls_of_module(const Graph& graph, const std::string& path) {
  std::vector<NodeId> calls;
  for (const NodeId id : graph.order())
    if (graph.node(id).kind == NodeKind::call_module && graph.node(id).target == path)
      calls.push_back(id);
  return calls;
}

// The one user of a node, or nothing.
std::optional<NodeId> only_user(const Graph& graph, NodeId id) {
  const std::vector<NodeId> users = graph.users(id);
  return users.size() == 1 ? std::optional<NodeId>(users[0]) : std::nullopt;
}

bool is_function(const Graph& graph, NodeId id, const char* op) {
  return graph.node(id).kind == NodeKind::call_function && graph.node(id).target == op;
}

// The call of an adapter around its second product; a reason where it is not as we write it.
std::string read_call(const Graph& graph, LoraAdapter& adapter, NodeId b) {
  LoraAdapter::Call call{.base = -1, .dropout = -1, .a = -1, .b = b, .scaled = -1, .sum = -1};
  call.a = graph.inputs_of(b).front();
  if (graph.node(call.a).target != lora_a_path(adapter.path))
    return "something stands between its two products";
  if (!only_user(graph, call.a)) return "its first product is used elsewhere";
  NodeId x = graph.inputs_of(call.a).front();
  if (graph.node(x).kind == NodeKind::call_module &&
      graph.node(x).target == lora_dropout_path(adapter.path)) {
    call.dropout = x;
    adapter.dropout = graph.module_of(graph.node(x))->attributes["p"].as_double();
    x = graph.inputs_of(x).front();
  }
  const std::optional<NodeId> scaled = only_user(graph, b);
  if (!scaled || !is_function(graph, *scaled, "mul") || graph.node(*scaled).args.size() != 2)
    return "its second product is not multiplied by a number";
  call.scaled = *scaled;
  const Argument& factor = graph.node(*scaled).args[1];
  const Value* number = std::get_if<Value>(&factor.data);
  if (!number || !number->is_number()) return "its second product is not multiplied by a number";
  const double scale = number->as_double();
  if (!adapter.calls.empty() && scale != adapter.scale) return "its calls have different scales";
  adapter.scale = scale;
  const std::optional<NodeId> sum = only_user(graph, *scaled);
  if (!sum || !is_function(graph, *sum, "add")) return "it is not added to its layer's result";
  call.sum = *sum;
  const std::vector<NodeId> terms = graph.inputs_of(*sum);
  if (terms.size() != 2 || graph.node(terms[0]).kind != NodeKind::call_module ||
      graph.node(terms[0]).target != adapter.path)
    return "it is not added to its layer's result";
  call.base = terms[0];
  if (!only_user(graph, call.base)) return "its layer's result is used without it";
  if (graph.inputs_of(call.base).front() != x) return "it and its layer have different inputs";
  for (const NodeId id : {call.scaled, call.sum, call.a, call.b})
    if (!graph.quantization_of(graph.node(id)).config.is_null())
      return "the adapter itself has a number format";
  adapter.calls.push_back(call);
  return "";
}

}  // namespace

std::string lora_a_path(const std::string& path) { return path + ".lora_A"; }
std::string lora_b_path(const std::string& path) { return path + ".lora_B"; }

bool is_lora_part(const std::string& path) {
  return ends_with(path, ".lora_A") || ends_with(path, ".lora_B") ||
         ends_with(path, ".lora_dropout");
}

int64_t LoraAdapter::rank(const Graph& graph) const {
  return graph.modules().at(lora_a_path(path)).find("weight")->dim(0);
}

void insert_lora(Graph& graph, const std::string& path, const LoraOptions& options) {
  const std::string a_path = lora_a_path(path), b_path = lora_b_path(path);
  if (graph.modules().count(a_path) || graph.modules().count(b_path))
    throw Error(path, "the layer has an adapter already", "run fuse_lora_weights first");
  const Shape weight = graph.modules().at(path).find("weight")->shape();
  const int64_t out = weight.at(0), in = weight.at(1);
  graph.modules()[a_path] = make_module(
      "linear", Dict{{"in_features", in}, {"out_features", options.rank}, {"bias", false}},
      options.seed, a_path);
  Module b = make_module(
      "linear", Dict{{"in_features", options.rank}, {"out_features", out}, {"bias", false}},
      options.seed, b_path);
  *b.find("weight") = Tensor({out, options.rank});
  graph.modules()[b_path] = std::move(b);
  if (options.dropout > 0)
    graph.modules()[lora_dropout_path(path)] =
        make_module("dropout", Dict{{"p", options.dropout}}, options.seed, lora_dropout_path(path));
  for (const NodeId base : calls_of_module(graph, path)) {
    const auto& order = graph.order();
    const auto at = std::find(order.begin(), order.end(), base);
    graph.insert_before(*(at + 1));  // an output node follows at the latest
    const NodeId x = graph.inputs_of(base).front();
    NodeId inner = x;
    if (options.dropout > 0)
      inner = graph.call_module(lora_dropout_path(path), {Argument::node(inner)});
    inner = graph.call_module(a_path, {Argument::node(inner)});
    inner = graph.call_module(b_path, {Argument::node(inner)});
    const NodeId scaled = graph.call_function(
        "mul", {Argument::node(inner), Argument::literal(Value(options.scale))});
    const NodeId sum = graph.call_function("add", {Argument::node(base), Argument::node(scaled)});
    graph.append();
    graph.replace_uses(base, sum);
  }
}

std::vector<LoraAdapter> lora_adapters(const Graph& graph) {
  std::vector<LoraAdapter> found;
  for (const std::string& b_path : graph.module_order()) {
    if (!ends_with(b_path, ".lora_B")) continue;
    LoraAdapter adapter;
    adapter.path = b_path.substr(0, b_path.size() - std::string(".lora_B").size());
    const auto linear = [&](const std::string& path) {
      const auto module = graph.modules().find(path);
      return module != graph.modules().end() && module->second.op == "linear";
    };
    if (!linear(adapter.path) || !linear(lora_a_path(adapter.path)) || !linear(b_path)) continue;
    for (const NodeId b : calls_of_module(graph, b_path)) {
      adapter.obstacle = read_call(graph, adapter, b);
      if (!adapter.obstacle.empty()) break;
    }
    if (adapter.obstacle.empty() &&
        adapter.calls.size() != calls_of_module(graph, adapter.path).size())
      adapter.obstacle = "its layer is also called without it";
    found.push_back(std::move(adapter));
  }
  return found;
}

void fuse_lora(Graph& graph, const LoraAdapter& adapter) {
  MASE_CHECK(adapter.obstacle.empty(), "{}: {}", adapter.path, adapter.obstacle);
  Module& layer = graph.modules().at(adapter.path);
  const Tensor a = *graph.modules().at(lora_a_path(adapter.path)).find("weight"),
               b = *graph.modules().at(lora_b_path(adapter.path)).find("weight");
  const auto rank = static_cast<size_t>(a.dim(0)), in = static_cast<size_t>(a.dim(1)),
             out = static_cast<size_t>(b.dim(0));
  float* weight = layer.find("weight")->mutable_data<float>();
  std::vector<double> row(in);
  for (size_t o = 0; o < out; ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t r = 0; r < rank; ++r) {
      const double factor = static_cast<double>(b.data<float>()[o * rank + r]);
      for (size_t i = 0; i < in; ++i)
        row[i] += factor * static_cast<double>(a.data<float>()[r * in + i]);
    }
    for (size_t i = 0; i < in; ++i)
      weight[o * in + i] =
          static_cast<float>(static_cast<double>(weight[o * in + i]) + adapter.scale * row[i]);
  }
  // What quantisers of other weights learned is found anew.
  for (const LearnedOperand& learned : learned_operands(layer))
    if (!is_activation(learned.operand))
      std::erase_if(layer.parameters,
                    [&](const auto& entry) { return entry.first == learned.parameter; });
  fit_learned_parameters(layer);
  for (const LoraAdapter::Call& call : adapter.calls) {
    graph.replace_uses(call.sum, call.base);
    for (const NodeId id : {call.sum, call.scaled, call.b, call.a, call.dropout})
      if (id >= 0) graph.erase(id);
    graph.node(call.base).meta.erase("software");  // statistics of other weights
  }
}

void train_adapters_only(Graph& graph) {
  for (auto& [path, module] : graph.modules()) module.frozen = !is_lora_part(path);
}

}  // namespace mase
