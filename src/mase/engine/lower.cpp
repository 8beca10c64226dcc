// SPDX-License-Identifier: Apache-2.0
// Graph => tensors and primitives. Each op says how it lowers; an op that does not, or whose shapes
// do not fit rows and lanes (the batch moved or contracted), is run by its own eval.
#include <algorithm>
#include <cmath>

#include "mase/engine/lowerer.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/formats/packed_groups.h"
#include "mase/ir/learned.h"
#include "mase/ir/value_type.h"

namespace mase::engine {

Shape Lowerer::shape(Slot slot) const { return slot >= 0 ? plan_.at(slot).shape : Shape(); }

std::optional<Slot> Lowerer::parameter(const std::string& name) {
  if (!module_) return {};
  const auto found = parameters_.find(path_ + "." + name);
  if (found == parameters_.end()) return {};
  const bool is_parameter = std::any_of(module_->parameters.begin(), module_->parameters.end(),
                                        [&](const auto& entry) { return entry.first == name; });
  if (!is_parameter) return found->second;
  // Codes of this very format are rounded already.
  const Quantizer* quantizer = module_->quantization.find(name);
  if (quantizer && plan_.at(found->second).packed && is_packed_as(*module_->find(name), *quantizer))
    return found->second;
  return quantized(found->second, module_->quantization, name);
}

Slot Lowerer::rounded(Slot x, const std::string& operand) {
  if (!known(x) || !node_) return x;
  return quantized(x, module_ ? module_->quantization : node_->quantization, operand);
}

const Quantizer* Lowerer::format_of(const std::string& operand) const {
  return (module_ ? module_->quantization : node_->quantization).find(operand);
}

Slot Lowerer::add(const char* record, Primitive primitive, Shape shape, Layout layout, Axes axes) {
  primitive.record = &find_primitive(record);
  for (int& operand : primitive.in) operand = widened(operand);
  for (auto& [name, operand] : primitive.params) operand = widened(operand);
  primitive.bias = widened(primitive.bias);
  if (!primitive.record->takes_packed) primitive.weight = widened(primitive.weight);
  MASE_CHECK(primitive.record->payload == primitive.payload.type(), "'{}' has another payload",
             record);
  TensorInfo info;
  info.name = node_ ? node_->name : "";
  info.shape = std::move(shape);
  info.layout = layout;
  if (layout == Layout::batch) info.axes = std::move(axes);
  info.constant =
      layout == Layout::fixed && !primitive.is<DropoutPayload>() && !primitive.is<GatherPayload>();
  const bool takes_labels = primitive.is<OneHotPayload>() || primitive.is<CrossEntropyPayload>();
  const auto depends = [&](int tensor) {
    MASE_CHECK(takes_labels || plan_.at(tensor).element == DType::f32,
               "'{}' computes with class numbers", record);
    info.differentiable = info.differentiable || plan_.at(tensor).differentiable;
    info.constant = info.constant && plan_.at(tensor).constant;
  };
  for (const int tensor : primitive.reads()) depends(tensor);
  if (primitive.record->moves_values) info.rounding = plan_.at(primitive.in[0]).rounding;
  if (primitive.is<QuantizePayload>()) {
    info.rounding = primitive.as<QuantizePayload>().quantizer;
    info.before_rounding = primitive.in[0];
  }
  primitive.node = node_ ? node_->id : -1;
  primitive.of_loss = in_loss_;
  primitive.out = plan_.add(std::move(info));
  const int out = primitive.out;
  plan_.primitives.push_back(std::move(primitive));
  return out;
}

Slot Lowerer::widened(Slot x) {
  if (x < 0 || !plan_.at(x).packed) return x;
  const auto found = widened_.find(x);
  if (found != widened_.end()) return found->second;
  const Node* const node = node_;
  node_ = nullptr;  // it belongs to all who ask
  const Shape shape = plan_.at(x).shape;
  const Slot out = add("widen", {.weight = x, .payload = WidenPayload{}}, shape, Layout::fixed);
  plan_.at(out).name = plan_.at(x).name;
  node_ = node;
  return widened_[x] = out;
}

Slot Lowerer::primitive(const std::string& name, const Value& attributes,
                        const std::vector<Slot>& operands) {
  const PrimitiveRecord& record = find_primitive(name);
  MASE_CHECK(record.lower, "'{}' cannot be asked for by name", name);
  for (const Slot operand : operands)
    if (!known(operand)) return -1;
  return record.lower(*this, attributes, operands);
}

Slot Lowerer::quantized(Slot slot, const Quantization& quantization, const std::string& operand) {
  const Quantizer* quantizer = quantization.find(operand);
  if (!quantizer) return slot;
  // What rounds blocks, draws or learns a number sees the tensor in the order its shape says.
  if (!quantizer->elementwise || quantizer->learned || quantizer->stochastic) slot = flat(slot);
  Primitive primitive{.in = {slot}, .payload = QuantizePayload{quantizer}};
  if (quantizer->learned) {
    const auto number = parameters_.find(path_ + "." + operand + "_" + quantizer->learned->name);
    if (number != parameters_.end()) primitive.weight = number->second;
  }
  const int number = primitive.weight;
  std::vector<Rounded>& made = quantized_[slot];
  const auto same = [&](const Rounded& one) { return one.quantizer == quantizer; };
  // Layers side by side (q, k and v) each bring a quantiser of their own that does the same.
  const auto equal = [&](const Rounded& one) {
    return !quantizer->stochastic && quantizer->config.is_dict() &&
           one.quantizer->format == quantizer->format && one.quantizer->config == quantizer->config;
  };
  const auto find = [&](const auto& fits) {
    return std::find_if(made.begin(), made.end(),
                        [&](const Rounded& one) { return one.number == number && fits(one); });
  };
  if (const auto known = find(same); known != made.end()) return known->result;
  primitive.stream = ++streams_;
  if (const auto known = find(equal); known != made.end()) return known->result;
  const TensorInfo& info = plan_.at(slot);
  const Slot out = add("quantize", std::move(primitive), info.shape, info.layout, info.axes);
  made.push_back({quantizer, number, out});
  return out;
}

void Lowerer::add_parameters() {
  for (const std::string& path : plan_.graph().module_order()) {
    const Module* module = &plan_.graph().modules().at(path);
    const auto add_one = [&](const std::string& name, const Tensor& tensor, bool trainable) {
      Parameter parameter;
      parameter.name = tensor_name(path, name);
      parameter.dtype = tensor.dtype();
      parameter.trainable = trainable;
      for (const auto& [masked, mask] : module->masks)
        if (masked == name) parameter.mask = mask.to(DType::f32);
      TensorInfo info;
      info.name = parameter.name;
      info.shape = tensor.shape();
      info.layout = Layout::fixed;
      info.constant = true;
      info.differentiable = trainable;
      if (plan_.keeps_packed && tensor.packed() && tensor.shape().size() == 2) {
        info.place = Place::packed;
        info.packed = tensor.packed_type();
      } else {
        info.place = trainable ? Place::parameter : Place::state;
        size_t& used = trainable ? plan_.parameter_floats : plan_.state_floats;
        info.offset = used;
        used += static_cast<size_t>((tensor.numel() + 15) / 16 * 16);
      }
      const bool real = tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64 ||
                        tensor.dtype() == DType::f16 || tensor.dtype() == DType::bf16;
      if (!real && tensor.numel() == 1) {
        parameter.counter = static_cast<int>(plan_.counters.size());
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

namespace {

// What a layer's own code rounds inside has no learned numbers there, and passes every gradient.
void check_rounding_inside(const Module& module, const std::string& node, bool training) {
  if (module.quantization.bypass) return;
  for (const auto& [operand, quantizer] : module.quantization.operands) {
    if (!is_activation(operand) || operand == "data_in" || operand == "data_out") continue;
    const auto refuse = [&, &operand = operand](const std::string& what,
                                                const std::string& otherwise) {
      throw Error(node,
                  fmt::format("{} is rounded inside a layer that is computed by its own code, "
                              "which cannot {}",
                              operand, what),
                  fmt::format("put the batch first (batch_first = true), or {}", otherwise));
    };
    if (quantizer->learned)
      refuse(fmt::format("learn {}_{}", operand, quantizer->learned->name), "give the number");
    if (training && quantizer->has_gradient())
      refuse("clip gradients", fmt::format("leave out {}_ste", operand));
  }
}

}  // namespace

Slot Lowerer::call(std::shared_ptr<const BoundCall> bound, std::vector<Slot> inputs,
                   const Shape& shape, Layout layout) {
  for (Slot& input : inputs) input = flat(input);
  Primitive primitive{.in = std::move(inputs), .payload = CallPayload{std::move(bound)}};
  if (module_) {
    const std::vector<LearnedOperand> learned = learned_operands(*module_);
    check_rounding_inside(*module_, node_->name, training());
    const auto is_learned = [&](const std::string& name) {  // the op does not know of it
      return std::any_of(learned.begin(), learned.end(),
                         [&](const LearnedOperand& number) { return number.parameter == name; });
    };
    for (const TensorTable* table : {&module_->parameters, &module_->buffers})
      for (const auto& [name, tensor] : *table)
        if (!is_learned(name)) primitive.params.emplace_back(name, *parameter(name));
  }
  return add("call", std::move(primitive), shape, layout, Axes::flat(shape.size()));
}

void Lowerer::add_node(const Node& node, const Shape& shape, Layout layout) {
  node_ = &node;
  const std::shared_ptr<const BoundCall> bound(plan_.typed, &plan_.typed->call(node.id));
  const Node& caller = plan_.graph().node(bound->caller);
  module_ = bound->module;
  path_ = module_ ? caller.target : "";
  const Quantization& quantization = plan_.graph().quantization_of(caller);
  std::vector<Slot> inputs;
  for (size_t i = 0; i < bound->inputs.size(); ++i)
    inputs.push_back(quantized(plan_.node_result[static_cast<size_t>(bound->inputs[i])],
                               quantization, input_operand(*bound->op, i, module_ != nullptr)));
  Slot out = -1;
  rounds_backward_ = false;
  if (layout != Layout::free && bound->op->lower)
    out = bound->op->lower(*this, bound->attributes, inputs);
  if (out < 0 || plan_.at(out).shape != shape || plan_.at(out).layout != layout)
    out = call(bound, inputs, shape, layout);
  if (training() && !quantization.backward.empty() && !rounds_backward_)
    throw Error(node.name, "its product is computed in a way that cannot round its backward pass",
                "leave out 'backward', or multiply by a weight that does not depend on the batch");
  if (gives_first_result(*bound)) out = quantized(out, quantization, "data_out");
  plan_.node_result[static_cast<size_t>(node.id)] = out;
}

Slot Lowerer::constant_of(const Node& node) {
  const Tensor& tensor = *plan_.graph().tensor(node.target);
  constexpr double exact = 1 << 24;  // the engine computes in float32
  if (element_of(tensor.dtype()) == DType::i64)
    for (int64_t i = 0; i < tensor.numel(); ++i)
      if (std::abs(tensor.item(i)) > exact)
        throw Error(node.name,
                    fmt::format("the whole number {:.0f} is beyond 2^24", tensor.item(i)),
                    "values are float32, which holds whole numbers up to 2^24 exactly");
  return parameters_.at(node.target);
}

void Lowerer::run() {
  const int64_t batch = plan_.options.batch_size;
  add_parameters();
  const std::vector<Shape> shapes = plan_.typed->shapes(batch);
  const auto layout_of = [&](NodeId id) {
    const ValueType* own = plan_.typed->type(id);
    if (!own || own->at(batch) != shapes[static_cast<size_t>(id)]) return Layout::free;
    if (own->is_fixed()) return Layout::fixed;
    return own->is_sample_by_sample() ? Layout::batch : Layout::free;
  };
  plan_.node_result.assign(plan_.graph().id_limit(), -1);
  size_t placeholder = 0;
  for (const NodeId id : plan_.graph().order()) {
    const Node& node = plan_.graph().node(id);
    const Shape& shape = shapes[static_cast<size_t>(id)];
    if (node.kind == NodeKind::output) break;
    if (!plan_.typed->has_value(id)) continue;
    if (node.kind == NodeKind::get_attr) {
      plan_.node_result[static_cast<size_t>(id)] = constant_of(node);
    } else if (node.kind == NodeKind::placeholder) {
      node_ = &node;
      plan_.node_result[static_cast<size_t>(id)] =
          add("gather", {.payload = GatherPayload{placeholder++}}, shape, Layout::batch,
              Axes::flat(shape.size()));
    } else {
      add_node(node, shape, layout_of(id));
    }
    // A parameter may be read by several get_attr nodes, and belongs to none.
    if (node.kind != NodeKind::get_attr)
      plan_.at(plan_.node_result[static_cast<size_t>(id)]).node = id;
  }
  node_ = nullptr;
  const auto pin = [&](int tensor) {
    MASE_CHECK(tensor >= 0, "a result is missing");
    MASE_CHECK(!plan_.at(tensor).packed, "packed weights are no result");
    plan_.at(tensor).pinned = true;
    plan_.at(plan_.root(tensor)).pinned = true;
    return tensor;
  };
  // Classes of tokens are compared where they lie.
  const LossFunction& loss = plan_.options.loss;
  const bool moves = !loss || loss.target != TargetKind::classes;
  for (const NodeId id : plan_.graph().outputs()) {
    const Slot result = widened(plan_.node_result[static_cast<size_t>(id)]);
    const bool tokens = !moves && is_batch(result) && shape(result).size() > 2;
    plan_.outputs.push_back(pin(tokens ? result : flat(result)));
  }
  for (const NodeId id : plan_.options.keep) {
    int& result = plan_.node_result[static_cast<size_t>(id)];
    pin(result = widened(result));
  }
  if (plan_.options.loss) add_loss();
}

void Lowerer::add_loss() {
  const LossFunction& loss = plan_.options.loss;
  const std::string& place = plan_.graph().name;
  if (plan_.outputs.empty()) throw Error(place, "a network without an output has no loss");
  const Slot output = plan_.outputs[0];
  const Shape wanted = shape(output);
  const bool numbers = loss.target == TargetKind::numbers;
  const auto refuse = [&] {
    throw Error(
        place,
        fmt::format("the loss {} cannot take an output of shape {}", loss.name, shape_text(wanted)),
        numbers
            ? "a network whose output begins with the batch can be trained on numbers"
            : "a network for classes has an output of shape [batch, classes], or [batch, tokens, "
              "classes] with cross_entropy");
  };
  node_ = nullptr;
  module_ = nullptr;
  in_loss_ = true;
  const bool tokens = loss.target == TargetKind::classes && wanted.size() == 3;
  if (!is_batch(output) || (!numbers && wanted.size() != 2 && !tokens)) refuse();
  const Shape target_shape = numbers ? wanted : Shape(wanted.begin(), wanted.end() - 1);
  const int target =
      add("target", {.payload = TargetPayload{}}, target_shape, Layout::batch,
          numbers ? Axes::flat(target_shape.size()) : Axes::sequence(target_shape.size(), 0));
  plan_.target = target;
  plan_.at(target).name = "target";
  if (!numbers) plan_.at(target).element = DType::i32;
  plan_.loss = loss.lower(*this, output,
                          loss.target == TargetKind::one_hot ? one_hot(target, wanted[1]) : target);
  if (plan_.loss < 0) refuse();
  MASE_CHECK(is_fixed(plan_.loss) && shape(plan_.loss).empty(), "the loss {} is no scalar",
             loss.name);
  plan_.at(plan_.loss).pinned = plan_.at(plan_.root(plan_.loss)).pinned = true;
  plan_.at(plan_.loss).name = "loss";
}

void lower(Plan& plan) { Lowerer(plan).run(); }

}  // namespace mase::engine
