// SPDX-License-Identifier: Apache-2.0
// Lists of quantisation cases, as `ch quantize --cases` reads them: each names a format, its
// config, an input tensor and the name of the result.
//   {"quantizer": "integer", "config": {"width": 8, ...}, "input": "a", "output": "b"}
//   {"format": "fp8_e4m3", "block_size": 32, "axis": -1, "round": "even", "scale_bits": 8, ...}
// The second form is a microscaling case; round is nearest (half away from zero), floor (toward
// zero) or even.
#pragma once

#include <string>
#include <vector>

#include "mase/formats/format.h"

namespace mase {

struct QuantizeCase {
  std::string input, output;
  QuantizerPtr quantizer;
};

std::vector<QuantizeCase> quantize_cases(const Value& list);

// A microscaling element format (int8, fp8_e4m3, fp4_e2m1, fp16, ...) with the keys of a case, as
// the registered format and its config.
std::pair<std::string, Value> microscaling_config(const Value& keys, const std::string& path);

}  // namespace mase
