// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/learned.h"

#include <algorithm>

#include "mase/ir/op.h"

namespace mase {

std::vector<LearnedOperand> learned_operands(const Module& module) {
  std::vector<LearnedOperand> result;
  if (module.quantization.bypass) return result;
  for (const auto& [operand, quantizer] : module.quantization.operands) {
    if (!quantizer->learned) continue;
    const Tensor* tensor = module.find(operand);
    if (!tensor && !is_activation(operand)) continue;  // a bias that the layer does not have
    result.push_back({operand, operand + "_" + quantizer->learned->name, quantizer.get(),
                      quantizer->learned->shape(tensor ? tensor->shape() : Shape{})});
  }
  return result;
}

void fit_learned_parameters(Module& module) {
  if (module.op.empty()) return;
  const OpRecord& op = find_op(module.op);
  const std::vector<ParamSpec> specs =
      op.params ? op.params(module.attributes) : std::vector<ParamSpec>();
  const std::vector<LearnedOperand> wanted = learned_operands(module);
  std::erase_if(module.parameters, [&](const auto& entry) {
    const auto named = [&](const std::string& name) { return entry.first == name; };
    return std::none_of(specs.begin(), specs.end(), [&](auto& spec) { return named(spec.name); }) &&
           std::none_of(wanted.begin(), wanted.end(), [&](const LearnedOperand& learned) {
             return named(learned.parameter) && entry.second.shape() == learned.shape;
           });
  });
  for (const LearnedOperand& learned : wanted) {
    if (module.find(learned.parameter)) continue;
    Tensor number(learned.shape);
    if (const Tensor* tensor = module.find(learned.operand)) {
      const Tensor values = tensor->to(DType::f32);
      learned.quantizer->learned->start(values.data<float>(), values.shape(),
                                        number.mutable_data<float>());
    }
    module.parameters.emplace_back(learned.parameter, std::move(number));
  }
}

QuantizerPtr current_quantizer(const Quantization& quantization, const Module* module,
                               const std::string& operand) {
  if (!quantization.find(operand)) return nullptr;
  const QuantizerPtr& quantizer = quantization.operands.at(operand);
  const auto learned = quantizer->learned;
  const Tensor* number = module && learned ? module->find(operand + "_" + learned->name) : nullptr;
  if (!number || number->numel() == 0 || number->item(0) == 0) return quantizer;
  auto now = std::make_shared<Quantizer>(*quantizer);
  // Codes and limits are those of the step that was found, not of the one it started from.
  if (const Tensor* tensor = module->find(operand); learned->type && (tensor || learned->whole)) {
    now->type =
        learned->type(number->to(DType::f32).data<float>(), tensor ? tensor->shape() : Shape{1});
    static_cast<Rounder&>(*now) = now->type->rounder();
    now->learned = learned;
    now->elementwise = false;
  }
  now->sweep = [learned, number = number->to(DType::f32)](const float* in, float* out,
                                                          const Shape& shape) {
    learned->quantize(in, number.data<float>(), out, shape);
    return true;
  };
  now->one = {};
  return now;
}

}  // namespace mase
