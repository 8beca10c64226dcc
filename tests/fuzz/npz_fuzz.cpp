// SPDX-License-Identifier: Apache-2.0
// coverage floor: 600
#include "fuzz/table_fuzz.h"

size_t fuzz_one(const uint8_t* data, size_t size) { return fuzz_table("npz", data, size); }
