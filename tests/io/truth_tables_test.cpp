// SPDX-License-Identifier: Apache-2.0
// Networks of truth tables: sums of the file's own numbers on every input, clamped between layers;
// refused in one line where something is missing or beyond its limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "mase/engine/program.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/io/networks/importer.h"
#include "support/support.h"

namespace mase::test::truth_tables_test {
namespace {

std::string file_of(const std::string& text) {
  const std::string path = temporary_folder() + "/truth_tables.json";
  write(path, text);
  return path;
}

// 2 -> 2 -> 1 of two bits each; the edge 0_1_1 is not active, neuron 1_0 gets sums up to 5.
const char* const small =
    R"({"0_0_0": {"acive": 1, "values_int": [-3, 0, 1, 4]},
        "0_0_1": {"acive": 1, "values_int": [1, 1, 0, -2]},
        "0_1_0": {"acive": 1, "values_int": [0, 1, -1, 1]},
        "0_1_1": {"acive": 0, "values_int": [9, 9, 9, 9]},
        "1_0_0": {"acive": 1, "values_int": [10, 20, 30, 40]},
        "1_1_0": {"acive": 1, "values_int": [-1, -2, -3, -5]}})";

int64_t small_by_hand(int64_t a, int64_t b) {
  const int64_t first[] = {-3, 0, 1, 4}, second[] = {1, 1, 0, -2}, third[] = {0, 1, -1, 1};
  const int64_t sums[] = {std::clamp<int64_t>(first[a + 2] + third[b + 2], -2, 1),
                          std::clamp<int64_t>(second[a + 2], -2, 1)};
  const int64_t last[] = {10, 20, 30, 40}, more[] = {-1, -2, -3, -5};
  return last[sums[0] + 2] + more[sums[1] + 2];
}

TEST(TruthTables, SumsAreTheFiles) {
  const ImportedNetwork network = import_network(file_of(small));
  EXPECT_EQ(network.format, "truth_tables");
  Tensor rows({16, 2});
  for (int64_t i = 0; i < 16; ++i) {
    rows.mutable_data<float>()[2 * i] = static_cast<float>(i / 4 - 2);
    rows.mutable_data<float>()[2 * i + 1] = static_cast<float>(i % 4 - 2);
  }
  const Tensor found = run(network.graph, {rows})[0];
  const LoweredNetwork lowered = lower(network.graph);
  const std::vector<double> integers = output_values(
      lowered.graph, interpret_reference(lowered.graph, input_codes(lowered, {rows})));
  for (int64_t i = 0; i < 16; ++i) {
    const auto wanted = static_cast<double>(small_by_hand(i / 4 - 2, i % 4 - 2));
    EXPECT_EQ(found.item(i), wanted) << i;
    EXPECT_EQ(integers[static_cast<size_t>(i)], wanted) << i;
  }
}

TEST(TruthTables, SingleBitsAndNeuronsWithoutInputs) {
  const ImportedNetwork network =
      import_network(file_of(R"({"0_0_0": {"acive": 1, "values_int": [5, -7]},
                                 "0_0_1": {"acive": 0, "values_int": [1, 2]}})"));
  Tensor rows({2, 1});
  rows.mutable_data<float>()[0] = 0;
  rows.mutable_data<float>()[1] = 1;
  const Tensor found = run(network.graph, {rows})[0];
  EXPECT_EQ(found.item(0), 5);
  EXPECT_EQ(found.item(1), 0);
  EXPECT_EQ(found.item(2), -7);
  const LoweredNetwork lowered = lower(network.graph);
  EXPECT_EQ(interpret_reference(lowered.graph, input_codes(lowered, {rows})),
            (std::vector<int64_t>{5, 0, -7, 0}));
}

TEST(TruthTables, FaultsAreOneLine) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = small;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return file_of(text.replace(at, from.size(), to));
  };
  const auto refusal = [](const std::string& path) -> std::string {
    try {
      import_network(path, "truth_tables");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal(changed("0_1_1", "0_1_9")), HasSubstr("layer 0 has 4 of 20 tables"));
  EXPECT_THAT(refusal(changed("1_1_0", "2_1_0")), HasSubstr("tables"));
  EXPECT_THAT(refusal(changed("1_1_0", "1_2_0")), HasSubstr("layer 1 has 2 of 3 tables"));
  EXPECT_THAT(refusal(changed("0_0_1", "0_0_-1")), HasSubstr("is no edge"));
  EXPECT_THAT(refusal(changed("0_0_1", "0_0_99999999999")), HasSubstr("is no edge"));
  EXPECT_THAT(refusal(changed("[1, 1, 0, -2]", "[1, 1, 0]")), HasSubstr("has 3 values"));
  EXPECT_THAT(refusal(changed("[1, 1, 0, -2]", "[]")), HasSubstr("has 0 values"));
  EXPECT_THAT(refusal(changed("-2]", "0.5]")), HasSubstr("expected an integer"));
  EXPECT_THAT(refusal(changed("-2]", "9999999]")), HasSubstr("is beyond"));
  EXPECT_THAT(refusal(changed("\"acive\": 0", "\"acive\": 2")), HasSubstr("not 0 or 1"));
  EXPECT_THAT(refusal(file_of("{}")), HasSubstr("has no edges"));
  EXPECT_NE(refusal(file_of("[]")), "");
  EXPECT_NE(refusal(file_of("{\"0_0_0\": 3}")), "");
}

}  // namespace
}  // namespace mase::test::truth_tables_test
