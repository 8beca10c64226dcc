// SPDX-License-Identifier: Apache-2.0
// Weights that stay packed (base/packed.h): packed_linear multiplies rows by them, packed_take
// takes rows of them, and widen makes floats of them for whatever else reads them, once. In
// inference only; what is multiplied is exactly what the blocks mean.
#include "mase/engine/kernels/packed.h"

#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/parallel.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine::packed_primitives {
namespace {

// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t parallel_work = int64_t{1} << 16;

struct Geometry {
  int64_t out, in, groups, x_stride, y_stride;
  int threads;
};

Geometry geometry_of(const Plan& plan, const Primitive& p) {
  const Shape& w = plan.at(p.weight).shape;
  Geometry g{w[0], w[1], 1, plan.row_stride(p.in[0]), plan.row_stride(p.out), plan.options.threads};
  const Shape rows = plan.at(p.out).row_shape();
  for (size_t i = 0; i + 1 < rows.size(); ++i) g.groups *= rows[i];
  return g;
}

std::string detail_of(const Plan& plan, const Primitive& p, const Geometry& g) {
  return fmt::format("{} -> {}, {}", g.in, g.out, plan.at(p.weight).packed->name);
}

// Calls body(thread, begin, end) for about equal parts of all outputs, whole pieces each.
template <class Body>
void share(int64_t out, int64_t piece, int threads, const Body& body) {
  const int64_t pieces = (out + piece - 1) / piece, parts = std::min<int64_t>(pieces, threads);
  kernels::for_each_piece(parts, threads, [&](int64_t t) {
    body(t, t * pieces / parts * piece, std::min(out, (t + 1) * pieces / parts * piece));
  });
}

// Few samples: dot products of packed rows with each.
constexpr int64_t most_dots = 16;

std::optional<Step> dots(Plan& plan, Primitive& p) {
  const Geometry g = geometry_of(plan, p);
  const int64_t most = plan.options.batch_size * plan.at(p.in[0]).positions();
  if (most > most_dots) return {};
  const int64_t width = kernels::packed_width(g.in);
  const int samples = plan.scratch("samples", most * width);
  Step step{"packed_linear" + p.epilogue.text(), detail_of(plan, p, g), {}, {p.out, samples}};
  step.read({p.in[0], p.weight, p.bias});
  const PackedTypePtr type = plan.at(p.weight).packed;
  step.bind = [=, &plan, x = p.in[0], weight = p.weight, b = p.bias, y = p.out,
               relu = p.epilogue.limits().is_relu()](const Memory& memory) -> Kernel {
    const kernels::PackedRows rows{type.get(), memory.packed(weight), g.in};
    return [=, &plan, bias = memory.at(b), from = memory[x], to = memory[y],
            values = memory[samples]](const Run& run) {
      const int64_t n = plan.lanes(x, run);
      const int threads = g.out * g.in >= parallel_work ? g.threads : 1;
      for (int64_t i = 0; i < g.groups; ++i) {
        const float* own = from + i * g.in * g.x_stride;
        for (int64_t s = 0; s < n; ++s) {
          for (int64_t k = 0; k < g.in; ++k) values[s * width + k] = own[k * g.x_stride + s];
          std::fill(values + s * width + g.in, values + (s + 1) * width, 0.0f);
        }
        share(g.out, 8, threads, [&](int64_t, int64_t begin, int64_t end) {
          kernels::packed_dots(rows, begin, end - begin, values, n, bias, relu,
                               to + i * g.out * g.y_stride, g.y_stride);
        });
      }
    };
  };
  return step;
}

// Many samples: panels of rows become floats that stay in cache, and then a dense product.
std::optional<Step> panels(Plan& plan, Primitive& p) {
  const Geometry g = geometry_of(plan, p);
  constexpr int64_t floats = int64_t{1} << 16;  // of a panel
  const int64_t height = std::clamp<int64_t>(floats / g.in / 8 * 8, 8, (g.out + 7) / 8 * 8);
  const int panel = plan.scratch("panel", height * g.in * g.threads);
  Step step{
      "packed_linear" + p.epilogue.text(), detail_of(plan, p, g) + ", panels", {}, {p.out, panel}};
  step.read({p.in[0], p.weight, p.bias});
  const PackedTypePtr type = plan.at(p.weight).packed;
  step.bind = [=, &plan, x = p.in[0], weight = p.weight, b = p.bias, y = p.out,
               relu = p.epilogue.limits().is_relu()](const Memory& memory) -> Kernel {
    const kernels::PackedRows rows{type.get(), memory.packed(weight), g.in};
    return [=, &plan, bias = memory.at(b), from = memory[x], to = memory[y],
            values = memory[panel]](const Run& run) {
      kernels::LinearShape shape{};
      shape.in = shape.out_step = g.in;
      shape.in_step = 1;
      shape.stride = g.y_stride;
      shape.n = plan.lanes(x, run);
      const int threads = g.out * g.in * shape.n >= parallel_work ? g.threads : 1;
      for (int64_t i = 0; i < g.groups; ++i)
        share(g.out, height, threads, [&](int64_t thread, int64_t begin, int64_t end) {
          kernels::LinearShape own = shape;
          float* wide = values + thread * height * g.in;
          for (int64_t o = begin; o < end; o += height) {
            own.out = std::min(height, end - o);
            kernels::packed_widen(rows, o, own.out, wide);
            kernels::linear(own, wide, bias ? bias + o : nullptr, from + i * g.in * g.x_stride,
                            to + (i * g.out + o) * g.y_stride, relu, false);
          }
        });
    };
  };
  return step;
}

void linear_reference(Reference& call) {
  const Primitive& p = call.primitive;
  each_index(call.out.shape, [&](const Shape& index) {
    Shape from = index;
    double sum = p.bias >= 0 ? value_at(call.bias, {index.back()}) : 0;
    for (from.back() = 0; from.back() < call.in[0].shape.back(); ++from.back())
      sum += value_at(call.in[0], from) * value_at(call.weight, {index.back(), from.back()});
    value_at(call.out, index) = sum;
  });
}

Slot generate_linear(Trial& trial) {
  if (trial.to().training()) return -1;
  trial.batch(1, trial.coin() ? 3 : 40);
  const PackedTypePtr type = trial.packed_type();
  const int64_t in = trial.size(1, 3, std::max<int64_t>(1, 576 / type->values)) * type->values;
  const int64_t out = trial.coin() ? trial.size(64, 200, 1536) : trial.size(1, 40, 1536);
  const Slot x =
      trial.activation(trial.coin() ? Shape{in} : Shape{trial.size(1, 9, 1), in}, {-2, 2});
  const Slot weight = trial.packed({out, in}, type);
  std::optional<Slot> bias;
  if (trial.coin()) bias = trial.parameter({out});
  return trial.to().linear(x, weight, bias);
}

std::optional<Step> take(Plan& plan, Primitive& p) {
  const Shape& table = plan.at(p.weight).shape;
  const int64_t size = table[0], width = table[1], stride = plan.row_stride(p.out);
  const int row = plan.scratch("row", width);
  Step step{"packed_take", plan.at(p.weight).packed->name, {}, {p.out, row}};
  step.read({p.in[0], p.weight});
  const PackedTypePtr type = plan.at(p.weight).packed;
  const std::string place = p.node >= 0 ? plan.graph().node(p.node).name : "";
  step.bind = [=, &plan, x = p.in[0], weight = p.weight,
               y = p.out](const Memory& memory) -> Kernel {
    const kernels::PackedRows rows{type.get(), memory.packed(weight), width};
    return [=, &plan, numbers = memory[x], to = memory[y], values = memory[row]](const Run& run) {
      const int64_t lanes = plan.lanes(x, run);
      for (int64_t l = 0; l < lanes; ++l) {
        const float number = numbers[l];
        if (!(number >= 0 && number < static_cast<float>(size)) || number != std::floor(number))
          throw Error(place, fmt::format("number {} for a table of {} rows", number, size),
                      "numbers go from 0 to the rows less 1");
        kernels::packed_widen(rows, static_cast<int64_t>(number), 1, values);
        for (int64_t k = 0; k < width; ++k) to[k * stride + l] = values[k];
      }
    };
  };
  return step;
}

Slot generate_take(Trial& trial) {
  if (trial.to().training()) return -1;
  trial.batch(8);
  const int64_t rows = trial.size(1, 20, 1000);
  const PackedTypePtr type = trial.packed_type();
  const Slot table = trial.packed({rows, trial.size(1, 2, 2) * type->values}, type);
  return trial.to().take(
      table, trial.activation({trial.size(1, 9, 128)}, {0, static_cast<double>(rows - 1), true}));
}

std::optional<Step> widen(Plan& plan, Primitive& p) {
  const Shape shape = plan.at(p.out).shape;
  Step step{"widen", plan.at(p.weight).packed->name, {}, {p.out}};
  step.read({p.weight});
  step.bind = [=, type = plan.at(p.weight).packed, weight = p.weight,
               y = p.out](const Memory& memory) -> Kernel {
    const kernels::PackedRows rows{type.get(), memory.packed(weight), shape[1]};
    return [=, to = memory[y]](const Run&) { kernels::packed_widen(rows, 0, shape[0], to); };
  };
  return step;
}

Slot generate_widen(Trial& trial) {
  if (trial.to().training()) return -1;
  const PackedTypePtr type = trial.packed_type();
  return trial.to().widened(
      trial.packed({trial.size(1, 20, 512), trial.size(1, 3, 3) * type->values}, type));
}

const Register<PrimitiveRecord> linear_record{{
    .name = "packed_linear",
    .summary = "a packed weight matrix times the rows",
    .payload = typeid(PackedLinearPayload),
    .variants = {{"dots", dots}, {"panels", panels}},
    .reference = linear_reference,
    .generate = generate_linear,
    .sample_by_sample = each_sample_alone,
    .stages = {StageKind::clamp},
    .takes = [](const Plan&, const Primitive&,
                const FusedStage& stage) { return std::get<ClampStage>(stage).is_relu(); },
    .any_stride = true,
    .takes_packed = true,
    .multiply_adds =
        [](const Plan& plan, const Primitive& p) {
          return static_cast<double>(element_count(plan.at(p.out).shape) *
                                     plan.at(p.in[0]).shape.back());
        },
}};

const Register<PrimitiveRecord> take_record{{
    .name = "packed_take",
    .summary = "rows of a packed table by number",
    .payload = typeid(PackedTakePayload),
    .variants = {{"rows", take}},
    .reference =
        [](Reference& call) {
          run_op(call, "embedding", Dict{{"padding_idx", Value()}});
        },
    .generate = generate_take,
    .sample_by_sample = each_sample_alone,
    .any_stride = true,
    .takes_packed = true,
}};

const Register<PrimitiveRecord> widen_record{{
    .name = "widen",
    .summary = "a packed parameter as floats",
    .payload = typeid(WidenPayload),
    .variants = {{"vectors", widen, true}},
    .reference = [](Reference& call) { call.out.data = call.weight.data; },
    .generate = generate_widen,
    .any_stride = true,
    .takes_packed = true,
}};

}  // namespace
}  // namespace mase::engine::packed_primitives
