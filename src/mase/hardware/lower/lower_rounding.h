// SPDX-License-Identifier: Apache-2.0
// What rounding to a number format is in integers. Fixed point is a slice and a limit. Floats and
// powers of two choose the slice by the leading one; blocks by the leading one of their largest
// magnitude. Formats of few values are thresholds; any other function of one value is a table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/formats/format.h"
#include "mase/hardware/graph/builder.h"

namespace mase {

// The features rounded together, as the format rounds one row of them. What has no exact integers
// is an Error at `place` that says what to use instead.
std::vector<IntegerId> lower_rounding(IntegerBuilder& builder,
                                      const std::vector<IntegerId>& features,
                                      const Quantizer& format, const std::string& place);

// Any function of one value, by all codes of the operand.
using ValueFunction = std::function<std::vector<float>(std::vector<float> values)>;
IntegerId lower_table(IntegerBuilder& builder, IntegerId feature, const ValueFunction& function,
                      const std::string& place);

// The codes that a network's inputs have in this format: the interval and binary point of each
// feature. `sign_bits`: -1 and +1 as one bit each.
struct InputCodes {
  std::vector<IntegerRange> ranges;
  std::vector<int> fracs;
  bool sign_bits = false;
};
InputCodes input_codes_of(const Quantizer& format, size_t features, const std::string& place);

}  // namespace mase
