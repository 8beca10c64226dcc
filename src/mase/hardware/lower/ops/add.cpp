// SPDX-License-Identifier: Apache-2.0
// Sums and differences of two values, feature by feature.
#include <algorithm>

#include "mase/hardware/lower/integer_lowering.h"

namespace mase::add_lowering {
namespace {

std::vector<IntegerId> summed(const IntegerCall& call, bool subtract) {
  const std::vector<IntegerId>&a = call.inputs[0], &b = call.inputs[1];
  if (a.size() != b.size()) call.refuse("its operands have different sizes", "give equal ones");
  IntegerBuilder& builder = call.builder;
  std::vector<IntegerId> result;
  for (size_t i = 0; i < a.size(); ++i) {
    const int frac = std::max(builder.at(a[i]).frac, builder.at(b[i]).frac);
    result.push_back(builder.add(a[i], frac - builder.at(a[i]).frac, b[i],
                                 frac - builder.at(b[i]).frac, subtract));
  }
  builder.note_sum(a, b, result);
  return result;
}

IntegerLowering record(const std::string& name, const std::string& summary, bool subtract) {
  return {.name = name,
          .summary = summary,
          .lower = [subtract](const IntegerCall& call) -> std::optional<std::vector<IntegerId>> {
            if (call.inputs.size() != 2) return {};
            return summed(call, subtract);
          }};
}

const Register<IntegerLowering> registered{record("add", "the sum of two values", false)};
const Register<IntegerLowering> difference{record("sub", "the difference of two values", true)};

}  // namespace
}  // namespace mase::add_lowering
