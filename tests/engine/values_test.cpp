// SPDX-License-Identifier: Apache-2.0
// Programs of graphs with constants, several results and methods against the reference, forward and
// backward.
#include <array>

#include "engine/against_reference.h"
#include "mase/ir/value_type.h"

namespace mase::values_test {
namespace {

Argument at(NodeId id) { return Argument::node(id); }
Argument number(int64_t value) { return Argument::literal(value); }

NodeId linear(Graph& graph, const std::string& path, NodeId x, int64_t in, int64_t out) {
  return graph.add_module(
      path, make_module("linear", Dict{{"in_features", in}, {"out_features", out}}, 1, path), {x});
}

void expect_both(const Graph& graph) {
  for (const int64_t batch : {1, 6}) {
    expect_inference(graph, batch, graph.name);
    expect_gradients(graph, batch, batch, graph.name);
  }
  expect_gradients(graph, 6, 4, graph.name);  // fewer than it was compiled for
}

TEST(Values, ConstantsAreTrainedWhereTheyAreParameters) {
  Graph graph;
  graph.name = "constants";
  const NodeId x = graph.add_placeholder("x", {5, 4});
  NodeId y = linear(graph, "first", x, 4, 4);
  Tensor positions({5, 4});
  for (int64_t i = 0; i < 20; ++i)
    positions.mutable_data<float>()[i] = static_cast<float>(i) / 10 - 1;
  y = graph.call_function("add", {at(y), at(graph.add_constant("positions", positions, true))});
  const NodeId mask = graph.add_constant(
      "mask", Tensor::of<int64_t>({1, 5, 1}, std::array<int64_t, 5>{1, 0, 1, 1, 0}));
  y = graph.call_function("mul", {at(y), at(mask)});
  // The weight of a layer read as a value: tied weights.
  const NodeId tied = graph.get_attr("first.weight");
  y = graph.call_function("matmul", {at(y), at(tied)});
  y = graph.call_function("flatten", {at(y), number(1)});
  graph.add_output({linear(graph, "head", y, 20, 3)});
  expect_both(graph);
}

TEST(Values, SeveralResults) {
  Graph graph;
  graph.name = "several";
  const NodeId x = graph.add_placeholder("x", {6, 5});
  NodeId y = linear(graph, "first", x, 5, 8);
  const NodeId parts = graph.call_method("chunk", {at(y), number(2), number(-1)});
  const NodeId gate = graph.call_function("sigmoid", {at(graph.result_of(parts, 1))});
  y = graph.call_function("mul", {at(graph.result_of(parts, 0)), at(gate)});
  const NodeId split =
      graph.call_function("split", {at(y), Argument::literal(List{2, 3, 1})}, {{"dim", number(1)}});
  const NodeId best = graph.call_function("max", {at(graph.result_of(split, 1)), number(1)});
  const NodeId least = graph.call_function("min", {at(graph.result_of(split, 0)), number(1)});
  const NodeId top = graph.call_function("topk", {at(y), number(2)}, {{"dim", number(1)}});
  const NodeId tops = graph.call_method("flatten", {at(graph.result_of(top, 0)), number(1)});
  const NodeId all = graph.call_function(
      "cat", {Argument::list({at(graph.result_of(best, 0)), at(graph.result_of(least, 0)),
                              at(graph.result_of(best, 1)), at(tops)}),
              number(1)});
  graph.add_output({linear(graph, "head", all, 20, 3)});
  expect_both(graph);
}

// Where the extremes of a dimension stand is found lane by lane; of equal ones the first, and the
// first NaN before all.
TEST(Values, PlacesOfExtremes) {
  for (const char* op : {"max", "min"}) {
    Graph graph;
    graph.name = op;
    const NodeId x = graph.add_placeholder("x", {4, 5});
    const NodeId kept =
        graph.call_function(op, {at(x), number(1)}, {{"keepdim", Argument::literal(true)}});
    const NodeId last = graph.call_function(op, {at(x), number(-1)});
    graph.add_output({graph.result_of(kept, 1), graph.result_of(last, 1)});
    const std::string steps = Program::compile(graph, {}).dump();
    EXPECT_EQ(steps.find("call"), std::string::npos) << steps;
    Tensor rows({7, 4, 5});
    Random random(3, "places");
    for (int64_t i = 0; i < rows.numel(); ++i)
      rows.mutable_data<float>()[i] =
          random.below(12) == 0 ? NAN : static_cast<float>(random.below(4));
    const std::vector<Tensor> got = run(graph, {rows});
    const std::vector<Array> wanted = evaluate(graph, {Array::from(rows)});
    for (size_t k = 0; k < 2; ++k) {
      ASSERT_EQ(got[k].shape(), wanted[k].shape);
      for (int64_t i = 0; i < got[k].numel(); ++i)
        EXPECT_EQ(got[k].item(i), wanted[k].data[static_cast<size_t>(i)]) << op << " " << i;
    }
  }
}

TEST(Values, MethodsAndSizes) {
  Graph graph;
  graph.name = "methods";
  const NodeId x = graph.add_placeholder("x", {3, 4, 2});
  NodeId y = linear(graph, "first", x, 2, 2);
  const NodeId batch = graph.call_method("size", {at(y), number(0)});
  y = graph.call_method("permute", {at(y), number(0), number(2), number(3), number(1)});
  y = graph.call_method("contiguous", {at(y)});
  y = graph.call_method("view", {at(y), at(batch), number(-1)});
  const Value some = Dict{{"slice", List{1, Value(), 2}}};
  y = graph.call_function("getitem", {at(y), Argument::literal(List{"...", some, "None"})});
  y = graph.call_method("squeeze", {at(y), number(2)});
  graph.add_output({linear(graph, "head", y, 12, 3)});
  resolve_sizes(graph);
  expect_both(graph);
}

TEST(Values, MultiheadAttention) {
  for (const bool first : {true, false}) {
    Graph graph;
    graph.name = "attention";
    const NodeId x = graph.add_placeholder("x", {5, 4});
    const NodeId y = linear(graph, "first", x, 4, 4);
    const NodeId z = graph.call_method("contiguous", {at(y)});
    const Dict sizes{{"embed_dim", 4}, {"num_heads", 2}, {"batch_first", first}};
    const NodeId attention =
        graph.add_module("attn", make_module("multihead_attention", sizes, 2, "attn"), {y, z, z});
    NodeId all = graph.result_of(attention, 0);
    if (first) {  // the weights of attention too
      const NodeId weights =
          graph.call_method("sum", {at(graph.result_of(attention, 1)), number(1)});
      const NodeId row = graph.call_method("unsqueeze", {at(weights), number(2)});
      all = graph.call_function("mul", {at(all), at(row)});
    }
    all = graph.call_function("flatten", {at(all), number(1)});
    graph.add_output({linear(graph, "head", all, 20, 3)});
    if (first) {
      expect_both(graph);
    } else {  // [L, N, E]: the batch attends to itself
      for (const int64_t batch : {2, 6}) expect_inference(graph, batch, graph.name);
    }
  }
}

// Four heads share the keys of two, under masks for all heads or for each; one query sees nothing.
TEST(Values, GroupedQueriesUnderMasks) {
  constexpr int64_t length = 9, each = 4;
  for (const Shape& sizes : {Shape{length, length}, Shape{1, length, length},
                             Shape{4, length, length}, Shape{1, 4, length, length}})
    for (const bool causal : {false, true}) {
      Graph graph;
      graph.name = "grouped " + shape_text(sizes);
      const NodeId x = graph.add_placeholder("x", {length, 6});
      const auto heads = [&](const std::string& path, int64_t count) {
        NodeId y = linear(graph, path, x, 6, count * each);
        y = graph.call_method("view",
                              {at(y), number(-1), number(length), number(count), number(each)});
        return graph.call_method("permute", {at(y), number(0), number(2), number(1), number(3)});
      };
      const NodeId q = heads("q", 4), k = heads("k", 2), v = heads("v", 2);
      Tensor mask(sizes);
      float* values = mask.mutable_data<float>();
      for (int64_t i = 0; i < mask.numel(); ++i) {
        const int64_t query = i / length % length;
        values[i] = query == 3 || i % 7 == 5 ? -INFINITY : static_cast<float>(i % 5) / 4;
      }
      NodeId y = graph.call_function("scaled_dot_product_attention",
                                     {at(q), at(k), at(v), at(graph.add_constant("mask", mask))},
                                     {{"is_causal", Argument::literal(causal)}});
      y = graph.call_function("flatten", {at(y), number(1)});
      graph.add_output({linear(graph, "head", y, 4 * length * each, 3)});
      expect_both(graph);
      CompileOptions options;
      options.batch_size = 2;
      EXPECT_EQ(Program::compile(graph, options).dump().find("  call "), std::string::npos);
    }
}

// Sizes that are no sums of batches are computed by the ops themselves, for any batch.
TEST(Values, HalvesOfTheBatch) {
  Graph graph;
  graph.name = "halves";
  const NodeId x = graph.add_placeholder("x", {4});
  NodeId y = linear(graph, "first", x, 4, 3);
  const NodeId halves = graph.call_function("chunk", {at(y), number(2), number(0)});
  const NodeId first = graph.call_function("relu", {at(graph.result_of(halves, 0))});
  y = graph.call_function("cat", {Argument::list({at(first), at(graph.result_of(halves, 1))})});
  graph.add_output({y});
  for (const int64_t batch : {4, 10}) expect_inference(graph, batch, graph.name);
}

TEST(Values, LargeWholeNumbersAreRefused) {
  Graph graph;
  graph.name = "large";
  const NodeId x = graph.add_placeholder("x", {1});
  const NodeId big =
      graph.add_constant("big", Tensor::of<int64_t>({1}, std::array<int64_t, 1>{(1 << 24) + 1}));
  graph.add_output({graph.call_function("add", {at(x), at(big)})});
  verify(graph);
  EXPECT_THROW(Program::compile(graph, {}), Error);
}

}  // namespace
}  // namespace mase::values_test
