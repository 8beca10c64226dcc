// SPDX-License-Identifier: Apache-2.0
// What an ONNX operator becomes in a graph of ours: one record each, in operators/. A record's
// `convert` reads the node through a NodeContext and gives each of its results. Whatever depends on
// constants alone is computed at once, so shapes that a file computes from shapes are known when a
// Reshape wants them.
//
// A network takes any batch as long as the model treats its entries alike. Then every computed
// value has the batch in one of its dimensions, alone or times a number, and no node joins entries
// of it: NodeContext holds every call to that. Where a node does otherwise, or asks for the batch
// as a number, it says so (needs_batch), and the model is read again as one sample of a batch of
// known size (Conversion::whole), or refused.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/registry.h"
#include "mase/io/onnx/file/size.h"
#include "mase/io/onnx/file/tensor.h"
#include "mase/io/onnx/read/operand_format.h"
#include "mase/ir/graph.h"
#include "mase/ir/op.h"

namespace mase::onnx {

// The integers between a QuantizeLinear and its DequantizeLinear: what was rounded, and how.
struct Codes {
  std::optional<Constant> constant = {};
  NodeId node = -1;
  AffineFormat format;
  double lowest = 0, largest = 0;  // a Clip between the two narrows these
};

// What an ONNX value stands for: a constant, or the result of a node of ours.
struct Operand {
  NodeId node = -1;
  std::optional<Constant> constant = {};
  Sizes shape = {};
  Element element = Element::f32;
  std::string source = {};                   // the initialiser it came from
  std::optional<OperandFormat> format = {};  // constants: how a layer that takes them rounds them
  std::shared_ptr<const Codes> codes = {};   // neither constant nor node: integers in between
  std::shared_ptr<const Tensor> table = {};  // constants: what they are the first rows of
  // Whole numbers that depend on the batch, in the order of their shape: neither constant nor node.
  std::shared_ptr<const std::vector<Size>> sizes = {};
  // Constants: the dimension, 1 here, that has the size of the batch in the file, the same values
  // for each of its entries.
  std::optional<size_t> repeated = {};
  // Of computed values: so many of the factors of a size c * batch stand before the batch. Reshapes
  // that would change their order would mix the entries.
  int64_t outer = 1;

  bool is_constant() const { return constant.has_value(); }
  size_t rank() const { return shape.size(); }
};

// Of the model, for all nodes.
struct Conversion {
  Graph graph = {};
  std::string place = {};
  int64_t fixed_batch = 0;  // the batch the file fixes; 0: none
  // The model is one sample: its inputs' shapes have no batch of ours, every value of the graph has
  // one in front. For models that treat the entries of their own batch differently, or have none.
  bool whole = false;
  int64_t standard_version = 1;  // of the standard domain's operator set
  NodeId anchor = -1;            // see NodeContext::with_batch
  MemoryBudget* budget = nullptr;
  std::map<std::string, Operand> values = {};  // by ONNX name
  std::map<std::string, int> uses = {};        // how often a value is taken
  // The quantised operands of layers (by module path) and of functions (by node), until the end.
  std::map<std::string, std::map<std::string, OperandFormat>> formats = {};
  std::map<NodeId, std::map<std::string, OperandFormat>> function_formats = {};
  std::map<std::string, std::string> sources = {};  // of modules: what their parameters came from
  std::set<NodeId> roundings = {};                  // identities that only round
  std::set<NodeId> of_users = {};  // those of them that the file says round what a layer takes
  std::set<std::string> constants = {};  // tensors that were made constants of the graph
  std::vector<std::string> notes = {};   // what the user should know
  // Converts the graph of an attribute (a branch, a turn of a loop) here and now.
  std::function<std::vector<Operand>(const GraphData& graph, const std::vector<Operand>& inputs)>
      convert_body = {};
};

class NodeContext {
 public:
  NodeContext(Conversion& conversion, const NodeData& node, int64_t version)
      : model_(conversion), node_(node), version_(version) {}

  const NodeData& node() const { return node_; }
  int64_t version() const { return version_; }  // of the operator set
  int64_t fixed_batch() const { return model_.fixed_batch; }
  bool whole() const { return model_.whole; }
  Conversion& model() { return model_; }

  // Inputs. A missing one is an error at this node; whole numbers that depend on the batch are for
  // `value` and `sizes` alone, and need the batch elsewhere.
  bool has(size_t index) const;
  const Operand& input(size_t index) const;
  const Operand& value(size_t index) const;
  std::vector<Size> sizes(size_t index, const char* what) const;  // constants, too
  size_t input_count() const { return node_.inputs.size(); }
  int uses_of(size_t index) const;  // how often the value of this input is taken in the model
  const Tensor& constant(size_t index, const char* what) const;  // must be one
  std::vector<int64_t> integers(size_t index, const char* what) const;
  std::vector<double> numbers(size_t index, const char* what) const;
  double single(size_t index, const char* what) const;
  // An attribute in old operator sets, an input in new ones; nothing if it is neither.
  std::optional<std::vector<int64_t>> axes(size_t index, const char* name = "axes") const;
  bool output_is_used(size_t index) const;
  int64_t checked_axis(int64_t axis, size_t rank) const;  // negative ones count from the end

  // Attributes, with the operator's defaults.
  bool has_attribute(const std::string& name) const { return node_.find(name) != nullptr; }
  int64_t integer(const std::string& name, int64_t fallback) const;
  double number(const std::string& name, double fallback) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  std::vector<int64_t> integer_list(const std::string& name,
                                    std::vector<int64_t> fallback = {}) const;

  // Building. `call` applies one of our ops; constants among the inputs become literals or constant
  // nodes, and where all are constants the result is computed. `attributes` as the op names them.
  // `which`: of an op with several results.
  Operand call(const std::string& op, const std::vector<Operand>& inputs, Dict attributes = {},
               int64_t which = 0);
  Operand reshape(const Operand& x, const Sizes& shape);
  // A layer with parameters. Each is a constant whose format, if it has one, becomes the format of
  // the layer's operand of that name.
  struct Parameter {
    std::string name;
    Operand value;
  };
  Operand layer(const std::string& op, Dict attributes, const std::vector<Parameter>& parameters,
                const Operand& input);
  // x rounded to a number format.
  Operand rounded(const Operand& x, const OperandFormat& format);
  // A constant with the numbers its format has, for those who cannot keep the format.
  Operand materialized(const Operand& constant);
  Operand constant_operand(Tensor tensor) const;
  Operand scalar(double value) const;
  Operand whole_number(int64_t value) const;
  // A constant, unless one of them depends on the batch.
  Operand sizes_operand(const Shape& shape, std::vector<Size> sizes, Element element) const;
  Operand zeros(const Shape& shape);                           // charged to the budget
  Operand like(const Operand& constant, Tensor tensor) const;  // its type and source, other numbers
  // Integers between quantisers as whole numbers, for those who compute with them.
  Operand as_numbers(const Operand& operand);
  // A constant repeated for each entry of the batch, for those who do not broadcast. In front it
  // has a dimension of 1, unless the model is one sample.
  Operand with_batch(const Operand& constant);
  Operand as_node(const Operand& operand);  // a constant node for a constant

  void result(size_t index, Operand operand);

  std::string place() const;  // "model.onnx: node 'conv1' (Conv)"
  [[noreturn]] void fail(const std::string& cause, const std::string& remedy = "") const;
  // It cannot be said without knowing how large the batch is.
  [[noreturn]] void needs_batch(const std::string& cause) const;
  void note(const std::string& line) {
    if (model_.notes.empty() || model_.notes.back() != line) model_.notes.push_back(line);
  }

  // The module path for a layer: from its weight's name, from where PyTorch says the node stood, or
  // from the node's own name.
  std::string layer_path(const std::string& op, const std::string& weight_source) const;
  // The same if PyTorch says that a module of this class stood here; "" otherwise.
  std::string scoped_path(const std::string& class_name) const;

 private:
  NodeId reshape_node(NodeId node, const Shape& open);
  Sizes graph_shape(const Operand& operand) const;
  std::vector<Operand> aligned(std::vector<Operand> inputs);
  Operand joined(const Operand& x);
  Operand apart(NodeId node, const Sizes& out);
  Operand without_batch(NodeId node, const Sizes& out) const;
  [[noreturn]] void refuse(const Error& error, const std::vector<Operand>& inputs) const;
  Operand entry_of_batch(const Operand& constant) const;
  void check_samples(const OpRecord& op, const Value& attributes,
                     const std::vector<Operand>& inputs, Operand& result) const;
  std::optional<Operand> moved_codes(const OpRecord& op, const std::vector<Operand>& given,
                                     const Dict& attributes);
  Operand folded(const OpRecord& op, const std::vector<Operand>& inputs, const Value& attributes);
  std::vector<Operand> fitted_to_batch(std::vector<Operand> inputs) const;

  Conversion& model_;
  const NodeData& node_;
  int64_t version_;
};

struct OnnxOperator {
  static constexpr const char* kind = "ONNX operator";
  std::string name;  // "Conv"; of other domains "com.microsoft::Gelu"
  std::vector<std::string> aliases = {};
  std::string summary;  // what it becomes
  // Inputs whose values it moves or adds and does nothing else with: sizes that depend on the batch
  // go through it in two parts, what stands before the batch and the rest.
  enum class Linear { none, first, all, but_first } linear = Linear::none;
  // What it does with constants that are repeated for the batch: most get them with their entries.
  // Broadcasting: each entry of the result follows from that entry of the inputs. Indices: the same
  // for numbers that name rows of a constant. Own: it looks at Operand::repeated itself.
  enum class Repeated { entries, broadcasting, indices, own } repeated = Repeated::entries;
  std::function<void(NodeContext& context)> convert;
};

std::string operator_name(const std::string& domain, const std::string& op);
// Of the numbers that are the same in single precision the shortest: 1e-05, not 9.99999974738e-06.
double decimal_of(double value);
std::string clean_path(const std::string& text);  // letters, digits, dots and underscores

}  // namespace mase::onnx
