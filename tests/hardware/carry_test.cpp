// SPDX-License-Identifier: Apache-2.0
// Explicit carry chains: sums of two and three of every kind are proved to be what they should be
// from the cells they are made of, with the plain modules in their place too; a fault in a cell is
// seen; networks become smaller and stay the same.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

#include "hardware/fixtures.h"
#include "mase/hardware/carry/carry_chains.h"
#include "mase/hardware/carry/carry_plan.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/emit/target.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/tools/tool.h"

namespace mase::test::carry_test {
namespace {

// What a plan says, bit by bit, for one set of operands.
int64_t by_plan(const CarryPlan& plan, const std::vector<CarryOperand>& operands,
                const std::vector<int64_t>& codes) {
  uint64_t result = 0;
  int carry = 0, kept = 0;
  for (int i = 0; i < static_cast<int>(plan.bits.size()); ++i) {
    const CarryBit& bit = plan.bits[static_cast<size_t>(i)];
    std::vector<int> in;
    for (size_t k = 0; k < operands.size(); ++k)
      if (operands[k].has(i))
        in.push_back(static_cast<int>(codes[k] >> (i - operands[k].shift) & 1) ^
                     operands[k].inverts(i));
    in.push_back(bit.one);
    const int ones = static_cast<int>(std::count(in.begin(), in.end(), 1));
    if (i == plan.first) carry = plan.carry_first;
    int sum = 0;
    switch (bit.kind) {
      case CarryBit::Kind::below:
        EXPECT_LT(ones, 2);
        sum = ones;
        break;
      case CarryBit::Kind::plain: {
        EXPECT_LT(ones, 3);
        EXPECT_EQ(kept, 0) << "left over and not added";
        sum = ones % 2 ^ carry;
        carry = (ones + carry) / 2;
        break;
      }
      case CarryBit::Kind::compressed: {
        if (i == plan.second) kept = plan.carry_second;
        const int s = ones % 2 + kept + carry;
        EXPECT_LE(ones, 3);
        kept = ones >= 2;
        EXPECT_TRUE(bit.keeps || kept == 0);
        sum = s % 2;
        carry = s / 2;
        break;
      }
    }
    result |= static_cast<uint64_t>(sum) << i;
  }
  return static_cast<int64_t>(result);
}

RC_GTEST_PROP(carry_property, a_plan_is_the_sum, ()) {
  const size_t count = *rc::gen::inRange<size_t>(2, 4);
  std::vector<CarryOperand> operands;
  std::vector<IntegerRange> ranges;
  std::vector<int64_t> factors;
  for (size_t k = 0; k < count; ++k) {
    const int64_t low = *rc::gen::element<int64_t>(0, 0, -1, -8, -100, 3);
    ranges.push_back({low, low + *rc::gen::element<int64_t>(1, 6, 15, 200)});
    factors.push_back(*rc::gen::element<int64_t>(1, -1, 2, -4, 32, -64));
    operands.emplace_back(ranges[k], factors[k]);
  }
  const int width = *rc::gen::inRange(4, 20);
  // Operands' own constants, and carries; sums of two take any.
  int64_t constant = *rc::gen::inRange<int64_t>(-5000, 5000);
  if (*rc::gen::element(true, true, false)) {
    constant = *rc::gen::element<int64_t>(0, 1, 2, 4, 3, 64);
    for (const CarryOperand& operand : operands)
      constant += operand.offset() * (int64_t{1} << operand.shift);
  }
  const std::optional<CarryPlan> plan = carry_plan(operands, constant, width);
  if (count == 2) RC_ASSERT(plan.has_value());
  if (!plan) return;
  const int64_t mask = (int64_t{1} << width) - 1;
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<int64_t> codes;
    int64_t wanted = constant;
    for (size_t k = 0; k < count; ++k) {
      codes.push_back(*rc::gen::inRange<int64_t>(ranges[k].low, ranges[k].high + 1));
      wanted += factors[k] * codes[k];
    }
    RC_ASSERT(by_plan(*plan, operands, codes) == (wanted & mask));
  }
}

// Sums of two and three inputs of different widths, shifts and signs, with constants that find a
// place.
IntegerGraph drawn_chains(int count) {
  std::mt19937 random(11);
  IntegerBuilder builder("chains");
  std::vector<IntegerId> inputs;
  const std::vector<IntegerRange> ranges = {{-8, 7}, {0, 15}, {-3, 12}, {-1, 0}, {0, 1}, {-64, 63}};
  for (size_t i = 0; i < ranges.size(); ++i)
    inputs.push_back(builder.input(ranges[i], 0, fmt::format("x_{}", i)));
  builder.add_layer("layer0");
  while (static_cast<int>(builder.graph().outputs.size()) < count) {
    std::vector<IntegerId> operands;
    std::vector<int64_t> numbers = {0, 0};
    const size_t wanted = 2 + random() % 2;
    int64_t constant = static_cast<int64_t>(random() % 60) - 30;
    std::vector<CarryOperand> entering;
    for (size_t k = 0; k < wanted; ++k) {
      operands.push_back(inputs[random() % inputs.size()]);
      const int64_t factor = (random() % 2 ? 1 : -1) * (int64_t{1} << random() % 5);
      numbers.push_back(factor);
      entering.emplace_back(builder.at(operands.back()).range, factor);
    }
    if (wanted == 3) {  // what the operands bring along, and carries
      constant = static_cast<int64_t>(random() % 4);
      for (const CarryOperand& operand : entering)
        constant += operand.offset() * (int64_t{1} << operand.shift);
    }
    numbers[1] = constant;
    if (!carry_plan(entering, constant, 12)) continue;
    const IntegerId id = builder.node("chain", operands, numbers);
    if (builder.at(id).op->name != "chain" ||
        !builder.at(id).op->check(context_of(builder.graph(), builder.at(id))).empty())
      continue;
    builder.output(id);
  }
  return builder.finish();
}

ModuleProof proof_of(const IntegerGraph& graph,
                     const std::function<void(EmittedFiles&)>& change = {}) {
  Design design;
  design.options.target = "xcup";
  design.graph = graph;
  const TargetRecord& target = Registry<TargetRecord>::instance().get("xcup", "");
  design.emitted = emit_unrolled(graph, {"top", Dict{{"valid", false}}});
  EXPECT_TRUE(design.emitted.cells);
  for (const auto& [name, text] : target.modules())
    design.emitted.files["rtl/" + name + ".sv"] = text;
  EmittedFiles files = design.emitted.files;
  if (change) change(files);
  files["manifest.json"] = "{}";
  const std::string folder = temporary_folder() + "/design";
  write_design(folder, files);
  return prove_folder(design, folder);
}

TEST(carry, chains_are_what_they_should_be_for_all_inputs) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const IntegerGraph graph = drawn_chains(60);
  const ModuleProof cells = proof_of(graph);
  EXPECT_EQ(cells.fault, "");
  EXPECT_TRUE(cells.skipped.empty());
  EXPECT_EQ(cells.functions + cells.diagrams, 60);
  const ModuleProof plain = proof_of(graph, [](EmittedFiles& files) {
    for (const auto& [name, text] :
         Registry<TargetRecord>::instance().get("xcup", "").plain_modules())
      files["rtl/" + name + ".sv"] = text;
  });
  EXPECT_EQ(plain.fault, "");
  EXPECT_TRUE(plain.skipped.empty());
}

TEST(carry, faults_are_seen) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const IntegerGraph graph = drawn_chains(12);
  const auto replaced = [&](const std::string& file, const std::string& from,
                            const std::string& to) {
    return proof_of(graph, [&](EmittedFiles& files) {
      std::string& text = files.at(file);
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    });
  };
  EXPECT_NE(replaced("rtl/compressor.sv", "d4e8", "d4ea").fault, "");
  EXPECT_NE(replaced("rtl/compressor.sv", "16'h9669", "16'h9668").fault, "");
  EXPECT_NE(replaced("rtl/carry_chain.sv", ".CYINIT(first)", ".CYINIT(1'b0)").fault, "");
  EXPECT_NE(replaced("rtl/top.sv", " ^ ", " & ").fault, "");
}

// Sums of sums, some of which several read, of inputs and tables.
RC_GTEST_PROP(carry_property, a_graph_with_chains_is_the_same, ()) {
  IntegerBuilder builder("sums");
  std::vector<IntegerId> values;
  for (int i = 0; i < 4; ++i) {
    const int64_t low = *rc::gen::element<int64_t>(0, -8, -3);
    values.push_back(builder.input({low, low + *rc::gen::element<int64_t>(1, 7, 20)}, 0,
                                   fmt::format("x_{}", i)));
  }
  builder.add_layer("layer0");
  for (int i = 0; i < 2; ++i) {
    const IntegerRange range = builder.at(values[static_cast<size_t>(i)]).range;
    std::vector<int64_t> entries;
    for (int64_t code = range.low; code <= range.high; ++code)
      entries.push_back(*rc::gen::inRange<int64_t>(-9, 9));
    values.push_back(builder.table(values[static_cast<size_t>(i)], range.low, 0, entries));
  }
  const int sums = *rc::gen::inRange(2, 14);
  for (int i = 0; i < sums; ++i) {
    const IntegerId a = values[*rc::gen::inRange<size_t>(0, values.size())],
                    b = values[*rc::gen::inRange<size_t>(0, values.size())];
    if (a == b) continue;
    IntegerId sum = builder.node(*rc::gen::element<std::string>("add", "subtract"), {a, b},
                                 {0, 0, *rc::gen::inRange<int64_t>(0, 2)});
    if (*rc::gen::inRange(0, 4) == 0) sum = builder.node("invert", {sum}, {});
    if (*rc::gen::inRange(0, 4) == 0) sum = builder.add_constant(sum, *rc::gen::inRange(-40, 40));
    if (*rc::gen::inRange(0, 5) == 0) sum = builder.relu(sum);
    values.push_back(sum);
  }
  for (size_t i = values.size() - 1; i + 3 > values.size(); --i) builder.output(values[i]);
  const IntegerGraph before = builder.finish();
  const IntegerGraph after = with_carry_chains(before);
  verify(after);
  const DesignRows rows = random_rows(before, 100, 3);
  RC_ASSERT(IntegerProgram(after).run(rows.inputs) == rows.outputs);
}

TEST(carry, networks_get_smaller) {
  for (const char* name : {"w4_toy", "hgq_64_32_32_small"}) {
    const Fixture fixture = read_fixture(golden_path("hardware"), name);
    const Design plain = make_design(fixture.plain, {}),
                 chains = make_design(fixture.plain, {.target = "xcup"});
    EXPECT_LT(estimate(chains).luts, 0.87 * estimate(plain).luts) << name;
    EXPECT_LE(estimate(chains).levels, estimate(plain).levels + 0.5) << name;
    EXPECT_EQ(IntegerProgram(chains.graph).run(fixture.inputs),
              IntegerProgram(fixture.plain).run(fixture.inputs))
        << name;
    EXPECT_EQ(integer_graph_from_text(to_text(chains.graph), "text").nodes.size(),
              chains.graph.nodes.size());
  }
}

TEST(carry, a_pipeline_of_chains_is_proved) {
  if (!tool_exists("yosys")) GTEST_SKIP() << "yosys is not installed";
  const Fixture fixture = read_fixture(golden_path("hardware"), "w4_toy");
  const Design design = make_design(fixture.plain, {.target = "xcup", .levels = 12});
  EXPECT_GT(design.emitted.latency, 1);
  const std::string folder = temporary_folder() + "/design";
  write_design(folder, design_files(design, random_rows(design.graph, 20, 1), {}));
  const ModuleProof proof = prove_folder(design, folder);
  EXPECT_EQ(proof.fault, "");
  EXPECT_TRUE(proof.skipped.empty());
  // A folder's tools know its target.
  if (tool_exists("iverilog")) {
    const Simulation simulation = simulate_folder(folder, "iverilog", "");
    EXPECT_EQ(simulation.mismatches, 0);
  }
}

TEST(carry, targets_are_refused_where_they_mean_nothing) {
  const Fixture fixture = read_fixture(golden_path("hardware"), "w4_toy");
  EXPECT_THROW(make_design(fixture.plain, {.style = "stream", .target = "xcup"}), Error);
  EXPECT_THROW(make_design(fixture.plain, {.target = "nothing"}), Error);
  EXPECT_THROW(make_design(fixture.plain, {.target = "xcup", .top = "carry_chain"}), Error);
}

}  // namespace
}  // namespace mase::test::carry_test
