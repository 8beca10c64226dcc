// SPDX-License-Identifier: Apache-2.0
// Emitted designs: the folder, the simulation, the read-back proof, and faults in the SystemVerilog
// that each check must see. Tools that are not installed are said and left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "hardware/fixtures.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/lower/argmax.h"
#include "mase/hardware/optimize/pipeline.h"
#include "mase/hardware/tools/tool.h"

namespace mase::test::emit_test {
namespace {

struct Emitted {
  Design design;
  std::string folder;
};

Emitted emitted(const std::string& name, const DesignOptions& options, size_t rows = 200) {
  const Fixture fixture = read_fixture(golden_path("hardware"), name);
  Emitted result{make_design(fixture.plain, options), temporary_folder() + "/design"};
  const std::vector<int64_t> inputs(
      fixture.inputs.begin(),
      fixture.inputs.begin() +
          static_cast<std::ptrdiff_t>(rows * result.design.graph.inputs.size()));
  write_design(
      result.folder,
      design_files(result.design, rows_of(result.design.graph, inputs, "golden rows"), {}));
  return result;
}

void replace_once(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read(path);
  const size_t at = text.find(from, text.find("---- layer1"));
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  write(path, text);
}

TEST(emit, the_same_every_time) {
  const Emitted a = emitted("w4_toy", {}), b = emitted("w4_toy", {});
  EXPECT_EQ(read(a.folder + "/rtl/top.sv"), read(b.folder + "/rtl/top.sv"));
  const std::string text = read(a.folder + "/rtl/top.sv");
  for (const char* never : {"<<", ">>", "$readmem", "$signed"})
    EXPECT_EQ(text.find(never), std::string::npos) << never;
}

TEST(emit, pipelines_and_classes_keep_the_function) {
  const Fixture fixture = read_fixture(golden_path("hardware"), "w4_toy");
  const IntegerGraph plain = fixture.plain;
  const std::vector<int64_t> wanted = interpret_reference(plain, fixture.inputs);
  const Design piped = make_design(plain, {.levels = 10});
  EXPECT_GT(piped.emitted.latency, 3);
  EXPECT_EQ(IntegerProgram(piped.graph).run(fixture.inputs), wanted);
  const IntegerGraph classes = with_argmax(plain);
  const std::vector<int64_t> found = interpret_reference(classes, fixture.inputs);
  for (size_t row = 0; row < found.size(); ++row) {
    const auto first = wanted.begin() + static_cast<std::ptrdiff_t>(5 * row);
    EXPECT_EQ(found[row], std::max_element(first, first + 5) - first);
  }
}

TEST(emit, a_folder_of_others_is_left_alone) {
  const Emitted design = emitted("w4_toy", {});
  write_design(design.folder, {{"manifest.json", "{}"}});  // ours: replaced
  EXPECT_FALSE(std::filesystem::exists(design.folder + "/rtl"));
  const std::string other = temporary_folder();
  write(other + "/thesis.tex", "text");
  EXPECT_THROW(write_design(other, {{"manifest.json", "{}"}}), Error);
  EXPECT_EQ(read(other + "/thesis.tex"), "text");
  EXPECT_FALSE(std::filesystem::exists(other + ".new"));
}

TEST(emit, simulation_passes_and_sees_faults) {
  if (!tool_exists("iverilog")) GTEST_SKIP() << "iverilog is not installed";
  for (const DesignOptions& options :
       {DesignOptions{}, DesignOptions{.levels = 12},
        DesignOptions{.levels = 8, .style_options = Dict{{"valid", true}}},
        DesignOptions{.levels = 12, .argmax = true}}) {
    const Emitted design = emitted("w4_toy", options);
    const Simulation result = simulate_folder(design.folder, "iverilog", "");
    EXPECT_EQ(result.rows, 200);
    EXPECT_EQ(result.mismatches, 0);
  }
  const Emitted faulty = emitted("w4_toy", {});
  replace_once(faulty.folder + "/rtl/top.sv", " + ", " - ");
  EXPECT_GT(simulate_folder(faulty.folder, "iverilog", "").mismatches, 0);
}

TEST(emit, read_back_proves_and_names_faults) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  for (const char* name : {"w4_toy", "hgq_64_32_32_small"}) {
    const Emitted design = emitted(name, {});
    const ModuleProof proof = prove_folder(design.design, design.folder);
    EXPECT_EQ(proof.fault, "");
    EXPECT_TRUE(proof.proved());
    EXPECT_GT(proof.sums, 100);
    EXPECT_GT(proof.functions, 20);
  }
  const Emitted piped = emitted("w4_toy", {.levels = 10, .argmax = true});
  EXPECT_TRUE(prove_folder(piped.design, piped.folder).proved());
  // A flipped sign, a carry forgotten, a dropped bit, a gate that is missing.
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {" + ", " - "}, {" - ~", " - "}, {"[3]", "[2]"}, {" & {", " | {"}}) {
    const Emitted faulty = emitted("w4_toy", {});
    replace_once(faulty.folder + "/rtl/top.sv", from, to);
    EXPECT_THAT(prove_folder(faulty.design, faulty.folder).fault, testing::HasSubstr("layer"))
        << from;
  }
}

// What Yosys reads of a graph's text.
ModuleProof proof_of(IntegerBuilder& builder) {
  Design design;
  design.graph = builder.finish();
  design.emitted = emit_unrolled(design.graph, {"top", Dict{{"valid", false}}});
  const std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, random_rows(design.graph, 16, 0), {}));
  return prove_folder(design, folder);
}

// a + 4 b has a zero between its bits, which a sum below it passes on together with a.
TEST(emit, read_back_sees_through_zeros_between_bits) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  IntegerBuilder builder("gap");
  const IntegerId a = builder.input({0, 1}, 0, "a"), b = builder.input({0, 1}, -2, "b"),
                  c = builder.input({0, 3}, -2, "c");
  const IntegerId gap = builder.add(a, 0, b, 2);
  builder.output(builder.add(gap, 0, c, 2, true, 1));
  const ModuleProof proof = proof_of(builder);
  EXPECT_EQ(proof.fault, "");
  EXPECT_TRUE(proof.proved());
}

// 4 a + b is {a, b}: the upper bits of a in the sum a + 4 c are those of that wire as well.
TEST(emit, read_back_knows_bits_that_stand_in_several_wires) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  IntegerBuilder builder("joined");
  const IntegerId a = builder.input({0, 15}, -2, "a"), b = builder.input({0, 3}, 0, "b"),
                  c = builder.input({0, 7}, -4, "c");
  builder.output(builder.add(b, 0, a, 2));
  builder.output(builder.add(a, 0, c, 2));
  const ModuleProof proof = proof_of(builder);
  EXPECT_EQ(proof.fault, "");
  EXPECT_TRUE(proof.proved());
}

// a + 32 b: the sign of a is repeated between its own bits and the sum above them. Where a is a sum
// itself, that takes what its bits add up to.
TEST(emit, read_back_knows_signs_between_bits) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  for (const bool summed : {false, true}) {
    IntegerBuilder builder("signs");
    IntegerId a = builder.input({-4, 3}, 0, "a");
    const IntegerId b = builder.input({0, 7}, -5, "b"), c = builder.input({-3, 4}, 0, "c");
    if (summed) a = builder.add(a, 0, c, 0);
    builder.output(builder.add(a, 0, b, 5, true, 1));
    if (!summed) builder.output(c);
    const ModuleProof proof = proof_of(builder);
    EXPECT_EQ(proof.fault, "") << summed;
    EXPECT_TRUE(proof.proved());
  }
}

// relu(2 a): its lowest bit is never one, and a wire that is always zero cannot be made so.
TEST(emit, read_back_tries_no_values_that_never_come) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  IntegerBuilder builder("even");
  const IntegerId a = builder.input({-4, 3}, 0, "a");
  builder.output(builder.relu(builder.shift(a, 1)));
  Design design;
  design.graph = builder.finish();
  design.emitted = emit_unrolled(design.graph, {"top", Dict{{"valid", false}}});
  const std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, random_rows(design.graph, 16, 0), {}));
  EXPECT_EQ(prove_folder(design, folder).fault, "");
  // What does come is still tried.
  const std::string path = folder + "/rtl/top.sv";
  std::string text = read(path);
  const size_t at = text.find(" & {");
  ASSERT_NE(at, std::string::npos);
  write(path, text.replace(at, 3, " | "));
  EXPECT_NE(prove_folder(design, folder).fault, "");
}

// Operands of too many bits to try: compared as functions of their bits, each with a fault planted.
TEST(emit, read_back_proves_functions_of_many_bits) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const int64_t large = int64_t{1} << 38;
  using Build = std::function<IntegerId(IntegerBuilder&, IntegerId, IntegerId)>;
  struct Case {
    Build build;
    std::string from, to;
  };
  const std::vector<Case> cases = {
      {[](auto& b, IntegerId x, IntegerId) { return b.relu(x); }, " & {", " | {"},
      {[](auto& b, IntegerId x, IntegerId) { return b.clamp(x, 0, 255); }, "{|", "{&"},
      {[](auto& b, IntegerId x, IntegerId) { return b.clamp(x, -128, 127); }, "~|", "|"},
      {[](auto& b, IntegerId x, IntegerId) { return b.clamp(x, -777, 12345); }, " < ", " > "},
      {[](auto& b, IntegerId x, IntegerId y) { return b.compare(x, y); }, " < ", " <= "},
      {[](auto& b, IntegerId x, IntegerId y) { return b.select(b.compare(x, y), x, y); }, " ? x",
       " ? ~x"},
      {[](auto& b, IntegerId x, IntegerId) { return b.node("magnitude", {x}, {}); }, " ^ ", " | "},
      {[](auto& b, IntegerId x, IntegerId) { return b.round(x, 7, IntegerRounding::nearest_even); },
       "(|", "(&"},
      {[](auto& b, IntegerId x, IntegerId) { return b.round(x, 7, IntegerRounding::half_away); },
       " | ~", " | "},
      {[](auto& b, IntegerId x, IntegerId) { return b.round(x, 7, IntegerRounding::toward_zero); },
       "(|", "(&"}};
  for (const Case& one : cases) {
    IntegerBuilder builder("wide");
    const IntegerId x = builder.input({-large, large}, 0, "x"),
                    y = builder.input({-large / 3, 5}, 0, "y");
    builder.output(one.build(builder, x, y));
    Design design;
    design.graph = builder.finish();
    design.emitted = emit_unrolled(design.graph, {"top", Dict{{"valid", false}}});
    const std::string folder = temporary_folder() + "/design", path = folder + "/rtl/top.sv";
    write_design(folder, design_files(design, random_rows(design.graph, 16, 0), {}));
    const ModuleProof proof = prove_folder(design, folder);
    EXPECT_EQ(proof.fault, "") << one.from;
    EXPECT_TRUE(proof.proved()) << one.from;
    std::string text = read(path);
    const size_t at = text.find(one.from, text.find(" y = "));
    ASSERT_NE(at, std::string::npos) << one.from << text;
    write(path, text.replace(at, one.from.size(), one.to));
    EXPECT_THAT(prove_folder(design, folder).fault, testing::HasSubstr("differs for")) << text;
  }
}

// The better of da4ml and alkaid has 1133 LUTs and 51 levels for the same weights in the same flow.
TEST(emit, the_simulator_is_chosen_by_rows_and_size) {
  EXPECT_EQ(quicker_simulator(2000, 60'000), "iverilog");
  EXPECT_EQ(quicker_simulator(2000, 650'000), "verilator");
  EXPECT_EQ(quicker_simulator(100'000, 60'000), "verilator");
  EXPECT_EQ(quicker_simulator(100, 650'000), "iverilog");
}

TEST(emit, synthesis_stays_small_and_near_the_estimate) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const Emitted design = emitted("w4_toy", {}, 2);
  const Synthesis result = synthesize_folder(design.folder);
  EXPECT_LE(result.luts, 950);
  EXPECT_LE(result.levels, 46);
  EXPECT_EQ(result.registers, 0);
  const Estimate expected = estimate(design.design.graph);
  EXPECT_NEAR(expected.luts / static_cast<double>(result.luts), 1, 0.15);
}

TEST(emit, lint_is_clean) {
  if (!tool_exists("verilator")) GTEST_SKIP() << "verilator is not installed";
  for (const DesignOptions& options :
       {DesignOptions{}, DesignOptions{.levels = 8, .style_options = Dict{{"valid", true}}}}) {
    const Emitted design = emitted("hgq_64_32_32_small", options);
    const ToolResult result = run_tool(
        {"verilator", "--lint-only", "-Wall", "--top-module", "top", "rtl/top.sv"}, design.folder);
    EXPECT_EQ(result.exit_code, 0) << result.output;
  }
}

TEST(emit, the_cpp_header_is_the_same_function_and_sees_faults) {
  const Emitted design = emitted("hgq_64_32_32_small", {}, 300);
  const Simulation result = simulate_folder(design.folder, "cpp", "");
  EXPECT_EQ(result.rows, 300);
  EXPECT_EQ(result.mismatches, 0);
  const std::string path = design.folder + "/cpp/top.h";
  std::string text = read(path);
  const size_t at = text.find(" - up(");
  ASSERT_NE(at, std::string::npos);
  write(path, text.replace(at, 6, " + up("));
  EXPECT_GT(simulate_folder(design.folder, "cpp", "").mismatches, 0);
}

}  // namespace
}  // namespace mase::test::emit_test
