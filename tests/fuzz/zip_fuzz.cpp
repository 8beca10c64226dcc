// SPDX-License-Identifier: Apache-2.0
// coverage floor: 150
// The zip reader and PyTorch's two containers, on raw bytes.
#include "fuzz/target.h"
#include "mase/io/torch/torch_file.h"
#include "mase/io/zip/zip_reader.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  size_t delivered = 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    mase::MemoryBudget budget({}, size);
    const mase::ZipReader zip(bytes, "fuzz", budget);
    for (const auto& entry : zip.entries()) {
      const auto content = zip.content(entry, nullptr, budget);
      mase::ZipStream stream(zip, entry, "fuzz");
      std::vector<std::byte> piece(content.bytes.size());
      stream.read(piece.data(), piece.size() / 2);
      stream.read(piece.data(), piece.size() - piece.size() / 2);
      ++delivered;
    }
  } catch (const mase::Error&) {
  }
  try {
    mase::TorchFile torch(bytes, nullptr, "fuzz");
    mase::TensorTable tensors;
    torch.value(torch.root(), "", &tensors);
    ++delivered;
  } catch (const mase::Error&) {
  }
  return delivered;
}
