// SPDX-License-Identifier: Apache-2.0
// How many samples of a large batch are best run together. Activations that do not fit the last
// cache are written to memory and read again by the next step; a slice of the batch that is run
// from end to end keeps them near, for the price of reading the weights once for each slice.
#include <algorithm>

#include "mase/engine/primitive.h"

namespace mase::engine {
namespace {

// Whether nothing but a sample's own values goes into its results.
bool is_sample_by_sample(const Plan& plan) {
  for (const Primitive& p : plan.primitives) {
    const TensorInfo& out = plan.at(p.out);
    if (p.removed || out.constant) continue;
    if (out.layout != Layout::batch || !p.record->sample_by_sample ||
        !p.record->sample_by_sample(p))
      return false;
  }
  return std::all_of(plan.outputs.begin(), plan.outputs.end(),
                     [&](int tensor) { return plan.at(tensor).layout == Layout::batch; });
}

}  // namespace

int64_t best_slice(const Plan& plan) {
  const int64_t all = plan.options.batch_size;
  if (plan.options.training || plan.options.loss || !plan.options.keep.empty() ||
      !is_sample_by_sample(plan))
    return all;
  size_t moved = 0;  // floats of all samples, in all steps
  for (const Step& step : plan.forward)
    for (const auto* tensors : {&step.reads, &step.writes})
      for (const int tensor : *tensors)
        if (plan.at(tensor).layout == Layout::batch) moved += plan.floats(tensor);
  constexpr size_t near_floats = size_t{3} << 20;  // of a step: 12 MB of the last cache
  const size_t of_step = moved / std::max<size_t>(1, plan.forward.size());
  if (of_step <= 2 * near_floats) return all;
  int64_t slice = 1;  // a power of two: runs of samples fill vectors, or parts of them
  while (2 * slice * static_cast<int64_t>(of_step) <= all * static_cast<int64_t>(near_floats))
    slice *= 2;
  const size_t weights = plan.parameter_floats + plan.state_floats;
  const auto slices = static_cast<size_t>((all + slice - 1) / slice);
  return 4 * weights * slices <= moved ? slice : all;
}

}  // namespace mase::engine
