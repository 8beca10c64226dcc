// SPDX-License-Identifier: Apache-2.0
// magnitude: |a|. Every bit turned over where the sign says so, and one more.
#include <algorithm>
#include <cmath>

#include "mase/hardware/emit/verilog_text.h"
#include "mase/hardware/optimize/cmvm.h"

namespace mase::magnitude_integer_op {
namespace {

std::string verilog(const IntegerContext& c, const std::vector<VerilogOperand>& operands) {
  const int width = std::max(1, c.node.range.width());
  const std::string value = extended(operands[0], 0, 0, width);
  if (!operands[0].range.is_signed()) return value;
  const std::string sign = sign_bit(operands[0]);
  if (width == 1) return value;
  return fmt::format("({} ^ {{{}{{{}}}}}) + {{{}, {}}}", value, width, sign,
                     literal_bits(0, width - 1), sign);
}

const Register<IntegerOpRecord> registered{{
    .name = "magnitude",
    .summary = "|a|",
    .evaluate = [](const int64_t* in, const IntegerNode&) { return in[0] < 0 ? -in[0] : in[0]; },
    .range =
        [](const IntegerContext& c) {
          const IntegerRange& r = c.ranges[0];
          const bool both = r.low < 0 && r.high > 0;
          return IntegerRange{both ? 0 : std::min(std::abs(r.low), std::abs(r.high)),
                              std::max(std::abs(r.low), std::abs(r.high))};
        },
    .frac = [](const IntegerContext& c) { return c.fracs[0]; },
    .luts = [](const IntegerContext& c) { return c.node.range.width(); },
    .delay = [](const IntegerContext& c) { return chain_delay(c.node.range.width()); },
    .verilog = verilog,
    .cpp = [](const IntegerContext&,
              const auto& v) { return fmt::format("{0} < 0 ? -{0} : {0}", v[0]); },
}};

}  // namespace
}  // namespace mase::magnitude_integer_op
