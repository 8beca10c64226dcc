// SPDX-License-Identifier: Apache-2.0
// The backward part: primitives in reverse, each sending the gradient of its result to those of its
// inputs that lead to a trained parameter. The first writer of a gradient overwrites, later ones
// add. A straight-through quantiser costs nothing: its input and output share one gradient.
#include <algorithm>
#include <cmath>

#include "mase/engine/emit.h"
#include "mase/engine/kernels/sample_norm.h"

namespace mase::engine {
namespace {

class Differentiator {
 public:
  explicit Differentiator(Plan& plan) : plan_(plan) {}

  void run() {
    if (plan_.loss < 0 || !plan_.at(plan_.loss).differentiable) return;
    seed(gradient_of(plan_, plan_.loss));
    for (size_t i = plan_.primitives.size(); i-- > 0;) {
      const Primitive p = plan_.primitives[i];
      if (p.removed || !plan_.at(p.out).differentiable) continue;
      const int gradient = gradient_of(plan_, p.out);
      if (!is_written(gradient)) continue;  // leads to no loss
      node_ = p.node;
      emit(p, gradient);
    }
  }

 private:
  bool is_written(int tensor) {
    const auto root = static_cast<size_t>(plan_.root(tensor));
    written_.resize(std::max(written_.size(), root + 1), false);
    return written_[root];
  }
  bool written(int tensor) {  // marks it; whether it was before
    const bool before = is_written(tensor);
    written_[static_cast<size_t>(plan_.root(tensor))] = true;
    return before;
  }
  bool wanted(int tensor) const { return tensor >= 0 && plan_.at(tensor).differentiable; }
  Target target(int tensor) {
    if (!wanted(tensor)) return {};
    const int gradient = gradient_of(plan_, tensor);
    return {gradient, written(gradient)};
  }
  // A gradient that is needed no more becomes that of a tensor of the same shape, whose values are
  // computed in its place, if that has none yet: half the memory to write.
  void take_over(int tensor, int gradient) {
    plan_.gradient.resize(std::max(plan_.gradient.size(), plan_.tensors.size()), -1);
    int& own = plan_.gradient[static_cast<size_t>(tensor)];
    if (wanted(tensor) && own < 0 && plan_.root(tensor) == tensor &&
        plan_.root(gradient) == gradient)
      own = gradient;
  }
  void push(Step step) {
    step.node = node_;
    plan_.backward.push_back(std::move(step));
  }

  // The derivative of the loss by itself.
  void seed(int gradient) {
    written(gradient);
    for (const Primitive& p : plan_.primitives)
      if (gradient_comes_forward(plan_, p)) return;
    Step step{"seed", "", {}, {gradient}};
    step.bind = [=](const Memory& memory) -> Kernel {
      return [to = memory[gradient]](const Run&) { *to = 1; };
    };
    push(std::move(step));
  }

  void emit(const Primitive& p, int gradient);
  void emit_map(const Primitive& p, int gradient);
  void emit_linear(const Primitive& p, int gradient);
  void emit_softmax(const Primitive& p, int gradient);
  void emit_layer_norm(const Primitive& p, int gradient);
  void emit_rows(const Primitive& p, int gradient);
  void emit_call(const Primitive& p, int gradient);

  Plan& plan_;
  std::vector<bool> written_;
  NodeId node_ = -1;
};

void Differentiator::emit(const Primitive& p, int gradient) {
  switch (p.kind) {
    case PrimitiveKind::gather:
      return;
    case PrimitiveKind::map:
      return emit_map(p, gradient);
    case PrimitiveKind::linear:
      return emit_linear(p, gradient);
    case PrimitiveKind::matmul:
      for (int side = 0; side < 2; ++side)
        if (const Target t = target(p.in[static_cast<size_t>(side)]); t.tensor >= 0)
          push(emit_matmul_gradient(plan_, p, side, gradient, t.tensor, t.accumulate));
      return;
    case PrimitiveKind::batch_norm: {
      take_over(p.in[0], gradient);
      Target x = target(p.in[0]);
      const Target weight = target(p.weight), bias = target(p.bias);
      if (x.tensor == gradient) x.accumulate = false;
      return push(emit_batch_norm_gradient(plan_, p, gradient, x, weight, bias));
    }
    case PrimitiveKind::layer_norm:
      return emit_layer_norm(p, gradient);
    case PrimitiveKind::softmax:
      return emit_softmax(p, gradient);
    case PrimitiveKind::reduce:
    case PrimitiveKind::permute:
    case PrimitiveKind::concat:
      return emit_rows(p, gradient);
    case PrimitiveKind::dropout: {
      const Target t = target(p.in[0]);
      Step step{"dropout_gradient", "", {gradient}, {t.tensor}};
      step.bind = [=, &plan = plan_](const Memory& memory) {
        return dropout_kernel(plan, p, memory[gradient], memory[t.tensor], t.tensor, t.accumulate);
      };
      return push(std::move(step));
    }
    case PrimitiveKind::quantize: {
      if (!has_gradient_step(p)) return;  // straight-through: both sides share one gradient
      const Target x = target(p.in[0]), number = target(p.weight);
      if (x.tensor >= 0 || number.tensor >= 0)
        push(emit_quantize_gradient(plan_, p, gradient, x, number));
      return;
    }
    case PrimitiveKind::constant:
    case PrimitiveKind::target:
    case PrimitiveKind::one_hot:
      return;
    case PrimitiveKind::batch_mean:
      if (const Target t = target(p.in[0]); t.tensor >= 0)
        push(emit_batch_mean_gradient(plan_, p, gradient, t));
      return;
    case PrimitiveKind::cross_entropy: {
      const Target t = target(p.in[0]);
      if (!gradient_comes_forward(plan_, p))
        push(emit_cross_entropy_gradient(plan_, p, gradient, t));
      return;
    }
    case PrimitiveKind::call:
      return emit_call(p, gradient);
  }
}

// d operand = g * d expr / d operand, summed over what the operand was broadcast to.
void Differentiator::emit_map(const Primitive& p, int gradient) {
  Plan& plan = plan_;
  for (size_t i = 0; i < p.in.size(); ++i) {
    const int operand = p.in[i];
    if (!wanted(operand)) continue;
    const Expr partial = p.expr.derivative(static_cast<int>(i));
    if (partial.is_constant(0)) continue;
    const Target t = target(operand);
    std::vector<int> operands = p.in;
    operands.push_back(gradient);
    const Expr product = Expr::operand(static_cast<int>(p.in.size())) * partial;
    auto program = std::make_shared<TileProgram>(product, static_cast<int>(operands.size()));
    Step step{"map_gradient", fmt::format("operand {}", i), operands, {t.tensor}};
    const MapOperands layout = map_operands(plan, {operand}, p.out);
    const bool direct = layout.flat && !t.accumulate;
    if (direct) {
      step.bind = [=, &plan](const Memory& memory) {
        return map_kernel(plan, program, operands, t.tensor, memory);
      };
      push(std::move(step));
      continue;
    }
    TensorInfo temporary = plan.at(p.out);
    temporary.name = "products";
    temporary.view_of = -1;
    temporary.pinned = false;
    temporary.place = Place::arena;
    const int products = plan.add(std::move(temporary));
    step.writes.push_back(products);
    auto index = std::make_shared<std::vector<int32_t>>(layout.index[0]);
    const bool scalar = layout.scalar[0];
    const int64_t rows = plan.at(p.out).rows(), stride = plan.row_stride(p.out);
    const int64_t own_stride = layout.stride[0];
    const size_t floats = plan.floats(t.tensor);
    const int out = p.out;
    step.bind = [=, &plan](const Memory& memory) -> Kernel {
      const Kernel fill = map_kernel(plan, program, operands, products, memory);
      return [=, &plan, from = memory[products], to = memory[t.tensor]](const Run& run) {
        fill(run);
        const int64_t n = plan.lanes(out, run);
        if (!t.accumulate) std::fill_n(to, floats, 0.0f);
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t row = index->empty() ? r : (*index)[static_cast<size_t>(r)];
          if (scalar)
            to[row] += static_cast<float>(kernels::sum(from + r * stride, n));
          else
            kernels::add_to(to + row * own_stride, from + r * stride, n);
        }
      };
    };
    push(std::move(step));
  }
}

void Differentiator::emit_linear(const Primitive& p, int gradient) {
  Plan& plan = plan_;
  const LinearGeometry geometry = linear_geometry(plan, p);
  MASE_CHECK(!p.relu, "a training program does not fuse relu into linear");
  // The values of the products: as the forward pass had them, or rounded for the backward pass.
  int x = p.in[0], weight = p.weight;
  const auto rounded = [&](int tensor, const char* operand, uint64_t index) {
    const Quantizer* quantizer = p.backward ? p.backward->find_backward(operand) : nullptr;
    if (!quantizer) return tensor;
    TensorInfo info = plan.at(tensor);
    info.name += " rounded";
    info.place = Place::arena;
    info.view_of = -1;
    info.pinned = info.differentiable = false;
    Primitive quantize{PrimitiveKind::quantize, {tensor}, plan.add(std::move(info))};
    quantize.quantizer = quantizer;
    quantize.stream = backward_stream(p, index);
    push(emit_quantize(plan, quantize));
    return quantize.out;
  };
  if (p.backward) {
    gradient = rounded(gradient, "output_grad", 0);
    x = rounded(unrounded(plan, x), "data_in", 1);
    weight = rounded(unrounded(plan, weight), "weight", 2);
  }
  const int bias = p.bias_cancels ? -1 : p.bias;
  if (wanted(p.weight) || wanted(bias)) {
    const Target w = target(p.weight), b = target(bias);
    Step step{"linear_weight_gradient", "", {x, gradient}, {}};
    for (const int tensor : {w.tensor, b.tensor})
      if (tensor >= 0) step.writes.push_back(tensor);
    step.bind = [=, &plan](const Memory& memory) -> Kernel {
      return [=, &plan, from = memory[x], g = memory[gradient],
              dw = w.tensor >= 0 ? memory[w.tensor] : nullptr,
              db = b.tensor >= 0 ? memory[b.tensor] : nullptr](const Run& run) {
        kernels::LinearShape shape = geometry.shape;
        shape.n = plan.lanes(x, run);
        for (int64_t i = 0; i < geometry.positions; ++i) {
          const float* rows = g + i * shape.out * shape.stride;
          if (dw)
            kernels::linear_gradient(shape, rows, from + i * shape.in * shape.stride, dw, nullptr,
                                     w.accumulate || i > 0);
          for (int64_t o = 0; db && o < shape.out; ++o) {
            const auto sum = static_cast<float>(kernels::sum(rows + o * shape.stride, shape.n));
            db[o] = b.accumulate || i > 0 ? db[o] + sum : sum;
          }
        }
      };
    };
    push(std::move(step));
  }
  const Target t = target(p.in[0]);
  if (t.tensor < 0) return;
  Step step{"linear_input_gradient", "", {weight, gradient}, {t.tensor}};
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return [=, &plan, w = memory[weight], g = memory[gradient],
            to = memory[t.tensor]](const Run& run) {
      kernels::LinearShape shape = geometry.shape;
      std::swap(shape.out, shape.in);
      std::swap(shape.out_step, shape.in_step);
      shape.n = plan.lanes(x, run);
      for (int64_t i = 0; i < geometry.positions; ++i)
        kernels::linear(shape, w, nullptr, g + i * shape.in * shape.stride,
                        to + i * shape.out * shape.stride, false, t.accumulate);
    };
  };
  push(std::move(step));
}

void Differentiator::emit_softmax(const Primitive& p, int gradient) {
  Plan& plan = plan_;
  const Target t = target(p.in[0]);
  if (t.tensor < 0) return;
  Step step{"softmax_gradient", "", {p.out, gradient}, {t.tensor}};
  const AxisGeometry a = axis_geometry(plan, p);
  const int64_t stride = plan.row_stride(p.out);
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    return
        [=, &plan, y = memory[p.out], g = memory[gradient], to = memory[t.tensor]](const Run& run) {
          const kernels::SampleRange range{a.length, a.inner * stride, plan.lanes(p.out, run)};
          for (int64_t outer = 0; outer < a.outer; ++outer)
            for (int64_t inner = 0; inner < a.inner; ++inner) {
              const int64_t at = (outer * a.length * a.inner + inner) * stride;
              kernels::softmax_gradient(range, y + at, g + at, to + at, p.logarithm, t.accumulate);
            }
        };
  };
  push(std::move(step));
}

void Differentiator::emit_layer_norm(const Primitive& p, int gradient) {
  Plan& plan = plan_;
  const Target x = target(p.in[0]), weight = target(p.weight), bias = target(p.bias);
  Step step{"layer_norm_gradient", "", {p.in[0], gradient}, {}};
  if (p.weight >= 0) step.reads.push_back(p.weight);
  for (const int tensor : {x.tensor, weight.tensor, bias.tensor})
    if (tensor >= 0) step.writes.push_back(tensor);
  const LayerGeometry g = layer_geometry(plan, p);
  const int64_t stride = plan.row_stride(p.out);
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    const auto at = [&](int tensor) { return tensor >= 0 ? memory[tensor] : nullptr; };
    auto sums = std::make_shared<std::vector<double>>(static_cast<size_t>(2 * g.inner));
    return [=, &plan, in = memory[p.in[0]], up = memory[gradient], w = at(p.weight),
            dx = at(x.tensor), dw = at(weight.tensor), db = at(bias.tensor)](const Run& run) {
      std::fill(sums->begin(), sums->end(), 0.0);
      const kernels::LayerNormSums each{sums->data(), sums->data() + g.inner};
      const kernels::SampleRange range{g.inner, stride, plan.lanes(p.out, run)};
      for (int64_t outer = 0; outer < g.outer; ++outer) {
        const int64_t begin = outer * g.inner * stride;
        kernels::layer_norm_gradient(range, in + begin, up + begin, w, p.number,
                                     dx ? dx + begin : nullptr, x.accumulate, each);
      }
      for (int64_t i = 0; i < g.inner; ++i) {
        if (dw)
          dw[i] = static_cast<float>(weight.accumulate ? dw[i] + each.weight[i] : each.weight[i]);
        if (db) db[i] = static_cast<float>(bias.accumulate ? db[i] + each.bias[i] : each.bias[i]);
      }
    };
  };
  push(std::move(step));
}

// Reductions, permutations and concatenations: each row of the input gets (a share of) one row of
// the result's gradient.
void Differentiator::emit_rows(const Primitive& p, int gradient) {
  Plan& plan = plan_;
  const int64_t stride = plan.row_stride(p.out);
  const ReduceKind kind = p.reduce;
  const bool maximum = p.kind == PrimitiveKind::reduce && kind == ReduceKind::max;
  int64_t first_row = 0;  // concat: where the part begins
  const ConcatGeometry parts =
      p.kind == PrimitiveKind::concat ? concat_geometry(plan, p) : ConcatGeometry();
  int64_t whole = 0;
  for (const int64_t rows : parts.rows) whole += rows;
  for (size_t part = 0; part < p.in.size(); ++part) {
    const int in = p.in[part];
    const int64_t rows = plan.at(in).rows();
    // The row of the gradient that each row of the input takes.
    auto from = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(rows));
    float share = 1;
    if (p.kind == PrimitiveKind::reduce) {
      *from = reduced_rows(plan, p);
      if (kind == ReduceKind::mean)
        share = static_cast<float>(plan.at(p.out).rows()) / static_cast<float>(rows);
    } else if (p.kind == PrimitiveKind::permute) {
      const std::vector<int32_t> index = permuted_rows(plan, p);
      for (size_t r = 0; r < index.size(); ++r)
        (*from)[static_cast<size_t>(index[r])] = static_cast<int32_t>(r);
    } else {
      const int64_t own = parts.rows[part];
      for (int64_t r = 0; r < rows; ++r)
        (*from)[static_cast<size_t>(r)] =
            static_cast<int32_t>(r / own * whole + first_row + r % own);
      first_row += own;
    }
    const Target t = target(in);
    if (t.tensor < 0) continue;
    Step step{std::string(primitive_name(p.kind)) + "_gradient", "", {gradient}, {t.tensor}};
    int taken = -1;
    if (maximum) {
      step.reads.push_back(in);
      step.reads.push_back(p.out);
      taken = plan.scratch("taken", plan.at(p.out).rows() * stride);
      step.writes.push_back(taken);
    }
    const int64_t out_rows = plan.at(p.out).rows();
    step.bind = [=, &plan](const Memory& memory) -> Kernel {
      return [=, &plan, g = memory[gradient], x = memory[in], y = memory[p.out],
              to = memory[t.tensor], used = taken >= 0 ? memory[taken] : nullptr](const Run& run) {
        const int64_t n = plan.lanes(p.out, run);
        if (used) std::fill_n(used, out_rows * stride, 0.0f);
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t row = (*from)[static_cast<size_t>(r)] * stride;
          for (int64_t b = 0; b < n; ++b) {
            float d = g[row + b] * share;
            if (used) {  // the first of equal maxima takes it all
              const bool takes = used[row + b] == 0 && x[r * stride + b] == y[row + b];
              if (takes) used[row + b] = 1;
              if (!takes) d = 0;
            }
            float& place = to[r * stride + b];
            place = t.accumulate ? place + d : d;
          }
        }
      };
    };
    push(std::move(step));
  }
}

void Differentiator::emit_call(const Primitive& p, int gradient) {
  Plan& plan = plan_;
  std::vector<Target> inputs;
  std::vector<std::pair<std::string, Target>> params;
  Step step{"call_gradient", p.call->op->name, p.in, {}};
  step.reads.push_back(p.out);
  step.reads.push_back(gradient);
  for (const auto& [name, tensor] : p.params) step.reads.push_back(tensor);
  for (const int tensor : p.in) {
    inputs.push_back(target(tensor));
    if (inputs.back().tensor >= 0) step.writes.push_back(inputs.back().tensor);
  }
  for (const auto& [name, tensor] : p.params) {
    params.emplace_back(name, target(tensor));
    if (params.back().second.tensor >= 0) step.writes.push_back(params.back().second.tensor);
  }
  if (!p.call->op->grad)
    throw Error(plan.graph.node(p.node).name, fmt::format("'{}' has no gradient", p.call->op->name),
                "freeze the modules before it, or take another operation");
  step.bind = [=, &plan](const Memory& memory) -> Kernel {
    const auto arguments = std::make_shared<CallArguments>(plan, p, memory);
    const TensorView out = view_of(plan, p.out);
    return [=, &plan, y = memory[p.out], g = memory[gradient]](const Run& run) {
      arguments->load(run, nullptr);
      const OpGradients gradients =
          p.call->op->grad(*arguments->call, read_array(y, out, run), read_array(g, out, run));
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].tensor >= 0)
          write_array(gradients.inputs.at(i), memory[inputs[i].tensor], view_of(plan, p.in[i]), run,
                      inputs[i].accumulate);
      for (size_t i = 0; i < params.size(); ++i)
        if (params[i].second.tensor >= 0)
          write_array(gradients.params.at(params[i].first), memory[params[i].second.tensor],
                      view_of(plan, p.params[i].second), run, params[i].second.accumulate);
    };
  };
  push(std::move(step));
}

}  // namespace

void emit_backward(Plan& plan) { Differentiator(plan).run(); }

}  // namespace mase::engine
