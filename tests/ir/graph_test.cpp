// SPDX-License-Identifier: Apache-2.0
// Graphs: fx's names and text, copies, changes, the verifier, and the JSON form that loses nothing.
#include "mase/ir/graph.h"

#include <rapidcheck.h>

#include "mase/base/random.h"
#include "mase/ir/op.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase::graph_test {
namespace {

Module linear(int64_t in, int64_t out, const std::string& path) {
  return make_module("linear", Dict{{"in_features", in}, {"out_features", out}}, 0, path);
}

Graph small() {
  Graph graph;
  graph.name = "small";
  const NodeId x = graph.add_placeholder("x", {4});
  const NodeId a = graph.add_module("body.fc", linear(4, 4, "body.fc"), {x});
  const NodeId sum = graph.call_function("add", {Argument::node(a), Argument::node(x)});
  graph.add_output({sum});
  return graph;
}

TEST(Graph, NamesFollowFx) {
  Graph graph = small();
  EXPECT_NE(graph.find("body_fc"), nullptr);
  const NodeId again = graph.call_function("add", {Argument::node(0), Argument::literal(1)});
  EXPECT_EQ(graph.node(again).name, "add_1");
  const NodeId total = graph.call_function("sum", {Argument::node(0)});
  EXPECT_EQ(graph.node(total).name, "sum_1");  // Python's own name is taken
  Node same;
  same.name = "add_1";
  same.target = "x";
  EXPECT_EQ(graph.node(graph.add_node(same)).name, "add_2");
}

TEST(Graph, TextIsFxs) {
  EXPECT_EQ(small().text(), R"(graph():
    %x : [num_users=2] = placeholder[target=x]
    %body_fc : [num_users=1] = call_module[target=body.fc](args = (%x,), kwargs = {})
    %add : [num_users=1] = call_function[target=operator.add](args = (%body_fc, %x), kwargs = {})
    return add
)");
}

TEST(Graph, CopiesAreIndependent) {
  const Graph original = small();
  Graph copy = original;
  const Tensor& shared = *original.modules().at("body.fc").find("weight");
  EXPECT_EQ(copy.modules().at("body.fc").find("weight")->raw(), shared.raw());
  copy.modules().at("body.fc").find("weight")->mutable_data<float>()[0] = 100;
  EXPECT_NE(shared.item(0), 100);
  copy.node(1).name = "changed";
  EXPECT_EQ(original.node(1).name, "body_fc");
}

TEST(Graph, ReplacingAndErasing) {
  Graph graph = small();
  graph.replace_uses(1, 0);
  graph.erase(1);
  EXPECT_TRUE(graph.modules().empty());
  verify(graph);
  EXPECT_EQ(graph.users(0).size(), 1u);
}

std::string fault(const std::function<void(Graph&)>& damage) {
  Graph graph = small();
  damage(graph);
  try {
    verify(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Verify, FindsWhatIsWrongAndNamesTheNode) {
  EXPECT_EQ(fault([](Graph&) {}), "");
  EXPECT_NE(fault([](Graph& g) { g.node(2).name = "x"; }).find("x: two nodes"), std::string::npos);
  EXPECT_NE(fault([](Graph& g) { g.node(1).args[0] = Argument::node(2); }).find("before it is"),
            std::string::npos);
  EXPECT_NE(fault([](Graph& g) { g.node(1).target = "gone"; }).find("not in the module table"),
            std::string::npos);
  EXPECT_NE(fault([](Graph& g) { g.node(0).sample_shape = {5}; }).find("body_fc: Linear wants 4"),
            std::string::npos);
  EXPECT_NE(fault([](Graph& g) {
              g.modules().at("body.fc").parameters.emplace_back("extra", Tensor());
            }).find("nothing uses parameter 'extra'"),
            std::string::npos);
  EXPECT_NE(fault([](Graph& g) {
              g.modules().at("body.fc").parameters.pop_back();
            }).find("parameter 'bias' is missing"),
            std::string::npos);
  EXPECT_NE(fault([](Graph& g) {
              *g.modules().at("body.fc").find("bias") = Tensor({3});
            }).find("parameter 'bias' is [3]"),
            std::string::npos);
  EXPECT_NE(fault([](Graph& g) {
              g.modules().emplace("idle", linear(1, 1, "idle"));
            }).find("no node calls"),
            std::string::npos);
  EXPECT_NE(fault([](Graph& g) { g.erase(3); }).find("one output"), std::string::npos);
  EXPECT_NE(fault([](Graph& g) { g.node(2).target = "ad"; }).find("unknown op 'ad'"),
            std::string::npos);
  EXPECT_NE(fault([](Graph& g) { g.node(2).target = "batch_norm1d"; }).find("not a function"),
            std::string::npos);
}

// A random network of element-wise layers, linear layers, sums and concatenations.
Graph random_graph(uint64_t seed) {
  Random random(seed, "graph");
  Graph graph;
  graph.name = fmt::format("random {}", seed);
  graph.meta.set("note", Dict{{"symbol", Symbol{"torch.float32"}}, {"bound", -1e300 * 1e300}});
  std::vector<NodeId> nodes = {graph.add_placeholder("x", {3})};
  std::vector<int64_t> widths = {3};
  for (uint64_t i = random.below(12); i > 0; --i) {
    const size_t at = random.below(nodes.size());
    const NodeId input = nodes[at];
    const std::string path = fmt::format("block.{}", nodes.size());
    int64_t width = widths[at];
    switch (random.below(4)) {
      case 0:
        width = static_cast<int64_t>(random.below(5)) + 1;
        nodes.push_back(graph.add_module(path, linear(widths[at], width, path), {input}));
        break;
      case 1:
        nodes.push_back(graph.add_module(
            path, make_module("batch_norm1d", Dict{{"num_features", width}}, seed, path), {input}));
        break;
      case 2:
        nodes.push_back(
            graph.call_function("mul", {Argument::node(input), Argument::literal(0.1)}));
        break;
      default:
        nodes.push_back(graph.call_function(
            "cat", {Argument::list({Argument::node(input), Argument::node(input)})},
            {{"dim", Argument::literal(-1)}}));
        width *= 2;
    }
    widths.push_back(width);
    graph.node(nodes.back()).meta.set("common", Dict{{"width", width}});
  }
  graph.add_output({nodes.back()});
  return graph;
}

TEST(Json, RoundTripLosesNothingButValues) {
  const bool holds = rc::check("graph -> JSON -> graph", [](uint64_t seed) {
    const Graph graph = random_graph(seed);
    const Graph back =
        graph_from_value(parse_json(to_json(graph_to_value(graph), 2), "graph.json"));
    RC_ASSERT(back.text() == graph.text());
    RC_ASSERT(to_json(graph_to_value(back)) == to_json(graph_to_value(graph)));
    RC_ASSERT(back.parameter_count() == graph.parameter_count());
  });
  EXPECT_TRUE(holds);
}

TEST(Json, EveryModelRoundTrips) {
  for (const ModelRecord* model : Registry<ModelRecord>::instance().all()) {
    const Graph graph = model->build({});
    EXPECT_EQ(graph_from_value(graph_to_value(graph)).text(), graph.text()) << model->name;
  }
}

TEST(Json, HostileGraphsAreErrors) {
  const std::string good = to_json(graph_to_value(small()));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"op\":\"linear\"", "\"op\":\"liner\""},
           {"\"kind\":\"placeholder\"", "\"kind\":\"plaice\""},
           {"\"in_features\":4", "\"in_features\":-4"},
           {"\"in_features\":4", "\"in_features\":\"four\""},
           {"\"shape\":[4,4]", "\"shape\":[4000000000,4000000000]"},
           {"\"shape\":[4,4]", "\"shape\":[4,5]"},
           {"\"modules\"", "\"moduls\""},
           {"\"nodes\"", "\"knots\""},
           {"\"float32\"", "\"float31\""},
       }) {
    ASSERT_NE(good.find(from), std::string::npos) << from << " in " << good;
    EXPECT_THROW(graph_from_value(parse_json(replace_all(good, from, to), "g.json")), Error) << to;
  }
}

TEST(Cost, TheLabsFlops) {
  const Graph graph = make_model("jsc-toy10x");
  const std::vector<Shape> shapes = infer_shapes(graph, 8);
  int64_t macs = 0, flops = 0;
  for (const NodeId id : graph.order()) {
    const Module* module = graph.module_of(graph.node(id));
    if (!module) continue;
    const OpCost cost =
        find_op(module->op)
            .cost(module->attributes, {shapes[static_cast<size_t>(graph.inputs_of(id)[0])]},
                  shapes[static_cast<size_t>(id)]);
    macs += cost.macs;
    flops += cost.flops;
  }
  EXPECT_EQ(macs, 8 * 4034);
  EXPECT_EQ(flops, 67784);
}

}  // namespace
}  // namespace mase::graph_test
