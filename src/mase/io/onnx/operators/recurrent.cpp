// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM over sequences whose length is known: turn after turn, with two Linear layers
// that all turns share, one of the inputs (for all turns at once) and one of the state before.
// onnxruntime's DynamicQuantizeLSTM multiplies integers there.
#include <algorithm>
#include <functional>
#include <map>

#include "mase/base/text.h"
#include "mase/io/onnx/read/dynamic_quantize.h"
#include "mase/io/onnx/read/products.h"
#include "mase/io/onnx/read/tensor_moves.h"

namespace mase::onnx::recurrent_operators {
namespace {

using State = std::optional<Operand>;  // none: zeros

Operand part(NodeContext& context, const Operand& x, int64_t dim, int64_t start, int64_t length) {
  if (start == 0 && length == x.shape[static_cast<size_t>(dim)]) return x;
  return context.call("narrow", {x}, Dict{{"dim", dim}, {"start", start}, {"length", length}});
}

Operand entry(NodeContext& context, const Operand& x, int64_t dim, int64_t index) {
  return context.call("squeeze", {part(context, x, dim, index, 1)}, Dict{{"dim", dim}});
}

Operand turned(NodeContext& context, const Operand& x, const Shape& order) {
  return context.call("permute", {x}, Dict{{"dims", Value::of(order)}});
}

bool is_zero(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.numel(); ++i)
    if (tensor.item(i) != 0) return false;
  return true;
}

// [directions, gates * hidden, width], and what its integers stand for if it holds such.
struct Weight {
  Operand numbers;
  std::optional<Tensor> scales = {};  // [directions] or [directions, gates * hidden]
};

Weight plain_weight(NodeContext& context, size_t input) {
  context.constant(input, "a weight");
  return {context.input(input)};
}

// Integers [directions, width, gates * hidden] less their zero points.
Weight quantized_weight(NodeContext& context, size_t input, size_t scale) {
  const Tensor& codes = context.constant(input, "a weight");
  if (codes.shape().size() != 3) context.fail("a weight has not three dimensions");
  const int64_t directions = codes.dim(0), width = codes.dim(1), rows = codes.dim(2);
  const auto each = [&](const Tensor& given, const char* what) {
    if (given.numel() != directions && given.numel() != directions * rows)
      context.fail(
          fmt::format("{} {} for a weight {}", given.numel(), what, shape_text(codes.shape())));
    return given.to(DType::f32);
  };
  const Tensor scales = each(context.constant(scale, "a scale"), "scales");
  const Tensor zeros = each(context.constant(scale + 1, "a zero point"), "zero points");
  note_exactness(context, width, Element::u8, context.input(input).element);
  context.model().budget->charge(static_cast<size_t>(codes.numel()) * sizeof(float),
                                 context.place());
  Tensor numbers({directions, rows, width});
  float* to = numbers.mutable_data<float>();
  for (int64_t d = 0; d < directions; ++d)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t k = 0; k < width; ++k)
        *to++ = static_cast<float>(codes.item((d * width + k) * rows + row) -
                                   zeros.item(zeros.numel() == directions ? d : d * rows + row));
  return {context.constant_operand(numbers), scales};
}

// One direction of one node: its weights, and what the attributes say of it.
class Direction {
 public:
  // `weights`: of the inputs and of the states.
  Direction(NodeContext& context, const std::vector<Weight>& weights, int64_t index, int64_t count,
            int64_t gates, std::vector<std::string> defaults)
      : context_(context), weights_(weights), index_(index), gates_(gates) {
    if (context.has(3)) context.constant(3, "a bias");
    const Operand &w = weights[0].numbers, &r = weights[1].numbers;
    hidden_ = context.integer("hidden_size", r.rank() == 3 ? r.shape[2].number() : 0);
    if (w.rank() != 3 || r.rank() != 3 || hidden_ < 1 || hidden_ > (1 << 20) ||
        w.shape[0] != count || w.shape[1] != gates * hidden_ ||
        r.shape != Shape{count, gates * hidden_, hidden_})
      context.fail(fmt::format("weights {} and {} for {} directions and a state of {}",
                               shape_text(w.shape), shape_text(r.shape), count, hidden_));
    if (context.has(3) && context.input(3).shape != Shape{count, 2 * gates * hidden_})
      context.fail(fmt::format("a bias {}", shape_text(context.input(3).shape)));
    names_ = std::move(defaults);
    read_activations(count);
    if (context.has_attribute("clip")) clip_ = context.number("clip", 0);
    const std::string base = context.layer_path(lower_case(context.node().op), ""),
                      way = count == 1   ? ""
                            : index == 0 ? ".forward"
                                         : ".reverse";
    path_ = base + way;
    for (int number = 1; context.model().graph.modules().count(path_ + ".input"); ++number)
      path_ = fmt::format("{}_{}{}", base, number, way);
  }

  NodeContext& context() { return context_; }
  int64_t hidden() const { return hidden_; }

  // A bias of the gates `first` and on: of the inputs, of the state, or of both together.
  std::vector<float> bias(int64_t first, int64_t count, bool of_inputs, bool of_state) const {
    std::vector<float> sum(static_cast<size_t>(count * hidden_), 0);
    if (!context_.has(3)) return sum;
    const Tensor& tensor = context_.input(3).constant->tensor;
    for (const bool state : {false, true}) {
      if (!(state ? of_state : of_inputs)) continue;
      const int64_t at = index_ * 2 * gates_ * hidden_ + (state ? gates_ * hidden_ : 0);
      for (int64_t i = 0; i < count * hidden_; ++i)
        sum[static_cast<size_t>(i)] += static_cast<float>(tensor.item(at + first * hidden_ + i));
    }
    return sum;
  }

  // x times the weights of some gates, those of inputs (0) or of states (1). `name` tells the layer
  // from the others of this direction.
  Operand linear_of(const std::string& name, size_t which, int64_t first, int64_t count,
                    const std::vector<float>& bias, const Operand& x) {
    const int64_t rows = count * hidden_;
    if (!layers_.count(name)) {
      const Tensor all = context_.materialized(weights_[which].numbers).constant->tensor;
      const int64_t width = all.dim(2);
      context_.model().budget->charge(static_cast<size_t>(rows * width) * sizeof(float),
                                      context_.place());
      const Tensor own = sliced(sliced(all, 0, index_, 1, 1), 1, first * hidden_, 1, rows);
      Operand weight = context_.constant_operand(own.to(DType::f32).reshaped({rows, width}));
      weight.source = fmt::format("{}.{}.weight", path_, name);
      Operand offset = context_.constant_operand(Tensor::of({rows}, bias));
      offset.source = fmt::format("{}.{}.bias", path_, name);
      layers_.emplace(name, std::pair(weight, offset));
    }
    const auto& [weight, offset] = layers_.at(name);
    if (x.shape.back().has_batch()) context_.needs_batch("its features are the batch");
    if (x.shape.back() != weight.shape[1])
      context_.fail(
          fmt::format("an input {} for weights {}", shape_text(x.shape), shape_text(weight.shape)));
    if (!weights_[which].scales) return linear(context_, x, weight, &offset);
    const Dynamic codes = dynamically_quantized(context_, x);
    const Operand sums =
        linear(context_, context_.call("sub", {codes.codes, codes.zero}), weight, nullptr);
    const Operand factor = context_.call("mul", {codes.scale, scale_of(which, first, rows)});
    return context_.call("add", {context_.call("mul", {sums, factor}), offset});
  }

  Operand gate(const Operand& all, int64_t index) {
    return part(context_, all, static_cast<int64_t>(all.rank()) - 1, index * hidden_, hidden_);
  }

  Operand activated(size_t which, const Operand& x) {
    const Operand inside =
        clip_ ? context_.call("clamp", {x}, Dict{{"min", -*clip_}, {"max", *clip_}}) : x;
    const std::string name = lower_case(names_.at(which));
    static const std::map<std::string, const char*> known = {
        {"sigmoid", "sigmoid"},   {"tanh", "tanh"},         {"relu", "relu"},
        {"softsign", "softsign"}, {"softplus", "softplus"}, {"elu", "elu"}};
    const auto found = known.find(name);
    if (found == known.end())
      context_.fail(fmt::format("the activation '{}'", printable(names_[which])));
    return context_.call(found->second, {inside});
  }

  // Weights that connect a gate with the state of the cell, each element with itself.
  State peephole(int64_t gate) {
    if (!context_.has(7)) return {};
    const Tensor& tensor = context_.constant(7, "its peepholes");
    if (tensor.numel() < (index_ + 1) * 3 * hidden_) context_.fail("too few peepholes");
    std::vector<float> values;
    for (int64_t i = 0; i < hidden_; ++i)
      values.push_back(static_cast<float>(tensor.item((index_ * 3 + gate) * hidden_ + i)));
    return context_.constant_operand(Tensor::of({hidden_}, values));
  }

 private:
  void read_activations(int64_t count) {
    for (const char* name : {"activation_alpha", "activation_beta"})
      if (context_.has_attribute(name)) context_.fail(fmt::format("{} is given", name));
    const Attribute* given = context_.node().find("activations");
    if (!given) return;
    const size_t each = names_.size();
    if (given->texts.size() != each * static_cast<size_t>(count))
      context_.fail(fmt::format("{} activations", given->texts.size()));
    for (size_t i = 0; i < each; ++i)
      names_[i] = given->texts[static_cast<size_t>(index_) * each + i];
  }

  // One number, or one for each of these rows.
  Operand scale_of(size_t which, int64_t first, int64_t rows) {
    const Tensor& scales = *weights_[which].scales;
    const int64_t all = gates_ * hidden_;
    if (scales.numel() == weights_[which].numbers.shape[0])
      return context_.scalar(scales.item(index_));
    std::vector<float> own;
    for (int64_t i = 0; i < rows; ++i)
      own.push_back(static_cast<float>(scales.item(index_ * all + first * hidden_ + i)));
    return context_.constant_operand(Tensor::of({rows}, own));
  }

  NodeContext& context_;
  const std::vector<Weight>& weights_;
  int64_t index_, gates_, hidden_ = 0;
  std::vector<std::string> names_;
  std::optional<double> clip_ = {};
  std::string path_;
  std::map<std::string, std::pair<Operand, Operand>> layers_ = {};  // weight and bias
};

// A turn: what the inputs add to the gates [batch, gates * hidden], and the states before, which it
// replaces by those after.
using Turn = std::function<void(const Operand& inputs, State& h, State& c)>;

Operand sum_of(NodeContext& context, const Operand& a, const State& b) {
  return b ? context.call("add", {a, *b}) : a;
}

Turn rnn_turn(Direction& own) {
  return [&own](const Operand& inputs, State& h, State&) {
    State from_state;
    if (h) from_state = own.linear_of("state", 1, 0, 1, own.bias(0, 1, false, false), *h);
    h = own.activated(0, sum_of(own.context(), inputs, from_state));
  };
}

// Gates i, o, f, c.
Turn lstm_turn(Direction& own) {
  return [&own](const Operand& inputs, State& h, State& c) {
    NodeContext& context = own.context();
    State from_state;
    if (h) from_state = own.linear_of("state", 1, 0, 4, own.bias(0, 4, false, false), *h);
    const Operand all = sum_of(context, inputs, from_state);
    const auto gate = [&](int64_t index, int64_t peephole, const State& cell) {
      Operand x = own.gate(all, index);
      if (const State weights = cell ? own.peephole(peephole) : State())
        x = context.call("add", {x, context.call("mul", {*cell, *weights})});
      return own.activated(0, x);
    };
    const Operand added = context.call("mul", {gate(0, 0, c), own.activated(1, own.gate(all, 3))});
    const Operand cell =
        c ? context.call("add", {context.call("mul", {gate(2, 2, c), *c}), added}) : added;
    c = cell;
    h = context.call("mul", {gate(1, 1, c), own.activated(2, cell)});
  };
}

// Gates z, r, h. The reset gate works on the state, or on what the weights make of it.
Turn gru_turn(Direction& own, bool reset_after) {
  return [&own, reset_after](const Operand& inputs, State& h, State&) {
    NodeContext& context = own.context();
    const int64_t size = own.hidden();
    const Operand first = part(context, inputs, 1, 0, 2 * size);
    State both, third;
    if (h && reset_after) {
      const Operand all = own.linear_of(
          "state", 1, 0, 3,
          [&] {
            std::vector<float> bias(static_cast<size_t>(2 * size), 0);
            const std::vector<float> last = own.bias(2, 1, false, true);
            bias.insert(bias.end(), last.begin(), last.end());
            return bias;
          }(),
          *h);
      both = part(context, all, 1, 0, 2 * size);
      third = own.gate(all, 2);
    } else if (h) {
      both = own.linear_of("gates", 1, 0, 2, own.bias(0, 2, false, false), *h);
    } else if (reset_after) {
      third = context.constant_operand(Tensor::of({size}, own.bias(2, 1, false, true)));
    }
    const Operand gates = own.activated(0, sum_of(context, first, both));
    const Operand update = own.gate(gates, 0), reset = own.gate(gates, 1);
    if (third)
      third = context.call("mul", {reset, *third});
    else if (h)
      third = own.linear_of("state", 1, 2, 1, own.bias(2, 1, false, false),
                            context.call("mul", {reset, *h}));
    const Operand made = own.activated(1, sum_of(context, own.gate(inputs, 2), third));
    // (1 - z) made + z h
    const Operand kept = context.call("sub", {context.scalar(1), update});
    Operand next = context.call("mul", {kept, made});
    if (h) next = context.call("add", {next, context.call("mul", {update, *h})});
    h = next;
  };
}

// The state a direction begins with, [directions, batch, hidden] in the file.
State first_state(NodeContext& context, size_t input, int64_t index, bool batch_first) {
  if (!context.has(input)) return {};
  const Operand& given = context.input(input);
  if (given.rank() != 3) context.fail("its first state has not three dimensions");
  if (given.is_constant()) {
    const Tensor tensor = context.materialized(given).constant->tensor;
    if (is_zero(tensor)) return {};
    const Tensor own = sliced(tensor, batch_first ? 1 : 0, index, 1, 1);
    const int64_t rows = own.dim(batch_first ? 0 : 1), width = own.dim(2);
    const Tensor states = own.to(DType::f32).reshaped({rows, width});
    if (context.whole()) return context.with_batch(context.constant_operand(states));
    for (int64_t i = width; i < states.numel(); ++i)
      if (states.item(i) != states.item(i % width))
        context.needs_batch("its first state differs from one entry of the batch to the next");
    return context.with_batch(context.constant_operand(sliced(states, 0, 0, 1, 1)));
  }
  return entry(context, batch_first ? given : turned(context, given, {1, 0, 2}), 1, index);
}

struct Kind {
  int64_t gates;
  std::vector<std::string> activations;
  std::function<Turn(Direction&)> turn;
  // Whether the state's bias of a gate is added to the inputs' once for all turns.
  std::function<bool(int64_t gate)> joins_bias = [](int64_t) { return true; };
  bool has_cell = false;
};

const Kind& lstm() {
  static const Kind kind{
      .gates = 4, .activations = {"Sigmoid", "Tanh", "Tanh"}, .turn = lstm_turn, .has_cell = true};
  return kind;
}

void recurrent(NodeContext& context, const Kind& kind, const std::vector<Weight>& weights) {
  const bool batch_first = context.integer("layout", 0) != 0;
  const std::string way = context.text("direction", "forward");
  if (way != "forward" && way != "reverse" && way != "bidirectional")
    context.fail(fmt::format("the direction '{}'", printable(way)));
  if (context.integer("input_forget", 0) != 0) context.fail("its gates are coupled (input_forget)");
  if (context.input(0).rank() != 3) context.fail("its input has not three dimensions");
  if (context.input(0).repeated) context.needs_batch("its input is the same for all entries");
  const Operand x = batch_first ? context.input(0) : turned(context, context.input(0), {1, 0, 2});
  if (x.shape[1].has_batch()) context.needs_batch("its sequence is the batch");
  const int64_t length = x.shape[1], count = way == "bidirectional" ? 2 : 1;
  constexpr int64_t most = 2048;
  if (length < 1 || length > most)
    context.fail(fmt::format("a sequence of {}: 1 to {} are read", length, most));
  if (context.has(4))
    for (const int64_t own : context.integers(4, "the lengths of sequences"))
      if (own != length) context.fail("its sequences differ in length");
  std::vector<Operand> sequences, last_h, last_c;
  for (int64_t d = 0; d < count; ++d) {
    Direction own(context, weights, d, count, kind.gates, kind.activations);
    const Turn turn = kind.turn(own);
    std::vector<float> bias;
    for (int64_t gate = 0; gate < kind.gates; ++gate) {
      const std::vector<float> one = own.bias(gate, 1, true, kind.joins_bias(gate));
      bias.insert(bias.end(), one.begin(), one.end());
    }
    const Operand inputs = own.linear_of("input", 0, 0, kind.gates, bias, x);
    State h = first_state(context, 5, d, batch_first), c;
    if (kind.has_cell) c = first_state(context, 6, d, batch_first);
    std::vector<Operand> states(static_cast<size_t>(length));
    const bool backwards = way == "reverse" || d == 1;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t at = backwards ? length - 1 - t : t;
      turn(entry(context, inputs, 1, at), h, c);
      states[static_cast<size_t>(at)] = context.call("unsqueeze", {*h}, Dict{{"dim", 1}});
    }
    sequences.push_back(length == 1 ? states[0] : context.call("cat", states, Dict{{"dim", 1}}));
    last_h.push_back(*h);
    if (c) last_c.push_back(*c);
  }
  // Directions stand before the batch in the file's layout, behind it in the other.
  const auto joined = [&](const std::vector<Operand>& parts, int64_t dim) {
    std::vector<Operand> single;
    for (const Operand& one : parts)
      single.push_back(context.call("unsqueeze", {one}, Dict{{"dim", dim}}));
    return single.size() == 1 ? single[0] : context.call("cat", single, Dict{{"dim", dim}});
  };
  if (context.output_is_used(0)) {
    const Operand all = joined(sequences, 2);  // [batch, length, directions, hidden]
    context.result(0, batch_first ? all : turned(context, all, {1, 2, 0, 3}));
  }
  const auto last = [&](size_t index, const std::vector<Operand>& states) {
    if (!context.output_is_used(index)) return;
    const Operand all = joined(states, 1);  // [batch, directions, hidden]
    context.result(index, batch_first ? all : turned(context, all, {1, 0, 2}));
  };
  last(1, last_h);
  last(2, last_c);
}

std::vector<Weight> plain_weights(NodeContext& context) {
  return {plain_weight(context, 1), plain_weight(context, 2)};
}

void gru(NodeContext& context) {
  const bool after = context.integer("linear_before_reset", 0) != 0;
  recurrent(context,
            {.gates = 3,
             .activations = {"Sigmoid", "Tanh"},
             .turn = [after](Direction& own) { return gru_turn(own, after); },
             .joins_bias = [after](int64_t gate) { return gate < 2 || !after; }},
            plain_weights(context));
}

constexpr auto own = OnnxOperator::Repeated::own;

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>({.name = "RNN",
                            .summary = "Linear and an activation, turn after turn",
                            .repeated = own,
                            .convert =
                                [](NodeContext& context) {
                                  recurrent(context,
                                            {.gates = 1, .activations = {"Tanh"}, .turn = rnn_turn},
                                            plain_weights(context));
                                }}),
    Register<OnnxOperator>({.name = "GRU",
                            .summary = "Linear, sigmoid and tanh, turn after turn",
                            .repeated = own,
                            .convert = gru}),
    Register<OnnxOperator>(
        {.name = "LSTM",
         .summary = "Linear, sigmoid and tanh, turn after turn",
         .repeated = own,
         .convert =
             [](NodeContext& context) { recurrent(context, lstm(), plain_weights(context)); }}),
    Register<OnnxOperator>(
        {.name = "com.microsoft::DynamicQuantizeLSTM",
         .summary = "roundings whose scale follows from the values, Linear, sigmoid and tanh, turn "
                    "after turn",
         .repeated = own,
         .convert =
             [](NodeContext& context) {
               recurrent(context, lstm(),
                         {quantized_weight(context, 1, 8), quantized_weight(context, 2, 10)});
             }}),
};

}  // namespace
}  // namespace mase::onnx::recurrent_operators
