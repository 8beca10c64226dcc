// SPDX-License-Identifier: Apache-2.0
// Every rounding with every overflow, sign and range of fixed point on small widths, for every code
// of the operand: the engine's kernel, the integer graph as lowered and as optimised, and the
// emitted SystemVerilog (simulated, and read back by Yosys) give the same number; so does a formula
// that shares nothing with them.
#include <gtest/gtest.h>

#include <cmath>

#include "hardware/fixtures.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/lower/lower_rounding.h"
#include "mase/hardware/optimize/optimize.h"
#include "mase/hardware/tools/tool.h"
#include "mase/models/sequential.h"
#include "mase/passes/pass.h"
#include "mase/run/hardware/hardware.h"

namespace mase::test::rounding_grid_test {
namespace {

struct GridFormat {
  std::string rounding, overflow;
  bool is_signed, narrow;
  int width, frac;

  Dict keys(const std::string& prefix = "") const {
    Dict dict{{prefix + "width", width},
              {prefix + "frac_width", frac},
              {prefix + "rounding", rounding},
              {prefix + "overflow", overflow},
              {prefix + "is_signed", is_signed}};
    if (narrow) dict.set(prefix + "narrow", true);
    return dict;
  }
};

std::vector<GridFormat> grid(const std::vector<int>& widths, const std::vector<int>& fracs) {
  std::vector<GridFormat> formats;
  for (const std::string& rounding : rounding_names()) {
    if (rounding == "stochastic") continue;
    for (const char* overflow : {"saturate", "wrap"})
      for (const bool is_signed : {true, false})
        for (const bool narrow : {false, true})
          for (const int width : widths)
            for (const int frac : fracs) {
              // What wraps has all codes, and only signed codes have a lowest one to leave out.
              if (narrow && (!is_signed || width < 2 || std::string(overflow) == "wrap")) continue;
              formats.push_back({rounding, overflow, is_signed, narrow, width, frac});
            }
  }
  return formats;
}

// The formula, in halves of a step as whole numbers: x = twice / 2.
double by_formula(const GridFormat& format, double value) {
  const double x = std::ldexp(value, format.frac), below = std::floor(x), rest = x - below;
  double whole = below;
  if (rest != 0) {
    const bool positive = x > 0, tie = rest == 0.5, near_above = rest > 0.5;
    const bool even_below = std::fmod(below, 2) == 0;
    bool up = near_above;
    if (format.rounding == "nearest_even") up = near_above || (tie && !even_below);
    if (format.rounding == "half_up") up = near_above || tie;
    if (format.rounding == "half_away") up = near_above || (tie && positive);
    if (format.rounding == "half_toward_zero") up = near_above || (tie && !positive);
    if (format.rounding == "toward_zero") up = !positive;
    if (format.rounding == "away_from_zero") up = positive;
    if (format.rounding == "floor") up = false;
    if (format.rounding == "ceil") up = true;
    whole += up;
  }
  const double codes = std::ldexp(1.0, format.width);
  const double low = format.is_signed ? -codes / 2 + (format.narrow ? 1 : 0) : 0,
               high = format.is_signed ? codes / 2 - 1 : codes - 1;
  if (format.overflow == "saturate") return std::ldexp(std::clamp(whole, low, high), -format.frac);
  while (whole < low) whole += codes;
  while (whole > high) whole -= codes;
  return std::ldexp(whole, -format.frac);
}

struct Operand {
  IntegerRange range;
  int frac;
};
const std::vector<Operand> operands = {
    {{-128, 127}, 4}, {{0, 255}, 4}, {{-200, -1}, 3}, {{-3, 4}, 1}, {{-9, 60}, 0}};

std::string text_of(const GridFormat& format) { return to_json(Value(format.keys())); }

TEST(rounding_grid, engine_formula_and_integers_agree_on_every_code) {
  for (const GridFormat& format :
       grid(sanitized ? std::vector{1, 4} : std::vector{1, 2, 3, 5}, {-1, 0, 2, 5})) {
    const QuantizerPtr quantizer = make_quantizer("integer", format.keys());
    for (const Operand& operand : operands) {
      IntegerBuilder builder("net");
      const IntegerId x = builder.input(operand.range, operand.frac, "x");
      builder.output(lower_rounding(builder, {x}, *quantizer, "layer")[0]);
      const IntegerGraph plain = builder.finish(), small = optimize(plain).graph;
      std::vector<int64_t> codes;
      std::vector<float> values;
      for (int64_t code = operand.range.low; code <= operand.range.high; ++code) {
        codes.push_back(code);
        values.push_back(static_cast<float>(std::ldexp(static_cast<double>(code), -operand.frac)));
      }
      const std::vector<float> given = values;
      quantizer->quantize(values.data(), values.data(), {static_cast<int64_t>(values.size())});
      for (const IntegerGraph* graph : {&plain, &small}) {
        const std::vector<int64_t> found = IntegerProgram(*graph).run(codes);
        ASSERT_EQ(found, interpret_reference(*graph, codes));
        const int frac = graph->at(graph->outputs[0]).frac;
        for (size_t i = 0; i < codes.size(); ++i) {
          const double mine = std::ldexp(static_cast<double>(found[i]), -frac);
          ASSERT_EQ(mine, static_cast<double>(values[i])) << text_of(format) << " of " << given[i];
          ASSERT_EQ(mine, by_formula(format, given[i])) << text_of(format) << " of " << given[i];
        }
      }
    }
  }
}

// One design with an output for each format; what the testbench wants is the formula's.
TEST(rounding_grid, the_systemverilog_agrees_on_every_code) {
  const std::vector<GridFormat> formats = grid({1, 2, 4}, {-1, 0, 2});
  for (const double levels : {0.0, 6.0}) {
    const Operand operand = operands[levels > 0 ? 2 : 0];
    IntegerBuilder builder("net");
    const IntegerId x = builder.input(operand.range, operand.frac, "x");
    for (const GridFormat& format : formats)
      builder.output(
          lower_rounding(builder, {x}, *make_quantizer("integer", format.keys()), "layer")[0]);
    const Design design = make_design(builder.finish(), {.effort = 0, .levels = levels});
    DesignRows rows{{}, {}, "every code"};
    for (int64_t code = operand.range.low; code <= operand.range.high; ++code) {
      rows.inputs.push_back(code);
      for (size_t i = 0; i < formats.size(); ++i) {
        const double value = std::ldexp(static_cast<double>(code), -operand.frac);
        const int frac = design.graph.at(design.graph.outputs[i]).frac;
        rows.outputs.push_back(
            static_cast<int64_t>(std::ldexp(by_formula(formats[i], value), frac)));
      }
    }
    const std::string folder = temporary_folder() + "/design";
    write_design(folder, design_files(design, rows, {}));
    if (tool_exists("iverilog")) {
      const Simulation result = simulate_folder(folder, "iverilog", "");
      EXPECT_EQ(result.mismatches, 0) << result.output;
      EXPECT_EQ(result.rows, operand.range.high - operand.range.low + 1);
    }
    if (tool_exists("yosys")) {
      const ModuleProof proof = prove_folder(design, folder);
      EXPECT_EQ(proof.fault, "");
      EXPECT_TRUE(proof.proved());
    }
  }
}

// A neuron of 11/8 and its negative, every code of the input through the engine and the integers.
TEST(rounding_grid, the_engine_and_the_integers_of_a_network_agree_on_every_code) {
  for (const GridFormat& format : grid({1, 4}, {0, 2})) {
    Sequential network("n", {.sample_shape = {1}, .outputs = 2, .seed = 1}, {1}, 2);
    Graph graph = network.linear(2).finish();
    for (auto& [path, module] : graph.modules())
      for (auto& [name, tensor] : module.parameters) {
        tensor.mutable_data<float>()[0] = name == "weight" ? 1.375f : 0.25f;
        tensor.mutable_data<float>()[1] = name == "weight" ? -1.375f : 0.0f;
      }
    Dict config = format.keys("data_out_");
    config.set("name", "integer");
    for (const char* operand : {"data_in", "weight", "bias"}) {
      config.set(fmt::format("{}_width", operand), 8);
      config.set(fmt::format("{}_frac_width", operand), 4);
    }
    const Graph original = graph;
    PassContext context;
    context.original = &original;
    run_passes(
        graph,
        pass_calls(
            Value(Dict{{"quantize", Dict{{"by", "type"}, {"linear", Dict{{"config", config}}}}}}),
            "passes"),
        context);
    HardwareNetwork hardware;
    hardware.lowered = lower(graph);
    std::vector<float> rows;
    for (int code = -128; code < 128; ++code) rows.push_back(static_cast<float>(code) / 16);
    hardware.test_rows = Tensor::of({256, 1}, rows);
    hardware.rows_origin = "every code";
    hardware.network = graph;
    EXPECT_TRUE(compare_with_engine(hardware, {}).engine) << text_of(format);
    const std::vector<int64_t> outputs =
        IntegerProgram(hardware.lowered.graph).run(compare_with_engine(hardware, {}).inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const double sum = i % 2 == 0 ? 1.375 * rows[i / 2] + 0.25 : -1.375 * rows[i / 2];
      const int frac = hardware.lowered.graph.at(hardware.lowered.graph.outputs[i % 2]).frac;
      ASSERT_EQ(std::ldexp(static_cast<double>(outputs[i]), -frac), by_formula(format, sum))
          << text_of(format) << " of " << sum;
    }
  }
}

}  // namespace
}  // namespace mase::test::rounding_grid_test
