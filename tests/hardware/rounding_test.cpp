// SPDX-License-Identifier: Apache-2.0
// Roundings in integers against the formats' own kernels: every code of the operand where formats
// round each value alone, drawn blocks with ties and extremes where they do not. Under sanitizers,
// which look for other faults, a part of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "mase/base/random.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/lower/lower_rounding.h"
#include "mase/hardware/optimize/optimize.h"
#include "support/support.h"

namespace mase::test::rounding_test {
namespace {

struct Case {
  std::string format;
  Value config;
};

std::vector<Case> value_cases() {
  std::vector<Case> cases;
  for (const char* name : {"minifloat_ieee", "minifloat_denorm"})
    for (const auto& [width, exponent] : {std::pair{4, 2}, {5, 2}, {6, 3}, {8, 4}, {5, 3}, {3, 1}})
      cases.push_back({name, Dict{{"width", width}, {"exponent_width", exponent}}});
  cases.push_back(
      {"minifloat_ieee", Dict{{"width", 6}, {"exponent_width", 3}, {"exponent_bias", 6}}});
  for (const char* name : {"log", "power_of_two"})
    for (const int width : {2, 3, 4, 5}) {
      cases.push_back({name, Dict{{"width", width}}});
      cases.push_back({name, Dict{{"width", width}, {"exponent_bias", 5}}});
    }
  cases.push_back({"binary", Dict{{"bipolar", true}}});
  cases.push_back({"ternary", Dict{{"threshold", 0.5}}});
  cases.push_back({"ternary", Dict{{"threshold", 0.3}}});
  for (const char* rounding : {"ceil", "half_toward_zero", "away_from_zero", "half_away"})
    cases.push_back({"integer", Dict{{"width", 5}, {"frac_width", 2}, {"rounding", rounding}}});
  return cases;
}

class Values : public testing::TestWithParam<Case> {};

TEST_P(Values, every_code_is_rounded_as_the_format_rounds) {
  const QuantizerPtr format = make_quantizer(GetParam().format, GetParam().config);
  struct Operand {
    IntegerRange range;
    int frac;
  };
  for (const Operand& operand :
       {Operand{{-2048, 2047}, 6}, Operand{{-20, 30}, 3}, Operand{{0, 3000}, 7},
        Operand{{-500, -3}, 4}, Operand{{-300, 301}, -1}, Operand{{-2000, 2000}, 12}}) {
    IntegerBuilder builder("net");
    const IntegerId x = builder.input(operand.range, operand.frac, "x");
    builder.output(lower_rounding(builder, {x}, *format, "layer")[0]);
    const IntegerGraph plain = builder.finish();
    const IntegerGraph small = optimize(plain).graph;
    std::vector<int64_t> codes;
    std::vector<float> wanted;
    for (int64_t code = operand.range.low; code <= operand.range.high; ++code) {
      if (sanitized && code % 11 != 0 && code != operand.range.low && code != operand.range.high)
        continue;
      codes.push_back(code);
      wanted.push_back(static_cast<float>(std::ldexp(static_cast<double>(code), -operand.frac)));
    }
    format->quantize(wanted.data(), wanted.data(), {static_cast<int64_t>(wanted.size())});
    for (const IntegerGraph* graph : {&plain, &small}) {
      const std::vector<int64_t> found = IntegerProgram(*graph).run(codes);
      ASSERT_EQ(found, interpret_reference(*graph, codes));
      const int frac = graph->at(graph->outputs[0]).frac;
      for (size_t i = 0; i < codes.size(); ++i)
        if (const double mine = std::ldexp(static_cast<double>(found[i]), -frac);
            mine != static_cast<double>(wanted[i]))
          FAIL() << mine << " in integers, " << wanted[i] << " by " << GetParam().format << " "
                 << to_json(GetParam().config) << ", code " << codes[i] << " of binary point "
                 << operand.frac;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(hardware, Values, testing::ValuesIn(value_cases()));

// Rows of a block: drawn sizes, so that every shared exponent comes, ties and extremes.
std::vector<int64_t> block_rows(const std::vector<IntegerRange>& ranges, size_t rows) {
  std::vector<int64_t> codes;
  Random random(7, "blocks");
  for (size_t row = 0; row < rows; ++row) {
    const int bits = static_cast<int>(random.below(14));
    for (const IntegerRange& range : ranges) {
      int64_t code =
          range.low +
          static_cast<int64_t>(random.below(static_cast<uint64_t>(range.high - range.low) + 1));
      if (row % 4 == 0) code = random.below(2) == 0 ? range.low : range.high;
      if (row % 4 == 1)
        code = (int64_t{1} << random.below(12)) - static_cast<int64_t>(random.below(3));
      code = std::clamp(code >> bits, range.low, range.high);
      codes.push_back(row == 2 ? std::clamp<int64_t>(0, range.low, range.high) : code);
    }
  }
  return codes;
}

TEST(blocks, are_rounded_as_the_format_rounds) {
  std::vector<Case> cases;
  for (const int width : {2, 4, 8})
    for (const int scale_bits : {2, 3, 8})
      for (const char* rounding : {"nearest_even", "half_away", "toward_zero"})
        cases.push_back({"mxint", Dict{{"width", width},
                                       {"block_size", 4},
                                       {"scale_bits", scale_bits},
                                       {"rounding", rounding}}});
  for (const auto& [exponent, fraction] : {std::pair{2, 1}, {2, 3}, {3, 2}, {4, 3}, {5, 2}})
    for (const int scale_bits : {3, 8})
      cases.push_back({"mxfp", Dict{{"exponent_width", exponent},
                                    {"frac_width", fraction},
                                    {"block_size", 4},
                                    {"scale_bits", scale_bits}}});
  for (const int width : {3, 5, 8})
    cases.push_back({"block_fp", Dict{{"width", width}, {"block_size", List{Value(1), Value(4)}}}});
  for (const Case& one : cases) {
    const QuantizerPtr format = make_quantizer(one.format, one.config);
    const std::vector<IntegerRange> ranges = {{-2048, 2047}, {0, 500},    {-100, 100},
                                              {-2000, 37},   {-700, 700}, {0, 3}};
    const std::vector<int> fracs = {6, 6, 4, 7, 5, 6};
    IntegerBuilder builder("net");
    std::vector<IntegerId> inputs;
    for (size_t i = 0; i < ranges.size(); ++i)
      inputs.push_back(builder.input(ranges[i], fracs[i], fmt::format("x{}", i)));
    for (const IntegerId id : lower_rounding(builder, inputs, *format, "layer")) builder.output(id);
    const IntegerGraph graph = builder.finish();
    const std::vector<int64_t> codes = block_rows(ranges, sanitized ? 200 : 2000);
    const std::vector<int64_t> found = IntegerProgram(graph).run(codes);
    std::vector<float> wanted;
    for (size_t i = 0; i < codes.size(); ++i)
      wanted.push_back(
          static_cast<float>(std::ldexp(static_cast<double>(codes[i]), -fracs[i % fracs.size()])));
    const Shape shape = {static_cast<int64_t>(codes.size() / 6), 6};
    format->quantize(wanted.data(), wanted.data(), shape);
    for (size_t i = 0; i < codes.size(); ++i) {
      const int frac = graph.at(graph.outputs[i % 6]).frac;
      ASSERT_EQ(std::ldexp(static_cast<double>(found[i]), -frac), static_cast<double>(wanted[i]))
          << one.format << " " << to_json(one.config) << " row " << i / 6 << " feature " << i % 6;
    }
  }
}

TEST(rounding, what_has_no_integers_is_refused) {
  const auto refusal = [](const std::string& format, const Value& config) -> std::string {
    IntegerBuilder builder("net");
    const IntegerId x = builder.input({-2048, 2047}, 6, "x");
    try {
      lower_rounding(builder, {x}, *make_quantizer(format, config), "layer");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal("binary", Dict{{"bipolar", false}}), testing::HasSubstr("layer: binary"));
  EXPECT_THAT(refusal("ternary", Dict{{"scaling_factor", true}}), testing::HasSubstr("no exact"));
  EXPECT_THAT(refusal("integer", Dict{{"width", 4}, {"rounding", "stochastic"}}),
              testing::HasSubstr("by chance"));
  EXPECT_EQ(refusal("mxint", Dict{{"width", 4}}), "");
}

}  // namespace
}  // namespace mase::test::rounding_test
