// SPDX-License-Identifier: Apache-2.0
#include "mase/io/zip/zip_writer.h"

#include <zlib.h>

#include <algorithm>

#include "mase/base/error.h"

namespace mase {
namespace {

constexpr uint64_t limit32 = 0xFFFFFFFF;
constexpr uint64_t limit16 = 0xFFFF;
constexpr uint64_t alignment = 64;
constexpr uint64_t local_header_size = 30;
constexpr uint64_t utf8_name = 0x0800;
constexpr uint64_t first_of_january_1980 = 0x21;

// Little-endian fields, appended.
class Fields {
 public:
  Fields& u16(uint64_t value) { return put(value, 2); }
  Fields& u32(uint64_t value) { return put(value, 4); }
  Fields& u64(uint64_t value) { return put(value, 8); }
  Fields& text(const std::string& text) {
    bytes_ += text;
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  Fields& put(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

uint64_t clipped(uint64_t value, uint64_t limit) { return std::min(value, limit); }

}  // namespace

void ZipWriter::write(const std::string& bytes) {
  put_(bytes.data(), bytes.size());
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name,
                    const std::vector<std::span<const std::byte>>& pieces) {
  MASE_CHECK(!name.empty() && name.size() < limit16, "zip entry name of {} bytes", name.size());
  Entry entry{name, 0, 0, at_};
  uLong crc = ::crc32(0, nullptr, 0);
  for (const auto& piece : pieces) {
    crc = ::crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    entry.size += piece.size();
  }
  entry.crc = static_cast<uint32_t>(crc);
  const bool zip64 = entry.size >= limit32;
  Fields extra;
  if (zip64) extra.u16(1).u16(16).u64(entry.size).u64(entry.size);
  const uint64_t unpadded = at_ + local_header_size + name.size() + extra.str().size() + 4;
  const uint64_t padding = (alignment - unpadded % alignment) % alignment;
  extra.text("FB").u16(padding).text(std::string(padding, 'Z'));  // PyTorch's own padding field
  Fields header;
  header.u32(0x04034B50).u16(zip64 ? 45 : 20).u16(utf8_name).u16(0);
  header.u16(0).u16(first_of_january_1980).u32(entry.crc);
  header.u32(clipped(entry.size, limit32)).u32(clipped(entry.size, limit32));
  header.u16(name.size()).u16(extra.str().size()).text(name).text(extra.str());
  write(header.str());
  for (const auto& piece : pieces)
    if (!piece.empty()) put_(piece.data(), piece.size());
  at_ += entry.size;
  entries_.push_back(std::move(entry));
}

void ZipWriter::add(const std::string& name, const std::string& content) {
  add(name, {std::as_bytes(std::span(content))});
}

void ZipWriter::finish() {
  const uint64_t begin = at_;
  for (const Entry& entry : entries_) {
    Fields extra;
    if (entry.size >= limit32) extra.u64(entry.size).u64(entry.size);
    if (entry.offset >= limit32) extra.u64(entry.offset);
    const bool zip64 = !extra.str().empty();
    Fields header;
    header.u32(0x02014B50).u16(zip64 ? 45 : 20).u16(zip64 ? 45 : 20).u16(utf8_name).u16(0);
    header.u16(0).u16(first_of_january_1980).u32(entry.crc);
    header.u32(clipped(entry.size, limit32)).u32(clipped(entry.size, limit32));
    header.u16(entry.name.size()).u16(zip64 ? extra.str().size() + 4 : 0).u16(0).u16(0).u16(0);
    header.u32(0).u32(clipped(entry.offset, limit32)).text(entry.name);
    if (zip64) header.u16(1).u16(extra.str().size()).text(extra.str());
    write(header.str());
  }
  const uint64_t end = at_, size = end - begin, count = entries_.size();
  Fields tail;
  if (count >= limit16 || begin >= limit32 || size >= limit32) {
    tail.u32(0x06064B50).u64(44).u16(45).u16(45).u32(0).u32(0).u64(count).u64(count);
    tail.u64(size).u64(begin);
    tail.u32(0x07064B50).u32(0).u64(end).u32(1);
  }
  tail.u32(0x06054B50).u16(0).u16(0).u16(clipped(count, limit16)).u16(clipped(count, limit16));
  tail.u32(clipped(size, limit32)).u32(clipped(begin, limit32)).u16(0);
  write(tail.str());
}

}  // namespace mase
