// SPDX-License-Identifier: Apache-2.0
// What a layer's number format is in integers. The one place that reads formats.
#pragma once

#include <optional>
#include <vector>

#include "mase/formats/format.h"
#include "mase/hardware/graph/builder.h"

namespace mase {

// Fixed point for every feature of a tensor, where the format is that.
std::optional<std::vector<FixedFormat>> fixed_formats(const Quantizer& quantizer, size_t features);

// Whether the same value always gives the same result, whatever stands beside it.
bool is_function_of_value(const Quantizer& quantizer);

// Whether a larger value never gives a smaller result: what saturates, not what wraps, and no
// function that a format brought itself.
bool never_falls(const Quantizer& quantizer);

}  // namespace mase
