// SPDX-License-Identifier: Apache-2.0
// coverage floor: 1000
// The pickle interpreter, inside a good zip with a few storages, down to tensors and values.
#include "fuzz/target.h"
#include "mase/io/torch/torch_file.h"
#include "mase/io/zip/zip_writer.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  std::string file;
  mase::ZipWriter zip(
      [&](const void* bytes, size_t n) { file.append(static_cast<const char*>(bytes), n); });
  zip.add("a/data.pkl", std::string(reinterpret_cast<const char*>(data), size));
  for (const char* key : {"0", "1", "2"}) zip.add(std::string("a/data/") + key, std::string(64, 1));
  zip.finish();
  try {
    mase::TorchFile torch(std::as_bytes(std::span(file)), nullptr, "fuzz");
    mase::TensorTable tensors;
    const mase::Value value = torch.value(torch.root(), "", &tensors);
    for (const auto& [name, tensor] : tensors)
      if (tensor.numel() > 0) tensor.item(tensor.numel() - 1);
    return 1 + tensors.size() + mase::python_repr(value).size();
  } catch (const mase::Error&) {
    return 0;
  }
}
