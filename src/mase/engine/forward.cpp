// SPDX-License-Identifier: Apache-2.0
// Primitives => forward steps. A step names what it reads and writes; once every tensor has its
// place, `bind` turns it into a closure over plain pointers.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "mase/base/random.h"
#include "mase/engine/emit.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/sample_norm.h"

namespace mase::engine {

void to_row_major(const float* in, int64_t rows, int64_t stride, int64_t lanes, float* out) {
  kernels::scatter(in, rows, stride, lanes, out);
}

void from_row_major(const float* in, int64_t rows, int64_t stride, int64_t lanes, float* out) {
  kernels::gather(in, rows, nullptr, 0, lanes, out, stride);
}

Array read_array(const float* data, const TensorView& view, const Run& run) {
  Shape shape = view.shape;
  if (view.layout == Layout::batch) shape[0] = run.n;
  if (view.layout == Layout::free) shape = view.shape_at(run.n);
  Array array(shape);
  const int64_t lanes = view.layout == Layout::batch ? run.n : 1;
  for (int64_t r = 0; r < view.rows; ++r) {
    if (view.layout == Layout::free) break;
    for (int64_t b = 0; b < lanes; ++b)
      array.data[static_cast<size_t>(b * view.rows + r)] = data[r * view.stride + b];
  }
  if (view.layout == Layout::free)
    for (size_t i = 0; i < array.data.size(); ++i) array.data[i] = data[i];
  return array;
}

void write_array(const Array& array, float* data, const TensorView& view, const Run& run,
                 bool accumulate) {
  const auto put = [&](float& target, double value) {
    target = static_cast<float>(accumulate ? target + value : value);
  };
  if (view.layout == Layout::free) {
    for (size_t i = 0; i < array.data.size(); ++i) put(data[i], array.data[i]);
    return;
  }
  const int64_t lanes = view.layout == Layout::batch ? run.n : 1;
  for (int64_t r = 0; r < view.rows; ++r)
    for (int64_t b = 0; b < lanes; ++b)
      put(data[r * view.stride + b], array.data[static_cast<size_t>(b * view.rows + r)]);
}

TensorView view_of(const Plan& plan, int tensor) {
  const TensorInfo& info = plan.at(tensor);
  TensorView view;
  view.shape = info.shape;
  view.layout = info.layout;
  view.rows = info.layout == Layout::free ? 0 : info.rows();
  view.stride = plan.row_stride(tensor);
  if (info.layout == Layout::free) {
    // The shape at another batch size needs the whole graph: slow, and only here.
    const Graph* graph = &plan.graph;
    const NodeId node = info.node;
    view.shape_at = [graph, node, largest = plan.options.batch_size,
                     shape = info.shape](int64_t n) {
      return n == largest ? shape : infer_shapes(*graph, n)[static_cast<size_t>(node)];
    };
  }
  return view;
}

MapOperands map_operands(const Plan& plan, const std::vector<int>& operands, int out) {
  MapOperands result;
  const Shape features = plan.at(out).features();
  result.flat = true;
  for (const int operand : operands) {
    const bool scalar =
        plan.at(out).layout == Layout::batch && plan.at(operand).layout == Layout::fixed;
    result.index.push_back(broadcast_rows(features, plan.at(operand).features()));
    result.scalar.push_back(scalar);
    result.stride.push_back(scalar ? 1 : plan.row_stride(operand));
    result.flat = result.flat && !scalar && result.index.back().empty();
  }
  return result;
}

namespace {

// What a gather does besides: its name, and what it does to the samples.
const char* gather_name(const Primitive& p) {
  if (p.folded < 0) return "gather";
  return p.relu ? "gather+batch_norm+relu" : "gather+batch_norm";
}

kernels::Normalizer normalizer_of(const Primitive& p, const Memory& memory) {
  if (p.folded < 0) return {};
  return {memory[p.folded_weight], memory[p.folded_bias], p.relu ? 0.0f : -INFINITY};
}

Step emit_gather(Plan& plan, const Primitive& p) {
  Step step{gather_name(p), "", {}, {p.out}};
  const int64_t rows = plan.at(p.out).rows(), stride = plan.stride;
  const auto source = static_cast<size_t>(p.axis);
  const bool normalized = p.folded >= 0;
  const int out = p.out;
  if (normalized) step.reads = {p.folded_weight, p.folded_bias};
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, by = normalizer_of(p, memory), to = memory[out]](const Run& run) {
      kernels::gather(run.inputs[source], rows, row_numbers(*run.batch), run.batch->first_row,
                      run.n, to, stride, normalized ? &by : nullptr);
    };
  };
  return step;
}

Step emit_map(Plan& plan, const Primitive& p) {
  Step step{"map", fmt::format("{} values an element", p.expr.size()), p.in, {p.out}};
  auto program = std::make_shared<TileProgram>(p.expr, static_cast<int>(p.in.size()));
  step.bind = [=, &plan](const Memory& memory) {
    return map_kernel(plan, program, p.in, p.out, memory);
  };
  return step;
}

// A gather and the small linear layer behind it.
Step emit_gather_linear(Plan& plan, const Primitive& p) {
  const Primitive gather = plan.primitives[static_cast<size_t>(p.gather)];
  const int weight = p.folded_weight >= 0 ? p.folded_weight : p.weight;
  const int bias = p.folded_bias >= 0 ? p.folded_bias : p.bias;
  Step step{fmt::format("{}+linear{}", gather_name(gather), p.relu ? "+relu" : ""),
            "",
            {weight},
            {p.out}};
  if (bias >= 0) step.reads.push_back(bias);
  const bool normalized = gather.folded >= 0, relu = p.relu;
  if (normalized) step.reads.insert(step.reads.end(), {gather.folded_weight, gather.folded_bias});
  const kernels::LinearShape geometry = linear_geometry(plan, p).shape;
  step.detail = fmt::format("{} -> {}", geometry.in, geometry.out);
  const auto source = static_cast<size_t>(gather.axis);
  const int out = p.out;
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, by = normalizer_of(gather, memory), w = memory[weight],
            b = bias >= 0 ? memory[bias] : nullptr, to = memory[out]](const Run& run) {
      kernels::LinearShape shape = geometry;
      shape.n = run.n;
      kernels::gather_linear({run.inputs[source], row_numbers(*run.batch), run.batch->first_row},
                             normalized ? &by : nullptr, shape, w, b, relu, to);
    };
  };
  return step;
}

Step emit_linear(Plan& plan, const Primitive& p) {
  if (p.gather >= 0) return emit_gather_linear(plan, p);
  const int weight = p.folded_weight >= 0 ? p.folded_weight : p.weight;
  const int bias = p.folded_bias >= 0 ? p.folded_bias : p.bias;
  Step step{p.relu ? "linear+relu" : "linear", "", {p.in[0], weight}, {p.out}};
  if (bias >= 0) step.reads.push_back(bias);
  const LinearGeometry geometry = linear_geometry(plan, p);
  step.detail = fmt::format("{} -> {}", geometry.shape.in, geometry.shape.out);
  const bool relu = p.relu;
  const int x = p.in[0], out = p.out;
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, &plan, w = memory[weight], b = bias >= 0 ? memory[bias] : nullptr, from = memory[x],
            to = memory[out]](const Run& run) {
      kernels::LinearShape shape = geometry.shape;
      shape.n = plan.lanes(x, run);
      for (int64_t i = 0; i < geometry.positions; ++i)
        kernels::linear(shape, w, b, from + i * shape.in * shape.stride,
                        to + i * shape.out * shape.stride, relu, false);
    };
  };
  return step;
}

// Folding a batch norm into the linear before it: w' = w * s, b' = (b - mean) * s + bias with
// s = weight / sqrt(var + eps), once per change of the parameters.
Step emit_fold(const Primitive& p, const Primitive& norm, int64_t out, int64_t in) {
  Step step{"fold_batch_norm", "", {p.weight, norm.running_mean, norm.running_var}, {}};
  step.writes = {p.folded_weight, p.folded_bias};
  for (const int tensor : {p.bias, norm.weight, norm.bias})
    if (tensor >= 0) step.reads.push_back(tensor);
  const int w = p.weight, b = p.bias, nw = norm.weight, nb = norm.bias, mean = norm.running_mean,
            var = norm.running_var, fw = p.folded_weight, fb = p.folded_bias;
  const double eps = norm.number;
  step.bind = [=](const Memory& memory) -> Kernel {
    const auto get = [&](int tensor) -> const float* {
      return tensor >= 0 ? memory[tensor] : nullptr;
    };
    return [=, w = get(w), b = get(b), nw = get(nw), nb = get(nb), mean = get(mean), var = get(var),
            to = memory[fw], bias = memory[fb]](const Run&) {
      for (int64_t o = 0; o < out; ++o) {
        const double scale = (nw ? nw[o] : 1.0) / std::sqrt(var[o] + eps);
        for (int64_t i = 0; i < in; ++i) to[o * in + i] = static_cast<float>(w[o * in + i] * scale);
        bias[o] = static_cast<float>(((b ? b[o] : 0.0) - mean[o]) * scale + (nb ? nb[o] : 0.0));
      }
    };
  };
  return step;
}

// The scale and shift of a batch norm that is applied to samples as they are gathered, once per
// change of the parameters.
Step emit_scale(const Primitive& p, const Primitive& norm, int64_t features) {
  Step step{"scale_batch_norm",
            "",
            {norm.running_mean, norm.running_var},
            {p.folded_weight, p.folded_bias}};
  for (const int tensor : {norm.weight, norm.bias})
    if (tensor >= 0) step.reads.push_back(tensor);
  const int weight = norm.weight, bias = norm.bias, mean = norm.running_mean,
            variance = norm.running_var, scale = p.folded_weight, shift = p.folded_bias;
  const double eps = norm.number;
  step.bind = [=](const Memory& memory) -> Kernel {
    return [=, w = weight >= 0 ? memory[weight] : nullptr, b = bias >= 0 ? memory[bias] : nullptr,
            average = memory[mean], var = memory[variance], scales = memory[scale],
            shifts = memory[shift]](const Run&) {
      for (int64_t f = 0; f < features; ++f) {
        const double factor = (w ? w[f] : 1.0) / std::sqrt(var[f] + eps);
        scales[f] = static_cast<float>(factor);
        shifts[f] = static_cast<float>((b ? b[f] : 0.0) - average[f] * factor);
      }
    };
  };
  return step;
}

Step emit_permute(Plan& plan, const Primitive& p) {
  Step step{"permute", "", p.in, {p.out}};
  auto index = std::make_shared<std::vector<int32_t>>(permuted_rows(plan, p));
  const int64_t stride = plan.row_stride(p.out);
  const int in = p.in[0], out = p.out;
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, &plan, from = memory[in], to = memory[out]](const Run& run) {
      const auto bytes = static_cast<size_t>(plan.lanes(out, run)) * sizeof(float);
      for (size_t r = 0; r < index->size(); ++r)
        std::memcpy(to + static_cast<int64_t>(r) * stride, from + (*index)[r] * stride, bytes);
    };
  };
  return step;
}

Step emit_concat(Plan& plan, const Primitive& p) {
  Step step{"concat", "", p.in, {p.out}};
  const ConcatGeometry geometry = concat_geometry(plan, p);
  const std::vector<int> in = p.in;
  const int out = p.out;
  const int64_t stride = plan.row_stride(out);
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    std::vector<const float*> from;
    for (const int tensor : in) from.push_back(memory[tensor]);
    return [=, &plan, to = memory[out]](const Run& run) {
      const auto bytes = static_cast<size_t>(plan.lanes(out, run)) * sizeof(float);
      int64_t row = 0;
      for (int64_t outer = 0; outer < geometry.outer; ++outer)
        for (size_t part = 0; part < from.size(); ++part)
          for (int64_t r = 0; r < geometry.rows[part]; ++r)
            std::memcpy(to + row++ * stride,
                        from[part] + (outer * geometry.rows[part] + r) * stride, bytes);
    };
  };
  return step;
}

Step emit_reduce(Plan& plan, const Primitive& p) {
  static const char* const names[] = {"reduce_sum", "reduce_mean", "reduce_max"};
  Step step{names[static_cast<size_t>(p.reduce)], "", p.in, {p.out}};
  const ReduceKind kind = p.reduce;
  auto target = std::make_shared<std::vector<int32_t>>(reduced_rows(plan, p));
  const int in = p.in[0], out = p.out;
  const int64_t stride = plan.row_stride(out), rows = plan.at(out).rows();
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, &plan, from = memory[in], to = memory[out]](const Run& run) {
      const int64_t n = plan.lanes(out, run);
      const float start = kind == ReduceKind::max ? -INFINITY : 0.0f;
      for (int64_t r = 0; r < rows; ++r) std::fill_n(to + r * stride, n, start);
      for (size_t r = 0; r < target->size(); ++r) {
        float* sums = to + (*target)[r] * stride;
        const float* row = from + static_cast<int64_t>(r) * stride;
        kernels::apply(kind == ReduceKind::max ? ScalarOp::max : ScalarOp::add, sums, row, nullptr,
                       sums, n);
      }
      if (kind != ReduceKind::mean) return;
      const float share = static_cast<float>(rows) / static_cast<float>(target->size());
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t b = 0; b < n; ++b) to[r * stride + b] *= share;
    };
  };
  return step;
}

Step emit_softmax(Plan& plan, const Primitive& p) {
  Step step{p.logarithm ? "log_softmax" : "softmax", "", p.in, {p.out}};
  const AxisGeometry a = axis_geometry(plan, p);
  const bool logarithm = p.logarithm;
  const int in = p.in[0], out = p.out;
  const int64_t stride = plan.row_stride(out);
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, &plan, from = memory[in], to = memory[out]](const Run& run) {
      const kernels::SampleRange range{a.length, a.inner * stride, plan.lanes(out, run)};
      for (int64_t outer = 0; outer < a.outer; ++outer)
        for (int64_t inner = 0; inner < a.inner; ++inner) {
          const int64_t at = (outer * a.length * a.inner + inner) * stride;
          kernels::softmax(range, from + at, to + at, logarithm);
        }
    };
  };
  return step;
}

Step emit_layer_norm(Plan& plan, const Primitive& p) {
  Step step{"layer_norm", "", p.in, {p.out}};
  for (const int tensor : {p.weight, p.bias})
    if (tensor >= 0) step.reads.push_back(tensor);
  const LayerGeometry g = layer_geometry(plan, p);
  const int in = p.in[0], out = p.out, weight = p.weight, bias = p.bias;
  const int64_t stride = plan.row_stride(out);
  const double eps = p.number;
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return
        [=, &plan, from = memory[in], to = memory[out], w = weight >= 0 ? memory[weight] : nullptr,
         c = bias >= 0 ? memory[bias] : nullptr](const Run& run) {
          const kernels::SampleRange range{g.inner, stride, plan.lanes(out, run)};
          for (int64_t outer = 0; outer < g.outer; ++outer) {
            const int64_t at = outer * g.inner * stride;
            kernels::layer_norm(range, from + at, w, c, eps, to + at);
          }
        };
  };
  return step;
}

Step emit_dropout(Plan& plan, const Primitive& p) {
  Step step{"dropout", fmt::format("p={}", p.number), p.in, {p.out}};
  const int in = p.in[0], out = p.out;
  step.bind = [=, &plan](const Memory& memory) {
    return dropout_kernel(plan, p, memory[in], memory[out], out, false);
  };
  return step;
}

Step emit_call(Plan& plan, const Primitive& p) {
  Step step{"call", p.call->op->name, p.in, {p.out}};
  for (const auto& [name, tensor] : p.params) step.reads.push_back(tensor);
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    const auto arguments = std::make_shared<CallArguments>(plan, p, memory);
    const TensorView out = view_of(plan, p.out);
    return [=, to = memory[p.out]](const Run& run) {
      std::map<std::string, Array> updates;
      arguments->load(run, &updates);
      write_array(p.call->op->eval(*arguments->call), to, out, run, false);
      arguments->store(updates, run);
    };
  };
  return step;
}

}  // namespace

void emit_forward(Plan& plan) {
  // Only what an output, a kept node or a gradient needs.
  std::vector<bool> needed(plan.tensors.size(), false);
  for (size_t t = 0; t < plan.tensors.size(); ++t)
    if (plan.tensors[t].pinned) needed[static_cast<size_t>(plan.root(static_cast<int>(t)))] = true;
  for (size_t i = plan.primitives.size(); i-- > 0;) {
    Primitive& p = plan.primitives[i];
    if (p.removed) continue;
    if (!needed[static_cast<size_t>(plan.root(p.out))]) {
      p.removed = true;
      continue;
    }
    const auto need = [&](int tensor) {
      if (tensor >= 0) needed[static_cast<size_t>(plan.root(tensor))] = true;
    };
    for (const int tensor : p.in) need(tensor);
    for (const auto& [name, tensor] : p.params) need(tensor);
    for (const int tensor : {p.weight, p.bias}) need(tensor);
  }
  for (size_t i = 0; i < plan.primitives.size(); ++i) {
    if (plan.primitives[i].removed) continue;
    const Primitive p = plan.primitives[i];
    if (p.gather >= 0) {
      const Primitive& gather = plan.primitives[static_cast<size_t>(p.gather)];
      if (gather.folded >= 0)
        plan.prepare.push_back(emit_scale(gather,
                                          plan.primitives[static_cast<size_t>(gather.folded)],
                                          plan.at(gather.out).rows()));
    }
    if (p.folded >= 0) {
      const Primitive& norm = plan.primitives[static_cast<size_t>(p.folded)];
      if (p.kind == PrimitiveKind::gather) {
        plan.prepare.push_back(emit_scale(p, norm, plan.at(p.out).rows()));
      } else {
        const LinearGeometry geometry = linear_geometry(plan, p);
        plan.prepare.push_back(emit_fold(p, norm, geometry.shape.out, geometry.shape.in));
      }
    }
    const auto emit = [&]() -> Step {
      switch (p.kind) {
        case PrimitiveKind::gather:
          return emit_gather(plan, p);
        case PrimitiveKind::map:
          return emit_map(plan, p);
        case PrimitiveKind::linear:
          return emit_linear(plan, p);
        case PrimitiveKind::matmul:
          return emit_matmul(plan, p);
        case PrimitiveKind::reduce:
          return emit_reduce(plan, p);
        case PrimitiveKind::permute:
          return emit_permute(plan, p);
        case PrimitiveKind::concat:
          return emit_concat(plan, p);
        case PrimitiveKind::batch_norm:
          return emit_batch_norm(plan, static_cast<int>(i));
        case PrimitiveKind::layer_norm:
          return emit_layer_norm(plan, p);
        case PrimitiveKind::softmax:
          return emit_softmax(plan, p);
        case PrimitiveKind::dropout:
          return emit_dropout(plan, p);
        case PrimitiveKind::quantize:
          return emit_quantize(plan, p);
        case PrimitiveKind::constant:
          return emit_constant(p);
        case PrimitiveKind::target:
          return emit_target(plan, p);
        case PrimitiveKind::one_hot:
          return emit_one_hot(plan, p);
        case PrimitiveKind::batch_mean:
          return emit_batch_mean(plan, p);
        case PrimitiveKind::cross_entropy:
          return emit_cross_entropy(plan, p);
        case PrimitiveKind::call:
          return emit_call(plan, p);
      }
      MASE_CHECK(false, "no such primitive");
    };
    Step step = emit();
    step.node = p.node;
    const bool once = !plan.options.training && plan.at(p.out).constant;
    (once                             ? plan.prepare
     : i >= plan.first_loss_primitive ? plan.losses
                                      : plan.forward)
        .push_back(std::move(step));
  }
  if (plan.loss >= 0) emit_loss_result(plan);
}

}  // namespace mase::engine
