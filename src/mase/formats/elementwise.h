// SPDX-License-Identifier: Apache-2.0
// Builds a Quantizer from what a format that rounds every value on its own has to say.
#pragma once

#include <functional>
#include <vector>

#include "mase/formats/coding.h"
#include "mase/formats/format.h"

namespace mase {

struct ElementwiseFormat {
  // The vector kernel and its scalar reference. `draw` numbers the draws of stochastic rounding.
  std::function<void(const float* in, float* out, size_t count, uint64_t draw)> kernel;
  std::function<float(float x, uint64_t draw, uint32_t element)> reference;
  bool stochastic = false;
  Coding coding;
};

// Bits and limits are left to the caller.
Quantizer make_elementwise(ElementwiseFormat format);

// Gradient for ste = "clipped": zero where x is outside [low, high].
void set_clipped_gradient(Quantizer& quantizer, double low, double high);

// An integer, or the fallback if the key was not given.
int64_t int_or(const Value& config, const std::string& key, int64_t fallback);
// An Error at that key of the config, for rules that join several keys.
Error config_error(const Value& config, const std::string& key, std::string cause,
                   std::string remedy);

Field width_field(int64_t least, int64_t most, const std::string& help);

}  // namespace mase
