// SPDX-License-Identifier: Apache-2.0
// A quantised layer is an op plus {operand: format}. The config is MASE's flat table: a format name
// and keys prefixed by the operand (data_in_width, weight_frac_width, bias_..., data_out_...).
#pragma once

#include <map>
#include <optional>
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

// The operands a layer's table may give formats to.
struct OperandRules {
  std::vector<std::string> names;
  std::vector<std::string> required = {};           // whose absence is a problem
  std::vector<std::string> unsigned_operands = {};  // is_signed = false unless the table says it
  // `weight` may stand for several parameters; a key of one of them (out_proj.weight_width) wins
  // over the key for all.
  std::map<std::string, std::vector<std::string>> parts = {};

  std::optional<int64_t> features = {};        // their dimension in data_in and data_out
  std::map<std::string, int64_t> summed = {};  // the dimension that the operand's product sums up

  OperandUse use(const std::string& name) const;
  std::vector<std::string> parts_of(const std::string& name) const;  // itself if it has none
  std::vector<std::string> prefixes() const;                         // of the table's keys
};

// Reads the flat table; operands without keys stay in float. A name of null or "NA" gives an
// inactive quantisation. A table `backward` names the formats of the backward pass: name,
// output_grad_*, data_in_*, weight_*.
Quantization parse_quantization(const Value& config, const OperandRules& operands,
                                const std::string& path, Problems& problems);

}  // namespace mase
