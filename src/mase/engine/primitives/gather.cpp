// SPDX-License-Identifier: Apache-2.0
// gather: the samples of a batch, from the caller's row-major memory to rows of lanes. In inference
// a batch norm right behind it is done on the way.
#include <algorithm>

#include "mase/engine/payloads.h"
#include "mase/engine/primitives/fold.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::gather_primitive {
namespace {

Step forward(Plan& plan, Primitive& p) {
  Step step{"gather" + p.epilogue.text(), "", {}, {p.out}};
  const TensorView view = view_of(plan, p.out);
  const int64_t rows = view.rows, stride = view.stride;
  const auto source = p.as<GatherPayload>().placeholder;
  const int out = p.out;
  if (view.positions > 1) {  // a sample at a time, into its lanes
    MASE_CHECK(p.epilogue.empty(), "samples of positions are not normalised as they come in");
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
  const Factors factors = factors_of(plan, p);
  const int scale = factors.weight, shift = factors.bias;
  const float low = factors.rest.limits().low;
  step.read({scale, shift});
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, by = kernels::Normalizer{memory.at(scale), memory.at(shift), low},
            to = memory[out]](const Run& run) {
      const Samples& from = run.inputs[source];
      if (stride == 1) {  // one sample, whose values lie as they are wanted
        const float* row = from.source + (from.rows ? from.rows[0] : from.first) * rows;
        for (int64_t r = 0; r < rows; ++r)
          to[r] = by.scale ? std::max(by.low, row[r] * by.scale[r] + by.shift[r]) : row[r];
        return;
      }
      kernels::gather(from.source, rows, from.rows, from.first, run.n, to, stride,
                      by.scale ? &by : nullptr);
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
  if (trial.coin()) return trial.sample_rows(trial.size(1, 40, 64));
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
    .stages = {StageKind::scale_shift, StageKind::clamp},
    .takes =
        [](const Plan& plan, const Primitive& p, const FusedStage& stage) {
          const TensorInfo& out = plan.at(p.out);
          if (const auto* limits = std::get_if<ClampStage>(&stage))
            return limits->is_relu() && !p.epilogue.empty();
          return out.shape.size() == 2 && out.positions() == 1;
        },
    .any_stride = true,
}};

}  // namespace
}  // namespace mase::engine::gather_primitive
