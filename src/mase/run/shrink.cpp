// SPDX-License-Identifier: Apache-2.0
#include "mase/run/shrink.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "mase/hardware/lower_linear.h"
#include "mase/ir/learned.h"
#include "mase/run/experiment.h"

namespace mase {
namespace {

constexpr int64_t shrink_batch = 1024;

// Widths may differ from value to value, scales may not depend on them.
bool rounds_values_alone(const Quantizer& format) {
  return format.elementwise || (format.type && format.type->as<Fixed>());
}

// One weight that may lose a digit.
struct DigitCandidate {
  size_t parameter, index;
  float to;
  double score;
};

class Shrinker {
 public:
  Shrinker(const Graph& graph, const Dataset& dataset)
      : graph_(graph),
        dataset_(dataset),
        program_(Program::compile(graph, {.training = true,
                                          .batch_size = shrink_batch,
                                          .loss = loss_for(dataset),
                                          .freeze_batch_norm = true})),
        scoring_(program_.sharing({.batch_size = shrink_batch, .loss = loss_for(dataset)})) {
    for (size_t p = 0; p < program_.parameters().size(); ++p) {
      const std::string& name = program_.parameters()[p].name;
      const size_t dot = name.rfind('.');
      const Module& module = graph.modules().at(name.substr(0, dot));
      if (module.op != "linear" || name.substr(dot + 1) != "weight") continue;
      weights_.push_back({p, current_quantizer(module.quantization, &module, "weight"), {}});
      if (!weights_.back().format || !rounds_values_alone(*weights_.back().format))
        throw Error(name, "is not in a format that rounds every value on its own",
                    "quantise weights to integer, minifloat or power_of_two");
      // From here on weights are the numbers they are rounded to.
      const ParameterView& view = program_.parameters()[p];
      const Tensor rounded =
          quantize(*weights_.back().format,
                   Tensor::of<float>(view.shape, std::span<const float>(view.value)));
      std::copy_n(rounded.data<float>(), view.value.size(), view.value.begin());
      weights_.back().frozen.assign(view.value.size(), false);
    }
    if (weights_.empty()) throw Error(graph.name, "has no linear layers to shrink");
    program_.parameters_changed();
  }

  double loss() { return score_rows(scoring_, dataset_.train, 0, dataset_.train.rows()).loss(); }
  double accuracy() {
    return score_rows(scoring_, dataset_.test, 0, dataset_.test.rows()).accuracy();
  }

  Graph graph() const {
    Graph result = graph_;
    program_.write_to(result);
    return result;
  }

  ShrinkStep measure(double train_loss) {
    const IntegerGraph best = optimize(lower(graph()).graph, {.effort = 0}).graph;
    const Estimate cost = estimate(best);
    ShrinkStep step{0, cost.luts, cost.levels, train_loss};
    for (const Weights& layer : weights_)
      for (const float value : parameter(layer).value)
        step.digits += signed_digit_count(dyadic(value, graph_.name).mantissa);
    return step;
  }

  // Weights that can lose a digit, those whose loss should rise least first.
  std::vector<DigitCandidate> candidates() {
    gradients();
    std::vector<DigitCandidate> list;
    double slope = 0, change = 0;
    for (const Weights& layer : weights_) {
      const ParameterView& view = parameter(layer);
      std::vector<float> shorter(view.value.size());
      for (size_t i = 0; i < shorter.size(); ++i) {
        const Dyadic number = dyadic(view.value[i], graph_.name);
        shorter[i] = static_cast<float>(
            std::ldexp(static_cast<double>(without_lowest_digit(number.mantissa)), -number.frac));
      }
      const Tensor rounded = quantize(*layer.format, Tensor::of(view.shape, shorter));
      for (size_t i = 0; i < shorter.size(); ++i) {
        const float from = view.value[i], to = shorter[i];
        // A number that the format does not have would become another one.
        if (from == 0 || layer.frozen[i] || rounded.data<float>()[i] != to) continue;
        list.push_back({layer.parameter, i, to, static_cast<double>(to) - from});
        slope += std::abs(static_cast<double>(view.gradient[i]));
        change += std::abs(static_cast<double>(to) - from);
      }
    }
    // First order by the gradient; a second-order term of the same size keeps large changes back.
    const double curvature = change > 0 ? 10 * slope / change : 0;
    for (DigitCandidate& one : list) {
      const double moved = one.score;
      const double gradient = program_.parameters()[one.parameter].gradient[one.index];
      one.score = gradient * moved + curvature * moved * moved;
    }
    std::sort(list.begin(), list.end(), [](const DigitCandidate& a, const DigitCandidate& b) {
      if (a.score != b.score) return a.score < b.score;
      return std::pair(a.parameter, a.index) < std::pair(b.parameter, b.index);
    });
    return list;
  }

  // Writes the new values and gives the old ones back.
  std::vector<float> apply(std::span<const DigitCandidate> chosen) {
    std::vector<float> old;
    for (const DigitCandidate& one : chosen) {
      float& value = program_.parameters()[one.parameter].value[one.index];
      old.push_back(value);
      value = one.to;
    }
    program_.parameters_changed();
    return old;
  }
  void undo(std::span<const DigitCandidate> chosen, const std::vector<float>& old) {
    for (size_t k = 0; k < chosen.size(); ++k)
      program_.parameters()[chosen[k].parameter].value[chosen[k].index] = old[k];
    program_.parameters_changed();
  }
  void freeze(const DigitCandidate& one) {
    for (Weights& layer : weights_)
      if (layer.parameter == one.parameter) layer.frozen[one.index] = true;
  }

 private:
  struct Weights {
    size_t parameter;
    QuantizerPtr format;
    std::vector<bool> frozen;  // its next digit is dear
  };

  ParameterView& parameter(const Weights& layer) { return program_.parameters()[layer.parameter]; }
  void gradients() {
    const Split& rows = dataset_.train;
    Batch batch;
    batch.inputs = {RowTensor(rows.x, rows.bytes.get())};
    batch.target = dataset_.classification ? RowTensor(rows.labels) : RowTensor(rows.targets);
    for (batch.first_row = 0; batch.first_row < rows.rows(); batch.first_row += shrink_batch) {
      batch.size = std::min(shrink_batch, rows.rows() - batch.first_row);
      program_.forward_backward(batch, batch.first_row > 0);
    }
  }

  const Graph& graph_;
  const Dataset& dataset_;
  Program program_, scoring_;
  std::vector<Weights> weights_;
};

}  // namespace

int signed_digit_count(int64_t number) {
  const uint64_t x = static_cast<uint64_t>(number < 0 ? -number : number);
  return std::popcount(x ^ 3 * x);
}

int64_t without_lowest_digit(int64_t number) {
  if (number == 0) return 0;
  const int shift = std::countr_zero(static_cast<uint64_t>(number));
  const int64_t odd = number >> shift;
  const int64_t digit = (odd & 3) == 3 ? -1 : 1;
  return (odd - digit) * (int64_t{1} << shift);
}

ShrinkResult shrink(const ShrinkSpec& spec, const std::function<void(const ShrinkStep&)>& step) {
  if (spec.network.data.name.empty())
    throw Error("--dataset", "shrinking watches the loss on training rows", "name a data set");
  Experiment experiment({.network = spec.network.network,
                         .data = spec.network.data,
                         .passes = spec.network.passes,
                         .seed = spec.network.seed});
  experiment.prepare();
  experiment.apply_passes();
  const Dataset& dataset = *experiment.dataset();
  lower(experiment.graph());  // what has no integers is refused before any work
  Shrinker shrinker(experiment.graph(), dataset);
  ShrinkResult result;
  result.contents = experiment.file_contents();
  result.dataset = fmt::format("{} ({})", dataset.name, dataset.variant);
  result.test_rows = dataset.test.rows();
  result.test_before = shrinker.accuracy();
  double loss = shrinker.loss();
  const double limit = loss * (1 + spec.max_loss);
  const auto note = [&] {
    result.steps.push_back(shrinker.measure(loss));
    if (step) step(result.steps.back());
    return spec.luts <= 0 || result.steps.back().luts > spec.luts;
  };
  bool go_on = note();
  size_t portion = 64;
  while (go_on) {
    const std::vector<DigitCandidate> list = shrinker.candidates();
    if (list.empty()) break;
    // The gradient holds for a part of the list only: half of it, then it is found anew.
    size_t at = 0, taken = 0;
    portion = std::clamp<size_t>(portion, 1, std::max<size_t>(1, list.size() / 8));
    const size_t end = std::max<size_t>(1, list.size() / 2);
    while (at < end) {
      const std::span<const DigitCandidate> chosen(list.data() + at,
                                                   std::min(portion, list.size() - at));
      const std::vector<float> old = shrinker.apply(chosen);
      const double now = shrinker.loss();
      if (now <= limit) {
        loss = now;
        taken += chosen.size();
        at += chosen.size();
        portion *= 2;
        continue;
      }
      shrinker.undo(chosen, old);
      if (chosen.size() == 1) {
        shrinker.freeze(chosen[0]);
        ++at;
      }
      portion = std::max<size_t>(1, portion / 4);
    }
    if (taken > 0) go_on = note();
  }
  result.reached = spec.luts <= 0 || result.steps.back().luts <= spec.luts;
  result.test_after = shrinker.accuracy();
  result.graph = shrinker.graph();
  return result;
}

}  // namespace mase
