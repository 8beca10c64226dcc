// SPDX-License-Identifier: Apache-2.0
// scale: a times a whole constant, with the binary point said (the constant's own is in it). It is
// what lowering writes for weights; the optimiser makes additions of it, so no emitter sees it.
// A factor of 1 only says another binary point. shift: a 2^amount, which is wiring. negate: -a.
// invert: -a - 1, every bit turned over, which costs nothing: the tables that read it do it.
#include <algorithm>
#include <bit>

#include "mase/hardware/cost/bit_times.h"
#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/graph/linear_form.h"
#include "mase/hardware/optimize/cmvm.h"

namespace mase::scale_integer_op {
namespace {

IntegerRange scaled(const IntegerRange& range, int64_t factor) {
  const int64_t first = checked_multiply(range.low, factor),
                second = checked_multiply(range.high, factor);
  return {std::min(first, second), std::max(first, second)};
}

const Register<IntegerOpRecord> registered{{
    .name = "scale",
    .summary = "a times a whole constant",
    .numbers = {"factor", "frac"},
    .affine = true,
    .check = [](const IntegerContext& c) -> std::string {
      return c.number(1) < -1000 || c.number(1) > 1000 ? "its binary point is out of range" : "";
    },
    .evaluate = [](const int64_t* in, const IntegerNode& node) { return in[0] * node.numbers[0]; },
    .lanes =
        [](const IntegerNode& node) {
          return LaneStep{LaneOp::multiply, node.numbers[0]};
        },
    .range = [](const IntegerContext& c) { return scaled(c.ranges[0], c.number(0)); },
    .frac = [](const IntegerContext& c) { return static_cast<int>(c.number(1)); },
    .rule =
        [](const IntegerContext& c) {
          return AffineRule{{c.number(0)}, 0};
        },
    // As additions of the constant's bits, before anything is shared.
    .luts =
        [](const IntegerContext& c) {
          const uint64_t bits = static_cast<uint64_t>(c.number(0) < 0 ? -c.number(0) : c.number(0));
          return static_cast<double>(std::max(0, std::popcount(bits) - 1)) * c.ranges[0].width();
        },
    .times = [](const IntegerContext& c,
                const auto& operands) { return sliced_bits(c, operands[0], 0); },
    .verilog =
        [](const IntegerContext& c, const auto& operands) {
          MASE_CHECK(c.number(0) == 1, "a factor of {} in an emitted graph", c.number(0));
          return extended(operands[0], 0, 0, std::max(1, c.node.range.width()));
        },
    .cpp =
        []([[maybe_unused]] const IntegerContext& c, [[maybe_unused]] const auto& v) {
          return fmt::format("{} * {}LL", v[0], c.number(0));
        },
}};

const Register<IntegerOpRecord> shift{{
    .name = "shift",
    .summary = "a 2^amount: wiring",
    .numbers = {"amount"},
    .affine = true,
    .check = [](const IntegerContext& c) -> std::string {
      return c.number(0) < 0 || c.number(0) > 60 ? "an amount is within 0 to 60" : "";
    },
    .evaluate = [](const int64_t* in,
                   const IntegerNode& node) { return in[0] * (int64_t{1} << node.numbers[0]); },
    .lanes =
        [](const IntegerNode& node) {
          return LaneStep{LaneOp::shift_left, node.numbers[0]};
        },
    .range = [](const IntegerContext& c) { return scaled(c.ranges[0], int64_t{1} << c.number(0)); },
    .frac = [](const IntegerContext& c) { return c.fracs[0] + static_cast<int>(c.number(0)); },
    .rule =
        [](const IntegerContext& c) {
          return AffineRule{{int64_t{1} << c.number(0)}, 0};
        },
    .low_zeros = [](const IntegerNode& node) { return static_cast<int>(node.numbers[0]); },
    .times =
        [](const IntegerContext& c, const auto& operands) {
          return moved_bits(operands[0], c.ranges[0].is_signed(), static_cast<int>(c.number(0)), 0,
                            c.node.range.width());
        },
    .verilog =
        [](const IntegerContext& c, const auto& operands) {
          return extended(operands[0], static_cast<int>(c.number(0)), 0,
                          std::max(1, c.node.range.width()));
        },
    .cpp =
        []([[maybe_unused]] const IntegerContext& c, [[maybe_unused]] const auto& v) {
          return fmt::format("up({}, {})", v[0], c.number(0));
        },
}};

const Register<IntegerOpRecord> negate{{
    .name = "negate",
    .summary = "-a",
    .affine = true,
    .evaluate = [](const int64_t* in, const IntegerNode&) { return -in[0]; },
    .lanes =
        [](const IntegerNode&) {
          return LaneStep{LaneOp::multiply, -1};
        },
    .range = [](const IntegerContext& c) { return scaled(c.ranges[0], -1); },
    .frac = [](const IntegerContext& c) { return c.fracs[0]; },
    .rule =
        [](const IntegerContext&) {
          return AffineRule{{-1}, 0};
        },
    .luts = [](const IntegerContext& c) { return std::max(0, c.ranges[0].width() - 1); },
    .delay = [](const IntegerContext& c) { return chain_delay(c.node.range.width()); },
    .times =
        [](const IntegerContext& c, const auto& operands) {
          const BitTimes bits = sliced_bits(c, operands[0], 0);
          return chain_times(bits, bits);
        },
    .verilog =
        [](const IntegerContext& c, const auto& operands) {
          const int width = std::max(1, c.node.range.width());
          return fmt::format("{} - {}", literal_bits(0, width), extended(operands[0], 0, 0, width));
        },
    .cpp = []([[maybe_unused]] const IntegerContext& c,
              [[maybe_unused]] const auto& v) { return "-" + v[0]; },
}};

const Register<IntegerOpRecord> invert{{
    .name = "invert",
    .summary = "-a - 1: every bit turned over",
    .affine = true,
    .evaluate = [](const int64_t* in, const IntegerNode&) { return -in[0] - 1; },
    // a - 2 a - 1: a step has its only operand twice.
    .lanes =
        [](const IntegerNode&) {
          return LaneStep{LaneOp::subtract, 0, 1, 1};
        },
    .range =
        [](const IntegerContext& c) {
          return IntegerRange{-c.ranges[0].high - 1, -c.ranges[0].low - 1};
        },
    .frac = [](const IntegerContext& c) { return c.fracs[0]; },
    .rule =
        [](const IntegerContext&) {
          return AffineRule{{-1}, -1};
        },
    .times = [](const IntegerContext& c,
                const auto& operands) { return sliced_bits(c, operands[0], 0); },
    .verilog =
        [](const IntegerContext& c, const auto& operands) {
          return fmt::format("~{}", extended(operands[0], 0, 0, std::max(1, c.node.range.width())));
        },
    .cpp = []([[maybe_unused]] const IntegerContext& c,
              [[maybe_unused]] const auto& v) { return fmt::format("-{} - 1", v[0]); },
}};

}  // namespace
}  // namespace mase::scale_integer_op
