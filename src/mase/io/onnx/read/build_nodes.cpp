// SPDX-License-Identifier: Apache-2.0
// How converters build: constants folded, calls and layers of our ops, roundings. In a model that
// is one sample as a whole (Conversion::whole) every value of the graph has a batch of such models
// in front of its ONNX shape; converters do not see it.
#include <algorithm>
#include <cmath>
#include <set>

#include "mase/base/text.h"
#include "mase/io/onnx/read/operator.h"
#include "mase/ir/evaluate.h"

namespace mase::onnx {
namespace {

bool is_pair(const OpRecord& op) {
  return op.attributes.find("other") && op.attributes.find("input");
}

bool is_scalar_for(const Operand& constant, const Operand& other) {
  return constant.is_constant() && constant.constant->tensor.numel() == 1 &&
         constant.rank() <= other.rank();
}

// Slices along dimension 0 that are all alike.
bool repeats(const Tensor& tensor) {
  const auto count = static_cast<size_t>(tensor.dim(0));
  const size_t size = tensor.bytes() / count;
  for (size_t i = 1; i < count; ++i)
    if (!std::equal(tensor.raw(), tensor.raw() + size, tensor.raw() + i * size)) return false;
  return true;
}

bool broadcasts(const OpRecord& op) {
  return is_pair(op) || op.name == "where" || op.name == "matmul";
}

// [N, C, positions...] and nothing in front of it.
bool wants_batch_first(const OpRecord& op) {
  static const std::set<std::string> others = {"group_norm", "instance_norm1d", "instance_norm2d",
                                               "prelu", "upsample"};
  return op.channel_norm || (op.product && op.product->channel_axis == 1) ||
         op.name.find("_pool") != std::string::npos || others.count(op.name);
}

// What is true of rounded values after it if it was before: elements stay as they are.
bool moves_elements(const OpRecord& op) {
  static const std::set<std::string> names = {
      "reshape", "permute",   "flatten",      "squeeze",    "unsqueeze",
      "narrow",  "transpose", "index_select", "max_pool1d", "max_pool2d"};
  return names.count(op.name) > 0;
}

// The attributes with every dimension one further back.
Dict behind_batch(const Dict& attributes) {
  Dict moved;
  const auto behind = [](const Value& dim) {
    return dim.is_int() && dim.as_int() >= 0 ? Value(dim.as_int() + 1) : dim;
  };
  for (const auto& [key, value] : attributes) {
    const bool dims = key == "dims", sizes = key == "shape";
    if (value.is_list() && (dims || sizes || key == "dim")) {
      List list;
      if (dims) list.emplace_back(0);
      if (sizes) list.emplace_back(-1);
      for (const Value& item : value.as_list()) list.push_back(sizes ? item : behind(item));
      moved.set(key, Value(list));
    } else if (key == "dim" || key == "dim0" || key == "dim1" || key == "start_dim" ||
               key == "end_dim") {
      moved.set(key, behind(value));
    } else {
      moved.set(key, value);
    }
  }
  return moved;
}

// The dimensions that attributes name.
std::vector<int64_t> dims_of(const Value& attributes) {
  const Value& dim = attributes["dim"];
  if (dim.is_int()) return {dim.as_int()};
  std::vector<int64_t> dims;
  if (dim.is_list())
    for (const Value& item : dim.as_list()) dims.push_back(item.as_int());
  return dims;
}

// Of a result that has the elements of its operands: numbers before truth values, what is computed
// before constants of ours.
Element element_of(const OpRecord& op, const std::vector<Operand>& inputs) {
  std::vector<const Operand*> operands;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!std::count(op.index_inputs.begin(), op.index_inputs.end(), i))
      operands.push_back(&inputs[i]);
  if (operands.empty()) return Element::f32;
  const auto rank = [](const Operand* x) {
    return (x->element == Element::boolean ? 2 : 0) + (x->is_constant() ? 1 : 0);
  };
  return (*std::min_element(operands.begin(), operands.end(),
                            [&](auto* a, auto* b) { return rank(a) < rank(b); }))
      ->element;
}

}  // namespace

Operand NodeContext::materialized(const Operand& operand) {
  if (!operand.is_constant() || !operand.format) return operand;
  Operand plain = operand;
  // Numbers of blocks were made from integers: they are rounded.
  if (has_keys(*operand.format, operand.rank()))
    plain.constant->tensor =
        round_tensor(*operand.format, operand.constant->tensor.to(DType::f32), place());
  plain.format.reset();
  plain.source.clear();
  return plain;
}

Operand NodeContext::as_node(const Operand& operand) {
  if (!operand.is_constant()) return operand;
  Operand result = materialized(operand);
  std::string base = clean_path(operand.source);
  if (base.empty()) base = "constant";
  // A layer would take it for a parameter of its own.
  const auto owner =
      model_.graph.modules().find(base.substr(0, std::min(base.rfind('.'), base.size())));
  if (owner != model_.graph.modules().end() && !owner->second.op.empty())
    base = replace_all(base, ".", "_");
  std::string name = base;
  for (int number = 1; model_.graph.tensor(name) || model_.graph.modules().count(name); ++number)
    name = fmt::format("{}_{}", base, number);
  const DType dtype = result.constant->tensor.dtype();
  const DType kept = is_real(dtype) ? DType::f32 : dtype == DType::boolean ? dtype : DType::i64;
  result.node = model_.graph.add_constant(name, result.constant->tensor.to(kept));
  model_.constants.insert(name);
  result.constant.reset();
  return result;
}

Operand NodeContext::folded(const OpRecord& op, const std::vector<Operand>& inputs,
                            const Value& attributes) {
  std::vector<Shape> shapes;
  for (const Operand& input : inputs) shapes.push_back(input.shape);
  const Shape shape = op.infer(attributes, shapes);
  constexpr int64_t most = int64_t{1} << 24;
  if (element_count(shape) > most)
    fail(fmt::format("a constant of shape {} would be computed", shape_text(shape)),
         "export the model with a dynamic batch, or with constants folded");
  model_.budget->charge(static_cast<size_t>(element_count(shape)) * sizeof(double), place());
  std::vector<Array> arrays;
  for (const Operand& input : inputs) {
    model_.budget->charge(static_cast<size_t>(input.constant->tensor.numel()) * sizeof(double),
                          place());
    arrays.push_back(Array::from(materialized(input).constant->tensor));
  }
  OpCall call{attributes, {}};
  for (const Array& array : arrays) call.inputs.push_back(&array);
  const Array out = op.eval(call);
  for (const Array& array : arrays) model_.budget->give_back(array.data.size() * sizeof(double));
  // where(condition, a, b) has the type of a; a result that is no value has its own.
  const Operand& like =
      inputs.size() > 1 && inputs[0].element == Element::boolean ? inputs[1] : inputs[0];
  const DType dtype = op.element == ElementRule::boolean   ? DType::boolean
                      : op.element == ElementRule::integer ? DType::i64
                                                           : like.constant->tensor.dtype();
  return constant_operand(out.to_tensor(dtype));
}

// Of a constant as large as the batch the one entry that all of them are.
Operand NodeContext::entry_of_batch(const Operand& constant) const {
  const Tensor& tensor = constant.constant->tensor;
  if (tensor.numel() == 0 || !repeats(tensor))
    needs_batch("a constant differs from one entry of the batch to the next");
  Operand entry = constant;
  Shape shape = tensor.shape();
  shape[0] = 1;
  Tensor first(shape, tensor.dtype());
  std::copy_n(tensor.raw(), first.bytes(), first.mutable_raw());
  entry.constant->tensor = first;
  entry.shape = shape;
  return entry;
}

// A model whose batch is fixed may hold constants that repeat for each entry of it.
std::vector<Operand> NodeContext::fitted_to_batch(std::vector<Operand> inputs) const {
  size_t rank = 0;
  for (const Operand& input : inputs) rank = std::max(rank, input.rank());
  const bool batched = std::any_of(inputs.begin(), inputs.end(), [&](const Operand& input) {
    return !input.is_constant() && input.rank() == rank && rank > 0 && input.shape[0].is_batch();
  });
  if (!batched || model_.fixed_batch < 2) return inputs;
  for (Operand& input : inputs)
    if (input.is_constant() && input.rank() == rank && input.shape[0] == model_.fixed_batch)
      input = entry_of_batch(input);
  return inputs;
}

// Entries of the batch stay apart. `result` has the shape that follows from the inputs'.
void NodeContext::check_samples(const OpRecord& op, const Value& attributes,
                                const std::vector<Operand>& inputs, Operand& result) const {
  if (whole()) return;
  const auto batched = [](const Operand& x) { return !x.is_constant() && x.shape.has_batch(); };
  const auto axis_of = [](const Operand& x) {
    return static_cast<size_t>(std::find_if(x.shape.begin(), x.shape.end(),
                                            [](const Size& size) { return size.has_batch(); }) -
                               x.shape.begin());
  };
  if (std::none_of(inputs.begin(), inputs.end(), batched)) return;
  if (!result.shape.has_batch()) needs_batch("it joins the entries of the batch");
  const size_t axis = axis_of(result);
  const auto others = std::count_if(result.shape.begin(), result.shape.end(),
                                    [](const Size& size) { return size.has_batch(); });
  if (others > 1 || result.shape[axis].constant != 0 || result.shape[axis].batches < 1)
    needs_batch(fmt::format("its result is {}", shape_text(result.shape)));
  const bool moves = op.name == "reshape" || op.name == "flatten" || op.name == "unsqueeze" ||
                     op.name == "squeeze";
  const std::vector<int64_t> dims = moves ? std::vector<int64_t>() : dims_of(attributes);
  for (const Operand& input : inputs) {
    if (!batched(input)) continue;
    const size_t own = axis_of(input);
    const auto rank = static_cast<int64_t>(input.rank());
    for (const int64_t dim : dims)
      if ((dim < 0 ? dim + rank : dim) == static_cast<int64_t>(own))
        needs_batch("it joins the entries of the batch");
    if (wants_batch_first(op) && own != 0)
      needs_batch("the batch does not stand in front of its input");
    if (op.name == "scaled_dot_product_attention" && own + 2 >= input.rank())
      needs_batch("it joins the entries of the batch");
    if (moves) {
      // So many elements of one entry stand before the next entry's.
      const int64_t before =
          product_of(element_count(Sizes(input.shape.begin(),
                                         input.shape.begin() + static_cast<int64_t>(own))),
                     input.outer);
      const int64_t ahead = element_count(
          Sizes(result.shape.begin(), result.shape.begin() + static_cast<int64_t>(axis)));
      if (ahead < 1 || before % ahead != 0 || result.shape[axis].batches % (before / ahead) != 0)
        needs_batch(fmt::format("{} becomes {}, which mixes the entries of the batch",
                                shape_text(input.shape), shape_text(result.shape)));
      result.outer = before / ahead;
    } else if (result.shape[axis].batches > 1) {
      if (&input != &*std::find_if(inputs.begin(), inputs.end(), batched) &&
          input.outer != result.outer)
        needs_batch("the entries of its inputs stand in different orders");
      result.outer = input.outer;
    }
  }
}

// Sizes that do not fit may do so in a batch of known size.
void NodeContext::refuse(const Error& error, const std::vector<Operand>& inputs) const {
  if (starts_with(error.place(), model_.place)) {
    if (const auto* needed = dynamic_cast<const BatchNeeded*>(&error)) throw BatchNeeded(*needed);
    throw Error(error);
  }
  const bool batched =
      !whole() && std::any_of(inputs.begin(), inputs.end(), [](const Operand& input) {
        return !input.is_constant() && input.shape.has_batch();
      });
  if (batched || dynamic_cast<const BatchNeeded*>(&error)) needs_batch(error.cause());
  fail(error.cause(), error.remedy());
}

NodeId NodeContext::reshape_node(NodeId node, const Shape& open) {
  return model_.graph.call_function("reshape", {Argument::node(node)},
                                    {{"shape", Argument::literal(Value::of(open))}});
}

Sizes NodeContext::graph_shape(const Operand& operand) const {
  Sizes shape = operand.shape;
  if (whole() && !operand.is_constant()) shape.insert(shape.begin(), Size::batch());
  return shape;
}

// Dimensions of size 1 between the batch and the others, where another operand has more of them.
std::vector<Operand> NodeContext::aligned(std::vector<Operand> inputs) {
  size_t rank = 0;
  for (const Operand& input : inputs) rank = std::max(rank, input.rank());
  for (Operand& input : inputs)
    if (!input.is_constant() && input.rank() < rank) {
      Sizes shape(rank - input.rank(), 1);
      shape.insert(shape.end(), input.shape.begin(), input.shape.end());
      input = reshape(input, shape);
    }
  return inputs;
}

// What an op that wants the batch first takes: the model's own batch joined with ours.
Operand NodeContext::joined(const Operand& x) {
  if (x.rank() == 0) fail("its input has no batch");
  Operand result = x;
  result.shape.front() = product_of(x.shape.front(), Size::batch());
  Shape open = x.shape;
  open.front() = -1;
  result.node = reshape_node(x.node, open);
  return result;
}

// The other way; `out` begins with both.
Operand NodeContext::apart(NodeId node, const Sizes& out) {
  Operand result{.shape = out};
  result.shape.front() = out.front().batches;
  Shape open = result.shape;
  open.insert(open.begin(), -1);
  result.node = reshape_node(node, open);
  return result;
}

Operand NodeContext::without_batch(NodeId node, const Sizes& out) const {
  if (!whole()) return {.node = node, .shape = out};
  if (out.empty() || !out.front().is_batch()) fail("its result does not keep the batch in front");
  return {.node = node, .shape = Sizes(out.begin() + 1, out.end())};
}

Operand NodeContext::reshape(const Operand& x, const Sizes& shape) {
  if (x.is_constant()) {
    const Operand plain = materialized(x);
    if (element_count(shape) != plain.constant->tensor.numel())
      fail(fmt::format("shape {} cannot become {}", shape_text(x.shape), shape_text(shape)));
    Operand result = constant_operand(plain.constant->tensor.reshaped(shape));
    result.element = result.constant->element = x.element;
    result.source = x.source;
    return result;
  }
  if (shape == x.shape) return x;
  Shape open;
  for (const Size& size : shape) open.push_back(size.has_batch() ? -1 : size.number());
  if (std::count(open.begin(), open.end(), -1) > 1)
    needs_batch("two sizes of a reshape depend on the batch");
  return call("reshape", {x}, Dict{{"shape", Value::of(open)}});
}

Operand NodeContext::with_batch(const Operand& given) {
  Graph& graph = model_.graph;
  Operand constant = given;
  constant.repeated.reset();
  if (!whole() && constant.rank() > 0 && constant.shape[0] != 1) {
    if (constant.shape[0] != model_.fixed_batch)
      needs_batch(
          fmt::format("a constant of shape {} is no entry of a batch", shape_text(constant.shape)));
    constant = entry_of_batch(constant);
  }
  if (model_.anchor < 0) {  // false for each entry of the batch, whatever stands there
    const Node& input = graph.node(graph.placeholders().at(0));
    const int64_t count = element_count(input.sample_shape);
    if (count == 0) fail("the model's first input is empty");
    const NodeId flat = reshape_node(input.id, {-1, count});
    const NodeId one = graph.call_function("narrow", {Argument::node(flat)},
                                           {{"dim", Argument::literal(1)},
                                            {"start", Argument::literal(0)},
                                            {"length", Argument::literal(1)}});
    model_.anchor = graph.call_function("ne", {Argument::node(one), Argument::node(one)});
  }
  Operand result = as_node(constant);
  Shape gate(constant.rank() + (whole() ? 1 : 0), 1);
  if (gate.empty()) fail("a single number has no batch");
  gate.front() = -1;
  const Argument value = Argument::node(result.node);
  result.node = graph.call_function(
      "where", {Argument::node(reshape_node(model_.anchor, gate)), value, value});
  if (!whole()) result.shape.front() = Size::batch();
  return result;
}

Operand NodeContext::as_numbers(const Operand& x) {
  if (!x.codes) return x;
  const Codes& codes = *x.codes;
  const auto along = [&](const std::vector<double>& numbers) {
    std::vector<float> values(numbers.begin(), numbers.end());
    Shape shape;
    if (values.size() > 1) {
      shape.assign(x.rank(), 1);
      shape[static_cast<size_t>(codes.format.axis.value())] = static_cast<int64_t>(values.size());
    }
    return constant_operand(Tensor::of(shape, values));
  };
  Operand from{.node = codes.node, .constant = codes.constant, .shape = x.shape};
  const Operand steps = call("div", {from, along(codes.format.scales)});
  AffineFormat unit = ranged(codes.format, codes.lowest, codes.largest, place());
  const bool zeros =
      std::any_of(unit.zeros.begin(), unit.zeros.end(), [](double z) { return z != 0; });
  unit.scales = {1};
  if (unit.zeros.size() == 1) unit.axis.reset();
  Operand result = materialized(rounded(steps, affine_format(unit)));
  if (zeros) result = call("add", {result, along(codes.format.zeros)});
  result.element = x.element;
  return result;
}

// Rounding and moving may change places: what is moved is rounded afterwards.
std::optional<Operand> NodeContext::moved_codes(const OpRecord& op,
                                                const std::vector<Operand>& given,
                                                const Dict& attributes) {
  if (given.empty() || !given[0].codes) return {};
  const Codes& first = *given[0].codes;
  const bool joins = op.name == "cat";
  if (first.node < 0 || first.format.axis || !(joins || moves_elements(op))) return {};
  std::vector<Operand> inputs = given;
  for (Operand& input : inputs) {
    if (!input.codes) {
      if (joins) return {};
      continue;
    }
    const Codes& codes = *input.codes;
    if (codes.node < 0 || codes.format != first.format || codes.lowest != first.lowest ||
        codes.largest != first.largest)
      return {};
    input = Operand{.node = codes.node, .shape = input.shape};
  }
  Operand moved = call(op.name, inputs, attributes);
  Codes codes = first;
  codes.node = moved.node;
  moved.node = -1;
  moved.element = given[0].element;
  moved.codes = std::make_shared<const Codes>(std::move(codes));
  return moved;
}

Operand NodeContext::call(const std::string& op_name, const std::vector<Operand>& given,
                          Dict attributes, int64_t which) {
  const OpRecord& op = find_op(op_name);
  if (auto moved = moved_codes(op, given, attributes)) return *moved;
  std::vector<Operand> inputs;
  for (const Operand& input : given) inputs.push_back(as_numbers(input));
  inputs = fitted_to_batch(std::move(inputs));
  try {
    if (which > 0) attributes.set("result", which);
    if (std::all_of(inputs.begin(), inputs.end(), [](auto& input) { return input.is_constant(); }))
      return folded(op, inputs, validate(Value(attributes), op.attributes, ""));
    attributes.erase("result");
    const bool joins = whole() && wants_batch_first(op);
    if (whole() && broadcasts(op)) inputs = aligned(std::move(inputs));
    if (whole() && !joins) attributes = behind_batch(attributes);
    std::vector<Sizes> shapes;
    std::vector<Argument> arguments;
    std::vector<std::pair<std::string, Argument>> keywords;
    const bool pair = is_pair(op) && inputs.size() == 2;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (pair && is_scalar_for(inputs[i], inputs[1 - i])) {
        const Tensor number = materialized(inputs[i]).constant->tensor;
        const bool exact = is_real(number.dtype()) || std::fabs(number.item()) > 0x1p52;
        const Value value =
            exact ? Value(number.item()) : Value(static_cast<int64_t>(number.item()));
        if (i == 1)
          arguments.push_back(Argument::literal(value));
        else
          keywords.emplace_back("input", Argument::literal(value));
        attributes.set(i == 1 ? "other" : "input", value);
        continue;
      }
      Operand node = as_node(inputs[i]);
      Sizes shape = graph_shape(inputs[i]);
      if (joins && !inputs[i].is_constant()) {
        if (i > 0) fail("its weights are computed while the network runs");
        node = joined(node);
        shape = node.shape;
      }
      shapes.push_back(shape);
      arguments.push_back(Argument::node(node.node));
    }
    const Value checked = validate(Value(attributes), op.attributes, "");
    Value asked = checked;
    if (which > 0) asked.dict().set("result", which);
    const Sizes out = infer(op, asked, shapes);
    element_count(out);
    Operand shaped{.shape = out};
    check_samples(op, asked, inputs, shaped);
    const bool several = op.results && (!op.results->several || op.results->several(checked));
    const std::string scoped = inputs.size() == 1 && !op.params ? scoped_path(op.class_name) : "";
    NodeId node = -1;
    if (!scoped.empty() || op.function.empty()) {
      std::string path = scoped.empty() ? layer_path(op.name, "") : scoped;
      if (scoped.empty())
        for (int number = 1; model_.graph.modules().count(path); ++number)
          path = fmt::format("{}_{}", layer_path(op.name, ""), number);
      model_.graph.modules()[path] = Module{.op = op.name, .attributes = checked};
      node = model_.graph.call_module(path, std::move(arguments));
    } else {
      if (op.max_inputs < 0) arguments = {Argument::list(std::move(arguments))};
      for (const auto& [key, value] : attributes)
        if (!pair) keywords.emplace_back(key, Argument::literal(value));
      node = model_.graph.call_function(op.name, std::move(arguments), std::move(keywords));
    }
    if (several) node = model_.graph.result_of(node, which);
    Operand result = joins ? apart(node, out) : without_batch(node, out);
    result.outer = shaped.outer;
    result.element = op.element == ElementRule::boolean   ? Element::boolean
                     : op.element == ElementRule::integer ? Element::i64
                                                          : element_of(op, inputs);
    return result;
  } catch (const Error& error) {  // the op knows what is wrong, only we know where
    refuse(error, inputs);
  }
}

Operand NodeContext::layer(const std::string& op_name, Dict attributes,
                           const std::vector<Parameter>& parameters, const Operand& given) {
  const OpRecord& op = find_op(op_name);
  const bool joins = whole() && wants_batch_first(op);
  const Operand numbers = as_numbers(given);
  Operand input = whole() && numbers.is_constant() ? with_batch(numbers) : as_node(numbers);
  Sizes shape = graph_shape(input);
  if (joins) {
    input = joined(input);
    shape = input.shape;
  }
  const auto result_of = [&](NodeId node, const Operand& shaped) {
    Operand result = joins ? apart(node, shaped.shape) : without_batch(node, shaped.shape);
    result.outer = shaped.outer;
    return result;
  };
  try {
    Module module{.op = op.name, .attributes = validate(Value(attributes), op.attributes, "")};
    std::string sources = op.name + python_repr(module.attributes);
    bool named = true;
    std::map<std::string, OperandFormat> formats;
    std::vector<ParamSpec> specs =
        op.params ? op.params(module.attributes) : std::vector<ParamSpec>();
    for (const ParamSpec& spec : specs) {
      const auto found = std::find_if(parameters.begin(), parameters.end(),
                                      [&](const Parameter& p) { return p.name == spec.name; });
      Tensor tensor;
      if (found == parameters.end()) {
        tensor = Tensor(spec.shape, spec.dtype);
      } else {
        const Tensor& value = found->value.constant->tensor;
        if (element_count(value.shape()) != element_count(spec.shape))
          fail(fmt::format("its {} is {}, wanted is {}", spec.name, shape_text(value.shape()),
                           shape_text(spec.shape)));
        tensor = value.to(spec.dtype).reshaped(spec.shape);
        if (found->value.format) {
          const bool takes = std::count(op.operands.begin(), op.operands.end(), spec.name) > 0;
          if (takes && has_keys(*found->value.format, spec.shape.size()))
            formats.emplace(spec.name, *found->value.format);
          else
            tensor = materialized(found->value).constant->tensor.reshaped(spec.shape);
        }
        named = named && !found->value.source.empty();
        sources += "|" + found->value.source;
      }
      (spec.trainable ? module.parameters : module.buffers).emplace_back(spec.name, tensor);
    }
    Operand out{.shape = infer(op, module.attributes, {shape})};
    element_count(out.shape);
    check_samples(op, module.attributes, {given}, out);
    const std::string wanted =
        layer_path(op.name, parameters.empty() ? "" : parameters.front().value.source);
    std::string path = wanted;
    for (int number = 1; model_.graph.modules().count(path); ++number) {
      if (named && model_.sources[path] == sources && model_.formats[path] == formats)
        return result_of(model_.graph.call_module(path, {Argument::node(input.node)}),
                         out);  // the same layer again
      path = fmt::format("{}_{}", wanted, number);
    }
    const NodeId node = model_.graph.add_module(path, std::move(module), {input.node});
    model_.sources[path] = sources;
    if (!formats.empty()) model_.formats[path] = std::move(formats);
    return result_of(node, out);
  } catch (const Error& error) {
    refuse(error, {input});
  }
}

Operand NodeContext::rounded(const Operand& x, const OperandFormat& given) {
  Operand result = x;
  if (x.is_constant()) {
    result = materialized(x);  // rounded twice: the first rounding is done now
    result.source = x.source;
    result.format = given;
    return result;
  }
  OperandFormat format = given;
  if (whole() && format.axis && *format.axis >= 0) {
    ++*format.axis;
    if (format.affine) format.affine->axis = format.axis;
  }
  // Beside the layer that it may round for, whose own path that would be.
  std::string base = layer_path("quant", "");
  if (!ends_with(base, "quant")) base += "_quant";
  std::string path = base;
  for (int number = 1; model_.graph.modules().count(path); ++number)
    path = fmt::format("{}_{}", base, number);
  result.node = model_.graph.add_module(path, Module{.op = "identity", .attributes = Value(Dict())},
                                        {x.node});
  model_.formats[path]["data_in"] = format;
  model_.roundings.insert(result.node);
  const std::string* operand = find_property(node_.metadata, operand_property);
  if (operand && *operand != "data_out") model_.of_users.insert(result.node);
  return result;
}

}  // namespace mase::onnx
