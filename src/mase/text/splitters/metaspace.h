// SPDX-License-Identifier: Apache-2.0
// The keys that Metaspace has as a pre-tokeniser and as a decoder.
#pragma once

#include <string>

#include "mase/base/schema.h"
#include "mase/text/part.h"

namespace mase {

struct MetaspaceKeys {
  std::string replacement;
  std::string scheme;  // always, first, never
  bool split = true;
};
Schema metaspace_schema();
MetaspaceKeys metaspace_keys(const Value& config);

}  // namespace mase
