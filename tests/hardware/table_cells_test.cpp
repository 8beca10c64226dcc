// SPDX-License-Identifier: Apache-2.0
// Tables of many bits as cells: what is emitted is the table for every index, with the plain
// modules in their place too, and a fault in one entry is seen.
#include "mase/hardware/emit/table_cells.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "mase/hardware/emit/design.h"
#include "mase/hardware/emit/target.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/tools/tool.h"
#include "support/support.h"

namespace mase::test::table_cells_test {
namespace {

// Of six to ten bits: drawn entries; entries that few of the bits decide; halves that are constant
// or alike.
IntegerGraph drawn_tables() {
  std::mt19937 random(5);
  IntegerBuilder builder("tables");
  int number = 0;
  for (int bits = 6; bits <= 10; ++bits) {
    const IntegerId input =
        builder.input({0, (int64_t{1} << bits) - 1}, 0, fmt::format("x_{}", bits));
    builder.add_layer(fmt::format("layer{}", number++));
    const int64_t mask = static_cast<int64_t>(random() % 1024);
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<int64_t> entries;
      std::vector<int64_t> drawn;
      for (int64_t code = 0; code < int64_t{1} << bits; ++code)
        drawn.push_back(static_cast<int64_t>(random() % 16) - 8);
      for (int64_t code = 0; code < int64_t{1} << bits; ++code) {
        const auto at = [&](int64_t index) { return drawn[static_cast<size_t>(index)]; };
        const bool upper = code >> (bits - 1) != 0;
        const int64_t lower = code & ((int64_t{1} << (bits - 1)) - 1);
        entries.push_back(kind == 0   ? at(code)
                          : kind == 1 ? at(code & mask)
                          : kind == 2 ? (upper ? 5 : at(code))
                                      : at(lower) + (upper ? 1 : 0));
      }
      builder.output(builder.table(input, 0, 0, entries));
    }
  }
  return builder.finish();
}

ModuleProof proof_of(const IntegerGraph& graph,
                     const std::function<void(EmittedFiles&)>& change = {}) {
  const TargetRecord& target = Registry<TargetRecord>::instance().get("xcup", "");
  Design design;
  design.options.target = "xcup";
  design.graph = graph;
  design.emitted = emit_unrolled(graph, {"top", Dict{{"valid", false}}, true});
  EXPECT_TRUE(design.emitted.cells);
  EmittedFiles files = design.emitted.files;
  for (const auto& [name, text] : target.modules()) files["rtl/" + name + ".sv"] = text;
  files["manifest.json"] = "{}";
  if (change) change(files);
  const std::string folder = temporary_folder() + "/design";
  write_design(folder, files);
  return prove_folder(design, folder);
}

TEST(TableCells, EveryEntryIsThere) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const IntegerGraph graph = drawn_tables();
  const ModuleProof cells = proof_of(graph);
  EXPECT_EQ(cells.fault, "");
  EXPECT_TRUE(cells.skipped.empty());
  const ModuleProof plain = proof_of(graph, [](EmittedFiles& files) {
    for (const auto& [name, text] : plain_table_modules()) files["rtl/" + name + ".sv"] = text;
  });
  EXPECT_EQ(plain.fault, "");
}

TEST(TableCells, AFaultIsSeen) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const IntegerGraph graph = drawn_tables();
  const auto replaced = [&](const std::string& file, const std::string& from,
                            const std::string& to) {
    return proof_of(graph, [&](EmittedFiles& files) {
      std::string& text = files.at(file);
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    });
  };
  EXPECT_NE(replaced("rtl/pair7.sv", ".I0(low), .I1(high)", ".I0(high), .I1(low)").fault, "");
  EXPECT_NE(replaced("rtl/table6.sv", ".I5(x[5])", ".I5(x[4])").fault, "");
}

TEST(TableCells, EqualFunctionsAreOne) {
  TableCells cells({"a", "b", "c", "d", "e", "f", "g"}, "t");
  std::mt19937 random(1);
  std::vector<bool> function;
  for (int i = 0; i < 128; ++i) function.push_back(random() % 2 != 0);
  const std::string first = cells.value_of(function);
  EXPECT_NE(cells.take_text(), "");
  EXPECT_EQ(cells.value_of(function), first);
  EXPECT_EQ(cells.take_text(), "");
  EXPECT_EQ(cells.value_of(std::vector<bool>(128, true)), "1'b1");
}

}  // namespace
}  // namespace mase::test::table_cells_test
