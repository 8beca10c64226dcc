// SPDX-License-Identifier: Apache-2.0
// What an op of ours becomes in an ONNX model: one record each, in writers/.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/registry.h"
#include "mase/io/onnx/write/export.h"
#include "mase/io/onnx/write/own_graph.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/graph.h"
#include "mase/ir/op.h"

namespace mase::onnx {

// Of the model, for all nodes.
struct Export {
  const Graph& graph;
  ExportOptions options;
  Model model = {};
  std::vector<Shape> shapes = {};            // of every node, for a batch of 2
  std::vector<Shape> further = {};           // for a batch of 3: sizes that differ are the batch's
  std::vector<DType> elements = {};          // of every node's result
  std::map<NodeId, std::string> names = {};  // the ONNX value of each node
  std::map<std::string, std::string> constants = {};             // initialisers that are there
  std::map<std::string, std::vector<WrittenPart>> tensors = {};  // of the graph, by their names
  // The shapes of ONNX values, for both batches, where they are known: readers want them.
  std::map<std::string, std::pair<Shape, Shape>> known = {};
  bool uses_qonnx = false;
  // Of QONNX's domain, where a Trunc says it: that of the first version keeps its scale.
  std::optional<int64_t> qonnx_version = {};
};

class WriteContext {
 public:
  WriteContext(Export& model, const Node& node, BoundCall call)
      : model_(model), node_(node), call_(std::move(call)) {}

  const Value& attributes() const { return call_.attributes; }
  const Value& operator[](const std::string& name) const { return call_.attributes[name]; }
  int64_t operator_set() const { return model_.options.operator_set; }
  Flavour flavour() const { return model_.options.flavour; }
  size_t input_count() const { return call_.inputs.size(); }
  std::string place() const { return node_.name; }
  std::string path() const;  // of the layer; a function's node
  const Shape& input_shape(size_t index) const;
  const Shape& shape() const;
  // A size of this shape of a node with -1 for what the batch is in.
  Shape open_shape() const;
  std::vector<int64_t> numbers(const char* attribute, size_t count) const;  // one for each
  std::string padding_mode(const std::string& mode) const;  // PyTorch's, as Pad calls it

  // Names of ONNX values: an input, and a parameter, as the layer's formats round them. A part of a
  // parameter has a name of its own.
  std::string input(size_t index);
  bool has_parameter(const std::string& name) const;
  Tensor parameter_tensor(const std::string& name) const;
  std::string parameter(const std::string& name, const TensorView& view = {},
                        const std::string& part = "");
  // A value inside the op, as the format of that operand rounds it.
  std::string rounded(const std::string& name, const std::string& operand, const Shape& shape,
                      const TensorView& view = {});
  bool has_format(const std::string& operand) const;
  void leave_out(const std::string& operand) { rounded_.insert(operand); }  // not in this result
  std::string constant(const std::string& name, const Tensor& tensor);
  Tensor table(const Shape& shape, float value = 0) const;  // all of this value, to be filled in
  std::string integers(const std::string& name, const std::vector<int64_t>& values);
  std::string number(double value);

  // Adds a node and gives the name of its result, or of one of several.
  std::string add(const std::string& op, std::vector<std::string> inputs,
                  std::vector<Attribute> attributes = {}, const std::string& domain = "",
                  size_t which = 0, size_t results = 1);
  // The mean over these axes: they are an attribute in old operator sets and an input in new ones.
  std::string mean(const std::string& x, const std::vector<int64_t>& axes, bool keep);
  void result(const std::string& name);  // of the whole op; data_out is rounded after it
  void check_formats() const;            // an Error if a format was left out

  [[noreturn]] void fail(const std::string& cause, const std::string& remedy = "") const;

 private:
  const Node& caller() const;  // whose layer and formats these are, also of one of several results
  void know(const NodeData& node);
  std::string add_initializer(const std::string& name, TensorData data);
  std::string plain_name(const std::string& name) const;
  Export& model_;
  const Node& node_;
  BoundCall call_;
  std::string operand_ = {};            // that the nodes which are added round
  std::set<std::string> rounded_ = {};  // operands that were
};

struct OnnxWriter {
  static constexpr const char* kind = "ONNX writer";
  std::string name;  // of the op
  std::vector<std::string> aliases = {};
  std::function<void(WriteContext& context)> write;
};

Attribute integer_attribute(const std::string& name, int64_t value);
Attribute number_attribute(const std::string& name, double value);
Attribute text_attribute(const std::string& name, const std::string& value);
Attribute integers_attribute(const std::string& name, std::vector<int64_t> values);

}  // namespace mase::onnx
