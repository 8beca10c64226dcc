// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/primitives/output_lanes.h"

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/output_lanes.h"

namespace mase::engine::convolution_primitive {

std::optional<OutputLanes> OutputLanes::of(Plan& plan, const Geometry& g) {
  const int64_t batch = plan.options.batch_size, outputs = g.result_channels;
  const int64_t lanes = g.planes.result[0] * g.planes.result[1] * batch;
  constexpr int64_t fewest = 4;  // lanes of a row: fewer sums wait for each other
  // Packed weights are those of a network that is not trained.
  if (plan.options.training || g.groups != 1 || outputs % kernels::output_group != 0 ||
      g.planes.result[1] * batch < fewest)
    return {};
  const auto vectors = static_cast<double>(outputs / kernels::output_group * lanes);
  if (1.2 * vectors > static_cast<double>(outputs) * row_vectors(g.planes, batch)) return {};
  OutputLanes own(g);
  own.planes_ = plan.scratch("planes", g.plane_floats());
  own.sums_ = plan.scratch("sums", lanes * outputs);
  own.weights_ = plan.scratch("packed weights", outputs * g.terms());
  return own;
}

void OutputLanes::join(Step& step) const {
  step.kernel += ", output lanes";
  step.write({planes_, sums_, weights_});
}

Step OutputLanes::prepare(int weight) const {
  Step step{"pack_outputs", "", {weight}, {weights_}};
  step.bind = [=, out = g_.result_channels, in = g_.terms(), to = weights_](const Memory& memory) {
    return [=, w = memory[weight], packed = memory[to]](const Run&) {
      kernels::pack_outputs(w, out, in, packed);
    };
  };
  return step;
}

OutputLanes::Bound::Bound(const OutputLanes& lanes, const Memory& memory)
    : own_(std::make_shared<OutputLanes>(lanes)),
      tables_(tables_of(lanes.g_)),
      planes_(memory[lanes.planes_]),
      sums_(memory[lanes.sums_]),
      weights_(memory[lanes.weights_]) {}

void OutputLanes::Bound::forward(const float* image, const float* bias, float* result,
                                 const kernels::Finish& finish, int64_t n) const {
  const Geometry& g = own_->g_;
  tables_->make(g, n);
  const float* from = planes_of(g, image, 0, planes_, n);
  const kernels::ShiftedShape shape = product_shape(g, *tables_, g.terms(), n);
  kernels::output_lanes(shape, weights_, bias, from, sums_, finish);
  kernels::gather(sums_, shape.out, nullptr, 0, shape.n * shape.segments, result, g.result_stride);
}

}  // namespace mase::engine::convolution_primitive
