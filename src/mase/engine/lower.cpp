// SPDX-License-Identifier: Apache-2.0
// Graph => tensors and primitives. Each op says how it lowers; an op that does not, or whose shapes
// do not fit the batch-last layout (the batch moved or contracted), is run by its own eval.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "mase/engine/plan.h"
#include "mase/ir/learned.h"

namespace mase::engine {
namespace {

struct Unsupported {};

void require(bool possible) {
  if (!possible) throw Unsupported();
}

int64_t normalized(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < out.size() - a.size() ? 1 : a[i - (out.size() - a.size())];
    const int64_t y = i < out.size() - b.size() ? 1 : b[i - (out.size() - b.size())];
    require(x == y || x == 1 || y == 1);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

class Lowerer : public Lowering {
 public:
  explicit Lowerer(Plan& plan) : plan_(plan) {}

  void run();

  const Shape& shape(Slot slot) const override { return plan_.at(slot).shape; }
  bool training() const override { return plan_.options.training; }

  std::optional<Slot> parameter(const std::string& name) override {
    if (!module_) return {};
    const auto found = parameters_.find(path_ + "." + name);
    if (found == parameters_.end()) return {};
    const bool is_parameter = std::any_of(module_->parameters.begin(), module_->parameters.end(),
                                          [&](const auto& entry) { return entry.first == name; });
    if (!is_parameter) return found->second;
    return quantized(found->second, module_->quantization, name);
  }

  Slot map(const Expr& expr, const std::vector<Slot>& operands) override {
    Shape shape;
    bool batch = false;
    for (const Slot operand : operands) {
      shape = broadcast(shape, this->shape(operand));
      require(plan_.at(operand).layout != Layout::free);
      batch = batch || plan_.at(operand).layout == Layout::batch;
    }
    if (batch) {
      for (const Slot operand : operands) {
        const TensorInfo& info = plan_.at(operand);
        if (info.layout == Layout::batch)
          require(info.shape.size() == shape.size());
        else
          require(info.shape.size() < shape.size() || info.shape[0] == 1);
      }
    }
    Primitive primitive{PrimitiveKind::map, operands};
    primitive.expr = expr;
    return add(std::move(primitive), shape, batch);
  }

  Slot linear(Slot x, Slot weight, std::optional<Slot> bias) override {
    Shape shape = this->shape(x);
    const Shape& w = this->shape(weight);
    require(!shape.empty() && w.size() == 2 && w[1] == shape.back());
    require(plan_.at(weight).layout == Layout::fixed && plan_.at(x).layout != Layout::free);
    require(plan_.at(x).layout != Layout::batch || shape.size() >= 2);
    require(!bias || plan_.at(*bias).layout == Layout::fixed);
    shape.back() = w[0];
    Primitive primitive{PrimitiveKind::linear, {x}};
    primitive.weight = weight;
    primitive.bias = bias.value_or(-1);
    if (node_ && !plan_.graph.quantization_of(*node_).backward.empty())
      primitive.backward = &plan_.graph.quantization_of(*node_);
    return add(std::move(primitive), shape, plan_.at(x).layout == Layout::batch);
  }

  Slot matmul(Slot a, Slot b) override {
    const TensorInfo &left = plan_.at(a), &right = plan_.at(b);
    require(left.layout != Layout::free && right.layout != Layout::free);
    const Shape as = left.shape, bs = right.shape;
    require(as.size() >= 2 && bs.size() >= 2 && as.back() == bs[bs.size() - 2]);
    const bool batch = left.layout == Layout::batch || right.layout == Layout::batch;
    if (left.layout == Layout::batch && right.layout == Layout::fixed && bs.size() == 2) {
      Shape shape = as;
      shape.back() = bs[1];
      Primitive primitive{PrimitiveKind::linear, {a}};
      primitive.weight = b;
      primitive.transposed = true;
      return add(std::move(primitive), shape, true);
    }
    Shape shape = broadcast(Shape(as.begin(), as.end() - 2), Shape(bs.begin(), bs.end() - 2));
    if (batch) {
      const size_t rank = shape.size() + 2;
      for (const TensorInfo* info : {&left, &right}) {
        if (info->layout == Layout::batch)
          require(info->shape.size() == rank && rank >= 3);
        else
          require(info->shape.size() < rank || info->shape[0] == 1);
      }
    }
    shape.push_back(as[as.size() - 2]);
    shape.push_back(bs.back());
    return add({PrimitiveKind::matmul, {a, b}}, shape, batch);
  }

  Slot reduce(ReduceKind kind, Slot x, const std::vector<int64_t>& dims, bool keep_dims) override {
    const TensorInfo& info = plan_.at(x);
    require(info.layout != Layout::free);
    const bool batch = info.layout == Layout::batch;
    std::set<int64_t> wanted;
    for (const int64_t dim : dims) wanted.insert(normalized(dim, info.shape.size()));
    if (dims.empty())
      for (size_t i = 0; i < info.shape.size(); ++i) wanted.insert(static_cast<int64_t>(i));
    require(!batch || !wanted.count(0));
    Primitive primitive{PrimitiveKind::reduce, {x}};
    primitive.reduce = kind;
    Shape shape;
    for (size_t i = 0; i < info.shape.size(); ++i) {
      if (!wanted.count(static_cast<int64_t>(i)))
        shape.push_back(info.shape[i]);
      else if (keep_dims)
        shape.push_back(1);
    }
    for (const int64_t dim : wanted) primitive.dims.push_back(batch ? dim - 1 : dim);
    return add(std::move(primitive), shape, batch);
  }

  Slot reshape(Slot x, const Shape& wanted) override {
    Shape shape = wanted;
    const TensorInfo info = plan_.at(x);
    require(info.layout != Layout::free);
    const int64_t total = element_count(info.shape);
    int64_t known = 1;
    auto open = std::find(shape.begin(), shape.end(), -1);
    for (const int64_t dim : shape)
      if (dim >= 0) known *= dim;
    if (open != shape.end()) {
      require(known > 0 && total % known == 0);
      *open = total / known;
    }
    require(element_count(shape) == total);
    if (info.layout == Layout::batch) require(!shape.empty() && shape[0] == info.shape[0]);
    TensorInfo view = info;
    view.shape = shape;
    view.view_of = x;
    view.node = -1;
    view.name = node_ ? node_->name : info.name;
    return plan_.add(view);
  }

  Slot permute(Slot x, const std::vector<int64_t>& order) override {
    const TensorInfo& info = plan_.at(x);
    require(info.layout != Layout::free && order.size() == info.shape.size());
    const bool batch = info.layout == Layout::batch;
    Primitive primitive{PrimitiveKind::permute, {x}};
    Shape shape;
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t from = normalized(order[i], order.size());
      require(!batch || (i == 0) == (from == 0));
      shape.push_back(info.shape[static_cast<size_t>(from)]);
      if (!batch || i > 0) primitive.dims.push_back(batch ? from - 1 : from);
    }
    return add(std::move(primitive), shape, batch);
  }

  Slot concat(const std::vector<Slot>& parts, int64_t dim) override {
    require(!parts.empty());
    Shape shape = this->shape(parts[0]);
    const int64_t axis = normalized(dim, shape.size());
    const Layout layout = plan_.at(parts[0]).layout;
    require(layout != Layout::free && (layout != Layout::batch || axis > 0));
    for (size_t i = 1; i < parts.size(); ++i) {
      require(plan_.at(parts[i]).layout == layout);
      shape[static_cast<size_t>(axis)] += this->shape(parts[i])[static_cast<size_t>(axis)];
    }
    Primitive primitive{PrimitiveKind::concat, parts};
    primitive.axis = layout == Layout::batch ? axis - 1 : axis;
    return add(std::move(primitive), shape, layout == Layout::batch);
  }

  Slot batch_norm(Slot x, const BatchNorm& options) override {
    require(plan_.at(x).layout == Layout::batch && shape(x).size() >= 2);
    Primitive primitive{PrimitiveKind::batch_norm, {x}};
    primitive.weight = options.weight.value_or(-1);
    primitive.bias = options.bias.value_or(-1);
    primitive.running_mean = options.running_mean.value_or(-1);
    primitive.running_var = options.running_var.value_or(-1);
    primitive.tracked = options.batches_tracked.value_or(-1);
    primitive.number = options.eps;
    primitive.momentum = options.momentum;
    primitive.batch_statistics = (training() && !plan_.options.freeze_batch_norm) ||
                                 primitive.running_mean < 0 || primitive.running_var < 0;
    for (const int tensor : {primitive.weight, primitive.bias})
      require(tensor < 0 || plan_.at(tensor).layout == Layout::fixed);
    return add(std::move(primitive), shape(x), true);
  }

  Slot layer_norm(Slot x, int64_t dims, std::optional<Slot> weight, std::optional<Slot> bias,
                  double eps) override {
    const TensorInfo& info = plan_.at(x);
    require(info.layout != Layout::free);
    require(dims <= static_cast<int64_t>(info.features().size()));
    Primitive primitive{PrimitiveKind::layer_norm, {x}};
    primitive.axis = dims;
    primitive.weight = weight.value_or(-1);
    primitive.bias = bias.value_or(-1);
    primitive.number = eps;
    return add(std::move(primitive), info.shape, info.layout == Layout::batch);
  }

  Slot softmax(Slot x, int64_t dim, bool logarithm) override {
    const TensorInfo& info = plan_.at(x);
    const int64_t axis = normalized(dim, info.shape.size());
    require(info.layout != Layout::free && (info.layout != Layout::batch || axis > 0));
    Primitive primitive{PrimitiveKind::softmax, {x}};
    primitive.axis = info.layout == Layout::batch ? axis - 1 : axis;
    primitive.logarithm = logarithm;
    return add(std::move(primitive), info.shape, info.layout == Layout::batch);
  }

  Slot dropout(Slot x, double probability) override {
    if (!training() || probability <= 0) return x;
    require(plan_.at(x).layout != Layout::free);
    Primitive primitive{PrimitiveKind::dropout, {x}};
    primitive.number = probability;
    return add(std::move(primitive), shape(x), plan_.at(x).layout == Layout::batch);
  }

  Slot constant(const Shape& shape, const std::vector<float>& values) override {
    require(element_count(shape) == static_cast<int64_t>(values.size()));
    Primitive primitive{PrimitiveKind::constant};
    primitive.values = std::make_shared<const std::vector<float>>(values);
    return add(std::move(primitive), shape, false);
  }

  Slot one_hot(Slot labels, int64_t classes) override {
    require(plan_.at(labels).labels && classes >= 1);
    return add({PrimitiveKind::one_hot, {labels}}, {plan_.options.batch_size, classes}, true);
  }

  Slot batch_mean(Slot x, std::optional<Slot> weights) override {
    require(plan_.at(x).layout == Layout::batch);
    Primitive primitive{PrimitiveKind::batch_mean, {x}};
    if (weights) {
      require(plan_.at(*weights).layout == Layout::batch && !plan_.at(*weights).differentiable);
      primitive.in.push_back(*weights);
    }
    primitive.share = plan_.scratch("share", 1);
    return add(std::move(primitive), {}, false);
  }

  Slot cross_entropy(Slot logits, Slot labels, std::optional<Slot> class_weights) override {
    const TensorInfo& info = plan_.at(logits);
    require(info.layout == Layout::batch && info.shape.size() == 2 && plan_.at(labels).labels);
    Primitive primitive{PrimitiveKind::cross_entropy, {logits, labels}};
    if (class_weights) {
      require(shape(*class_weights) == Shape{info.shape[1]});
      primitive.in.push_back(*class_weights);
    }
    return add(std::move(primitive), {}, false);
  }

 private:
  Slot add(Primitive primitive, Shape shape, bool batch) {
    return add(std::move(primitive), std::move(shape), batch ? Layout::batch : Layout::fixed);
  }

  Slot add(Primitive primitive, Shape shape, Layout layout) {
    TensorInfo info;
    info.name = node_ ? node_->name : "";
    info.shape = std::move(shape);
    info.layout = layout;
    info.constant = layout == Layout::fixed && primitive.kind != PrimitiveKind::dropout &&
                    primitive.kind != PrimitiveKind::gather;
    const bool takes_labels =
        primitive.kind == PrimitiveKind::one_hot || primitive.kind == PrimitiveKind::cross_entropy;
    const auto depends = [&](int tensor) {
      if (tensor < 0) return;
      MASE_CHECK(takes_labels || !plan_.at(tensor).labels, "'{}' computes with class numbers",
                 primitive_name(primitive.kind));
      info.differentiable = info.differentiable || plan_.at(tensor).differentiable;
      info.constant = info.constant && plan_.at(tensor).constant;
    };
    for (const int tensor : primitive.in) depends(tensor);
    for (const auto& [name, tensor] : primitive.params) depends(tensor);
    depends(primitive.weight);
    depends(primitive.bias);
    primitive.node = node_ ? node_->id : -1;
    primitive.out = plan_.add(std::move(info));
    const int out = primitive.out;
    plan_.primitives.push_back(std::move(primitive));
    return out;
  }

  Slot quantized(Slot slot, const Quantization& quantization, const std::string& operand) {
    const Quantizer* quantizer = quantization.find(operand);
    if (!quantizer) return slot;
    Primitive primitive{PrimitiveKind::quantize, {slot}};
    primitive.quantizer = quantizer;
    if (quantizer->learned) {
      const auto number = parameters_.find(path_ + "." + operand + "_" + quantizer->learned->name);
      if (number != parameters_.end()) primitive.weight = number->second;
    }
    const auto key = std::make_tuple(slot, quantizer, primitive.weight);
    const auto known = quantized_.find(key);
    if (known != quantized_.end()) return known->second;
    primitive.stream = ++streams_;
    const Layout layout = plan_.at(slot).layout;
    const Slot out = add(std::move(primitive), plan_.at(slot).shape, layout);
    return quantized_[key] = out;
  }

  void add_parameters();
  void add_loss();
  void add_node(const Node& node, const Shape& shape, Layout layout);

  Plan& plan_;
  std::map<std::string, int> parameters_;
  std::map<std::tuple<Slot, const Quantizer*, int>, Slot> quantized_;
  uint64_t streams_ = 0;
  const Node* node_ = nullptr;
  const Module* module_ = nullptr;
  std::string path_;
};

size_t aligned(size_t floats) { return (floats + 15) / 16 * 16; }

void Lowerer::add_parameters() {
  std::set<std::string> seen;
  for (const NodeId id : plan_.graph.order()) {
    const Node& node = plan_.graph.node(id);
    const Module* module = plan_.graph.module_of(node);
    if (!module || !seen.insert(node.target).second) continue;
    const auto add_one = [&](const std::string& name, const Tensor& tensor, bool trainable) {
      Parameter parameter;
      parameter.name = node.target + "." + name;
      parameter.dtype = tensor.dtype();
      parameter.trainable = trainable;
      for (const auto& [masked, mask] : module->masks)
        if (masked == name) parameter.mask = mask.to(DType::f32);
      TensorInfo info;
      info.name = parameter.name;
      info.shape = tensor.shape();
      info.layout = Layout::fixed;
      info.constant = true;
      info.place = trainable ? Place::parameter : Place::state;
      size_t& used = trainable ? plan_.parameter_floats : plan_.state_floats;
      info.offset = used;
      used += aligned(static_cast<size_t>(tensor.numel()));
      info.differentiable = trainable;
      const bool real = tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64 ||
                        tensor.dtype() == DType::f16 || tensor.dtype() == DType::bf16;
      if (!real && tensor.numel() == 1) {
        info.counter = static_cast<int>(plan_.counters.size());
        plan_.counters.push_back(0);
      }
      parameter.tensor = plan_.add(std::move(info));
      parameters_[parameter.name] = parameter.tensor;
      plan_.parameters.push_back(std::move(parameter));
    };
    for (const auto& [name, tensor] : module->parameters) add_one(name, tensor, !module->frozen);
    for (const auto& [name, tensor] : module->buffers) add_one(name, tensor, false);
  }
}

void Lowerer::add_node(const Node& node, const Shape& shape, Layout layout) {
  node_ = &node;
  auto call = std::make_shared<BoundCall>(bind_call(plan_.graph, node));
  module_ = call->module;
  path_ = module_ ? node.target : "";
  const Quantization& quantization = plan_.graph.quantization_of(node);
  std::vector<Slot> inputs;
  for (size_t i = 0; i < call->inputs.size(); ++i)
    inputs.push_back(quantized(plan_.node_result[static_cast<size_t>(call->inputs[i])],
                               quantization, input_operand(*call->op, i, module_ != nullptr)));
  const size_t tensors = plan_.tensors.size(), primitives = plan_.primitives.size();
  const auto quantized_before = quantized_;
  Slot out = -1;
  const bool fits = layout != Layout::free && call->op->lower;
  if (fits) {
    try {
      out = call->op->lower(*this, call->attributes, inputs);
      require(plan_.at(out).shape == shape);
      require(plan_.at(out).layout == layout);
    } catch (const Unsupported&) {
      out = -1;
      plan_.tensors.resize(tensors);
      plan_.primitives.erase(plan_.primitives.begin() + static_cast<std::ptrdiff_t>(primitives),
                             plan_.primitives.end());
      quantized_ = quantized_before;
    }
  }
  if (out < 0) {
    Primitive primitive{PrimitiveKind::call, inputs};
    primitive.call = call;
    if (module_) {
      const std::vector<LearnedOperand> learned = learned_operands(*module_);
      const auto is_learned = [&](const std::string& name) {  // the op does not know of it
        return std::any_of(learned.begin(), learned.end(),
                           [&](const LearnedOperand& number) { return number.parameter == name; });
      };
      for (const TensorTable* table : {&module_->parameters, &module_->buffers})
        for (const auto& [name, tensor] : *table)
          if (!is_learned(name)) primitive.params.emplace_back(name, *parameter(name));
    }
    out = add(std::move(primitive), shape, layout);
  }
  out = quantized(out, quantization, "data_out");
  plan_.node_result[static_cast<size_t>(node.id)] = out;
}

void Lowerer::run() {
  const int64_t batch = plan_.options.batch_size;
  add_parameters();
  const std::vector<Shape> shapes = infer_shapes(plan_.graph, batch);
  // A second batch size tells which dimensions are the batch. A graph that works for one batch
  // size only is taken at its word.
  std::vector<Shape> others = shapes;
  bool any_batch = true;
  try {
    others = infer_shapes(plan_.graph, batch + 1);
  } catch (const Error&) {
    any_batch = false;
  }
  const auto layout_of = [&](NodeId id) {
    const Shape &a = shapes[static_cast<size_t>(id)], &b = others[static_cast<size_t>(id)];
    if (!any_batch) return !a.empty() && a[0] == batch ? Layout::batch : Layout::fixed;
    if (a == b) return Layout::fixed;
    if (a.size() != b.size() || a[0] != batch || b[0] != batch + 1) return Layout::free;
    return std::equal(a.begin() + 1, a.end(), b.begin() + 1) ? Layout::batch : Layout::free;
  };
  plan_.node_result.assign(plan_.graph.id_limit(), -1);
  int64_t placeholder = 0;
  for (const NodeId id : plan_.graph.order()) {
    const Node& node = plan_.graph.node(id);
    if (node.kind == NodeKind::output) break;
    if (node.kind == NodeKind::placeholder) {
      node_ = &node;
      Primitive primitive{PrimitiveKind::gather};
      primitive.axis = placeholder++;
      plan_.node_result[static_cast<size_t>(id)] =
          add(std::move(primitive), shapes[static_cast<size_t>(id)], Layout::batch);
    } else {
      add_node(node, shapes[static_cast<size_t>(id)], layout_of(id));
    }
    plan_.at(plan_.node_result[static_cast<size_t>(id)]).node = id;
  }
  const auto pin = [&](NodeId id) {
    const int tensor = plan_.node_result[static_cast<size_t>(id)];
    MASE_CHECK(tensor >= 0, "node {} has no result", id);
    plan_.at(tensor).pinned = true;
    plan_.at(plan_.root(tensor)).pinned = true;
    return tensor;
  };
  for (const NodeId id : plan_.graph.outputs()) plan_.outputs.push_back(pin(id));
  for (const NodeId id : plan_.options.keep) pin(id);
  plan_.first_loss_primitive = plan_.primitives.size();
  if (plan_.options.loss) add_loss();
}

void Lowerer::add_loss() {
  const LossFunction& loss = plan_.options.loss;
  const std::string& place = plan_.graph.name;
  if (plan_.outputs.empty()) throw Error(place, "a network without an output has no loss");
  const Slot output = plan_.outputs[0];
  const Shape wanted = shape(output);
  const bool numbers = loss.target == TargetKind::numbers;
  const auto refuse = [&] {
    throw Error(
        place,
        fmt::format("the loss {} cannot take an output of shape {}", loss.name, shape_text(wanted)),
        numbers ? "a network whose output begins with the batch can be trained on numbers"
                : "a network for classes has an output of shape [batch, classes]");
  };
  node_ = nullptr;
  module_ = nullptr;
  if (plan_.at(output).layout != Layout::batch || (!numbers && wanted.size() != 2)) refuse();
  Primitive primitive{PrimitiveKind::target};
  const int target = add(std::move(primitive), numbers ? wanted : Shape{wanted[0]}, true);
  plan_.target = target;
  plan_.at(target).name = "target";
  plan_.at(target).labels = !numbers;
  try {
    plan_.loss = loss.lower(
        *this, output, loss.target == TargetKind::one_hot ? one_hot(target, wanted[1]) : target);
  } catch (const Unsupported&) {
    refuse();
  }
  MASE_CHECK(plan_.at(plan_.loss).layout == Layout::fixed && shape(plan_.loss).empty(),
             "the loss {} is no scalar", loss.name);
  plan_.at(plan_.loss).pinned = plan_.at(plan_.root(plan_.loss)).pinned = true;
  plan_.at(plan_.loss).name = "loss";
}

}  // namespace

Shape TensorInfo::features() const {
  return layout == Layout::batch ? Shape(shape.begin() + 1, shape.end()) : shape;
}

int64_t TensorInfo::rows() const {  // asked during runs: makes no shape
  int64_t count = 1;
  for (size_t i = layout == Layout::batch ? 1 : 0; i < shape.size(); ++i) count *= shape[i];
  return count;
}

const char* primitive_name(PrimitiveKind kind) {
  const char* names[] = {"gather",     "map",           "linear",     "matmul",     "reduce",
                         "permute",    "concat",        "batch_norm", "layer_norm", "softmax",
                         "dropout",    "quantize",      "constant",   "target",     "one_hot",
                         "batch_mean", "cross_entropy", "call"};
  return names[static_cast<size_t>(kind)];
}

int Plan::root(int tensor) const {
  while (at(tensor).view_of >= 0) tensor = at(tensor).view_of;
  return tensor;
}

int Plan::add(TensorInfo info) {
  tensors.push_back(std::move(info));
  return static_cast<int>(tensors.size()) - 1;
}

size_t Plan::floats(int tensor) const {
  const TensorInfo& info = at(tensor);
  const auto count = static_cast<size_t>(element_count(info.shape));
  if (info.layout == Layout::batch) return static_cast<size_t>(info.rows() * stride);
  return aligned(count);
}

int Plan::scratch(const std::string& name, int64_t count) {
  TensorInfo info;
  info.name = name;
  info.shape = {count};
  info.layout = Layout::fixed;
  return add(std::move(info));
}

std::vector<int32_t> broadcast_rows(const Shape& result, const Shape& operand) {
  const size_t rank = result.size();
  // A leading 1 of a fixed operand stands where the batch is.
  const size_t skip = operand.size() > rank ? operand.size() - rank : 0;
  const size_t pad = rank - (operand.size() - skip);
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (size_t i = rank; i-- > pad;) {
    const int64_t dim = operand[i - pad + skip];
    strides[i] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
  const int64_t rows = element_count(result);
  std::vector<int32_t> index(static_cast<size_t>(rows));
  bool same = stride == rows;
  std::vector<int64_t> position(rank, 0);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at = 0;
    for (size_t i = 0; i < rank; ++i) at += position[i] * strides[i];
    index[static_cast<size_t>(row)] = static_cast<int32_t>(at);
    same = same && at == row;
    for (size_t i = rank; i-- > 0;) {
      if (++position[i] < result[i]) break;
      position[i] = 0;
    }
  }
  if (same) index.clear();
  return index;
}

void lower(Plan& plan) {
  // Rows begin at cache lines, and an odd number of lines apart: a power of two would map the same
  // column of all rows to a few cache sets.
  plan.stride = (plan.options.batch_size + 15) / 16 * 16;
  if (plan.stride / 16 % 2 == 0) plan.stride += 16;
  Lowerer(plan).run();
}

}  // namespace mase::engine
