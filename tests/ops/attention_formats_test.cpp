// SPDX-License-Identifier: Apache-2.0
// Number formats inside attention, against plain loops over tensors that are rounded one by one:
// every operand, blocks along what is summed up, grouped heads, masks that no format touches, and
// training straight through the roundings.
#include <cmath>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/op.h"
#include "mase/passes/pass.h"
#include "support/support.h"

namespace mase::attention_formats_test {
namespace {

struct Case {
  int64_t heads = 2, key_heads = 2, length = 6, keys = 6, width = 8;
  bool causal = false, masked = false;
};

Tensor drawn(const Shape& shape, uint64_t seed, const char* name) {
  Random random(seed, name);
  Tensor tensor(shape);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    tensor.mutable_data<float>()[i] = static_cast<float>(random.normal());
  return tensor;
}

struct Network {
  Graph graph;
  std::vector<Tensor> inputs;
  std::string node;
};

Network attention(const Case& c, uint64_t seed) {
  Network net;
  const int64_t batch = 3;
  const NodeId q = net.graph.add_placeholder("q", {c.heads, c.length, c.width}),
               k = net.graph.add_placeholder("k", {c.key_heads, c.keys, c.width}),
               v = net.graph.add_placeholder("v", {c.key_heads, c.keys, c.width});
  net.inputs = {drawn({batch, c.heads, c.length, c.width}, seed, "q"),
                drawn({batch, c.key_heads, c.keys, c.width}, seed, "k"),
                drawn({batch, c.key_heads, c.keys, c.width}, seed, "v")};
  std::vector<Argument> args = {Argument::node(q), Argument::node(k), Argument::node(v)};
  if (c.masked) {
    args.push_back(Argument::node(net.graph.add_placeholder("mask", {1, 1, c.keys})));
    Tensor mask({batch, 1, 1, c.keys});
    for (int64_t i = 0; i < mask.numel(); ++i)  // the last key of every second row is hidden
      mask.mutable_data<float>()[i] =
          i % c.keys == c.keys - 1 && i / c.keys % 2 == 0 ? -3.4028235e38f : 0.0f;
    net.inputs.push_back(mask);
  }
  std::vector<std::pair<std::string, Argument>> named;
  if (c.causal) named.emplace_back("is_causal", Argument::literal(true));
  const NodeId out = net.graph.call_function("scaled_dot_product_attention", args, named);
  net.node = net.graph.node(out).name;
  net.graph.add_output({out});
  return net;
}

void set_formats(Network& net, const Value& config) {
  PassContext context;
  run_pass(net.graph, "quantize",
           Dict{{"by", "type"}, {"scaled_dot_product_attention", Dict{{"config", config}}}},
           context);
}

// softmax(q k' scale) v in plain loops, each tensor rounded when it is there.
Tensor by_hand(const Case& c, const Network& net, const Quantization& formats) {
  const auto as = [&](const Tensor& tensor, const char* operand) {
    const Quantizer* quantizer = formats.find(operand);
    return quantizer ? quantize(*quantizer, tensor) : tensor;
  };
  const Tensor q = as(as(net.inputs[0], "data_in"), "query"),
               k = as(as(net.inputs[1], "data_in"), "key"),
               v = as(as(net.inputs[2], "data_in"), "value");
  const int64_t batch = q.dim(0);
  const auto at = [&](int64_t b, int64_t h, int64_t i, int64_t j, int64_t rows, int64_t columns,
                      int64_t heads) { return ((b * heads + h) * rows + i) * columns + j; };
  Tensor scores({batch, c.heads, c.length, c.keys}), out({batch, c.heads, c.length, c.width});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.length; ++i)
        for (int64_t j = 0; j < c.keys; ++j) {
          double sum = 0;
          for (int64_t e = 0; e < c.width; ++e)
            sum += q.item(at(b, h, i, e, c.length, c.width, c.heads)) *
                   k.item(at(b, h * c.key_heads / c.heads, j, e, c.keys, c.width, c.key_heads));
          scores.mutable_data<float>()[at(b, h, i, j, c.length, c.keys, c.heads)] =
              static_cast<float>(sum / std::sqrt(static_cast<double>(c.width)));
        }
  scores = as(scores, "scores");
  float* shares = scores.mutable_data<float>();
  for (int64_t row = 0; row < scores.numel() / c.keys; ++row) {
    double sum = 0;
    std::vector<double> each;
    for (int64_t j = 0; j < c.keys; ++j) {
      const int64_t b = row / (c.heads * c.length);
      const bool hidden =
          (c.causal && j > row % c.length) || (c.masked && net.inputs[3].item(b * c.keys + j) < 0);
      each.push_back(hidden ? 0 : std::exp(double{shares[row * c.keys + j]}));
      sum += each.back();
    }
    for (int64_t j = 0; j < c.keys; ++j)
      shares[row * c.keys + j] = static_cast<float>(each[static_cast<size_t>(j)] / sum);
  }
  const Tensor taken = as(scores, "shares");
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < c.length; ++i)
        for (int64_t f = 0; f < c.width; ++f) {
          double sum = 0;
          for (int64_t j = 0; j < c.keys; ++j)
            sum += taken.item(at(b, h, i, j, c.length, c.keys, c.heads)) *
                   v.item(at(b, h * c.key_heads / c.heads, j, f, c.keys, c.width, c.key_heads));
          out.mutable_data<float>()[at(b, h, i, f, c.length, c.width, c.heads)] =
              static_cast<float>(sum);
        }
  return as(out, "data_out");
}

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.numel(), b.numel());
  double worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) worst = std::max(worst, std::fabs(a.item(i) - b.item(i)));
  return worst;
}

std::vector<Value> configs() {
  std::vector<Value> all;
  const auto add = [&](const char* text) { all.push_back(parse_toml(text, "config")); };
  add("name = \"integer\"\nquery_width = 6\nquery_frac_width = 3\nkey_width = 5\n"
      "key_frac_width = 2\nvalue_width = 6\nvalue_frac_width = 3\nscores_width = 6\n"
      "scores_frac_width = 3\nshares_width = 5\nshares_frac_width = 5\nshares_is_signed = false\n");
  add("name = \"integer\"\nkey_width = 4\nkey_frac_width = 1\n");
  add("name = \"integer\"\nscores_width = 5\nscores_frac_width = 2\n");
  add("name = \"integer\"\nshares_width = 4\nshares_frac_width = 4\n");
  add("name = \"integer\"\ndata_in_width = 4\ndata_in_frac_width = 1\ndata_out_width = 6\n"
      "data_out_frac_width = 3\n");
  add("name = \"mxint\"\nquery_width = 4\nquery_block_size = 4\nkey_width = 4\n"
      "key_block_size = 4\nvalue_width = 4\nvalue_block_size = 4\nshares_width = 5\n"
      "shares_block_size = 4\n");
  add("name = \"scale_integer\"\nvalue_width = 4\nscores_width = 6\n");
  return all;
}

TEST(AttentionFormats, RoundWhatTheySay) {
  const std::vector<Case> cases = {{},
                                   {.heads = 4, .key_heads = 2},
                                   {.causal = true},
                                   {.masked = true},
                                   {.heads = 4, .key_heads = 2, .causal = true, .masked = true}};
  uint64_t seed = 0;
  for (const Case& c : cases)
    for (const Value& config : configs()) {
      SCOPED_TRACE(fmt::format("heads {} keys {} causal {} masked {}\n{}", c.heads, c.key_heads,
                               c.causal, c.masked, to_toml(config)));
      Network net = attention(c, ++seed);
      const Tensor plain = run(net.graph, net.inputs).at(0);
      set_formats(net, config);
      const Quantization& formats = net.graph.find(net.node)->quantization;
      const Tensor wanted = by_hand(c, net, formats);
      std::vector<Array> arrays;
      for (const Tensor& input : net.inputs) arrays.push_back(Array::from(input));
      const Tensor reference = evaluate(net.graph, arrays).front().to_tensor();
      const Tensor engine = run(net.graph, net.inputs).at(0);
      EXPECT_LT(largest_difference(reference, wanted), 1e-5);
      EXPECT_LT(largest_difference(engine, wanted), 1e-5);
      EXPECT_GT(largest_difference(plain, wanted), 1e-3);  // the formats are coarse
    }
}

TEST(AttentionFormats, BlocksOfValuesRunAlongTheSequence) {
  Network net = attention({}, 1);
  set_formats(net, parse_toml("name = \"mxint\"\nvalue_width = 4\nkey_width = 4\n", "c"));
  const Quantization& formats = net.graph.find(net.node)->quantization;
  EXPECT_EQ(formats.find("value")->config["axis"], Value(-2));
  EXPECT_EQ(formats.find("key")->config["axis"], Value(-1));
  set_formats(net, parse_toml("name = \"mxint\"\nvalue_width = 4\nvalue_axis = -1\n", "c"));
  EXPECT_EQ(net.graph.find(net.node)->quantization.find("value")->config["axis"], Value(-1));
}

TEST(AttentionFormats, GradientsPassStraightThrough) {
  // q is a projection that is trained; the difference quotient of the loss with shares as they are
  // rounded cannot be taken, so gradients are held to those of formats that are nearly exact.
  const auto gradient = [](int width) {
    Graph graph;
    const NodeId x = graph.add_placeholder("x", {4, 8});
    const NodeId q =
        graph.add_module("q",
                         make_module("linear",
                                     validate(Value(Dict{{"in_features", 8}, {"out_features", 8}}),
                                              find_op("linear").attributes, "q"),
                                     3, "q"),
                         {x});
    const NodeId y = graph.call_function("scaled_dot_product_attention",
                                         {Argument::node(q), Argument::node(x), Argument::node(x)});
    graph.add_output({y});
    if (width > 0) {
      Dict config{{"name", "integer"}};
      for (const char* operand : {"query", "key", "value", "scores", "shares"}) {
        config.set(fmt::format("{}_width", operand), width);
        config.set(fmt::format("{}_frac_width", operand), width - 5);
      }
      PassContext context;
      run_pass(
          graph, "quantize",
          Dict{{"by", "type"}, {"scaled_dot_product_attention", Dict{{"config", Value(config)}}}},
          context);
    }
    CompileOptions options;
    options.training = true;
    options.batch_size = 5;
    options.loss = {"mse", TargetKind::numbers, [](Lowering& to, Slot output, Slot target) {
                      const Expr d = Expr::operand(0) - Expr::operand(1);
                      return to.batch_mean(to.reduce(
                          ReduceKind::mean, to.map(d * d, {output, target}), {1, 2}, false));
                    }};
    Program program = Program::compile(graph, options);
    const Tensor rows = drawn({5, 4, 8}, 7, "rows"), target = drawn({5, 4, 8}, 8, "target");
    Batch batch;
    batch.inputs = {rows};
    batch.target = RowTensor(target, "target");
    batch.size = 5;
    program.forward_backward(batch);
    return std::vector<float>(program.parameters().at(0).gradient.begin(),
                              program.parameters().at(0).gradient.end());
  };
  const std::vector<float> plain = gradient(0), fine = gradient(22), coarse = gradient(6);
  double largest = 0, from_fine = 0, from_coarse = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    largest = std::max(largest, std::fabs(double{plain[i]}));
    from_fine = std::max(from_fine, std::fabs(double{plain[i]} - fine[i]));
    from_coarse = std::max(from_coarse, std::fabs(double{plain[i]} - coarse[i]));
  }
  EXPECT_GT(largest, 1e-4);
  EXPECT_LT(from_fine, 1e-3 * largest);
  EXPECT_GT(from_coarse, 1e-3 * largest);
  EXPECT_LT(from_coarse, 2 * largest);
}

}  // namespace
}  // namespace mase::attention_formats_test
