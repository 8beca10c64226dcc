// SPDX-License-Identifier: Apache-2.0
// Numbers per row, per feature and per value in a network: the pass takes them, the engine and the
// reference agree, files keep them, and lists that do not fit are told at once.
#include "mase/engine/program.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/pass.h"
#include "passes/networks.h"

namespace mase::number_types_test {
namespace {

Value numbers(int64_t count, int64_t first, int64_t span) {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < count; ++i) list.push_back(first + i * 5 % span);
  return Value::of(list);
}

// Narrow enough for sums to be exact in single precision.
Dict per_group(const char* rounding, const char* overflow) {
  return {{"name", "integer"},
          {"data_in_width", numbers(16, 4, 4)},
          {"data_in_frac_width", numbers(16, 1, 4)},
          {"data_in_granularity", "row"},
          {"data_in_rounding", rounding},
          {"data_in_overflow", overflow},
          {"weight_width", numbers(5 * 16, 0, 7)},
          {"weight_frac_width", numbers(5 * 16, 2, 4)},
          {"weight_granularity", "element"},
          {"weight_rounding", rounding},
          {"weight_overflow", overflow},
          {"bias_width", 8},
          {"bias_frac_width", numbers(5, 3, 4)},
          {"bias_granularity", "row"}};
}

TEST(NumberTypes, EngineAndReferenceAgreeToTheBit) {
  for (const char* rounding : {"nearest_even", "half_up", "floor"})
    for (const char* overflow : {"saturate", "wrap"}) {
      test::GoldenNetwork golden = test::golden_network("jsc-tiny");
      PassContext context;
      run_pass(golden.graph, "quantize",
               Dict{{"linear", Dict{{"config", per_group(rounding, overflow)}}}}, context);
      // Without the batch-norm in front: its sums are rounded differently in single precision.
      Graph layer;
      const NodeId x = layer.add_placeholder("x", {16});
      for (const auto& [path, module] : golden.graph.modules())
        if (module.op == "linear") layer.add_output({layer.add_module("fc", module, {x})});
      const std::vector<Array> wanted = evaluate(layer, {Array::from(golden.x)});
      const std::vector<Tensor> got = run(layer, {golden.x});
      for (int64_t i = 0; i < got[0].numel(); ++i)
        ASSERT_EQ(got[0].item(i), wanted[0].data[static_cast<size_t>(i)])
            << rounding << " " << overflow << " " << i;
    }
}

TEST(NumberTypes, FilesKeepThem) {
  test::GoldenNetwork golden = test::golden_network("jsc-tiny");
  PassContext context;
  run_pass(golden.graph, "quantize",
           Dict{{"linear", Dict{{"config", per_group("half_up", "wrap")}}}}, context);
  EXPECT_EQ(format_text(golden.graph.modules().at("seq_blocks.2").quantization),
            "data_in integer 4..7/1..4 in 16 groups, weight integer 0..6/2..5 in 80 groups, "
            "bias integer 8/3..6 in 5 groups");
  const std::string path = test::temporary_folder() + "/network.mz";
  save_mz(path, golden.graph);
  const Checkpoint loaded = load_checkpoint(path);
  ASSERT_TRUE(loaded.graph);
  EXPECT_TRUE(run(*loaded.graph, {golden.x})[0].same_bits(run(golden.graph, {golden.x})[0]));
}

TEST(NumberTypes, ListsThatDoNotFitAreTold) {
  const Graph graph = make_model("jsc-tiny");
  const auto problem = [&](Dict config) {
    try {
      prepare_passes(graph, {{"quantize", Dict{{"linear", Dict{{"config", Value(config)}}}}, "p"}});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(problem({{"name", "integer"},
                     {"data_in_width", 8},
                     {"weight_width", numbers(4, 3, 4)},
                     {"weight_granularity", "row"}}),
            "p.linear.config: weight of node 'seq_blocks_2': 4 numbers in a list for 5 groups of "
            "shape [5, 16]; give one number per group, or take the node by name");
  EXPECT_EQ(problem({{"name", "integer"},
                     {"data_in_width", numbers(15, 3, 4)},
                     {"data_in_granularity", "row"},
                     {"weight_width", 8}}),
            "p.linear.config: data_in of node 'seq_blocks_2': 15 numbers in a list for 16 groups "
            "of shape [2, 16]; give one number per group, or take the node by name");
  // Formats that bring their own arithmetic too.
  EXPECT_EQ(problem({{"name", "affine"},
                     {"data_in_width", 8},
                     {"data_in_scale", 0.5},
                     {"weight_width", 8},
                     {"weight_granularity", "channel"},
                     {"weight_scale", List{0.5, 0.25, 0.125}}}),
            "p.linear.config: weight of node 'seq_blocks_2': 3 numbers in a list for 5 groups of "
            "shape [5, 16]; give one number per group, or take the node by name");
}

int plans = 0;
const Register<PassRecord> counting{{
    .name = "count_plans",
    .aliases = {"count_plans_transform_pass"},
    .pass_kind = PassKind::transform,
    .summary = "counts how often it is planned",
    .plan = [](const Graph&, const Value&, const std::string&,
               Problems&) { return std::any(++plans); },
    .run =
        [](Graph&, const Value&, PassContext& context) {
          return PassResult{Dict{{"plan", std::any_cast<int>(context.plan)}}, true};
        },
}};

TEST(Passes, PlanOnceForTheGraphTheyGet) {
  Graph graph = make_model("jsc-tiny");
  PassContext context;
  plans = 0;
  const auto outcomes = run_passes(
      graph, std::vector<PassCall>{{"report_graph", Dict(), "a"}, {"count_plans", Dict(), "b"}},
      context);
  EXPECT_EQ(plans, 1);
  EXPECT_EQ(outcomes[1].result.data["plan"], Value(1));
  // The second one gets a changed graph, and so another plan.
  plans = 0;
  run_passes(graph,
             std::vector<PassCall>{{"count_plans", Dict(), "a"}, {"count_plans", Dict(), "b"}},
             context);
  EXPECT_EQ(plans, 3);
}

}  // namespace
}  // namespace mase::number_types_test
