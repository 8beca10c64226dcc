// SPDX-License-Identifier: Apache-2.0
// What an operation is: one record holds everything about it. Ops live one to a file in ops/, need
// no header of their own, and are found by name through the registry.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/base/tensor.h"
#include "mase/ir/lowering.h"

namespace mase {

struct OperandRules;

// The oracle's numbers: every op's `eval` and `grad` compute in double precision with plain loops,
// and every faster kernel is tested against them.
struct Array {
  Shape shape;
  std::vector<double> data;

  Array() = default;
  explicit Array(Shape s, double fill = 0)
      : shape(std::move(s)), data(static_cast<size_t>(element_count(shape)), fill) {}
  static Array from(const Tensor& tensor);
  Tensor to_tensor(DType dtype = DType::f32) const;
};

// PyTorch's default initialisation: a constant, uniform in [-bound, bound], or normal.
struct ParamSpec {
  std::string name;
  Shape shape;
  bool trainable = true;  // false: a buffer
  double constant = 0;
  double uniform_bound = 0;  // > 0 wins over the constant
  DType dtype = DType::f32;
  double normal_deviation = 0;  // > 0 wins over both
};

struct OpCall {
  const Value& attributes;
  std::vector<const Array*> inputs;
  std::map<std::string, const Array*> params = {};  // parameters and buffers by name
  bool training = false;
  uint64_t seed = 0;  // of the random draws of this call (dropout)
  // Training only: new values of buffers (running statistics), if the caller wants them.
  std::map<std::string, Array>* updates = nullptr;
  // Rounds a value inside the op as the operand's format says. Empty: nothing inside is rounded.
  std::function<Array(Array value, const std::string& operand)> round = {};

  Array rounded(Array value, const std::string& operand) const {
    return round ? round(std::move(value), operand) : value;
  }
};

struct OpGradients {
  std::vector<Array> inputs;
  std::map<std::string, Array> params;
};

// For one application at these shapes. One multiply-accumulate is one MAC and two FLOPs.
struct OpCost {
  int64_t macs = 0;
  int64_t flops = 0;
};

// An op that multiplies its input by a weight: where the channels are. Passes that fold, prune,
// quantise, count or emit products work on this, so that a new kind of product is known to all of
// them.
struct ProductInfo {
  std::string weight = "weight", bias = "bias";  // names of the parameters
  int64_t out_axis = 0;                          // of the weight: output channels
  int64_t in_axis = 1;                           // of the weight: input channels of one group
  int64_t channel_axis = -1;                     // of input and output; negative: from the end
  std::string in_attribute = "in_features", out_attribute = "out_features";
  std::string groups_attribute = {};  // empty: one group
};

// An op that in evaluation scales and shifts each channel by running statistics: parameters weight
// and bias, buffers running_mean and running_var, attribute eps.
struct ChannelNormInfo {
  int64_t channel_axis = 1;  // of input and output
};

// One of several products of a call, for ops whose `product` cannot say it: `data` operand times
// a parameter or some rows of it, or times other activations.
struct ProductPart {
  std::string data = {}, weight = {}, bias = {};  // operands; empty: none
  int64_t first = 0, rows = 0;                    // of the weight and the bias; 0 rows: all
  Shape in = {};                                  // the data's
  Shape other = {};                               // what stands for the weight: activations
  int64_t macs = 0, outputs = 0;
};

// What the elements of a result are. Promoted: as PyTorch promotes the inputs' types.
enum class ElementRule { promoted, real, integer, boolean };

// An op with several results. Its attributes have a field `result`, the number of the one that
// infer, eval, grad and lower are asked for (negative: from the end).
struct ResultsInfo {
  std::function<int64_t(const Value& attributes, const std::vector<Shape>& inputs)> count;
  // Whether these attributes ask for several results at all. Empty: always.
  std::function<bool(const Value& attributes)> several = {};
  std::vector<ElementRule> elements = {};  // of each result, where they differ
};

// A number that stands among the operands of a function: 1.5 makes floats of whole numbers, 1
// numbers of true and false. One that does not promote must be such an element itself.
struct ScalarAttribute {
  std::string name;
  bool promotes = true;
};

struct OpRecord {
  static constexpr const char* kind = "op";
  std::string name;  // MASE's mase_op: "linear", "batch_norm1d", "add"
  std::vector<std::string> aliases = {};
  std::string class_name = {};  // PyTorch's module class; empty: there is no module
  std::string function = {};    // fx's printed target ("operator.add"); empty: no function
  std::string mase_type;        // module, module_related_func, builtin_func, implicit_func
  std::string summary;
  Schema attributes = {};  // in PyTorch's order of arguments
  // Names of the literals of a function call, if they do not come in the schema's order.
  std::vector<std::string> function_arguments = {};
  int min_inputs = 1, max_inputs = 1;     // max_inputs -1: any number, given as one list
  std::vector<size_t> index_inputs = {};  // those that are whole numbers; they have no gradient
  std::vector<size_t> real_inputs = {};   // those that true and false must not stand for

  // Quantisation: operands in MASE's prefixes (data_in, weight, bias, data_out). Empty: the op has
  // no operand worth quantising. The first input is data_in; the second input of a two-input op
  // is `weight` if listed (matmul), else data_in too (add).
  std::vector<std::string> operands = {};
  std::vector<std::string> required_operands = {};
  // Those within the op: they are rounded where they are named, not by a format for all operands.
  std::vector<std::string> inner_operands = {};
  std::vector<std::string> unsigned_operands = {};  // MASE: relu's data_in takes the unsigned range
  // A layer of several products: `weight` stands for these parameters, each rounded by itself.
  std::map<std::string, std::vector<std::string>> operand_parts = {};

  ElementRule element = ElementRule::promoted;
  std::vector<ScalarAttribute> scalars = {};  // attributes that a promoted element depends on
  std::optional<ResultsInfo> results = {};    // none: one result

  std::optional<ProductInfo> product = {};
  std::function<std::vector<ProductPart>(const Value& attributes, const std::vector<Shape>& inputs)>
      product_parts = {};
  std::optional<ChannelNormInfo> channel_norm = {};

  bool multiplies_weights() const { return product.has_value() || product_parts; }

  std::function<std::vector<ParamSpec>(const Value& attributes)> params = {};
  std::function<Shape(const Value& attributes, const std::vector<Shape>& inputs)> infer;
  std::function<Array(const OpCall& call)> eval;
  std::function<OpGradients(const OpCall& call, const Array& out, const Array& grad_out)> grad;
  std::function<OpCost(const Value& attributes, const std::vector<Shape>& inputs, const Shape& out)>
      cost = {};
  // What stands between the brackets: "in_features=16, out_features=5, bias=True".
  std::function<std::string(const Value& attributes)> repr = {};
  // How the engine runs it, in primitives. Empty: the engine calls eval and grad, slow but right.
  std::function<Slot(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs)>
      lower = {};
  // Network descriptions may leave out what the input shapes and the data set say (in_features,
  // num_features; out_features of the last layer): fills that in before the attributes are
  // validated. `outputs` is the data set's number of classes or targets; 0: not known.
  std::function<void(Dict& attributes, const std::vector<Shape>& inputs, int64_t outputs)>
      complete = {};
  // Operands whose product sums up another dimension than their last.
  std::map<std::string, int64_t> summed_axes = {};
};

// What a layer's table of number formats may have.
OperandRules operand_rules(const OpRecord& op);

// By name, alias or PyTorch's class name.
const OpRecord& find_op(const std::string& name, const std::string& place = "");

}  // namespace mase
