// SPDX-License-Identifier: Apache-2.0
// gather: the samples of a batch, from the caller's row-major memory to rows of lanes. In inference
// a batch norm right behind it is done on the way.
#include <cmath>

#include "mase/engine/primitive.h"
#include "mase/engine/primitives/samples.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine {

const char* gather_name(const GatherPayload& gather) {
  if (gather.norm < 0) return "gather";
  return gather.relu ? "gather+batch_norm+relu" : "gather+batch_norm";
}

kernels::Normalizer normalizer_of(const GatherPayload& gather, const Memory& memory) {
  if (gather.norm < 0) return {};
  return {memory[gather.scale], memory[gather.shift], gather.relu ? 0.0f : -INFINITY};
}

Step prepare_scale(Plan& plan, const GatherPayload& gather, int64_t features) {
  const Primitive& norm = plan.primitives[static_cast<size_t>(gather.norm)];
  const auto& own = norm.as<BatchNormPayload>();
  const int weight = norm.weight, bias = norm.bias, mean = own.running_mean,
            variance = own.running_var, scale = gather.scale, shift = gather.shift;
  const double eps = own.eps;
  Step step{"scale_batch_norm", "", {mean, variance}, {scale, shift}};
  step.read({weight, bias});
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, w = memory.at(weight), b = memory.at(bias), average = memory[mean],
            var = memory[variance], scales = memory[scale], shifts = memory[shift]](const Run&) {
      for (int64_t f = 0; f < features; ++f) {
        const double factor = (w ? w[f] : 1.0) / std::sqrt(var[f] + eps);
        scales[f] = static_cast<float>(factor);
        shifts[f] = static_cast<float>((b ? b[f] : 0.0) - average[f] * factor);
      }
    };
  };
  return step;
}

}  // namespace mase::engine

namespace mase::engine::gather_primitive {
namespace {

Step forward(Plan& plan, Primitive& p) {
  const auto gather = p.as<GatherPayload>();
  Step step{gather_name(gather), "", {}, {p.out}};
  const TensorView view = view_of(plan, p.out);
  const int64_t rows = view.rows, stride = view.stride;
  const auto source = gather.placeholder;
  const bool normalized = gather.norm >= 0;
  const int out = p.out;
  step.read({gather.scale, gather.shift});
  if (normalized) plan.prepare.push_back(prepare_scale(plan, gather, rows));
  if (view.positions > 1) {  // a sample at a time, into its lanes
    MASE_CHECK(!normalized, "samples of positions are not normalised as they come in");
    Shape sample(view.shape.begin() + 1, view.shape.end());
    const int64_t floats = element_count(sample);
    step.bind = [=](const Memory& memory) -> Kernel {
      return [=, to = memory[out]](const Run& run) {
        int64_t strides[StridedCopy::most];
        view.strides(run.n, strides);
        const Samples& from_rows = run.inputs[source];
        for (int64_t b = 0; b < run.n; ++b) {
          const int64_t row = from_rows.rows ? from_rows.rows[b] : from_rows.first + b;
          StridedCopy copy;
          int64_t from = floats;
          for (size_t i = 0; i < sample.size(); ++i) {
            from /= std::max<int64_t>(1, sample[i]);
            copy.add(sample[i], from, strides[i + 1]);
          }
          copy.run(from_rows.source + row * floats, to + b * strides[0], false);
        }
      };
    };
    return step;
  }
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, by = normalizer_of(gather, memory), to = memory[out]](const Run& run) {
      const Samples& from = run.inputs[source];
      kernels::gather(from.source, rows, from.rows, from.first, run.n, to, stride,
                      normalized ? &by : nullptr);
    };
  };
  return step;
}

void reference(Reference& call) {
  const Samples& from = call.run.inputs[call.primitive.as<GatherPayload>().placeholder];
  const size_t width = call.out.data.size() / static_cast<size_t>(call.run.n);
  for (size_t b = 0; b < static_cast<size_t>(call.run.n); ++b) {
    const size_t row = from.rows ? from.rows[b] : static_cast<size_t>(from.first) + b;
    for (size_t i = 0; i < width; ++i) call.out.data[b * width + i] = from.source[row * width + i];
  }
}

Slot generate(Trial& trial) {
  const Shape sample = {trial.size(1, 40, 64), trial.size(1, 3, 1)};
  trial.samples(sample);
  Shape shape = sample;
  shape.insert(shape.begin(), trial.plan().options.batch_size);
  return trial.to().add("gather", {.payload = GatherPayload{}}, shape, Layout::batch,
                        trial.coin() ? Axes::channels(3) : Axes::flat(3));
}

const Register<PrimitiveRecord> registered{{
    .name = "gather",
    .summary = "the samples of a batch as rows of lanes",
    .payload = typeid(GatherPayload),
    .variants = {{"vectors", forward}},
    .reference = reference,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .text =
        [](const Plan&, const Primitive& p) {
          const auto& own = p.as<GatherPayload>();
          return fmt::format("{}{}", own.norm >= 0 ? "+batch_norm" : "", own.relu ? "+relu" : "");
        },
}};

}  // namespace
}  // namespace mase::engine::gather_primitive
