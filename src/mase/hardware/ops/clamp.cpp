// SPDX-License-Identifier: Apache-2.0
// relu: max(a, 0). clamp: a within [low, high]. wrap: the lowest bits of a, with or without sign.
#include <algorithm>

#include "mase/hardware/cost/bit_times.h"
#include "mase/hardware/emit/verilog_text.h"

namespace mase::clamp_integer_op {
namespace {

// All bits of `value` where the mask bit is one.
std::string gated(const std::string& value, const std::string& when, int width) {
  return width == 1 ? fmt::format("{} & {}", value, when)
                    : fmt::format("{} & {{{}{{{}}}}}", value, width, when);
}

std::string relu_text(const IntegerContext& c, const std::vector<VerilogOperand>& operands) {
  const int width = std::max(1, c.node.range.width());
  const std::string value = extended(operands[0], 0, 0, width);
  if (!operands[0].range.is_signed()) return value;
  return gated(value, fmt::format("~{}", sign_bit(operands[0])), width);
}

bool is_power_minus_one(int64_t value) { return value >= 0 && ((value + 1) & value) == 0; }

// Whether the bits above the result are not all what the result's sign says.
std::string clamp_text(const IntegerContext& c, const std::vector<VerilogOperand>& operands) {
  const VerilogOperand& a = operands[0];
  const int64_t low = c.number(0), high = c.number(1);
  const int width = std::max(1, c.node.range.width());
  const int source = a.range.width();
  const bool below = a.range.low<low, above = a.range.high> high;
  const std::string value = extended(a, 0, 0, width);
  if (!below && !above) return value;
  // From zero up to ones: the dropped high bits force ones, the sign forces zeros.
  if (low == 0 && is_power_minus_one(high) && high > 0 && above) {
    const int top = a.range.is_signed() ? source - 1 : source;
    const std::string over = fmt::format("|{}", extended(a, 0, width, top));
    const std::string forced = width == 1 ? fmt::format("{} | ({})", value, over)
                                          : fmt::format("{} | {{{}{{{}}}}}", value, width, over);
    return below ? gated("(" + forced + ")", fmt::format("~{}", sign_bit(a)), width) : forced;
  }
  // Two's complement limits: overflow where the bits from the sign up differ.
  if (high > 0 && is_power_minus_one(high) && low == -high - 1 && a.range.is_signed()) {
    const std::string upper = extended(a, 0, width - 1, source);
    const std::string limit =
        fmt::format("{{{}, {{{}{{~{}}}}}}}", sign_bit(a), width - 1, sign_bit(a));
    return fmt::format("(&{0} | ~|{0}) ? {1} : {2}", upper, value, limit);
  }
  // Any other limits: compare as plain numbers after moving the sign bit's place.
  const int wide = source + (a.range.is_signed() ? 0 : 1);
  std::string text = value;
  const std::string mine = fmt::format("{{~{}, {}}}", extended(a, 0, wide - 1, wide),
                                       extended(a, 0, 0, std::max(1, wide - 1)));
  const auto constant = [&](int64_t limit) {
    return literal_bits(limit + (int64_t{1} << (wide - 1)), wide);
  };
  if (above)
    text =
        fmt::format("({} > {}) ? {} : {}", mine, constant(high), literal_bits(high, width), text);
  if (below)
    text = fmt::format("({} < {}) ? {} : {}", mine, constant(low), literal_bits(low, width),
                       above ? "(" + text + ")" : text);
  return text;
}

std::string wrap_check(const IntegerContext& c) {
  if (c.number(0) < 1 || c.number(0) > integer_limit_bits) return "its width is out of range";
  return c.number(1) != 0 && c.number(1) != 1 ? "signed is 0 or 1" : "";
}

int64_t wrapped(int64_t value, int64_t width, bool is_signed) {
  const int64_t modulus = int64_t{1} << width;
  int64_t rest = value & (modulus - 1);
  if (is_signed && rest >= modulus / 2) rest -= modulus;
  return rest;
}

IntegerRange wrap_range(const IntegerContext& c) {
  const int64_t modulus = int64_t{1} << c.number(0);
  const bool is_signed = c.number(1) == 1;
  const IntegerRange all =
      is_signed ? IntegerRange{-modulus / 2, modulus / 2 - 1} : IntegerRange{0, modulus - 1};
  return all.contains(c.ranges[0]) ? c.ranges[0] : all;
}

const Register<IntegerOpRecord> registered{{
    .name = "clamp",
    .summary = "a within [low, high]",
    .numbers = {"low", "high"},
    .check = [](const IntegerContext& c) -> std::string {
      return c.number(0) > c.number(1) ? "low is above high" : "";
    },
    .evaluate =
        [](const int64_t* in, const IntegerNode& node) {
          return std::clamp(in[0], node.numbers[0], node.numbers[1]);
        },
    .lanes =
        [](const IntegerNode& node) {
          // Limits beyond the interval may not fit in the lanes; they are never met.
          return LaneStep{LaneOp::clamp, std::max(node.numbers[0], node.range.low),
                          std::min(node.numbers[1], node.range.high)};
        },
    .range =
        [](const IntegerContext& c) {
          return IntegerRange{std::clamp(c.ranges[0].low, c.number(0), c.number(1)),
                              std::clamp(c.ranges[0].high, c.number(0), c.number(1))};
        },
    .frac = [](const IntegerContext& c) { return c.fracs[0]; },
    .luts = [](const IntegerContext& c) { return c.node.range.width() + 1; },
    .delay = [](const IntegerContext&) { return 1.5; },
    .verilog = clamp_text,
    .cpp =
        []([[maybe_unused]] const IntegerContext& c, [[maybe_unused]] const auto& v) {
          return fmt::format("limit({}, {}LL, {}LL)", v[0], c.number(0), c.number(1));
        },
}};

const Register<IntegerOpRecord> relu{{
    .name = "relu",
    .summary = "max(a, 0)",
    .evaluate = [](const int64_t* in, const IntegerNode&) { return std::max<int64_t>(in[0], 0); },
    // Codes of narrow programs end below this limit.
    .lanes =
        [](const IntegerNode& node) {
          return LaneStep{LaneOp::clamp, 0, node.range.high};
        },
    .range =
        [](const IntegerContext& c) {
          return IntegerRange{std::max<int64_t>(c.ranges[0].low, 0),
                              std::max<int64_t>(c.ranges[0].high, 0)};
        },
    .frac = [](const IntegerContext& c) { return c.fracs[0]; },
    .luts = [](const IntegerContext& c) { return c.node.range.width(); },
    .delay = [](const IntegerContext&) { return 1; },
    // The table of the next addition takes the sign along with each bit.
    .times =
        [](const IntegerContext& c, const auto& operands) {
          BitTimes bits = sliced_bits(c, operands[0], 0);
          if (!operands[0].empty())
            for (double& time : bits) time = std::max(time, operands[0].back());
          return bits;
        },
    .verilog = relu_text,
    .cpp = []([[maybe_unused]] const IntegerContext& c,
              [[maybe_unused]] const auto& v) { return fmt::format("{0} < 0 ? 0 : {0}", v[0]); },
}};

const Register<IntegerOpRecord> wrap{{
    .name = "wrap",
    .summary = "the lowest bits of a",
    .numbers = {"width", "signed"},
    .check = wrap_check,
    .evaluate =
        [](const int64_t* in, const IntegerNode& node) {
          return wrapped(in[0], node.numbers[0], node.numbers[1] == 1);
        },
    .lanes =
        [](const IntegerNode& node) {
          const int64_t modulus = int64_t{1} << node.numbers[0];
          return LaneStep{LaneOp::wrap, modulus - 1, node.numbers[1] == 1 ? modulus / 2 : 0};
        },
    .range = wrap_range,
    .frac = [](const IntegerContext& c) { return c.fracs[0]; },
    .times = [](const IntegerContext& c,
                const auto& operands) { return sliced_bits(c, operands[0], 0); },
    .verilog =
        [](const IntegerContext& c, const auto& operands) {
          return extended(operands[0], 0, 0, std::max(1, c.node.range.width()));
        },
    .cpp =
        []([[maybe_unused]] const IntegerContext& c, [[maybe_unused]] const auto& v) {
          return fmt::format("around({}, {}, {}LL)", v[0], c.number(0),
                             c.number(1) == 1 ? -(int64_t{1} << (c.number(0) - 1)) : 0);
        },
}};

}  // namespace
}  // namespace mase::clamp_integer_op
