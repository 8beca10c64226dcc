// SPDX-License-Identifier: Apache-2.0
// The loss of the first output, its gradient and the arg-max hits, in one sweep over the rows of
// the output: cross-entropy (mean, weighted as PyTorch weights it), mean squared error, binary
// cross-entropy of logits.
#include <algorithm>
#include <cmath>

#include "mase/engine/emit.h"

namespace mase::engine {
namespace {

int64_t source_row(const Program::Batch& batch, int64_t b) {
  return batch.rows ? static_cast<int64_t>(batch.rows[b]) : batch.first_row + b;
}

// The labels of a batch, one behind the other, all of them classes.
void take_labels(const Program::Batch& batch, int64_t n, int64_t classes, const std::string& place,
                 int32_t* out) {
  if (batch.own_labels)
    std::copy_n(batch.own_labels, n, out);
  else if (batch.rows)
    for (int64_t b = 0; b < n; ++b) out[b] = batch.labels[batch.rows[b]];
  else
    std::copy_n(batch.labels + batch.first_row, n, out);
  uint32_t largest = 0;  // negative ones are larger than any class
  for (int64_t b = 0; b < n; ++b) largest = std::max(largest, static_cast<uint32_t>(out[b]));
  if (largest >= static_cast<uint64_t>(classes))
    throw Error(
        place,
        fmt::format("label {} for a network of {} classes", static_cast<int32_t>(largest), classes),
        "check the data set's number of classes");
}

}  // namespace

void emit_loss(Plan& plan) {
  const std::string place = plan.graph.name;
  if (plan.outputs.empty()) throw Error(place, "a network without an output has no loss");
  const int output = plan.outputs[0];
  const LossKind kind = plan.options.loss;
  if (plan.at(output).layout != Layout::batch ||
      (kind == LossKind::cross_entropy && plan.at(output).shape.size() != 2))
    throw Error(place,
                fmt::format("the loss wants an output of shape [batch, {}], this network gives {}",
                            kind == LossKind::cross_entropy ? "classes" : "targets...",
                            shape_text(plan.at(output).shape)));
  const bool gradient = plan.options.training && plan.at(output).differentiable;
  const int target = gradient ? gradient_of(plan, output) : -1;
  Step step{"loss", "", {output}, {}};
  if (gradient) step.writes.push_back(target);
  const int64_t rows = plan.at(output).rows(), stride = plan.stride;
  const auto& weights = plan.options.class_weights;
  if (kind == LossKind::cross_entropy) {
    step.kernel = "cross_entropy";
    if (!weights.empty() && static_cast<int64_t>(weights.size()) != rows)
      throw Error(place, fmt::format("{} class weights for {} classes", weights.size(), rows));
    step.bind = [=, &plan](const Memory& memory) -> Kernel {
      auto labels = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(plan.stride + 16));
      return [=, &plan, x = memory[output],
              g = target >= 0 ? memory[target] : nullptr](const Run& run) {
        const Program::Batch& batch = *run.batch;
        if (!batch.labels && !batch.own_labels) return;
        take_labels(batch, run.n, rows, plan.graph.name, labels->data());
        const auto& w = plan.options.class_weights;
        double total = run.global;
        if (!w.empty()) {
          total = 0;
          for (int64_t b = 0; b < run.n; ++b)
            total += w[static_cast<size_t>((*labels)[static_cast<size_t>(b)])];
        }
        if (!w.empty() && plan.options.all_reduce)
          plan.options.all_reduce(std::span<double>(&total, 1));
        const auto result = kernels::cross_entropy(x, rows, stride, run.n, labels->data(),
                                                   w.empty() ? nullptr : w.data(),
                                                   static_cast<float>(1 / total), g);
        run.result->loss = result.loss / total;
        run.result->correct = result.correct;
      };
    };
  } else {
    step.kernel = kind == LossKind::mse ? "mse" : "bce_with_logits";
    step.bind = [=](const Memory& memory) -> Kernel {
      return [=, x = memory[output], g = target >= 0 ? memory[target] : nullptr](const Run& run) {
        const Program::Batch& batch = *run.batch;
        if (!batch.targets) return;
        const double share = 1 / (run.global * static_cast<double>(rows));
        double loss = 0;
        int64_t correct = 0;
        for (int64_t b = 0; b < run.n; ++b) {
          const float* wanted = batch.targets + source_row(batch, b) * rows;
          bool hit = true;
          for (int64_t r = 0; r < rows; ++r) {
            const double value = x[r * stride + b], t = wanted[r];
            double d;
            if (kind == LossKind::mse) {
              loss += (value - t) * (value - t);
              d = 2 * (value - t);
            } else {
              loss += std::max(value, 0.0) - value * t + std::log1p(std::exp(-std::abs(value)));
              d = 1 / (1 + std::exp(-value)) - t;
              hit = hit && (value > 0) == (t > 0.5);
            }
            if (g) g[r * stride + b] = static_cast<float>(d * share);
          }
          correct += hit;
        }
        run.result->loss = loss * share;
        run.result->correct = kind == LossKind::mse ? 0 : correct;
      };
    };
  }
  plan.forward.push_back(std::move(step));
}

}  // namespace mase::engine
