// SPDX-License-Identifier: Apache-2.0
// The backward part: primitives in reverse, each sending the gradient of its result to those of its
// inputs that lead to a trained parameter. The first writer of a gradient overwrites, later ones
// add. A straight-through quantiser costs nothing: its input and output share one gradient.
#include <algorithm>

#include "mase/engine/primitive.h"
#include "mase/engine/primitives/loss.h"

namespace mase::engine {
namespace {

class Differentiator : public Backward {
 public:
  explicit Differentiator(Plan& plan) : plan_(plan) {}

  // `given`: the caller writes the gradient of this result.
  void run(int result, bool given) {
    if (result < 0 || !plan_.at(result).differentiable) return;
    if (given)
      written(gradient_of(plan_, result));
    else
      seed(gradient_of(plan_, result));
    for (size_t i = plan_.primitives.size(); i-- > 0;) {
      const Primitive p = plan_.primitives[i];
      if (p.removed || !p.record->gradient || !plan_.at(p.out).differentiable) continue;
      const int gradient = gradient_of(plan_, p.out);
      if (!is_written(gradient)) continue;  // leads to no loss
      node_ = p.node;
      p.record->gradient(*this, p, gradient);
    }
  }

  Plan& plan() override { return plan_; }
  bool wanted(int tensor) const override { return tensor >= 0 && plan_.at(tensor).differentiable; }
  Target target(int tensor) override {
    if (!wanted(tensor)) return {};
    const int gradient = gradient_of(plan_, tensor);
    return {gradient, written(gradient)};
  }
  void take_over(int tensor, int gradient) override {
    plan_.gradient.resize(std::max(plan_.gradient.size(), plan_.tensors.size()), -1);
    int& own = plan_.gradient[static_cast<size_t>(tensor)];
    if (wanted(tensor) && own < 0 && plan_.root(tensor) == tensor &&
        plan_.root(gradient) == gradient)
      own = gradient;
  }
  void push(Step step) override {
    step.node = node_;
    plan_.backward.push_back(std::move(step));
  }
  void send(const char* record, Primitive primitive, int tensor) override {
    const Target to = target(tensor);
    if (to.tensor < 0) return;
    primitive.accumulate = to.accumulate;
    primitive.out = to.tensor;
    emit(record, primitive);
  }
  int compute(const char* record, Primitive primitive, TensorInfo result) override {
    result.place = Place::arena;
    result.view_of = -1;
    result.pinned = result.differentiable = false;
    primitive.out = plan_.add(std::move(result));
    emit(record, primitive);
    return primitive.out;
  }

 private:
  void emit(const char* record, Primitive& primitive) {
    primitive.record = &find_primitive(record);
    primitive.node = node_;
    push(first_step(plan_, primitive));
  }
  // The derivative of the loss by itself.
  void seed(int gradient) {
    written(gradient);
    for (const Primitive& p : plan_.primitives)
      if (gradient_comes_forward(plan_, p)) return;
    Step step{"seed", "", {}, {gradient}};
    step.bind = [=](const Memory& memory) -> Kernel {
      return [to = memory[gradient]](const Run&) { *to = 1; };
    };
    push(std::move(step));
  }
  bool is_written(int tensor) {
    const auto root = static_cast<size_t>(plan_.root(tensor));
    written_.resize(std::max(written_.size(), root + 1), false);
    return written_[root];
  }
  bool written(int tensor) {  // marks it; whether it was before
    const bool before = is_written(tensor);
    written_[static_cast<size_t>(plan_.root(tensor))] = true;
    return before;
  }

  Plan& plan_;
  std::vector<bool> written_;
  NodeId node_ = -1;
};

}  // namespace

void emit_backward(Plan& plan) { Differentiator(plan).run(plan.loss, false); }

void emit(Plan& plan) {
  const bool backward = plan.options.training && plan.options.loss;
  if (backward) share_straight_through(plan);
  emit_forward(plan);
  if (backward) emit_backward(plan);
}

void emit_backward_from(Plan& plan, int result) { Differentiator(plan).run(result, true); }

}  // namespace mase::engine
