// SPDX-License-Identifier: Apache-2.0
// The primitives of losses: targets as the batch gives them, means over the batch, and
// cross-entropy with its gradient and the arg-max hits in one sweep. Which of them make up a loss
// is said by its record (train/losses/).
#include "mase/engine/primitives/loss.h"

#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine {

bool gradient_comes_forward(const Plan& plan, const Primitive& p) {
  return p.is<CrossEntropyPayload>() && p.out == plan.loss;
}

namespace {

int32_t* labels_in(float* memory) { return reinterpret_cast<int32_t*>(memory); }
const int32_t* labels_in(const float* memory) { return reinterpret_cast<const int32_t*>(memory); }

// The labels of a batch, one behind the other, all of them classes. Those of tokens, `width` in a
// sample, may be negative: such a token does not count.
void take_labels(const Batch& batch, int64_t classes, int64_t width, bool tokens,
                 const std::string& place, int32_t* out) {
  const int32_t* from = batch.target.classes();
  const int64_t n = batch.size * width;
  if (batch.target_in_order)
    std::copy_n(from, n, out);
  else if (!batch.rows.empty())
    for (int64_t b = 0; b < batch.size; ++b)
      std::copy_n(from + static_cast<int64_t>(batch.rows[static_cast<size_t>(b)]) * width, width,
                  out + b * width);
  else
    std::copy_n(from + batch.first_row * width, n, out);
  uint32_t largest = 0;  // negative ones are larger than any class
  for (int64_t b = 0; b < n; ++b)
    if (!tokens || out[b] >= 0) largest = std::max(largest, static_cast<uint32_t>(out[b]));
  if (largest >= static_cast<uint64_t>(classes))
    throw Error(
        place,
        fmt::format("label {} for a network of {} classes", static_cast<int32_t>(largest), classes),
        "check the data set's number of classes");
}

// The mean loss. A batch of classes without weight has none, and label smoothing leaves its rows a
// loss all the same: where rows are only measured the sum is given, with the weight 0 beside it.
double mean_or_sum(const Plan& plan, double sum, double total) {
  return total == 0 && !plan.options.training ? sum : sum / total;
}

// One sweep of the fused kernel. `factor` scales the gradient.
struct CrossEntropy {
  const Plan* plan;
  int64_t classes, stride, positions;
  bool tokens;  // each of them has a label
  const float* logits;
  float* labels;
  const float* weights;

  CrossEntropy(const Plan& of, const Primitive& p, const Memory& memory)
      : plan(&of),
        classes(of.at(p.in[0]).rows()),
        stride(of.row_stride(p.in[0])),
        positions(of.at(p.in[1]).positions()),
        tokens(of.at(p.in[1]).shape.size() > 1),
        logits(memory[p.in[0]]),
        labels(memory[p.in[1]]),
        weights(p.in.size() > 2 ? memory[p.in[2]] : nullptr) {}

  double operator()(const Run& run, float factor, float* gradient) const {
    double total = run.global;
    const int32_t* own = labels_in(labels);
    const int64_t lanes = run.n * positions;
    if (weights || tokens) {
      total = 0;
      for (int64_t b = 0; b < lanes; ++b)
        if (own[b] >= 0) total += weights ? weights[own[b]] : 1;
      if (plan->options.all_reduce) plan->options.all_reduce(std::span<double>(&total, 1));
      run.result->weight = total;
    }
    // A batch in which no token counts has no loss and no gradient.
    if (tokens && total == 0) total = 1;
    const auto result = kernels::cross_entropy(logits, classes, stride, lanes, own, weights,
                                               factor * static_cast<float>(1 / total), gradient);
    run.result->correct = result.correct;
    return mean_or_sum(*plan, result.loss, total);
  }
};

Step constant(Plan&, Primitive& p) {
  Step step{"constant", "", {}, {p.out}};
  const auto values = p.as<ConstantPayload>().values;
  const int out = p.out;
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, to = memory[out]](const Run&) { std::copy(values->begin(), values->end(), to); };
  };
  return step;
}

Step target(Plan& plan, Primitive& p) {
  const int64_t rows = plan.at(p.out).rows(), stride = plan.row_stride(p.out);
  const bool labels = plan.at(p.out).element == DType::i32;
  const int64_t classes = plan.at(plan.outputs[0]).shape.back();
  const int64_t width = plan.at(p.out).positions();
  const bool tokens = plan.at(p.out).shape.size() > 1;
  return make_step(
      "target", "", {-1}, {p.out}, [=, &plan](const Run& run, const float*, float* to) {
        const Batch& batch = *run.batch;
        if (labels)
          take_labels(batch, classes, width, tokens, plan.graph().name, labels_in(to));
        else
          kernels::gather(batch.target.floats(), rows,
                          batch.target_in_order ? nullptr : row_numbers(batch),
                          batch.target_in_order ? 0 : batch.first_row, run.n, to, stride);
      });
}

Step one_hot(Plan& plan, Primitive& p) {
  const int64_t classes = plan.at(p.out).rows(), stride = plan.row_stride(p.out);
  return make_step("one_hot", "", {p.in[0]}, {p.out},
                   [=](const Run& run, const float* labels, float* to) {
                     const int32_t* own = labels_in(labels);
                     for (int64_t c = 0; c < classes; ++c)
                       for (int64_t b = 0; b < run.n; ++b)
                         to[c * stride + b] = own[b] == c ? 1.0f : 0.0f;
                   });
}

Step batch_mean(Plan& plan, Primitive& p) {
  const int x = p.in[0], weights = p.in.size() > 1 ? p.in[1] : -1;
  const auto sum_of = [&](int tensor) {
    return [rows = plan.at(tensor).rows(), stride = plan.row_stride(tensor),
            positions = plan.at(tensor).positions()](const Run& run, const float* values) {
      double total = 0;
      for (int64_t r = 0; r < rows; ++r)
        total += kernels::sum(values + r * stride, run.n * positions);
      return total;
    };
  };
  const auto values =
      static_cast<double>(plan.at(x).rows() * plan.at(x).positions());  // of a sample
  return make_step("batch_mean", "", {x, weights}, {p.out, p.as<BatchMeanPayload>().share},
                   [&plan, values, sum = sum_of(x), weight_sum = sum_of(weights < 0 ? x : weights),
                    is_loss = plan.loss == p.out](const Run& run, const float* from, const float* w,
                                                  float* to, float* inverse) {
                     double total = run.global * values;
                     if (w) {
                       total = weight_sum(run, w);
                       if (plan.options.all_reduce)
                         plan.options.all_reduce(std::span<double>(&total, 1));
                       run.result->weight = total;
                     }
                     const double mean = mean_or_sum(plan, sum(run, from), total);
                     *to = static_cast<float>(mean);
                     *inverse = static_cast<float>(1 / total);
                     if (is_loss) run.result->loss = mean;
                   });
}

void batch_mean_gradient(Backward& backward, const Primitive& p, int gradient) {
  const Target x = backward.target(p.in[0]);
  if (x.tensor < 0) return;
  const Plan& plan = backward.plan();
  const int64_t rows = plan.at(p.in[0]).rows(), stride = plan.row_stride(p.in[0]);
  const int64_t positions = plan.at(p.in[0]).positions();
  backward.push(make_step("batch_mean_gradient", "", {gradient, p.as<BatchMeanPayload>().share},
                          {x.tensor},
                          [=](const Run& run, const float* g, const float* inverse, float* to) {
                            const float each = *g * *inverse;
                            for (int64_t r = 0; r < rows; ++r)
                              for (int64_t b = 0; b < run.n * positions; ++b) {
                                float& place = to[r * stride + b];
                                place = x.accumulate ? place + each : each;
                              }
                          }));
}

Step cross_entropy(Plan& plan, Primitive& primitive) {
  const Primitive p = primitive;
  Step step{"cross_entropy", "", p.in, {p.out}};
  const bool gradient =
      plan.options.training && gradient_comes_forward(plan, p) && plan.at(p.in[0]).differentiable;
  const int target = gradient ? gradient_of(plan, p.in[0]) : -1;
  if (gradient) step.writes.push_back(target);
  const bool is_loss = plan.loss == p.out;
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, sweep = CrossEntropy(plan, p, memory), to = memory[p.out],
            g = memory.at(target)](const Run& run) {
      const double mean = sweep(run, 1, g);
      *to = static_cast<float>(mean);
      if (is_loss) run.result->loss = mean;
    };
  };
  return step;
}

void cross_entropy_gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const Target x = backward.target(p.in[0]);
  if (gradient_comes_forward(plan, p)) return;
  Step step{"cross_entropy_gradient", "", p.in, {x.tensor}};
  step.reads.push_back(gradient);
  const auto floats = static_cast<int64_t>(plan.floats(p.in[0]));
  const int own = x.accumulate ? plan.scratch("gradients", floats) : x.tensor;
  if (x.accumulate) step.writes.push_back(own);
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, sweep = CrossEntropy(plan, p, memory), up = memory[gradient], g = memory[own],
            to = memory[x.tensor]](const Run& run) {
      sweep(run, *up, g);
      if (x.accumulate) kernels::add_to(to, g, floats);
    };
  };
  backward.push(std::move(step));
}

void one_hot_reference(Reference& call) {
  for (size_t b = 0; b < call.in[0].data.size(); ++b)
    call.out.data[b * static_cast<size_t>(call.out.shape[1]) +
                  static_cast<size_t>(call.in[0].data[b])] = 1;
}

void batch_mean_reference(Reference& call) {
  double sum = 0, total = static_cast<double>(call.in[0].data.size());
  for (const double value : call.in[0].data) sum += value;
  if (call.in.size() > 1) {
    total = 0;
    for (const double weight : call.in[1].data) total += weight;
  }
  call.out.data[0] = sum / total;
}

void cross_entropy_reference(Reference& call) {
  const auto classes = static_cast<size_t>(call.in[0].shape.back());
  double sum = 0, total = 0;
  for (size_t b = 0; b < call.in[1].data.size(); ++b) {
    if (call.in[1].data[b] < 0) continue;
    const double* logits = call.in[0].data.data() + b * classes;
    const double largest = *std::max_element(logits, logits + classes);
    double exps = 0;
    for (size_t c = 0; c < classes; ++c) exps += std::exp(logits[c] - largest);
    const auto label = static_cast<size_t>(call.in[1].data[b]);
    const double weight = call.in.size() > 2 ? call.in[2].data[label] : 1;
    sum += weight * (std::log(exps) + largest - logits[label]);
    total += weight;
  }
  call.out.data[0] = total != 0 ? sum / total : 0;
}

Slot generate_one_hot(Trial& trial) {
  const int64_t classes = trial.size(1, 12, 10);
  return trial.to().one_hot(trial.labels(classes), classes);
}

Slot generate_batch_mean(Trial& trial) {
  const Slot x = trial.activation({trial.size(1, 9, 64), trial.size(1, 5, 1)});
  if (trial.coin()) return trial.to().batch_mean(x, {});
  return trial.to().batch_mean(x, trial.activation({trial.size(1, 9, 64)}, {1, 3, true}));
}

Slot generate_cross_entropy(Trial& trial) {
  const int64_t classes = trial.size(1, 12, 10);
  const Shape tokens = trial.coin() ? Shape{trial.size(1, 7, 1)} : Shape{};
  Shape sample = tokens;
  sample.push_back(classes);
  const Slot logits = trial.activation(sample), labels = trial.labels(classes, tokens);
  if (trial.coin()) return trial.to().cross_entropy(logits, labels, {});
  return trial.to().cross_entropy(logits, labels, trial.parameter({classes}, {1, 3, true}));
}

const Register<PrimitiveRecord> constant_record{{
    .name = "constant",
    .summary = "numbers that are known beforehand",
    .payload = typeid(ConstantPayload),
    .variants = {{"copies", constant}},
    .not_generated = "copies its numbers",
}};
const Register<PrimitiveRecord> target_record{{
    .name = "target",
    .summary = "what the batch says the outputs should be",
    .payload = typeid(TargetPayload),
    .variants = {{"copies", target}},
    .not_generated = "copies what the caller has",
}};
const Register<PrimitiveRecord> one_hot_record{{
    .name = "one_hot",
    .summary = "classes as rows of 0 and 1",
    .payload = typeid(OneHotPayload),
    .variants = {{"lanes", one_hot}},
    .reference = one_hot_reference,
    .generate = generate_one_hot,
}};
const Register<PrimitiveRecord> batch_mean_record{{
    .name = "batch_mean",
    .summary = "a weighted mean over the batch of all processes",
    .payload = typeid(BatchMeanPayload),
    .variants = {{"vectors", batch_mean}},
    .reference = batch_mean_reference,
    .gradient = batch_mean_gradient,
    .generate = generate_batch_mean,
}};
const Register<PrimitiveRecord> cross_entropy_record{{
    .name = "cross_entropy",
    .summary = "softmax cross-entropy, its gradient and the hits in one sweep",
    .payload = typeid(CrossEntropyPayload),
    .variants = {{"vectors", cross_entropy}},
    .reference = cross_entropy_reference,
    .gradient = cross_entropy_gradient,
    .generate = generate_cross_entropy,
}};

}  // namespace

void emit_loss_result(Plan& plan) {
  bool hits_known = false, loss_known = false;
  for (const Primitive& p : plan.primitives) {
    if (p.removed) continue;
    hits_known = hits_known || p.is<CrossEntropyPayload>();
    loss_known = loss_known ||
                 (p.out == plan.loss && (p.is<CrossEntropyPayload>() || p.is<BatchMeanPayload>()));
  }
  if (!loss_known)
    plan.losses.push_back(
        make_step("loss", "", {plan.loss}, {-1},
                  [](const Run& run, const float* from, float*) { run.result->loss = *from; }));
  if (hits_known || plan.at(plan.target).element != DType::i32) return;
  const int output = plan.outputs[0];
  plan.losses.push_back(
      make_step("hits", "", {output, plan.target}, {-1},
                [classes = plan.at(output).rows(), stride = plan.row_stride(output)](
                    const Run& run, const float* x, const float* labels, float*) {
                  run.result->correct = kernels::hits(x, classes, stride, run.n, labels_in(labels));
                }));
}

}  // namespace mase::engine
