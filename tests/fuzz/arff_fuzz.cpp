// SPDX-License-Identifier: Apache-2.0
#include "fuzz/table_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_table("arff", data, size);
  return 0;
}
