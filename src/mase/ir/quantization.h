// SPDX-License-Identifier: Apache-2.0
// A quantised layer is an op plus {operand: format}. The config is MASE's flat table: a format name
// and keys prefixed by the operand (data_in_width, weight_frac_width, bias_..., data_out_...).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mase/formats/format.h"

namespace mase {

struct Quantization {
  Value config;  // as it was written: name, data_in_width, ...; null when not quantised
  bool bypass = false;
  std::map<std::string, QuantizerPtr> operands;  // data_in, weight, bias, data_out
  // What the products of the backward pass take: output_grad, data_in, weight. Empty: as they are.
  std::map<std::string, QuantizerPtr> backward = {};

  bool active() const { return !operands.empty() && !bypass; }
  const Quantizer* find(const std::string& operand) const;  // null if absent or bypassed
  const Quantizer* find_backward(const std::string& operand) const;
  std::string format() const;  // "integer", "" when not quantised
};

// Operands that are results of layers, not their parameters.
bool is_activation(const std::string& operand);

// Reads the flat table for an op that has these operands; operands without keys stay in float,
// except those in `required`, whose absence is a problem. A name of null or "NA" gives an inactive
// quantisation. `unsigned_operands` get is_signed = false unless the config says otherwise. A table
// `backward` names the formats of the backward pass: name, output_grad_*, data_in_*, weight_*.
Quantization parse_quantization(const Value& config, const std::vector<std::string>& operands,
                                const std::vector<std::string>& required,
                                const std::vector<std::string>& unsigned_operands,
                                const std::string& path, Problems& problems);

}  // namespace mase
