// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/config.h"

#include "mase/base/fields.h"

namespace mase {

int64_t int_or(const Value& config, const std::string& key, int64_t fallback) {
  const Value& value = config[key];
  return value.is_null() ? fallback : value.as_int(key);
}

Error config_error(const Value& config, const std::string& key, std::string cause,
                   std::string remedy) {
  const Value& value = config[key];
  const Position& position = value.position() ? value.position() : config.position();
  return Error(position, key, std::move(cause), std::move(remedy));
}

void set_default(Dict& config, const std::string& key, Value value) {
  if (!config.contains(key)) config.set(key, std::move(value));
}

void adapt_sign(Dict& config, const OperandUse& use) {
  if (use.positive) set_default(config, "is_signed", false);
}

// Only activations have a batch in front: MASE blocks parameters over all their dimensions.
void adapt_batch(Dict& config, const OperandUse& use) {
  if (!use.activation) set_default(config, "skip_first_dim", false);
}

Field width_field(int64_t least, int64_t most, const std::string& help) {
  return integer_field("width", help)
      .needed()
      .between(static_cast<double>(least), static_cast<double>(most));
}

}  // namespace mase
