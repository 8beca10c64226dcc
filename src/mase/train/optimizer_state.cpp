// SPDX-License-Identifier: Apache-2.0
#include "mase/train/optimizer_state.h"

#include <algorithm>

namespace mase {
namespace {

std::string state_key(int64_t parameter, const std::string& name) {
  return fmt::format("optimizer_states.0.state.{}.{}", parameter, name);
}

}  // namespace

TensorTable optimizer_state_tensors(const Optimizer& optimizer, Program& program, int64_t steps) {
  TensorTable tensors;
  const TensorTable blocks = optimizer.state();
  const float* base = program.parameter_memory().data();
  int64_t index = 0;
  for (const ParameterView& parameter : program.parameters()) {
    tensors.emplace_back(state_key(index, "step"), Tensor::scalar(static_cast<float>(steps)));
    const auto first = static_cast<size_t>(parameter.value.data() - base);
    for (const auto& [name, block] : blocks)
      tensors.emplace_back(state_key(index, name),
                           Tensor::of<float>(parameter.shape, block.values<float>().subspan(
                                                                  first, parameter.value.size())));
    ++index;
  }
  return tensors;
}

void restore_optimizer_state(Optimizer& optimizer, Program& program, const TensorTable& tensors,
                             int64_t steps, const std::string& place) {
  TensorTable blocks;
  const float* base = program.parameter_memory().data();
  for (const auto& [name, zeros] : optimizer.state()) {
    Tensor block = zeros;
    float* values = block.mutable_data<float>();
    int64_t index = 0;
    for (const ParameterView& parameter : program.parameters()) {
      const std::string key = state_key(index++, name);
      for (const auto& [other, tensor] : tensors) {
        if (other != key) continue;
        if (tensor.dtype() != DType::f32 ||
            tensor.numel() != static_cast<int64_t>(parameter.value.size()))
          throw Error(place, fmt::format("{} does not fit {}", key, parameter.name),
                      "resume with the network of the run");
        std::copy_n(tensor.data<float>(), tensor.numel(), values + (parameter.value.data() - base));
      }
    }
    blocks.emplace_back(name, std::move(block));
  }
  optimizer.restore(blocks, steps, place);
}

}  // namespace mase
