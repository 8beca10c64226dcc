// SPDX-License-Identifier: Apache-2.0
// input: a code from outside, given with its interval and binary point. constant: a code that never
// changes.
#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/graph/integer_graph.h"

namespace mase::input_integer_op {
namespace {

const Register<IntegerOpRecord> registered{{
    .name = "input",
    .summary = "a code from outside",
    .arity = 0,
    .numbers = {"index"},
    .evaluate = {},
    .range = [](const IntegerContext& c) { return c.node.range; },
    .frac = [](const IntegerContext& c) { return c.node.frac; },
}};

const Register<IntegerOpRecord> constant{{
    .name = "constant",
    .summary = "a code that never changes",
    .arity = 0,
    .numbers = {"value"},
    .affine = true,
    .evaluate = [](const int64_t*, const IntegerNode& node) { return node.numbers[0]; },
    .range =
        [](const IntegerContext& c) {
          return IntegerRange{c.number(0), c.number(0)};
        },
    .frac = [](const IntegerContext& c) { return c.node.frac; },
    .rule =
        [](const IntegerContext& c) {
          return AffineRule{{}, c.number(0)};
        },
    .verilog = [](const IntegerContext& c,
                  const auto&) { return literal(c.number(0), c.node.range); },
    .cpp = []([[maybe_unused]] const IntegerContext& c,
              [[maybe_unused]] const auto& v) { return fmt::format("{}LL", c.number(0)); },
}};

}  // namespace
}  // namespace mase::input_integer_op
