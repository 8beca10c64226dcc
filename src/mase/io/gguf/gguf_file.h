// SPDX-License-Identifier: Apache-2.0
// GGUF, the file of llama.cpp, over bytes in memory: settings by name, and tensors whose bytes stay
// where they are. Versions 2 and 3, little-endian.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mase/base/value.h"
#include "mase/formats/ggml_blocks.h"
#include "mase/io/read_limits.h"
#include "mase/ir/graph.h"

namespace mase {

struct GgufTensor {
  std::string name;
  const GgufType* type = nullptr;
  Shape shape;  // the last dimension runs inside
  std::span<const std::byte> bytes;
};

class GgufFile {
 public:
  // `bytes` outlive it; `place` begins every error.
  GgufFile(std::span<const std::byte> bytes, std::string place, MemoryBudget& budget);

  // A setting; nothing if the file has none of that name, an Error if it is of another kind.
  std::optional<std::string_view> text(const std::string& key) const;
  std::optional<int64_t> whole(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  std::vector<std::string_view> texts(const std::string& key) const;  // of a list; none: empty
  std::vector<int64_t> wholes(const std::string& key) const;
  std::vector<float> numbers(const std::string& key) const;
  bool has(const std::string& key) const { return settings_.contains(key); }
  // All of them as plain values, lists of up to `longest` entries; of longer ones their length.
  Value settings(size_t longest) const;

  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const std::string& place() const { return place_; }

 private:
  struct Setting {
    uint32_t type = 0, element = 0;  // `element`: of a list
    uint64_t count = 1;
    std::span<const std::byte> bytes;
  };
  const Setting* find(const std::string& key, bool list) const;
  template <class Visit>
  void for_each(const Setting& setting, const Visit& visit) const;

  std::string place_;
  std::map<std::string, Setting, std::less<>> settings_;
  std::vector<GgufTensor> tensors_;
};

bool looks_like_gguf(std::span<const std::byte> bytes);

// A tensor as it stands in the file, packed or not. `owner` keeps the file's bytes alive.
Tensor gguf_tensor(const GgufTensor& tensor, const std::shared_ptr<const void>& owner,
                   MemoryBudget& budget, const std::string& place);

}  // namespace mase
