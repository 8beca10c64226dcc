// SPDX-License-Identifier: Apache-2.0
// dropout: the draw of an element is a function of seed, node, step, row, and of its sample in the
// whole batch and its position, so forward and backward agree and neither threads nor processes
// matter.
#include <algorithm>
#include <array>

#include "mase/base/random.h"
#include "mase/engine/kernels/dropout.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::dropout_primitive {
namespace {

constexpr int64_t some = 256;  // counters whose words are made at once

Kernel kernel_of(const Plan& plan, const Primitive& p, const float* in, float* out,
                 bool accumulate) {
  const double probability = p.as<DropoutPayload>().probability;
  const int tensor = p.out;
  const int64_t rows = plan.at(tensor).rows(), stride = plan.row_stride(tensor);
  const bool none = probability >= 1;  // is left
  const auto scale = static_cast<float>(none ? 0 : 1 / (1 - probability));
  const auto threshold = static_cast<uint32_t>(none ? 0 : probability * 4294967296.0);
  const auto seed = plan.options.seed;
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32) ^ 0x9E3779B9u};
  const auto node = static_cast<uint32_t>(p.node);
  const bool batch = plan.at(tensor).layout == Layout::batch;
  const int64_t positions = batch ? plan.at(tensor).positions() : 1;
  const bool sample_last = positions > 1 && plan.at(tensor).axes.lanes.back() == 0;
  return [=, &plan](const Run& run) {
    const int64_t n = plan.lanes(tensor, run);
    const int64_t first = batch ? run.batch->first_sample * positions : 0;
    const uint64_t draw = run.batch->step;
    // Elements are counted sample by sample, whatever the order of the lanes.
    const int64_t pieces = sample_last ? run.n : 1, length = n / pieces;
    for (int64_t r = 0; r < rows; ++r) {
      float* to = out + r * stride;
      const float* from = in + r * stride;
      if (none) {
        if (!accumulate) std::fill_n(to, n, 0.0f);
        continue;
      }
      const kernels::WordStream stream{{static_cast<uint32_t>(r), static_cast<uint32_t>(draw),
                                        static_cast<uint32_t>(draw >> 32) ^ (node << 8)},
                                       key};
      uint32_t words[4 * some];
      for (int64_t piece = 0; piece < pieces; ++piece)
        for (int64_t done = 0; done < length;) {
          const int64_t element = first + piece * length + done, skipped = element % 4;
          const int64_t count = std::min(length - done, 4 * some - skipped);
          kernels::stream_words(stream, static_cast<uint32_t>(element / 4),
                                (skipped + count + 3) / 4, words);
          const uint32_t* own = words + skipped;
          if (pieces == 1)
            kernels::drop(from + done, to + done, count, own, threshold, scale, accumulate);
          else
            for (int64_t i = 0; i < count; ++i) {
              const int64_t lane = (done + i) * pieces + piece;
              const float value = own[i] >= threshold ? from[lane] * scale : 0.0f;
              to[lane] = accumulate ? to[lane] + value : value;
            }
          done += count;
        }
    }
  };
}

Step forward(Plan& plan, Primitive& p) {
  Step step{"dropout", fmt::format("p={}", p.as<DropoutPayload>().probability), p.in, {p.out}};
  step.bind = [p = p, &plan](const Memory& memory) {
    return kernel_of(plan, p, memory[p.in[0]], memory[p.out], p.accumulate);
  };
  return step;
}

// The same draws of what comes back.
void gradient(Backward& backward, const Primitive& p, int gradient) {
  backward.send("dropout", {.in = {gradient}, .payload = p.payload}, p.in[0]);
}

// The draw of each element by itself, from its row and its place in its sample.
void reference(Reference& call) {
  const Primitive& p = call.primitive;
  const TensorInfo& info = call.plan.at(p.out);
  const double probability = p.as<DropoutPayload>().probability;
  const uint64_t seed = call.plan.options.seed, step = call.run.batch->step;
  each_index(call.out.shape, [&](const Shape& index) {
    int64_t row = 0, element = index[0];
    for (const int axis : info.axes.rows)
      row = row * info.shape[static_cast<size_t>(axis)] + index[static_cast<size_t>(axis)];
    for (const int axis : info.axes.lanes)
      if (axis != 0)
        element =
            element * info.shape[static_cast<size_t>(axis)] + index[static_cast<size_t>(axis)];
    const auto words =
        philox({static_cast<uint32_t>(element / 4), static_cast<uint32_t>(row),
                static_cast<uint32_t>(step),
                static_cast<uint32_t>(step >> 32) ^ (static_cast<uint32_t>(p.node) << 8)},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32) ^ 0x9E3779B9u});
    const bool stays = words[static_cast<size_t>(element % 4)] / 4294967296.0 >= probability;
    value_at(call.out, index) = stays ? value_at(call.in[0], index) / (1 - probability) : 0;
  });
}

Slot generate(Trial& trial) {
  const Slot x = trial.activation({trial.size(1, 9, 64), trial.size(1, 9, 1), trial.size(1, 5, 1)});
  return trial.to().dropout(x, trial.coin() ? 0.25 : 0.5);
}

const Register<PrimitiveRecord> registered{{
    .name = "dropout",
    .summary = "zeroes values at random",
    .payload = typeid(DropoutPayload),
    .variants = {{"lanes", forward}},
    .reference = reference,
    .accumulates = true,
    .gradient = gradient,
    .generate = generate,
}};

}  // namespace
}  // namespace mase::engine::dropout_primitive
