// SPDX-License-Identifier: Apache-2.0
// MultiheadAttention (Vaswani et al., 2017): query, key and value projected, attention in each
// head, and the heads' results projected together. Results: [N, L, E], and the weights of attention
// [N, L, S], averaged over the heads. It is made of `linear` and `scaled_dot_product_attention`,
// whose values and gradients it takes. Rounded, it is what these would be: data_in what all three
// are given, weight and bias those of both projections, `projected` query, key and value as the
// heads take them, `attended` what the last projection is given.
#include <cmath>
#include <limits>

#include "mase/ir/op.h"
#include "mase/ops/along.h"

namespace mase::multihead_attention_op {
namespace {

struct Sizes {
  int64_t width, heads;
  bool batch_first;

  explicit Sizes(const Value& attributes)
      : width(attributes["embed_dim"].as_int()),
        heads(attributes["num_heads"].as_int()),
        batch_first(attributes["batch_first"].as_bool()) {
    if (width % heads != 0)
      throw Error("", fmt::format("{} features in {} heads", width, heads),
                  "embed_dim is a multiple of num_heads");
  }
};

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Sizes sizes(attributes);
  const Shape &q = inputs[0], &k = inputs[1], &v = inputs[2];
  bool fits = q.size() == 3 && k.size() == 3 && k == v;
  const size_t batch = sizes.batch_first ? 0 : 1;
  if (fits) fits = q[2] == sizes.width && k[2] == sizes.width && q[batch] == k[batch];
  if (!fits)
    throw Error("",
                fmt::format("MultiheadAttention of {} features got {}, {} and {}", sizes.width,
                            shape_text(q), shape_text(k), shape_text(v)),
                sizes.batch_first ? "it takes [N, L, E], [N, S, E] and [N, S, E]"
                                  : "it takes [L, N, E], [S, N, E] and [S, N, E]");
  if (checked_result(attributes, 2) == 0) return q;
  return {q[batch], q[1 - batch], k[1 - batch]};
}

// [N, L, E] (or [L, N, E]) <=> [N, heads, L, E / heads]
Array split_heads(const Array& x, const Sizes& s) {
  const int64_t n = x.shape[s.batch_first ? 0 : 1], length = x.shape[s.batch_first ? 1 : 0];
  const int64_t each = s.width / s.heads;
  Array y({n, s.heads, length, each});
  size_t to = 0;
  for (int64_t b = 0; b < n; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < length; ++i)
        for (int64_t e = 0; e < each; ++e) {
          const int64_t row = s.batch_first ? b * length + i : i * n + b;
          y.data[to++] = x.data[static_cast<size_t>(row * s.width + h * each + e)];
        }
  return y;
}

Array join_heads(const Array& y, const Sizes& s) {
  const int64_t n = y.shape[0], length = y.shape[2], each = s.width / s.heads;
  Array x(s.batch_first ? Shape{n, length, s.width} : Shape{length, n, s.width});
  size_t from = 0;
  for (int64_t b = 0; b < n; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < length; ++i)
        for (int64_t e = 0; e < each; ++e) {
          const int64_t row = s.batch_first ? b * length + i : i * n + b;
          x.data[static_cast<size_t>(row * s.width + h * each + e)] = y.data[from++];
        }
  return x;
}

// A third of the joint projection: 0 the query's, 1 the key's, 2 the value's.
Array third(const Array& joint, size_t which) {
  Shape shape = joint.shape;
  shape[0] /= 3;
  Array part(shape);
  const auto first = joint.data.begin() + static_cast<std::ptrdiff_t>(which * part.data.size());
  std::copy(first, first + static_cast<std::ptrdiff_t>(part.data.size()), part.data.begin());
  return part;
}

// Another op called with these inputs.
struct Called {
  const OpRecord& op;
  Value attributes;
  std::vector<const Array*> inputs;

  Called(const char* name, const Dict& given, std::vector<const Array*> operands)
      : op(find_op(name)),
        attributes(validate(Value(given), op.attributes, name)),
        inputs(std::move(operands)) {}
  OpCall call() const { return {attributes, inputs}; }
};

struct Forward {
  Sizes sizes;
  std::vector<Array> weights, biases, projected;  // of query, key and value
  Array values;                                   // of the heads; ones on a diagonal for weights
  Array joined;                                   // the heads' results side by side
  Dict options;

  explicit Forward(const OpCall& call) : sizes(call.attributes) {
    const auto bias = call.params.find("in_proj_bias");
    for (size_t i = 0; i < 3; ++i) {
      weights.push_back(third(*call.params.at("in_proj_weight"), i));
      biases.push_back(bias == call.params.end() ? Array({sizes.width}) : third(*bias->second, i));
      projected.push_back(call.rounded(split_heads(project(call, i), sizes), "projected"));
    }
    options = {{"is_causal", call.attributes["is_causal"].as_bool()}};
    values = projected[2];
    if (checked_result(call.attributes, 2) == 1) {
      const int64_t keys = values.shape[2];
      values = Array({values.shape[0], sizes.heads, keys, keys});
      const auto row = static_cast<size_t>(keys);
      for (size_t i = 0; i < values.data.size(); i += row * row)
        for (size_t k = 0; k < row; ++k) values.data[i + k * (row + 1)] = 1;
    }
  }
  Called linear(const OpCall& call, size_t i) const {
    return {"linear", {}, {call.inputs[i], &weights[i], &biases[i]}};
  }
  Array project(const OpCall& call, size_t i) const {
    const Called called = linear(call, i);
    return called.op.eval(called.call());
  }
  Called attention() const {
    return {"scaled_dot_product_attention", options, {&projected[0], &projected[1], &values}};
  }
  Called output(const OpCall& call) const {
    std::vector<const Array*> inputs = {&joined, call.params.at("out_proj.weight")};
    const auto bias = call.params.find("out_proj.bias");
    if (bias != call.params.end()) inputs.push_back(bias->second);
    return {"linear", {}, inputs};
  }
};

Array eval(const OpCall& call) {
  Forward forward(call);
  const Called attention = forward.attention();
  const Array heads = attention.op.eval(attention.call());
  if (checked_result(call.attributes, 2) == 0) {
    forward.joined = call.rounded(join_heads(heads, forward.sizes), "attended");
    const Called output = forward.output(call);
    return output.op.eval(output.call());
  }
  Array mean({heads.shape[0], heads.shape[2], heads.shape[3]});
  const auto sample = static_cast<size_t>(heads.shape[2] * heads.shape[3]);
  const auto count = static_cast<size_t>(forward.sizes.heads);
  for (size_t i = 0; i < heads.data.size(); ++i)
    mean.data[i / (sample * count) * sample + i % sample] +=
        heads.data[i] / static_cast<double>(count);
  return mean;
}

OpGradients grad(const OpCall& call, const Array&, const Array& up) {
  Forward forward(call);
  const Called attention = forward.attention();
  const Array heads = attention.op.eval(attention.call());
  OpGradients result;
  result.params["out_proj.weight"] = Array(call.params.at("out_proj.weight")->shape);
  if (call.params.count("out_proj.bias"))
    result.params["out_proj.bias"] = Array({forward.sizes.width});
  Array to_heads(heads.shape);
  const bool weights = checked_result(call.attributes, 2) == 1;
  if (weights) {
    const auto sample = static_cast<size_t>(heads.shape[2] * heads.shape[3]);
    const auto count = static_cast<size_t>(forward.sizes.heads);
    for (size_t i = 0; i < heads.data.size(); ++i)
      to_heads.data[i] =
          up.data[i / (sample * count) * sample + i % sample] / static_cast<double>(count);
  } else {
    forward.joined = call.rounded(join_heads(heads, forward.sizes), "attended");
    const Called output = forward.output(call);
    OpGradients own = output.op.grad(output.call(), up, up);
    to_heads = split_heads(own.inputs[0], forward.sizes);
    result.params["out_proj.weight"] = std::move(own.inputs[1]);
    if (own.inputs.size() > 2) result.params["out_proj.bias"] = std::move(own.inputs[2]);
  }
  const OpGradients inner = attention.op.grad(attention.call(), heads, to_heads);
  Array weight(call.params.at("in_proj_weight")->shape), bias({3 * forward.sizes.width});
  for (size_t i = 0; i < 3; ++i) {
    if (i == 2 && weights) {  // the values have no part in the weights
      result.inputs.emplace_back(call.inputs[2]->shape);
      break;
    }
    const Array to_projected = join_heads(inner.inputs[i], forward.sizes);
    const Called linear = forward.linear(call, i);
    OpGradients own = linear.op.grad(linear.call(), to_projected, to_projected);
    result.inputs.push_back(std::move(own.inputs[0]));
    std::copy(own.inputs[1].data.begin(), own.inputs[1].data.end(),
              weight.data.begin() + static_cast<std::ptrdiff_t>(i * own.inputs[1].data.size()));
    std::copy(own.inputs[2].data.begin(), own.inputs[2].data.end(),
              bias.data.begin() + static_cast<std::ptrdiff_t>(i * own.inputs[2].data.size()));
  }
  result.params["in_proj_weight"] = std::move(weight);
  if (call.params.count("in_proj_bias")) result.params["in_proj_bias"] = std::move(bias);
  return result;
}

OpCost cost(const Value& attributes, const std::vector<Shape>& inputs, const Shape&) {
  const Sizes sizes(attributes);
  const int64_t batch = inputs[0][sizes.batch_first ? 0 : 1];
  const int64_t length = inputs[0][sizes.batch_first ? 1 : 0];
  const int64_t keys = inputs[1][sizes.batch_first ? 1 : 0];
  const int64_t scores = batch * length * keys;
  const int64_t macs =
      2 * batch * (length + keys) * sizes.width * sizes.width + 2 * scores * sizes.width;
  return {macs, 2 * macs + 3 * scores * sizes.heads};
}

std::vector<ProductPart> product_parts(const Value& attributes, const std::vector<Shape>& inputs) {
  const Sizes sizes(attributes);
  const int64_t width = sizes.width, batch = inputs[0][sizes.batch_first ? 0 : 1];
  const int64_t length = inputs[0][sizes.batch_first ? 1 : 0];
  const int64_t keys = inputs[1][sizes.batch_first ? 1 : 0];
  std::vector<ProductPart> parts;
  const auto project = [&](const char* data, const char* weight, const char* bias, int64_t first,
                           const Shape& in) {
    const int64_t values = element_count(in);  // as many as come out
    parts.push_back({data, weight, bias, first, width, in, {}, values * width, values});
  };
  for (size_t i = 0; i < 3; ++i)
    project("data_in", "in_proj_weight", "in_proj_bias", static_cast<int64_t>(i) * width,
            inputs[i]);
  const int64_t macs = batch * length * keys * width;
  const Shape query = {batch, length, width}, key = {batch, keys, width},
              shares = {batch, sizes.heads, length, keys};
  parts.push_back(
      {.data = "projected", .weight = "projected", .in = query, .other = key, .macs = macs});
  parts.push_back({.weight = "projected", .in = shares, .other = key, .macs = macs});
  project("attended", "out_proj.weight", "out_proj.bias", 0, query);
  return parts;
}

// softmax(q k^T / sqrt(E)) of every head: what each query takes of each key.
Slot attention_shares(Lowering& lowering, Slot q, Slot k, bool causal) {
  const Shape queries = lowering.shape(q), keys = lowering.shape(k);
  if (queries.size() != 4 || keys.size() != 4) return -1;
  const double scale = 1 / std::sqrt(static_cast<double>(queries[3]));
  Expr score = Expr::operand(0) * scale;
  std::vector<Slot> operands = {lowering.matmul(q, lowering.permute(k, {0, 1, 3, 2}))};
  if (causal) {
    std::vector<float> hidden;
    for (int64_t i = 0; i < queries[2]; ++i)
      for (int64_t j = 0; j < keys[2]; ++j)
        hidden.push_back(j > i ? -std::numeric_limits<float>::infinity() : 0.0f);
    operands.push_back(lowering.constant({queries[2], keys[2]}, hidden));
    score = score + Expr::operand(1);
  }
  return lowering.softmax(lowering.map(score, operands), -1, false);
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  const Sizes sizes(attributes);
  if (!sizes.batch_first) return -1;
  const auto weight = lowering.parameter("in_proj_weight"),
             bias = lowering.parameter("in_proj_bias");
  const int64_t each = sizes.width / sizes.heads;
  const bool shares = checked_result(attributes, 2) == 1;
  std::vector<Slot> parts;
  for (int64_t i = 0; i < (shares ? 2 : 3); ++i) {
    const Slot x = inputs[static_cast<size_t>(i)];
    const auto cut = [&](Slot joint) {
      return lowering.slice(joint, 0, i * sizes.width, 1, sizes.width);
    };
    const Slot projected =
        lowering.linear(x, cut(*weight), bias ? std::optional<Slot>(cut(*bias)) : std::nullopt);
    const Shape shape = lowering.shape(x);
    const Slot heads = lowering.reshape(projected, {shape[0], shape[1], sizes.heads, each});
    parts.push_back(lowering.rounded(lowering.permute(heads, {0, 2, 1, 3}), "projected"));
  }
  const bool causal = attributes["is_causal"].as_bool();
  if (shares) {
    const Slot weights = attention_shares(lowering, parts[0], parts[1], causal);
    return lowering.reduce(ReduceKind::mean, weights, {1}, false);
  }
  const OpRecord& attention = find_op("scaled_dot_product_attention");
  const Value options = validate(Value(Dict{{"is_causal", causal}}), attention.attributes, "");
  const Slot heads = attention.lower(lowering, options, parts);
  const Slot joined =
      lowering.reshape(lowering.permute(heads, {0, 2, 1, 3}), lowering.shape(inputs[0]));
  return lowering.linear(lowering.rounded(joined, "attended"),
                         *lowering.parameter("out_proj.weight"),
                         lowering.parameter("out_proj.bias"));
}

std::vector<ParamSpec> params(const Value& attributes) {
  const Sizes sizes(attributes);
  const int64_t width = sizes.width;
  const bool bias = attributes["bias"].as_bool();
  // Xavier's bound for the joint projection, Linear's for the last, as PyTorch begins.
  const double joint = std::sqrt(6.0 / static_cast<double>(4 * width));
  const double last = 1.0 / std::sqrt(static_cast<double>(width));
  std::vector<ParamSpec> specs = {{"in_proj_weight", {3 * width, width}, true, 0, joint}};
  if (bias) specs.push_back({"in_proj_bias", {3 * width}});
  specs.push_back({"out_proj.weight", {width, width}, true, 0, last});
  if (bias) specs.push_back({"out_proj.bias", {width}});
  return specs;
}

std::string repr(const Value& attributes) {
  return fmt::format(
      "\n  (out_proj): NonDynamicallyQuantizableLinear(in_features={0}, out_features={0}, "
      "bias={1})\n",
      attributes["embed_dim"].as_int(), attributes["bias"].as_bool() ? "True" : "False");
}

Field flag(const char* name, bool value, const char* help) {
  return {.name = name, .type = FieldType::boolean, .default_value = value, .help = help};
}

const Register<OpRecord> registered{{
    .name = "multihead_attention",
    .class_name = "MultiheadAttention",
    .mase_type = "module",
    .summary = "attention in several heads, with its projections",
    .attributes = {{{.name = "embed_dim",
                     .type = FieldType::integer,
                     .help = "features of query, key and value",
                     .required = true,
                     .minimum = 1},
                    {.name = "num_heads",
                     .type = FieldType::integer,
                     .default_value = 1,
                     .help = "heads the features are shared among",
                     .minimum = 1},
                    flag("bias", true, "add learned biases"),
                    flag("batch_first", false, "inputs are [N, L, E] and not [L, N, E]"),
                    flag("is_causal", false, "a position sees itself and earlier ones only"),
                    flag("need_weights", true,
                         "kept for PyTorch's form; weights that nobody "
                         "takes are not computed"),
                    result_field()}},
    .min_inputs = 3,
    .max_inputs = 3,
    .operands = {"data_in", "weight", "bias", "projected", "attended", "data_out"},
    .required_operands = {"data_in", "weight"},
    .operand_parts = {{"weight", {"in_proj_weight", "out_proj.weight"}},
                      {"bias", {"in_proj_bias", "out_proj.bias"}}},
    .results =
        ResultsInfo{.count = [](const Value&, const std::vector<Shape>&) { return int64_t{2}; }},
    .product_parts = product_parts,
    .params = params,
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost = cost,
    .repr = repr,
    .lower = lower,
    .complete =
        [](Dict& attributes, const std::vector<Shape>& inputs, int64_t) {
          if (!attributes.contains("embed_dim") && !inputs[0].empty())
            attributes.set("embed_dim", inputs[0].back());
          // Samples come first in networks that are described here: PyTorch's default would have
          // them attend to each other.
          if (!attributes.contains("batch_first")) attributes.set("batch_first", true);
        },
}};

}  // namespace
}  // namespace mase::multihead_attention_op
