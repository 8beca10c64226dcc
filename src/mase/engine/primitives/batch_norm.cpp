// SPDX-License-Identifier: Apache-2.0
// The steps of batch normalisation. A channel is normalised while it is in cache: statistics,
// result, activation and rounding in one pass, the gradient in another. With several processes the
// statistics are combined between two passes (Chan et al., "Algorithms for computing the sample
// variance", 1983).
#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitives/fold.h"
#include "mase/engine/primitives/quantize.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::batch_norm_primitive {
namespace {

kernels::NormShape norm_shape(const Plan& plan, const Primitive& p) {
  const Shape rows = plan.at(p.in[0]).row_shape();
  kernels::NormShape shape{};
  shape.channels = rows[0];
  shape.positions = 1;
  for (size_t i = 1; i < rows.size(); ++i) shape.positions *= rows[i];
  shape.stride = plan.row_stride(p.in[0]);
  shape.threads = plan.options.threads;
  return shape;
}

bool synchronised(const Plan& plan, const Primitive& p) {
  return plan.options.all_reduce && plan.options.sync_batch_norm &&
         p.as<BatchNormPayload>().batch_statistics;
}

// Rounds a row in place.
struct RowQuantizer {
  const Quantizer* quantizer;
  Draws draws;
  const Run* run = nullptr;  // this and what follows is set before rows are visited
  const float* first = nullptr;
  int64_t stride = 1;

  static void call(const void* context, float* row, int64_t count) {
    const auto& self = *static_cast<const RowQuantizer*>(context);
    const auto index = static_cast<uint64_t>((row - self.first) / self.stride);
    self.quantizer->quantize_part(0, row, row, count, self.draws.at(*self.run, index),
                                  self.draws.first(*self.run, 1));
  }
};

struct Pointers {
  const float *x = nullptr, *g = nullptr, *weight = nullptr, *bias = nullptr;
  float *y = nullptr, *mean = nullptr, *variance = nullptr, *inverse = nullptr;
  float *running_mean = nullptr, *running_var = nullptr;
  int64_t* tracked = nullptr;
};

Pointers pointers(const Plan& plan, const Primitive& p, const Memory& memory) {
  const auto at = [&](int tensor) { return memory.at(tensor); };
  const auto& own = p.as<BatchNormPayload>();
  Pointers result;
  result.x = at(p.in[0]);
  result.weight = at(p.weight);
  result.bias = at(p.bias);
  result.y = at(p.out);
  result.mean = at(own.mean);
  result.variance = at(own.variance);
  result.inverse = at(own.inverse);
  result.running_mean = at(own.running_mean);
  result.running_var = at(own.running_var);
  const int counter = own.tracked >= 0 ? plan.counter_of(own.tracked) : -1;
  if (counter >= 0) result.tracked = &(*memory.counters)[static_cast<size_t>(counter)];
  return result;
}

// PyTorch's rule: the running variance takes the unbiased one; no momentum is a plain average.
void update_running(const Pointers& at, std::optional<double> momentum, int64_t channels,
                    double count) {
  if (at.tracked) ++*at.tracked;
  if (!at.running_mean || !at.running_var) return;
  const double share =
      momentum ? *momentum : 1.0 / static_cast<double>(at.tracked ? *at.tracked : 1);
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  for (int64_t c = 0; c < channels; ++c) {
    at.running_mean[c] = static_cast<float>((1 - share) * at.running_mean[c] + share * at.mean[c]);
    at.running_var[c] =
        static_cast<float>((1 - share) * at.running_var[c] + share * unbiased * at.variance[c]);
  }
}

void combine_statistics(const Plan& plan, const kernels::NormShape& shape, const Pointers& at,
                        std::vector<double>& sums, double global_count) {
  const auto local = static_cast<double>(shape.n * shape.positions);
  const auto channels = static_cast<size_t>(shape.channels);
  // In double precision throughout: the mean of equal values is that value, or a relu behind this
  // would open or close by the rounding of the shards.
  for (int64_t c = 0; c < shape.channels; ++c) {
    double sum = 0;
    for (int64_t p = 0; p < shape.positions; ++p)
      for (int64_t b = 0; b < shape.n; ++b)
        sum += at.x[(c * shape.positions + p) * shape.stride + b];
    sums[static_cast<size_t>(c)] = sum;
  }
  plan.options.all_reduce(std::span<double>(sums.data(), channels));
  std::vector<double>& means = sums;
  double* squares = sums.data() + channels;
  for (size_t c = 0; c < channels; ++c) {
    means[c] /= global_count;
    const double shift = at.mean[c] - means[c];
    squares[c] = local * (at.variance[c] + shift * shift);
  }
  plan.options.all_reduce(std::span<double>(squares, channels));
  for (size_t c = 0; c < channels; ++c) {
    at.mean[c] = static_cast<float>(means[c]);
    at.variance[c] = static_cast<float>(squares[c] / global_count);
  }
}

// The sweeps over a channel, by vectors or by plain loops: the gradient needs the statistics that
// either leaves behind.
struct Sweeps {
  decltype(&kernels::norm_apply) apply;
  decltype(&kernels::norm_statistics) statistics;
  decltype(&kernels::norm_forward) forward;
};
const Sweeps fast{kernels::norm_apply, kernels::norm_statistics, kernels::norm_forward};
const Sweeps plain{kernels::reference::norm_apply, kernels::reference::norm_statistics,
                   kernels::reference::norm_forward};

Step forward(Plan& plan, Primitive& primitive, const Sweeps& sweeps) {
  const kernels::NormShape shape = norm_shape(plan, primitive);
  auto& kept = primitive.as<BatchNormPayload>();
  kept.mean = plan.scratch("mean", shape.channels);
  kept.variance = plan.scratch("variance", shape.channels);
  kept.inverse = plan.scratch("inverse", shape.channels);
  const Primitive p = primitive;
  const auto own = kept;
  Step step{"batch_norm",
            own.batch_statistics ? "batch statistics" : "running statistics",
            p.in,
            {p.out, own.mean, own.variance, own.inverse}};
  step.kernel += p.epilogue.text();
  step.read({p.weight, p.bias, own.running_mean, own.running_var});
  const ClampStage limits = p.epilogue.limits();
  const RoundStage* found = p.epilogue.find<RoundStage>();
  const RoundStage round = found ? *found : RoundStage{};
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    const Pointers at = pointers(plan, p, memory);
    const kernels::NormParameters parameters{at.weight, at.bias, own.eps, limits.low, limits.high};
    std::shared_ptr<RowQuantizer> quantizer;
    if (round.quantizer)
      quantizer = std::make_shared<RowQuantizer>(
          RowQuantizer{.quantizer = round.quantizer,
                       .draws = Draws(plan, *round.quantizer, round.stream),
                       .first = at.y,
                       .stride = shape.stride});
    const bool sync = synchronised(plan, p);
    const int64_t positions = plan.at(p.out).positions();
    auto sums = std::make_shared<std::vector<double>>(static_cast<size_t>(2 * shape.channels));
    return [=, &plan](const Run& run) {
      kernels::NormShape s = shape;
      s.n = plan.lanes(p.out, run);
      if (quantizer) quantizer->run = &run;
      const kernels::RowHook hook{quantizer ? RowQuantizer::call : nullptr, quantizer.get()};
      if (!own.batch_statistics) {
        for (int64_t c = 0; c < s.channels; ++c) {
          at.mean[c] = at.running_mean[c];
          at.inverse[c] = static_cast<float>(1 / std::sqrt(at.running_var[c] + own.eps));
        }
        sweeps.apply(s, parameters, at.x, at.mean, at.inverse, at.y, hook);
        return;
      }
      double count = static_cast<double>(s.n * s.positions);
      if (sync) {
        count = run.global * static_cast<double>(s.positions * positions);
        sweeps.statistics(s, at.x, at.mean, at.variance);
        combine_statistics(plan, s, at, *sums, count);
        for (int64_t c = 0; c < s.channels; ++c)
          at.inverse[c] = static_cast<float>(1 / std::sqrt(at.variance[c] + own.eps));
        sweeps.apply(s, parameters, at.x, at.mean, at.inverse, at.y, hook);
      } else {
        sweeps.forward(s, parameters, at.x, at.mean, at.variance, at.inverse, at.y, hook);
      }
      if (plan.options.training) update_running(at, own.momentum, s.channels, count);
    };
  };
  return step;
}

void gradient(Backward& backward, const Primitive& p, int gradient) {
  Plan& plan = backward.plan();
  const auto own = p.as<BatchNormPayload>();
  backward.take_over(p.in[0], gradient);
  Target x = backward.target(p.in[0]);
  const Target weight = backward.target(p.weight), bias = backward.target(p.bias);
  if (x.tensor == gradient) x.accumulate = false;
  const kernels::NormShape shape = norm_shape(plan, p);
  const int sum_g = plan.scratch("sum g", shape.channels);
  const int sum_gx = plan.scratch("sum g xhat", shape.channels);
  Step step{"batch_norm_gradient",
            x.tensor < 0 ? "parameters only" : "",
            {p.in[0], gradient, own.mean, own.inverse},
            {sum_g, sum_gx}};
  const ClampStage limits = p.epilogue.limits();
  if (limits.is_relu()) step.kernel += "+relu";
  step.read({p.weight, p.bias});
  step.write({x.tensor, weight.tensor, bias.tensor});
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    const Pointers at = pointers(plan, p, memory);
    const kernels::NormParameters parameters{at.weight, at.bias, own.eps, limits.low, limits.high};
    const bool sync = synchronised(plan, p);
    const int64_t positions = plan.at(p.out).positions();
    auto sums = std::make_shared<std::vector<double>>(static_cast<size_t>(2 * shape.channels));
    return [=, &plan, g = memory[gradient], sg = memory[sum_g], sgx = memory[sum_gx],
            dx = memory.at(x.tensor), dw = memory.at(weight.tensor),
            db = memory.at(bias.tensor)](const Run& run) {
      kernels::NormShape s = shape;
      s.n = plan.lanes(p.out, run);
      if (!sync && own.batch_statistics)
        kernels::norm_backward(s, parameters, at.x, g, at.mean, at.inverse, sg, sgx, dx,
                               x.accumulate);
      else
        kernels::norm_gradient_sums(s, parameters, at.x, g, at.mean, at.inverse, sg, sgx);
      for (int64_t c = 0; c < s.channels; ++c) {
        if (dw) dw[c] = weight.accumulate ? dw[c] + sgx[c] : sgx[c];
        if (db) db[c] = bias.accumulate ? db[c] + sg[c] : sg[c];
      }
      if (!dx) return;
      if (!own.batch_statistics) {
        kernels::norm_gradient_apply(s, parameters, at.x, g, at.mean, at.inverse, sg, sgx, 0, dx,
                                     x.accumulate);
      } else if (sync) {
        const auto channels = static_cast<size_t>(s.channels);
        for (size_t c = 0; c < channels; ++c) {
          (*sums)[c] = sg[c];
          (*sums)[channels + c] = sgx[c];
        }
        plan.options.all_reduce(std::span<double>(*sums));
        for (size_t c = 0; c < channels; ++c) {
          sg[c] = static_cast<float>((*sums)[c]);
          sgx[c] = static_cast<float>((*sums)[channels + c]);
        }
        kernels::norm_gradient_apply(s, parameters, at.x, g, at.mean, at.inverse, sg, sgx,
                                     run.global * static_cast<double>(s.positions * positions), dx,
                                     x.accumulate);
      }
    };
  };
  backward.push(std::move(step));
}

void reference(Reference& call) {
  const Primitive& p = call.primitive;
  const auto& own = p.as<BatchNormPayload>();
  const auto channels = static_cast<size_t>(call.out.shape[1]);
  std::vector<double> mean(channels, 0.0), variance(channels, 0.0);
  const Array& x = call.in[0];
  const double share = static_cast<double>(channels) / static_cast<double>(x.data.size());
  const auto each = [&](const auto& visit) {
    each_index(x.shape, [&](const Shape& at) { visit(static_cast<size_t>(at[1]), at); });
  };
  if (own.batch_statistics) {
    each([&](size_t c, const Shape& at) { mean[c] += value_at(x, at) * share; });
    each([&](size_t c, const Shape& at) {
      const double off = value_at(x, at) - mean[c];
      variance[c] += off * off * share;
    });
  } else {
    mean = call.read(own.running_mean).data;
    variance = call.read(own.running_var).data;
  }
  each([&](size_t c, const Shape& at) {
    const double normal = (value_at(x, at) - mean[c]) / std::sqrt(variance[c] + own.eps);
    const double y =
        normal * (p.weight >= 0 ? call.weight.data[c] : 1) + (p.bias >= 0 ? call.bias.data[c] : 0);
    value_at(call.out, at) = y;
  });
}

Slot generate(Trial& trial) {
  trial.batch(32);
  const int64_t channels = trial.size(1, 9, 64);
  Shape sample = {channels};
  for (int64_t dims = trial.size(0, 2, 2); dims > 0; --dims) sample.push_back(trial.size(2, 9, 16));
  const Slot x = trial.activation(sample);
  Lowering::BatchNorm options;
  options.eps = 1e-3;
  if (trial.coin(true)) options.weight = trial.parameter({channels});
  if (trial.coin(true)) options.bias = trial.parameter({channels});
  if (!trial.to().training() || trial.coin()) {
    options.running_mean = trial.parameter({channels}, {1, 3, true});
    options.running_var = trial.parameter({channels}, {1, 3, true});
  }
  const Slot out = trial.to().batch_norm(x, options);
  // A channel of one value has no deviation.
  return trial.to().training() && sample.size() == 1 && trial.plan().options.batch_size < 8 ? -1
                                                                                            : out;
}

// Inference: a fixed scale and shift of each channel, where all its parameters are plain ones.
std::optional<FusedStage> as_stage(const Plan& plan, const Primitive& p, int) {
  const auto& own = p.as<BatchNormPayload>();
  if (plan.options.training || !plan.options.fold_batch_norm || own.batch_statistics ||
      !has_plain_weights(plan, p))
    return {};
  return ScaleShiftStage{p.weight, p.bias, own.running_mean, own.running_var, own.eps};
}

const Register<PrimitiveRecord> registered{{
    .name = "batch_norm",
    .summary = "each channel normalised over all its lanes",
    .payload = typeid(BatchNormPayload),
    .variants = {{"vectors", [](Plan& plan, Primitive& p) { return forward(plan, p, fast); }},
                 {"reference", [](Plan& plan, Primitive& p) { return forward(plan, p, plain); }}},
    .reference = reference,
    .gradient = gradient,
    .generate = generate,
    .sample_by_sample =
        [](const Primitive& p) { return !p.as<BatchNormPayload>().batch_statistics; },
    .stages = {StageKind::clamp, StageKind::round},
    .takes =
        [](const Plan& plan, const Primitive&,
           const FusedStage& stage) {  // its gradient knows a relu
          const auto* limits = std::get_if<ClampStage>(&stage);
          return !limits || !plan.options.training || limits->is_relu();
        },
    .as_stage = as_stage,
    .text =
        [](const Plan&, const Primitive& p) {
          return p.as<BatchNormPayload>().batch_statistics ? " of the batch" : "";
        },
}};

}  // namespace
}  // namespace mase::engine::batch_norm_primitive
