// SPDX-License-Identifier: Apache-2.0
// map: one scalar expression over all values, in one sweep. Its gradient is the expression's
// symbolic derivative, summed over what an operand was broadcast to.
#include "mase/engine/primitives/map.h"

#include <algorithm>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/payloads.h"
#include "mase/engine/primitive.h"
#include "mase/engine/reference.h"
#include "mase/engine/trial.h"

namespace mase::engine {
namespace {

// The row of an operand that each row of the result takes.
std::vector<int32_t> operand_rows(const TensorInfo& out, const TensorInfo& operand) {
  if (out.layout != Layout::batch) return broadcast_rows(out.shape, operand.shape);
  const size_t rank = out.shape.size(), skipped = rank - operand.shape.size();
  std::vector<int64_t> strides(rank, 0);  // in rows of the operand
  int64_t stride = 1;
  if (operand.layout == Layout::batch) {
    for (size_t i = operand.axes.rows.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(operand.axes.rows[i]);
      if (operand.shape[axis] != 1) strides[axis] = stride;
      stride *= operand.shape[axis];
    }
  } else {
    for (size_t i = operand.shape.size(); i-- > 0;) {
      if (operand.shape[i] != 1) strides[i + skipped] = stride;
      stride *= operand.shape[i];
    }
  }
  const int64_t rows = out.rows();
  std::vector<int32_t> index(static_cast<size_t>(rows));
  std::vector<int64_t> position(out.axes.rows.size(), 0);
  bool same = stride == rows;
  int64_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    index[static_cast<size_t>(row)] = static_cast<int32_t>(at);
    same = same && at == row;
    for (size_t i = position.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(out.axes.rows[i]);
      at += strides[axis];
      if (++position[i] < out.shape[axis]) break;
      at -= strides[axis] * out.shape[axis];
      position[i] = 0;
    }
  }
  if (same) index.clear();
  return index;
}

}  // namespace

MapOperands map_operands(const Plan& plan, const std::vector<int>& operands, int out) {
  MapOperands result;
  result.flat = true;
  for (const int operand : operands) {
    const bool scalar =
        plan.at(out).layout == Layout::batch && plan.at(operand).layout == Layout::fixed;
    result.index.push_back(operand_rows(plan.at(out), plan.at(operand)));
    result.scalar.push_back(scalar);
    result.stride.push_back(scalar ? 1 : plan.row_stride(operand));
    result.flat = result.flat && !scalar && result.index.back().empty();
  }
  return result;
}

Kernel map_kernel(const Plan& plan, std::shared_ptr<const TileProgram> program,
                  const std::vector<int>& operands, int out, const Memory& memory) {
  struct State {
    MapOperands operands;
    std::vector<const float*> base, pointer;
    std::unique_ptr<bool[]> scalar;
    std::shared_ptr<std::byte> workspace;
    std::vector<std::shared_ptr<std::byte>> repeated;  // operands as long as the result
  };
  auto state = std::make_shared<State>();
  state->operands = map_operands(plan, operands, out);
  for (const int operand : operands) state->base.push_back(memory[operand]);
  state->pointer = state->base;
  state->scalar = std::make_unique<bool[]>(operands.size() + 1);
  for (size_t i = 0; i < operands.size(); ++i) state->scalar[i] = state->operands.scalar[i];
  const int64_t rows = plan.at(out).rows(), stride = plan.row_stride(out);
  // Rows of one value, side by side: what is repeated is written out, or is one number for all.
  const bool dense = stride == 1 && !state->operands.flat;
  const bool flat = state->operands.flat || dense;
  for (size_t i = 0; dense && i < operands.size(); ++i) {
    auto& index = state->operands.index[i];
    state->scalar[i] =
        !index.empty() && rows > 1 &&
        std::all_of(index.begin(), index.end(), [&](int32_t at) { return at == index[0]; });
    if (state->scalar[i]) state->base[i] += index[0];
    const bool repeats = !index.empty() && !state->scalar[i];
    state->repeated.push_back(repeats ? aligned_bytes(static_cast<size_t>(rows) * sizeof(float))
                                      : nullptr);
  }
  const int64_t capacity = flat ? rows * stride : stride;
  state->workspace =
      aligned_bytes(static_cast<size_t>(program->workspace(capacity)) * sizeof(float));
  program->prepare(reinterpret_cast<float*>(state->workspace.get()), capacity);
  return [=, &plan, to = memory[out]](const Run& run) {
    auto* workspace = reinterpret_cast<float*>(state->workspace.get());
    for (size_t i = 0; i < state->repeated.size(); ++i) {
      state->pointer[i] = state->base[i];
      if (!state->repeated[i]) continue;
      auto* values = reinterpret_cast<float*>(state->repeated[i].get());
      for (int64_t r = 0; r < rows; ++r)
        values[r] = state->base[i][state->operands.index[i][static_cast<size_t>(r)]];
      state->pointer[i] = values;
    }
    if (dense) {
      program->run(state->pointer.data(), state->scalar.get(), to, rows, workspace, capacity);
      return;
    }
    if (flat) {
      program->run(state->base.data(), state->scalar.get(), to, rows * stride, workspace, capacity);
      return;
    }
    const int64_t n = plan.lanes(out, run);
    for (int64_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < state->base.size(); ++i) {
        const auto& index = state->operands.index[i];
        const int64_t row = index.empty() ? r : index[static_cast<size_t>(r)];
        state->pointer[i] = state->base[i] + row * state->operands.stride[i];
      }
      program->run(state->pointer.data(), state->scalar.get(), to + r * stride, n, workspace,
                   capacity);
    }
  };
}

}  // namespace mase::engine

namespace mase::engine::map_primitive {
namespace {

struct SumToPayload {};

Step forward(Plan& plan, Primitive& p) {
  Expr expr = p.as<MapPayload>().expr;
  std::vector<int> operands = p.in;
  if (p.accumulate) {
    expr = Expr::operand(static_cast<int>(operands.size())) + expr;
    operands.push_back(p.out);
  }
  Step step{"map", fmt::format("{} values an element", expr.size()), operands, {p.out}};
  auto program = std::make_shared<TileProgram>(expr, static_cast<int>(operands.size()));
  step.bind = [=, &plan, out = p.out](const Memory& memory) {
    return map_kernel(plan, program, operands, out, memory);
  };
  return step;
}

// d operand = g * d expr / d operand, summed over what the operand was broadcast to.
void gradient(Backward& backward, const Primitive& p, int gradient) {
  for (size_t i = 0; i < p.in.size(); ++i) {
    const int operand = p.in[i];
    if (!backward.wanted(operand)) continue;
    const Expr partial = p.as<MapPayload>().expr.derivative(static_cast<int>(i));
    if (partial.is_constant(0)) continue;
    Primitive products{
        .in = p.in, .payload = MapPayload{Expr::operand(static_cast<int>(p.in.size())) * partial}};
    products.in.push_back(gradient);
    const Plan& plan = backward.plan();
    if (map_operands(plan, {operand}, p.out).flat) {
      backward.send("map", std::move(products), operand);
      continue;
    }
    TensorInfo info = plan.at(p.out);
    info.name = "products";
    const int sums = backward.compute("map", std::move(products), std::move(info));
    backward.send("sum_to", {.in = {sums}, .payload = SumToPayload{}}, operand);
  }
}

// What an operand that was broadcast gets: each of its values the sum of where it stood.
Step sum_to(Plan& plan, Primitive& p) {
  const MapOperands layout = map_operands(plan, {p.out}, p.in[0]);
  return make_step("sum_to", "", {p.in[0]}, {p.out},
                   [=, &plan, in = p.in[0], index = layout.index[0], scalar = layout.scalar[0] != 0,
                    rows = plan.at(p.in[0]).rows(), stride = plan.row_stride(p.in[0]),
                    own_stride = layout.stride[0], floats = plan.floats(p.out),
                    accumulate = p.accumulate](const Run& run, const float* from, float* to) {
                     const int64_t n = plan.lanes(in, run);
                     if (!accumulate) std::fill_n(to, floats, 0.0f);
                     for (int64_t r = 0; r < rows; ++r) {
                       const int64_t row = index.empty() ? r : index[static_cast<size_t>(r)];
                       if (scalar)
                         to[row] += static_cast<float>(kernels::sum(from + r * stride, n));
                       else
                         kernels::add_to(to + row * own_stride, from + r * stride, n);
                     }
                   });
}

void sum_to_reference(Reference& call) {
  each_index(call.in[0].shape,
             [&](const Shape& index) { value_at(call.out, index) += value_at(call.in[0], index); });
}

void reference(Reference& call) {
  const Expr& expr = call.primitive.as<MapPayload>().expr;
  std::vector<double> operands(call.in.size());
  each_index(call.out.shape, [&](const Shape& index) {
    for (size_t i = 0; i < operands.size(); ++i) operands[i] = value_at(call.in[i], index);
    value_at(call.out, index) = expr.evaluate(operands);
  });
}

Slot generate(Trial& trial) {
  const int64_t a = trial.size(1, 9, 64), b = trial.size(1, 9, 64), c = trial.size(1, 5, 1);
  const Slot x = trial.activation({a, b, c});
  const Expr first = Expr::operand(0), second = Expr::operand(1), third = Expr::operand(2);
  const Expr exprs[] = {max(first, second) * third, tanh(first) + exp(second * 0.5) * third,
                        first / (1.5 + second * second) - min(third, 0.3)};
  // One operand that is repeated along some dimensions, and one without a batch.
  const Slot y = trial.activation({trial.coin(true) ? a : 1, trial.coin(true) ? b : 1, c});
  const Slot z = trial.parameter(trial.coin(true) ? Shape{a, 1, c} : Shape{b, c});
  return trial.to().map(exprs[trial.below(3, 1)], {x, y, z});
}

// a + b, max(a, 0): operands are letters.
std::string expression_text(const Expr& expr) {
  constexpr const char* names[] = {"",    "",      "+",       "-",    "*",        "/",
                                   "min", "max",   "-",       "abs",  "sqrt",     "exp",
                                   "log", "tanh",  "sigmoid", "erf",  "softplus", "sin",
                                   "cos", "floor", "round",   "less", "select"};
  const Expr::Node& node = expr.node();
  if (node.op == ScalarOp::operand) return std::string(1, static_cast<char>('a' + node.operand));
  if (node.op == ScalarOp::constant) return fmt::format("{:g}", node.constant);
  std::vector<std::string> inputs;
  for (const Expr& input : node.inputs) inputs.push_back(expression_text(input));
  const std::string name = names[static_cast<size_t>(node.op)];
  if (name.size() == 1 && inputs.size() == 2)
    return fmt::format("({} {} {})", inputs[0], name, inputs[1]);
  return fmt::format("{}({})", name, fmt::join(inputs, ", "));
}

// What an expression keeps its operand between, if it does nothing else.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

std::optional<Limits> limits_of(const Expr& expr) {
  const Expr::Node& node = expr.node();
  if (node.op == ScalarOp::operand) return Limits{};
  const auto limit = [](const Expr& e) -> std::optional<double> {
    if (e.node().op != ScalarOp::constant || std::isnan(e.node().constant)) return {};
    return e.node().constant;
  };
  const auto at_least = [&](const Expr& inner, double low) -> std::optional<Limits> {
    const std::optional<Limits> own = limits_of(inner);
    if (!own) return {};
    return Limits{std::max(own->low, low), std::max(own->high, low)};
  };
  const auto at_most = [&](const Expr& inner, double high) -> std::optional<Limits> {
    const std::optional<Limits> own = limits_of(inner);
    if (!own) return {};
    return Limits{std::min(own->low, high), std::min(own->high, high)};
  };
  if (node.op == ScalarOp::max || node.op == ScalarOp::min) {
    const std::optional<double> value = limit(node.inputs[1]);
    if (!value) return {};
    return node.op == ScalarOp::max ? at_least(node.inputs[0], *value)
                                    : at_most(node.inputs[0], *value);
  }
  // a < b ? limit : x, where a and b are the limit and x
  if (node.op != ScalarOp::select || node.inputs[0].node().op != ScalarOp::less) return {};
  const std::vector<Expr>& compared = node.inputs[0].node().inputs;
  const std::optional<double> value = limit(node.inputs[1]);
  const Expr& inner = node.inputs[2];
  if (!value) return {};
  if (compared[0].pointer() == inner.pointer() && limit(compared[1]) == value)
    return at_least(inner, *value);
  if (compared[1].pointer() == inner.pointer() && limit(compared[0]) == value)
    return at_most(inner, *value);
  return {};
}

bool is_operand(const Expr& expr) { return expr.node().op == ScalarOp::operand; }

// A sum of two operands, or limits of the one.
std::optional<FusedStage> as_stage(const Plan&, const Primitive& p, int operand) {
  const Expr& expr = p.as<MapPayload>().expr;
  if (p.in.size() == 1) {
    const std::optional<Limits> limits = limits_of(expr);
    if (!limits) return {};
    return ClampStage{static_cast<float>(limits->low), static_cast<float>(limits->high)};
  }
  const Expr::Node& node = expr.node();
  if (p.in.size() != 2 || node.op != ScalarOp::add || !is_operand(node.inputs[0]) ||
      !is_operand(node.inputs[1]) || node.inputs[0].node().operand == node.inputs[1].node().operand)
    return {};
  return AddStage{p.in[p.in[0] == operand ? 1 : 0]};
}

const Register<PrimitiveRecord> registered{{
    .name = "map",
    .summary = "a scalar expression over all values",
    .payload = typeid(MapPayload),
    .variants = {{"vectors", forward}},
    .reference = reference,
    .accumulates = true,
    .gradient = gradient,
    .generate = generate,
    .sample_by_sample = each_sample_alone,
    .as_stage = as_stage,
    .any_stride = true,
    .text =
        [](const Plan&, const Primitive& p) {
          const Expr& expr = p.as<MapPayload>().expr;
          constexpr int longest = 40;
          return " " + (expr.size() > longest ? fmt::format("of {} terms", expr.size())
                                              : expression_text(expr));
        },
}};

const Register<PrimitiveRecord> sum_to_record{{
    .name = "sum_to",
    .summary = "what an operand that was broadcast gets: sums of where it stood",
    .payload = typeid(SumToPayload),
    .variants = {{"vectors", sum_to}},
    .reference = sum_to_reference,
    .accumulates = true,
    .generate = [](Trial& trial) { return trial.sent_by("map"); },
}};

}  // namespace
}  // namespace mase::engine::map_primitive
