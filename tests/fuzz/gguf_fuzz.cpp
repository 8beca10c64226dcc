// SPDX-License-Identifier: Apache-2.0
// coverage floor: 600
#include "mase/io/gguf/gguf_file.h"

#include "fuzz/target.h"

size_t fuzz_one(const uint8_t* data, size_t size) {
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    if (!mase::looks_like_gguf(bytes)) return 0;
    mase::MemoryBudget budget({}, size);
    const mase::GgufFile file(bytes, "fuzz", budget);
    for (const mase::GgufTensor& tensor : file.tensors()) {
      const mase::Tensor values = mase::gguf_tensor(tensor, nullptr, budget, "fuzz");
      if (values.numel() > 0) values.item(values.numel() - 1);
    }
    const mase::Value settings = file.settings(100);
    for (const auto& [key, value] : settings.as_dict())
      if (value.is_list() && !value.as_list().empty() && value.as_list()[0].is_string())
        file.texts(key);
    return 1 + file.tensors().size() + settings.as_dict().size();
  } catch (const mase::Error&) {
    return 0;
  }
}
