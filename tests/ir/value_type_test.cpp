// SPDX-License-Identifier: Apache-2.0
// Types of values: the batch as a symbol, elements, constants, several results, methods, and files
// of the version before them.
#include "mase/ir/value_type.h"

#include <array>

#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/evaluate.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase::value_type_test {
namespace {

Argument at(NodeId id) { return Argument::node(id); }
Argument number(int64_t value) { return Argument::literal(value); }

std::vector<std::string> texts(const Graph& graph, NodeId id) {
  std::vector<std::string> result;
  const auto types = infer_types(graph);
  for (const ValueType& type : types[static_cast<size_t>(id)]) result.push_back(type.text());
  return result;
}
using Texts = std::vector<std::string>;

// What a graph that is no more than these nodes complains of.
std::string fault(const Graph& graph) {
  try {
    verify(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ValueType, TheBatchIsASymbol) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {4, 6});
  EXPECT_EQ(texts(graph, x), Texts{"float32[N, 4, 6]"});
  const NodeId flat = graph.call_function("flatten", {at(x), number(1)});
  EXPECT_EQ(texts(graph, flat), Texts{"float32[N, 24]"});
  const NodeId rows = graph.call_function("flatten", {at(x), number(0), number(1)});
  EXPECT_EQ(texts(graph, rows), Texts{"float32[4N, 6]"});
  const NodeId both = graph.call_function("cat", {Argument::list({at(x), at(x)})});
  EXPECT_EQ(texts(graph, both), Texts{"float32[2N, 4, 6]"});
  const NodeId turned = graph.call_function("transpose", {at(x), number(0), number(2)});
  EXPECT_EQ(texts(graph, turned), Texts{"float32[6, 4, N]"});
  const NodeId total = graph.call_function("sum", {at(x), number(0)});
  EXPECT_EQ(texts(graph, total), Texts{"float32[4, 6]"});
  const NodeId most = graph.call_function(
      "getitem", {at(x), Argument::literal(Dict{{"slice", List{1, Value(), Value()}}})});
  EXPECT_EQ(texts(graph, most), Texts{"float32[N - 1, 4, 6]"});
  const NodeId halves = graph.call_function("chunk", {at(x), number(2), number(0)});
  EXPECT_EQ(texts(graph, halves), Texts{});  // half the batch is no such sum
  EXPECT_EQ(texts(graph, graph.call_function("relu", {at(graph.result_of(halves, 0))})), Texts{});
}

TEST(ValueType, AgreesWithTheShapesOfEverySize) {
  for (const char* name : {"jsc-tiny", "lenet", "resnet18", "bert-tiny", "llama-tiny"}) {
    const Graph graph = make_model(name, {.values = false});
    const auto types = infer_types(graph);
    for (const int64_t batch : {1, 2, 7}) {
      const std::vector<Shape> shapes = infer_shapes(graph, batch);
      for (const NodeId id : graph.order()) {
        if (graph.node(id).kind == NodeKind::output) continue;
        const auto& own = types[static_cast<size_t>(id)];
        ASSERT_EQ(own.size(), 1u) << name << " " << graph.node(id).name;
        EXPECT_TRUE(own[0].is_sample_by_sample() || own[0].is_fixed()) << own[0].text();
        EXPECT_EQ(own[0].at(batch), shapes[static_cast<size_t>(id)]) << own[0].text();
      }
    }
  }
}

TEST(ValueType, Elements) {
  const Graph llama = make_model("llama-tiny", {.values = false});
  EXPECT_EQ(texts(llama, llama.placeholders()[0]), Texts{"int64[N, 64]"});

  Graph graph;
  const NodeId x = graph.add_placeholder("x", {5});
  const NodeId i = graph.add_placeholder("i", {5}, DType::i64);
  const auto element = [&](NodeId id) {
    return infer_types(graph)[static_cast<size_t>(id)][0].element;
  };
  const NodeId above = graph.call_function("gt", {at(x), number(0)});
  EXPECT_EQ(element(above), DType::boolean);
  EXPECT_EQ(element(graph.call_function("add", {at(i), at(i)})), DType::i64);
  EXPECT_EQ(element(graph.call_function("add", {at(i), at(above)})), DType::i64);
  EXPECT_EQ(element(graph.call_function("mul", {at(i), at(x)})), DType::f32);
  EXPECT_EQ(element(graph.call_function("mul", {at(i), Argument::literal(0.5)})), DType::f32);
  EXPECT_EQ(element(graph.call_function("add", {at(above), number(1)})), DType::i64);
  EXPECT_EQ(element(graph.call_function("div", {at(i), number(2)})), DType::f32);
  EXPECT_EQ(element(graph.call_function("argmax", {at(x), number(1)})), DType::i64);
  const NodeId best = graph.call_function("max", {at(x), number(1)});
  EXPECT_EQ(texts(graph, best), (Texts{"float32[N]", "int64[N]"}));
  EXPECT_EQ(element(graph.result_of(best, 1)), DType::i64);

  const NodeId picked = graph.call_function("gather", {at(x), number(1), at(i)});
  graph.add_output({picked});
  EXPECT_EQ(fault(graph), "");
  graph.node(i).element = DType::f32;
  EXPECT_NE(fault(graph).find("takes whole numbers, and 'i' is float32"), std::string::npos);
}

Graph with_constants() {
  Graph graph;
  graph.name = "constants";
  const NodeId x = graph.add_placeholder("x", {2, 3});
  const NodeId shift =
      graph.add_constant("shift", Tensor::of({3}, std::vector<float>{1, 2, 3}), true);
  const NodeId places =
      graph.add_constant("body.places", Tensor::of<int64_t>({2}, std::array<int64_t, 2>{1, 0}));
  const NodeId moved = graph.call_function("add", {at(x), at(shift)});
  const NodeId scaled = graph.call_method("unsqueeze", {at(places), number(1)});
  graph.add_output({graph.call_function("mul", {at(moved), at(scaled)})});
  return graph;
}

TEST(Constants, ArePrintedSavedAndRead) {
  const Graph graph = with_constants();
  verify(graph);
  EXPECT_EQ(graph.text(), R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %shift : [num_users=1] = get_attr[target=shift]
    %body_places : [num_users=1] = get_attr[target=body.places]
    %add : [num_users=1] = call_function[target=operator.add](args = (%x, %shift), kwargs = {})
    %unsqueeze : [num_users=1] = call_method[target=unsqueeze](args = (%body_places, 1), kwargs = {})
    %mul : [num_users=1] = call_function[target=operator.mul](args = (%add, %unsqueeze), kwargs = {})
    return mul
)");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_dict(graph)) names.push_back(name);
  EXPECT_EQ(names, (Texts{"shift", "body.places"}));
  EXPECT_EQ(graph.parameter_count(), 3);

  const std::string folder = test::temporary_folder();
  save_mz(folder + "/constants.mz", graph);
  const Checkpoint read = load_checkpoint(folder + "/constants.mz");
  EXPECT_EQ(read.graph->text(), graph.text());
  EXPECT_EQ(graph_to_value(*read.graph), graph_to_value(graph));
  EXPECT_TRUE(read.graph->tensor("shift")->same_bits(*graph.tensor("shift")));
  EXPECT_TRUE(read.graph->tensor("body.places")->same_bits(*graph.tensor("body.places")));

  Array x({1, 2, 3});
  for (size_t i = 0; i < 6; ++i) x.data[i] = static_cast<double>(i);
  EXPECT_EQ(evaluate(*read.graph, {x})[0].data, (std::vector<double>{1, 3, 5, 0, 0, 0}));
}

TEST(Constants, FaultsAreNamed) {
  Graph graph = with_constants();
  graph.modules().at("body").buffers.clear();
  EXPECT_NE(fault(graph).find("body_places: reads 'body.places', which no module has"),
            std::string::npos);
  graph = with_constants();
  graph.modules().at("body").buffers.emplace_back("idle", Tensor());
  EXPECT_NE(fault(graph).find("body: nothing uses parameter 'idle'"), std::string::npos);
  graph = with_constants();
  graph.modules()["empty"];
  EXPECT_NE(fault(graph).find("empty: no node calls this module"), std::string::npos);
}

TEST(Constants, GoWithTheLastNodeThatReadsThem) {
  Graph graph = with_constants();
  const NodeId again = graph.get_attr("shift");
  EXPECT_EQ(graph.node(again).name, "shift_1");
  graph.erase(again);
  EXPECT_TRUE(graph.tensor("shift"));
  graph.replace_uses(graph.find("shift")->id, graph.find("x")->id);
  graph.erase(graph.find("shift")->id);
  EXPECT_FALSE(graph.tensor("shift"));
  EXPECT_EQ(graph.modules().count(""), 0u);
}

TEST(SeveralResults, ArePickedByNumber) {
  Graph graph;
  graph.name = "several";
  const NodeId x = graph.add_placeholder("x", {5});
  const NodeId parts = graph.call_method("chunk", {at(x), number(2)}, {{"dim", number(1)}});
  const NodeId first = graph.result_of(parts, 0), last = graph.result_of(parts, -1);
  const NodeId best = graph.call_function("max", {at(first)}, {{"dim", number(1)}});
  graph.add_output({graph.result_of(best, 0), graph.result_of(best, 1), last});
  verify(graph);
  EXPECT_EQ(texts(graph, parts), (Texts{"float32[N, 3]", "float32[N, 2]"}));
  Array row({1, 5});
  row.data = {3, 7, 5, 1, 2};
  const std::vector<Array> results = evaluate(graph, {row});
  EXPECT_EQ(results[0].data, std::vector<double>{7});
  EXPECT_EQ(results[1].data, std::vector<double>{1});
  EXPECT_EQ(results[2].data, (std::vector<double>{1, 2}));
  EXPECT_EQ(graph_from_value(graph_to_value(graph)).text(), graph.text());
  EXPECT_NE(graph.text().find("%max_1 : [num_users=2] = call_function[target=torch.max]"
                              "(args = (%getitem,), kwargs = {dim: 1})"),
            std::string::npos);
  graph.node(last).args[1] = number(2);
  EXPECT_NE(fault(graph).find("getitem_1: result 2 of 2"), std::string::npos);
  graph.node(last).target = "relu";
  graph.node(last).args.pop_back();
  EXPECT_NE(fault(graph).find("getitem_1: takes 'chunk', which has several results"),
            std::string::npos);
}

TEST(Methods, TakeSizesAsPyTorchGivesThem) {
  Graph graph;
  graph.name = "methods";
  const NodeId x = graph.add_placeholder("x", {2, 3});
  const NodeId batch = graph.call_method("size", {at(x), number(0)});
  const NodeId width = graph.call_method("size", {at(x), number(-1)});
  const NodeId turned = graph.call_method("permute", {at(x), number(0), number(2), number(1)});
  const NodeId whole = graph.call_method("contiguous", {at(turned)});
  const NodeId flat = graph.call_method("view", {at(whole), at(batch), number(-1)});
  const NodeId again = graph.call_method("reshape", {at(flat), number(-1), number(2), at(width)});
  graph.add_output({flat, again});
  EXPECT_NE(fault(graph).find("the size is not resolved"), std::string::npos);
  resolve_sizes(graph);
  verify(graph);
  EXPECT_EQ(texts(graph, flat), Texts{"float32[N, 6]"});
  EXPECT_EQ(texts(graph, again), Texts{"float32[N, 2, 3]"});
  EXPECT_NE(graph.text().find("call_method[target=view](args = (%contiguous, %size, -1)"),
            std::string::npos);
  Array input({2, 2, 3});
  for (size_t i = 0; i < 12; ++i) input.data[i] = static_cast<double>(i);
  const Array result = evaluate(graph, {input})[0];
  EXPECT_EQ(std::vector<double>(result.data.begin(), result.data.begin() + 6),
            (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(graph_from_value(graph_to_value(graph)).text(), graph.text());
  const NodeId share = graph.call_function("div", {at(x), at(batch)});
  EXPECT_THROW(bind_call(graph, graph.node(share)), Error);  // the mean over any batch
  graph.erase(share);
  graph.node(width).size = 4;
  EXPECT_NE(fault(graph), "");
}

TEST(GetItem, PrintsAsPython) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {4, 6});
  const Value all = Dict{{"slice", List{Value(), Value(), Value()}}};
  graph.add_output({graph.call_function("getitem", {at(x), Argument::literal(List{all, 0})})});
  verify(graph);
  EXPECT_NE(graph.text().find("call_function[target=operator.getitem](args = (%x, "
                              "(slice(None, None, None), 0)), kwargs = {})"),
            std::string::npos);
}

// Written by the program before graphs had types.
TEST(OldFiles, Load) {
  const Checkpoint old = load_checkpoint(test::golden_path("graphs/version1.mz"));
  const Graph& graph = *old.graph;
  EXPECT_EQ(texts(graph, graph.placeholders()[0]), Texts{"int64[N, 6]"});
  EXPECT_EQ(texts(graph, graph.outputs()[0]), Texts{"float32[N, 3]"});
  EXPECT_EQ(graph.quantization_of(*graph.find("fc1")).format(), "integer");
  const std::string folder = test::temporary_folder();
  save_mz(folder + "/new.mz", graph);
  const Checkpoint saved = load_checkpoint(folder + "/new.mz");
  EXPECT_EQ(graph_to_value(*saved.graph), graph_to_value(graph));
  for (const auto& [name, tensor] : state_dict(graph))
    EXPECT_TRUE(saved.graph->tensor(name)->same_bits(tensor)) << name;
}

TEST(ValueType, NumbersPromoteWhereTheyAreOperands) {
  Graph graph;
  const NodeId x = graph.add_placeholder("x", {5});
  graph.node(x).element = DType::i64;
  const auto call = [&](const char* op, const char* name, const Value& value) {
    return graph.call_function(op, {at(x)}, {{name, Argument::literal(value)}});
  };
  EXPECT_EQ(texts(graph, call("clamp", "min", 1)), Texts{"int64[N, 5]"});
  EXPECT_EQ(texts(graph, call("clamp", "min", 0.5)), Texts{"float32[N, 5]"});
  EXPECT_EQ(texts(graph, call("clamp", "max", 2.5)), Texts{"float32[N, 5]"});
  EXPECT_EQ(texts(graph, graph.call_function("add", {at(x), Argument::literal(1.5)})),
            Texts{"float32[N, 5]"});
  // What fills is no operand: tokens stay tokens.
  const NodeId padded = call("pad", "pad", List{1, 2});
  EXPECT_EQ(texts(graph, padded), Texts{"int64[N, 8]"});
  const NodeId filled = graph.call_function("pad", {at(x), Argument::literal(List{1, 2})},
                                            {{"value", Argument::literal(0.5)}});
  graph.add_output({filled});
  EXPECT_EQ(fault(graph), fmt::format("{}: value is 0.5, the elements are int64; give a whole "
                                      "number",
                                      graph.node(filled).name));
}

TEST(ValueType, MoreDimensionsThanAValueHasAreRefused) {
  for (const size_t rank : {largest_rank, largest_rank + 1}) {
    Graph graph;
    const NodeId x = graph.add_placeholder("x", {6, 4});
    Shape sizes(rank, 1);
    sizes[0] = -1;
    sizes[rank - 2] = 6;
    sizes[rank - 1] = 4;
    NodeId y = graph.call_function("reshape", {at(x), Argument::literal(Value::of(sizes))});
    std::vector<int64_t> order(rank);
    for (size_t i = 0; i < rank; ++i) order[i] = static_cast<int64_t>(i);
    std::swap(order[rank - 2], order[rank - 1]);
    y = graph.call_function("permute", {at(y), Argument::literal(Value::of(order))});
    y = graph.call_function("flatten", {at(y), number(1)});
    graph.add_output({y});
    if (rank > largest_rank) {
      EXPECT_NE(fault(graph).find("has 17 dimensions; values have at most 16"), std::string::npos)
          << fault(graph);
      EXPECT_THROW(run(graph, {Tensor({2, 6, 4})}), Error);
      continue;
    }
    EXPECT_EQ(fault(graph), "");
    Tensor values({2, 6, 4});
    for (int64_t i = 0; i < values.numel(); ++i)
      values.mutable_data<float>()[i] = static_cast<float>(i);
    const Tensor turned = run(graph, {values})[0];
    EXPECT_EQ(turned.shape(), (Shape{2, 24}));
    EXPECT_EQ(turned.item(1), 4);
    EXPECT_EQ(turned.item(24 + 23), 47);
  }
}

}  // namespace
}  // namespace mase::value_type_test
