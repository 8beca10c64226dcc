// SPDX-License-Identifier: Apache-2.0
// A strict reader of zip files over bytes in memory. Entries are viewed in place, and every
// disagreement between the directory and the entries is refused: a file that two readers could
// understand differently is not worth opening. Ours rather than libzip's because libzip copies
// entries out and trusts the directory.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mase/io/read_limits.h"

namespace mase {

class ZipReader {
 public:
  struct Entry {
    std::string_view name;  // in the file's bytes
    bool deflated = false;
    bool checked = true;  // its checksum is one
    uint32_t crc = 0;
    uint64_t header_offset = 0, data_offset = 0;
    uint64_t stored_size = 0, size = 0;
    uint64_t end_offset = 0;  // after the data and what follows them
  };

  // Reads and checks the whole directory. The bytes must outlive the reader.
  ZipReader(std::span<const std::byte> bytes, const std::string& place, MemoryBudget& budget,
            const ReadLimits& limits = {});

  // PyTorch can be told to write no checksums (compute_crc32 = False): all of them are then 0. Such
  // a file is read without them; one 0 among others is a wrong checksum as ever.
  void allow_missing_checksums();

  const std::vector<Entry>& entries() const { return entries_; }  // sorted by name
  const Entry* find(std::string_view name) const;

  // The bytes of a stored entry, in place.
  std::span<const std::byte> stored(const Entry& entry) const;
  // The content of any entry, in place or inflated, checked against its checksum. `owner` is what
  // keeps in-place bytes alive.
  struct Content {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  Content content(const Entry& entry, std::shared_ptr<const void> owner,
                  MemoryBudget& budget) const;

 private:
  void read_directory(MemoryBudget& budget);
  void read_entry(class ByteReader& directory, uint64_t directory_offset);
  void check_local_header(Entry& entry, uint16_t flags, uint64_t directory_offset) const;
  void check_order() const;

  std::span<const std::byte> bytes_;
  std::string place_;
  ReadLimits limits_;
  std::vector<Entry> entries_;
};

// The content of one entry from beginning to end, a piece at a time, whatever its size; its
// checksum is checked with the last piece. The reader must outlive it.
class ZipStream {
 public:
  ZipStream(const ZipReader& zip, const ZipReader::Entry& entry, std::string place);
  ~ZipStream();
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;

  void read(std::byte* to, size_t size);  // all of it, or an Error

 private:
  struct Inflater;
  const ZipReader::Entry entry_;
  std::span<const std::byte> left_;  // stored bytes not read yet
  std::string place_;
  uint64_t delivered_ = 0;
  uint32_t crc_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

bool looks_like_zip(std::span<const std::byte> bytes);

}  // namespace mase
