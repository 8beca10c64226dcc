// SPDX-License-Identifier: Apache-2.0
#include "mase/train/optimizer.h"

#include <algorithm>

namespace mase {

Optimizer::Optimizer(const std::string& name, const Value& arguments, size_t size)
    : record_(&Registry<OptimizerRecord>::instance().get(name)),
      arguments_(validate(arguments, record_->arguments, name)) {
  for (size_t i = 0; i < record_->state.size(); ++i) {
    state_.emplace_back(Shape{static_cast<int64_t>(size)});
    update_.state.emplace_back(state_.back().mutable_data<float>(), size);
  }
}

void Optimizer::step(std::span<float> values, std::span<const float> gradients,
                     double learning_rate) {
  MASE_CHECK(values.size() == gradients.size(), "{} values, {} gradients", values.size(),
             gradients.size());
  update_.values = values;
  update_.gradients = gradients;
  update_.learning_rate = learning_rate;
  update_.step = ++steps_;
  record_->update(arguments_, update_);
}

TensorTable Optimizer::state() const {
  TensorTable table;
  for (size_t i = 0; i < state_.size(); ++i) {
    // A deep copy: sharing would make the next step work on memory the optimiser no longer owns.
    table.emplace_back(record_->state[i], Tensor::of<float>(state_[i].shape(), update_.state[i]));
  }
  return table;
}

void Optimizer::restore(const TensorTable& state, int64_t steps, const std::string& place) {
  for (size_t i = 0; i < state_.size(); ++i) {
    const auto found = std::find_if(state.begin(), state.end(), [&](const auto& entry) {
      return entry.first == record_->state[i];
    });
    if (found == state.end())
      throw Error(place, fmt::format("holds no '{}' of optimiser {}", record_->state[i], name()),
                  "resume with the optimiser of the run");
    if (found->second.dtype() != DType::f32 || found->second.numel() != state_[i].numel())
      throw Error(place,
                  fmt::format("'{}' has {} values, the network {}", record_->state[i],
                              found->second.numel(), state_[i].numel()),
                  "resume with the network of the run");
    const auto values = found->second.values<float>();
    std::copy(values.begin(), values.end(), update_.state[i].begin());
  }
  steps_ = steps;
}

}  // namespace mase
