// SPDX-License-Identifier: Apache-2.0
// coverage floor: 1000
// TOML, and back: what was read is written and read again the same.
#include "fuzz/target.h"
#include "mase/base/error.h"
#include "mase/base/value.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  try {
    const mase::Value value =
        mase::parse_toml(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    const mase::Value again = mase::parse_toml(mase::to_toml(value), "again");
    if (mase::to_toml(again) != mase::to_toml(value)) std::abort();
    return value.as_dict().size();
  } catch (const mase::Error&) {
    return 0;
  }
}
