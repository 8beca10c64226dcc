// SPDX-License-Identifier: Apache-2.0
// Neurons as tables: the same function for all inputs, simulated and proved as the other styles.
#include "mase/hardware/optimize/neuron_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "hardware/fixtures.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/tools/tool.h"

namespace mase::test::neuron_tables_test {
namespace {

// Two layers of sums over a few values each, rounded to a few bits, some with signs.
IntegerGraph sparse_network(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  IntegerBuilder builder("sparse");
  std::vector<IntegerId> values;
  for (int i = 0; i < 4; ++i) {
    const IntegerRange range = i % 2 == 0 ? IntegerRange{-2, 1} : IntegerRange{0, 3};
    values.push_back(builder.input(range, 1, fmt::format("x_{}", i)));
  }
  for (int layer = 0; layer < 2; ++layer) {
    builder.add_layer(fmt::format("layer{}", layer));
    std::vector<IntegerId> results;
    for (int o = 0; o < 5; ++o) {
      IntegerId sum = builder.constant(below(9) - 4, 3);
      for (int k = 0; k < 3; ++k) {
        const IntegerId x = values[static_cast<size_t>(below(static_cast<int>(values.size())))];
        sum = builder.add(sum, 0, builder.scale(x, below(7) - 3, 3), 0);
      }
      const FixedFormat format{.is_signed = o % 2 == 1, .width = 2 + o % 2, .frac = 1};
      const IntegerId result = builder.requantize(o % 2 == 1 ? sum : builder.relu(sum), format);
      if (!builder.at(result).inputs.empty())
        builder.name(result, fmt::format("layer{}_out{}", layer, o));
      results.push_back(result);
    }
    values = results;
  }
  for (const IntegerId value : values) builder.output(value);
  return builder.finish();
}

std::vector<int64_t> all_rows(const IntegerGraph& graph) {
  std::vector<int64_t> rows, codes;
  for (const IntegerId id : graph.inputs) codes.push_back(graph.at(id).range.low);
  for (size_t k = 0; k < codes.size();) {
    rows.insert(rows.end(), codes.begin(), codes.end());
    for (k = 0; k < codes.size() && ++codes[k] > graph.at(graph.inputs[k]).range.high; ++k)
      codes[k] = graph.at(graph.inputs[k]).range.low;
  }
  return rows;
}

TEST(neuron_tables, the_same_function_for_all_inputs) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const IntegerGraph graph = sparse_network(seed);
    const std::vector<int64_t> rows = all_rows(graph);
    const std::vector<int64_t> wanted = interpret_reference(graph, rows);
    IntegerGraph tables = with_neuron_tables(graph, neuron_cones(graph));
    verify(tables);
    EXPECT_EQ(interpret_reference(tables, rows), wanted) << seed;
    EXPECT_EQ(interpret_reference(optimize(graph, {.tables = true}).graph, rows), wanted) << seed;
    // Bits turned over are seen.
    for (IntegerNode& node : tables.nodes)
      if (node.op->name == "table" && node.name == "layer1_out0") {
        for (size_t i = 2; i < node.numbers.size(); ++i) node.numbers[i] ^= 1;
        EXPECT_NE(interpret_reference(tables, rows), wanted) << seed;
      }
  }
}

TEST(neuron_tables, never_dearer_by_the_estimate) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const IntegerGraph graph = sparse_network(seed);
    const IntegerGraph with = optimize(graph, {.tables = true}).graph,
                       without = optimize(graph, {.tables = false}).graph;
    EXPECT_LE(estimate(with).luts, estimate(without).luts) << seed;
  }
}

TEST(neuron_tables, what_is_not_read_costs_nothing) {
  std::vector<int64_t> entries(1024);
  for (size_t i = 0; i < entries.size(); ++i) entries[i] = static_cast<int64_t>(i >> 9 & 1);
  EXPECT_EQ(table_luts(entries, 1), 0);  // a wire
  for (size_t i = 0; i < entries.size(); ++i) entries[i] = (i >> 9 & 1) && (i & 1);
  EXPECT_EQ(table_luts(entries, 1), 1);
  std::mt19937 random(1);
  for (int64_t& entry : entries) entry = static_cast<int64_t>(random() & 1);
  EXPECT_GE(table_luts(entries, 1), 16);  // sixteen different parts of six inputs
}

TEST(neuron_tables, neurons_that_read_too_much_are_refused_by_name) {
  const Fixture fixture = read_fixture(golden_path("hardware"), "w4_toy");
  try {
    make_design(fixture.plain, {.style = "lut"});
    FAIL() << "w4_toy is dense";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("_in"));
    EXPECT_THAT(error.what(), testing::HasSubstr("a table has at most 12"));
  }
}

TEST(neuron_tables, the_style_simulates_and_is_proved) {
  const IntegerGraph graph = sparse_network(3);
  for (const DesignOptions& options :
       {DesignOptions{.style = "lut"},
        DesignOptions{.style = "lut", .levels = 8, .argmax = true}}) {
    const Design design = make_design(graph, options);
    const std::string folder = temporary_folder() + "/design";
    write_design(folder, design_files(design, rows_of(design.graph, all_rows(graph), "all"), {}));
    EXPECT_EQ(design.emitted.clocked, options.levels > 0);
    if (tool_exists("iverilog")) {
      const Simulation result = simulate_folder(folder, "iverilog", "");
      EXPECT_EQ(result.rows, 256);
      EXPECT_EQ(result.mismatches, 0);
    }
    EXPECT_EQ(simulate_folder(folder, "cpp", "").mismatches, 0);
    if (tool_exists("yosys")) {
      const ModuleProof proof = prove_folder(design, folder);
      EXPECT_EQ(proof.fault, "");
      EXPECT_TRUE(proof.proved());
    }
    if (tool_exists("verilator") && !options.argmax) {
      const ToolResult lint = run_tool(
          {"verilator", "--lint-only", "-Wall", "--top-module", "top", "rtl/top.sv"}, folder);
      EXPECT_EQ(lint.exit_code, 0) << lint.output;
    }
  }
}

}  // namespace
}  // namespace mase::test::neuron_tables_test
