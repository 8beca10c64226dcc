// SPDX-License-Identifier: Apache-2.0
// The zip reader and PyTorch's two containers, on raw bytes.
#include "mase/io/torch_file.h"
#include "mase/io/zip_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    mase::MemoryBudget budget({}, size);
    const mase::ZipReader zip(bytes, "fuzz", budget);
    for (const auto& entry : zip.entries()) zip.content(entry, nullptr, budget, true);
  } catch (const mase::Error&) {
  }
  try {
    mase::TorchFile torch(bytes, nullptr, "fuzz");
    mase::TensorTable tensors;
    torch.value(torch.root(), "", &tensors);
  } catch (const mase::Error&) {
  }
  return 0;
}
