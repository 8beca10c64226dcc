// SPDX-License-Identifier: Apache-2.0
// What a number format is. A FormatRecord describes a family (integer, block_fp, mxfp, ...); given
// the values of its config keys it says which NumberType they stand for, and the rounder follows
// from that. A Quantizer is immutable and may be shared by any number of graphs and threads. No op
// names a format and no format names an op.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/base/tensor.h"
#include "mase/formats/rounder.h"

namespace mase {

struct Quantizer : Rounder {
  std::string format;  // registry name
  Value config;        // validated, defaults filled in

  std::optional<NumberType> type;  // what the rounder was made from
  std::string untyped;             // without a type: why there is none

  // As the metadata's "precision" shows it: [8, 4] for a fixed-point 8/4, widths in key order.
  std::vector<int64_t> precision;
};

// The number type of a config, or why it stands for none.
using TypeOrReason = std::variant<NumberType, std::string>;

// What a tensor is where a format is used: it may decide keys that the config leaves open.
struct OperandUse {
  bool activation = true;  // a result of a layer, with a batch in front; else a parameter
  bool positive = false;   // it has no negative values
  // Its dimension of features, and the one that its product sums up; none: the last.
  std::optional<int64_t> features = {}, summed = {};
};

struct FormatRecord {
  static constexpr const char* kind = "format";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string class_suffix;  // "Integer": a quantised Linear prints as LinearInteger
  std::string summary;
  std::string help = {};
  Schema schema;  // keys without operand prefix: width, frac_width, ...
  // Configs are validated by `schema` already. Where `type` gives a reason, or is left out, `make`
  // brings the rounder itself.
  std::function<TypeOrReason(const Value& config)> type = {};
  std::function<Rounder(const Value& config)> make = {};
  std::function<std::vector<int64_t>(const Value& config)> precision = {};  // see Quantizer
  // Sets keys that this use decides. Empty: none. Configs are not validated yet.
  std::function<void(Dict& config, const OperandUse& use)> adapt = {};
  // Configs over the format's range of widths, narrowest first, fit for values up to `largest` in
  // magnitude: what `ch format sweep` tries. Empty: the default config alone.
  std::function<std::vector<Value>(double largest)> ladder = {};
};

using QuantizerPtr = std::shared_ptr<const Quantizer>;

// Validates the config (errors name `path` and the value's position) and makes the quantizer.
QuantizerPtr make_quantizer(const std::string& format, const Value& config,
                            const std::string& path = "");

// The quantizer of a number type alone. `clipped`: its gradient is zero where values saturate.
Quantizer typed_quantizer(const NumberType& type, bool clipped = false);

Tensor quantize(const Quantizer& quantizer, const Tensor& tensor);

}  // namespace mase
