// SPDX-License-Identifier: Apache-2.0
// Writes a zip of stored entries whose data begin on 64-byte boundaries, so that readers (ours and
// PyTorch's) can use tensors in place. Ours rather than libzip's because libzip offers no say in
// where an entry's data begin. Zip64 records appear where sizes ask for them; times are fixed, so
// the same content gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace mase {

class ZipWriter {
 public:
  using Put = std::function<void(const void* data, size_t size)>;
  explicit ZipWriter(Put put) : put_(std::move(put)) {}

  // One entry whose content is these pieces in order.
  void add(const std::string& name, const std::vector<std::span<const std::byte>>& pieces);
  void add(const std::string& name, const std::string& content);
  void finish();  // the central directory

 private:
  struct Entry {
    std::string name;
    uint32_t crc;
    uint64_t size, offset;
  };
  void write(const std::string& bytes);

  Put put_;
  uint64_t at_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace mase
