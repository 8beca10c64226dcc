// SPDX-License-Identifier: Apache-2.0
// MaseGraph: an ordered list of nodes and a table of modules, modelled on torch.fx because the
// reports are. A graph is a value: copying it is cheap (parameters share memory until written), so
// an original and its transformed copy live side by side.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/base/value.h"
#include "mase/ir/quantization.h"

namespace mase {

enum class NodeKind { placeholder, get_attr, call_function, call_method, call_module, output };
const char* node_kind_name(NodeKind kind);  // "call_module"

using NodeId = int;  // stable for the life of a graph and equal in its copies

// An argument of a node: another node's result, a literal, or a list of arguments.
struct Argument {
  struct Ref {
    NodeId id;
    bool operator==(const Ref&) const = default;
  };
  std::variant<Ref, Value, std::vector<Argument>> data;

  static Argument node(NodeId id) { return {Ref{id}}; }
  static Argument literal(Value value) { return {std::move(value)}; }
  static Argument list(std::vector<Argument> items) { return {std::move(items)}; }
  bool is_node() const { return std::holds_alternative<Ref>(data); }
  NodeId id() const { return std::get<Ref>(data).id; }
};

struct Node {
  NodeId id = -1;
  std::string name;
  NodeKind kind = NodeKind::placeholder;
  std::string target;  // module path, op name of a function or method, placeholder name
  std::vector<Argument> args = {};
  std::vector<std::pair<std::string, Argument>> kwargs = {};
  Shape sample_shape = {};         // placeholders: the shape of one sample, batch excluded
  DType element = DType::f32;      // placeholders: what the values are
  int64_t size = -1;               // method `size`: what it gives; 0: the batch (resolve_sizes)
  Quantization quantization = {};  // functions and methods; modules keep theirs in the table
  Dict meta = {};                  // common, software, hardware
};

// An ordered map of named tensors.
using TensorTable = std::vector<std::pair<std::string, Tensor>>;

struct Module {
  std::string op;    // registry name of the op; empty: only holds tensors that get_attr nodes read
  Value attributes;  // validated against the op's schema
  TensorTable parameters = {};
  TensorTable buffers = {};
  TensorTable masks = {};  // pruning masks by parameter name: 1 keeps, 0 removes
  Quantization quantization = {};
  bool frozen = false;  // parameters are not trained

  const Tensor* find(const std::string& name) const;  // parameter or buffer
  Tensor* find(const std::string& name);
};

class Graph {
 public:
  std::string name;  // the network's name, "jsc-tiny"
  Dict meta;         // graph-level metadata

  // Building. Node names follow fx: dots become underscores, repetitions get _1, _2, ...
  NodeId add_placeholder(const std::string& name, Shape sample_shape, DType element = DType::f32);
  // A constant as a value: a get_attr node that reads the tensor of this name ("positions",
  // "encoder.positions"), which becomes part of the module table. Trainable: a parameter.
  NodeId add_constant(const std::string& tensor_name, Tensor value, bool trainable = false);
  NodeId get_attr(const std::string& tensor_name);  // of a tensor that is there already
  NodeId add_module(const std::string& path, Module module, const std::vector<NodeId>& inputs);
  NodeId call_module(const std::string& path, std::vector<Argument> args);  // path exists already
  NodeId call_function(const std::string& op, std::vector<Argument> args,
                       std::vector<std::pair<std::string, Argument>> kwargs = {});
  // Methods are named as PyTorch's; sizes and orders may be given one by one, as it takes them.
  NodeId call_method(const std::string& method, std::vector<Argument> args,
                     std::vector<std::pair<std::string, Argument>> kwargs = {});
  // Result `index` of a node that has several: operator.getitem, as fx writes it.
  NodeId result_of(NodeId several, int64_t index);
  NodeId add_output(std::vector<NodeId> results);
  NodeId add_node(Node node);  // appended, or before the insertion point
  void insert_before(NodeId id) { insertion_ = id; }
  void append() { insertion_ = -1; }

  // Reading.
  const std::vector<NodeId>& order() const { return order_; }
  const Node& node(NodeId id) const { return nodes_.at(static_cast<size_t>(id)); }
  Node& node(NodeId id) { return nodes_.at(static_cast<size_t>(id)); }
  const Node* find(const std::string& name) const;
  size_t id_limit() const { return nodes_.size(); }  // ids are below this: for tables by id
  std::vector<NodeId> placeholders() const;
  std::vector<NodeId> outputs() const;                 // the nodes whose results the graph returns
  std::vector<NodeId> inputs_of(NodeId id) const;      // node arguments in order, lists flattened
  std::vector<NodeId> users(NodeId id) const;          // in order, each once
  std::vector<std::vector<NodeId>> use_lists() const;  // the users of every node, by id

  std::map<std::string, Module>& modules() { return modules_; }
  const std::map<std::string, Module>& modules() const { return modules_; }
  const Module* module_of(const Node& node) const;  // null unless call_module
  Module* module_of(const Node& node);
  // A parameter or buffer by its name in the state dict; null if there is none. The module that has
  // it, and its name there: layers may have parameters of parts ("out_proj.weight").
  std::optional<std::pair<std::string, std::string>> owner_of(const std::string& tensor_name) const;
  const Tensor* tensor(const std::string& tensor_name) const;
  Tensor* tensor(const std::string& tensor_name);
  // Paths of the modules in the order in which the nodes first call them or read their tensors.
  std::vector<std::string> module_order() const;
  // The quantisation of a node, wherever it is kept.
  const Quantization& quantization_of(const Node& node) const;

  // Changing.
  void replace_uses(NodeId old_id, NodeId new_id);
  void erase(NodeId id);  // must have no users; its module goes if nothing else needs it

  std::string text() const;  // torch.fx's printed form

  int64_t parameter_count(bool trainable_only = true) const;

 private:
  std::string unique_name(const std::string& wanted) const;
  std::string module_needed_by(const Node& node) const;  // of a call_module or get_attr node

  std::vector<Node> nodes_;  // by id; erased nodes keep their slot
  std::vector<NodeId> order_;
  std::map<std::string, Module> modules_;  // by path
  NodeId insertion_ = -1;
};

// The name of a tensor in a state dict: "<path>.<parameter>". Tensors of the network itself have no
// path.
std::string tensor_name(const std::string& path, const std::string& name);

// State dict order is module order in the graph, parameters before buffers, as PyTorch's.
TensorTable state_dict(const Graph& graph);

// Lossless JSON, tensors aside (shapes and dtypes of parameters are written, values are not).
Value graph_to_value(const Graph& graph);
Graph graph_from_value(const Value& value);

// A number known before anything runs: x.size(1). Other nodes take it as a literal.
inline bool is_size(const Node& node) {
  return node.kind == NodeKind::call_method && node.target == "size";
}

// Throws an Error that names the node: names unique, arguments defined before use, shapes agree,
// every parameter used by its module and of the shape its op wants.
void verify(const Graph& graph);

// The result shape of every node (by id) for this batch size; of a node with several results, that
// of the first (each of the others has its own getitem node).
std::vector<Shape> infer_shapes(const Graph& graph, int64_t batch_size);

// A module of this op with PyTorch's default initialisation. `attributes` are validated.
Module make_module(const std::string& op, const Value& attributes, uint64_t seed,
                   const std::string& path);

}  // namespace mase
