// SPDX-License-Identifier: Apache-2.0
// What a network costs follows from the number types of its operands, at one batch size.
#include "mase/passes/costs.h"
#include "mase/base/file.h"
#include "mase/formats/measure.h"
#include "mase/ir/layer_text.h"
#include "mase/passes/pass.h"
#include "mase/passes/transform_record.h"
#include "passes/networks.h"

namespace mase::costs_test {
namespace {

using test::one_layer;

void quantize(Graph& graph, Dict config) {
  PassContext context;
  run_pass(graph, "quantize", Dict{{"linear", Dict{{"config", Value(config)}}}}, context);
}

TEST(Costs, AreTheLabs) {
  const Graph graph = make_model("jsc-toy10x");
  const NetworkCost cost = network_cost(graph, 8);
  EXPECT_EQ(cost.total().macs, 8 * 4034);
  EXPECT_EQ(cost.total().flops, 67784);
  EXPECT_EQ(cost.total().operand_bits, 162368);
  EXPECT_EQ(cost.memory_density(), 1);
}

TEST(Costs, CountWidthsAndSignificantBits) {
  // codes of 8/4: 0, 1 (1 bit), 4 (100: 1 bit), 5 (101: 3 bits), -6 (110: 2 bits), 7 (3 bits)
  Graph graph = one_layer({0, .0625f, .25f, .3125f, -.375f, .4375f}, 2, 3);
  PassContext context;
  Dict config{{"name", "integer"}};
  for (const char* operand : {"data_in", "weight", "bias"}) {
    config.set(fmt::format("{}_width", operand), 8);
    config.set(fmt::format("{}_frac_width", operand), 4);
  }
  run_pass(graph, "quantize", Dict{{"linear", Dict{{"config", config}}}}, context);
  const LayerCost total = network_cost(graph, 10).total();
  EXPECT_EQ(total.macs, 60);
  EXPECT_EQ(total.bitops, 60 * 64);
  EXPECT_EQ(total.ebops, 6 * 64 + 2 * 8);  // a sample's products, and its biases
  EXPECT_EQ(total.ebops_exact, (1 + 1 + 3 + 2 + 3) * 8 + 2 * 8);
  EXPECT_EQ(total.operand_bits, 30 * 8 + 6 * 8);
  EXPECT_EQ(total.weight_bits, 8);  // the width alone, not width + fraction
  EXPECT_EQ(total.weight_memory, (6 + 2) * 8);
}

// HGQ2's own figure for a dense layer of 3 inputs of 5, 5 and 4 bits, weights of 4 and biases of 3.
TEST(Costs, EbopsAreHgq2s) {
  Graph graph = one_layer({1, 2, 3, 4, 5, 6}, 2, 3);
  quantize(graph, {{"name", "integer"},
                   {"data_in_width", List{Value(5), Value(5), Value(4)}},
                   {"data_in_frac_width", 2},
                   {"data_in_granularity", "row"},
                   {"data_in_is_signed", false},
                   {"weight_width", 4},
                   {"weight_is_signed", false},
                   {"bias_width", 3},
                   {"bias_is_signed", false}});
  for (const int64_t batch : {1, 7})
    EXPECT_EQ(network_cost(graph, batch).total().ebops, (5 + 5 + 4) * 4 * 2 + 3 * 2);
  EXPECT_EQ(network_cost(graph, 7).total().bitops, 7 * (5 + 5 + 4) * 4 * 2);
}

// A transposed convolution has its inputs first: its weight has other rows than its bias.
TEST(Costs, OfABiasThatIsNotAsLongAsTheWeight) {
  Graph graph;
  graph.name = "one";
  const NodeId x = graph.add_placeholder("x", {64, 3});
  const Dict sizes{{"in_channels", 64}, {"out_channels", 2}, {"kernel_size", 2}};
  graph.add_output({graph.add_module("up", make_module("conv_transpose1d", sizes, 0, "up"), {x})});
  const Dict config{{"name", "integer"},   {"data_in_width", 4},     {"data_in_frac_width", 2},
                    {"weight_width", 3},   {"weight_frac_width", 1}, {"bias_width", 5},
                    {"bias_frac_width", 1}};
  PassContext context;
  run_pass(graph, "quantize", Dict{{"conv_transpose1d", Dict{{"config", config}}}}, context);
  const LayerCost total = network_cost(graph, 7).total();
  EXPECT_EQ(total.macs, 7 * 64 * 2 * 2 * 3);
  EXPECT_EQ(total.bitops, 7 * 64 * 2 * 2 * 3 * 4 * 3);
  EXPECT_EQ(total.ebops, 64 * 2 * 2 * 3 * 4 * 3 + 2 * 4 * 5);
}

// Every weight meets the input of its own column.
TEST(Costs, EbopsOfWidthsPerValue) {
  Graph graph = one_layer({1, 1, 1, 1, 1, 1}, 2, 3);
  const int widths[2][3] = {{2, 0, 5}, {7, 1, 3}}, inputs[3] = {4, 6, 9};
  List rows, columns;
  double want = 0;
  for (const auto& row : widths) {
    List list;
    for (int i = 0; i < 3; ++i) {
      list.push_back(row[i]);
      want += row[i] * inputs[i];
    }
    rows.push_back(list);
  }
  for (const int width : inputs) columns.push_back(width);
  quantize(graph, {{"name", "integer"},
                   {"data_in_width", columns},
                   {"data_in_granularity", "element"},
                   {"weight_width", rows},
                   {"weight_frac_width", 0},
                   {"weight_granularity", "element"}});
  const LayerCost cost = network_cost(graph, 1).total();
  EXPECT_EQ(cost.ebops, want + 2 * 32);  // the biases are floats
  EXPECT_EQ(cost.weight_memory, 2 + 0 + 5 + 7 + 1 + 3 + 2 * 32);
}

// A scale is a part of the format: its bits are among those of the values it is for.
TEST(Costs, LearnedScalesCountOnce) {
  Graph graph = one_layer({1, 1, 1, 1, 1, 1}, 2, 3);
  quantize(graph, {{"name", "scale_integer"},
                   {"data_in_width", 4},
                   {"data_in_scale", "learned"},
                   {"weight_width", 4},
                   {"weight_scale", "learned"}});
  EXPECT_EQ(network_cost(graph, 1).total().weight_memory, 6 * 4 + 32 + 2 * 32);
}

// Where numbers wrap, HGQ2 does not count the sign.
TEST(Costs, WrappingNumbersHaveNoSignToPayFor) {
  Graph graph = one_layer({1, 1}, 1, 2);
  Dict config{{"name", "integer"}};
  for (const char* operand : {"data_in", "weight", "bias"}) {
    config.set(fmt::format("{}_width", operand), 8);
    config.set(fmt::format("{}_overflow", operand), "wrap");
  }
  quantize(graph, config);
  EXPECT_EQ(network_cost(graph, 3).total().ebops, 2 * 7 * 7 + 7);
  EXPECT_EQ(network_cost(graph, 3).total().bitops, 3 * 2 * 8 * 8);
}

// Two spellings of one number type cost the same.
TEST(Costs, FollowTheTypeNotTheNameOfTheFormat) {
  std::vector<LayerCost> costs;
  for (const bool named : {true, false}) {
    Graph graph = test::golden_network("jsc-toy").graph;
    Dict config{{"name", named ? "e4m3_finite" : "minifloat_ieee"}};
    for (const char* operand : {"data_in", "weight", "bias"})
      if (named) {
        config.set(fmt::format("{}_ste", operand), "straight");
      } else {
        config.set(fmt::format("{}_width", operand), 8);
        config.set(fmt::format("{}_exponent_width", operand), 4);
      }
    quantize(graph, config);
    costs.push_back(network_cost(graph, 8).total());
  }
  for (const CostQuantity& quantity : cost_quantities())
    EXPECT_EQ(quantity.of(costs[0]), quantity.of(costs[1])) << quantity.key;
  EXPECT_LT(costs[0].ebops_exact, costs[0].ebops);
  EXPECT_GT(costs[0].ebops_exact, 0);
}

// -1 in one signed bit that wraps is its sign alone, which HGQ does not count.
TEST(Costs, ExactBitsAreNeverMoreThanTheTypes) {
  Graph graph = test::golden_network("jsc-toy").graph;
  Dict config{{"name", "integer"}};
  for (const char* operand : {"data_in", "weight", "bias"}) {
    config.set(fmt::format("{}_width", operand), operand == std::string("weight") ? 1 : 6);
    config.set(fmt::format("{}_frac_width", operand), 0);
    config.set(fmt::format("{}_overflow", operand), "wrap");
  }
  quantize(graph, config);
  const LayerCost total = network_cost(graph, 1).total();
  EXPECT_LE(total.ebops_exact, total.ebops);
}

TEST(Costs, SignificantBits) {
  const std::pair<float, int> cases[] = {{0, 0},     {1, 1},         {-6, 2},  {0.3125f, 3},
                                         {255, 8},   {0x1p-149f, 1}, {256, 1}, {-0.75f, 2},
                                         {0.1f, 24}, {1e30f, 24}};
  for (const auto& [value, bits] : cases)
    if (value == 0.1f || value == 1e30f) {
      EXPECT_GT(significant_bits(value), 20) << value;
    } else {
      EXPECT_EQ(significant_bits(value), bits) << value;
    }
}

TEST(Costs, TheLabsPassIsFoundByItsName) {
  Graph graph = make_model("jsc-toy10x");
  PassContext context;
  std::string text;
  context.print = [&](const std::string& line) { text += line; };
  const Value result =
      run_pass(graph, "calculate_flops_bitops_pass", Dict{{"batch_size", 8}}, context).data;
  EXPECT_EQ(result["total_operand_bits"], Value(162368.0));
  EXPECT_EQ(result["total_bitops"], Value(8.0 * 4034 * 32 * 32));
  EXPECT_EQ(text,
            "Total BitOPs as the lab counts them (precision sums): 162368, Total FLOPs: 67.78 K\n"
            "Total BitOPs (MACs x weight bits x activation bits): 33046528, at batch size 8\n");
}

// The lab sums `precision`, [8, 4] of fixed point, for each of the 5,074 operands at batch size 8.
TEST(Costs, TheLabsFigureOfAQuantisedNetworkIsTheLabs) {
  Graph graph = make_model("jsc-toy10x");
  PassContext context;
  const Value config = parse_toml(
      "by = 'type'\n[linear.config]\nname = 'integer'\ndata_in_width = 8\n"
      "data_in_frac_width = 4\nweight_width = 8\nweight_frac_width = 4\n"
      "bias_width = 8\nbias_frac_width = 4\n",
      "test");
  run_pass(graph, "quantize", config, context);
  const Value result =
      run_pass(graph, "calculate_flops_bitops_pass", Dict{{"batch_size", 8}}, context).data;
  EXPECT_EQ(result["total_operand_bits"], Value(40592.0));
  EXPECT_EQ(result["total_precision_sums"], Value(60888.0));
}

// What other layers computed is no weight, whichever side of a product it stands on.
TEST(Costs, AProductOfActivationsHasNoWeights) {
  const std::string path = test::temporary_folder() + "/product.toml";
  write_file_atomically(path,
                        "name = 'product'\n[input]\nleft = [3, 4]\nright = [4, 5]\n"
                        "[[layers]]\nname = 'product'\nfunction = 'matmul'\n"
                        "inputs = ['left', 'right']\n");
  const LayerCost sum = network_cost(make_model(path), 2).total();
  EXPECT_EQ(sum.macs, 2 * 3 * 4 * 5);
  EXPECT_EQ(sum.weights, 0);
  EXPECT_EQ(sum.activations, 2 * (3 * 4 + 4 * 5));
}

// What a page shows is counted at the batch size of the run, as the printed tables are.
TEST(Costs, ARecordHasTheRunsBatchSizeAndTheFormatsGrid) {
  test::GoldenNetwork golden = test::golden_network("jsc-toy");
  Graph transformed = golden.graph;
  quantize(transformed, {{"name", "integer"},
                         {"data_in_width", 4},
                         {"data_in_frac_width", 1},
                         {"weight_width", 4},
                         {"weight_frac_width", 2}});
  PassContext context;
  context.batch_size = 8;
  context.samples = golden.x;
  const Value record = transform_record(golden.graph, transformed, context);
  const LayerCost total = network_cost(transformed, 8).total();
  EXPECT_EQ(record["costs"]["after"]["batch_size"], Value(8));
  EXPECT_EQ(record["costs"]["after"]["bitops"], Value(total.bitops));
  EXPECT_EQ(record["costs"]["after"]["ebops"], Value(total.ebops));
  size_t weights = 0;
  for (const Value& histogram : record["histograms"].as_list()) {
    if (histogram["operand"] != Value("weight") || histogram["codes"].is_null()) continue;
    EXPECT_EQ(histogram["codes"], Value(16));
    EXPECT_EQ(histogram["grid"].as_list().size(), 16u);
    EXPECT_EQ(histogram["grid"].as_list().front(), Value(-2.0));
    EXPECT_GT(histogram["codes_used"].as_int(), 1);
    EXPECT_LE(histogram["codes_used"].as_int(), 16);
    ++weights;
  }
  EXPECT_GT(weights, 0u);
}

}  // namespace
}  // namespace mase::costs_test
