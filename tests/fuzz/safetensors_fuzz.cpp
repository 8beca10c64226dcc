// SPDX-License-Identifier: Apache-2.0
// coverage floor: 600
#include "mase/io/networks/safetensors.h"

#include "fuzz/target.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  try {
    mase::MemoryBudget budget({}, size);
    mase::Dict metadata;
    const mase::TensorTable tensors = mase::parse_safetensors(std::as_bytes(std::span(data, size)),
                                                              nullptr, "fuzz", &metadata, budget);
    for (const auto& [name, tensor] : tensors)
      if (tensor.numel() > 0) tensor.item(tensor.numel() - 1);
    return tensors.size();
  } catch (const mase::Error&) {
    return 0;
  }
}
