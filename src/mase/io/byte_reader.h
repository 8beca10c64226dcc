// SPDX-License-Identifier: Apache-2.0
// Little-endian fields out of bytes in memory. Reading past the end is an Error at its byte offset;
// so is everything a caller finds wrong, through fail().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mase/base/error.h"

namespace mase {

class ByteReader {
 public:
  // `origin` is the offset of the first byte in the file, for messages.
  ByteReader(std::span<const std::byte> bytes, std::string place, size_t origin = 0)
      : bytes_(bytes), place_(std::move(place)), origin_(origin) {}

  size_t at() const { return at_; }
  size_t offset() const { return origin_ + at_; }  // in the file
  size_t left() const { return bytes_.size() - at_; }
  const std::string& place() const { return place_; }
  void seek(size_t at) {
    if (at > bytes_.size()) fail("the file ends too early", truncated);
    at_ = at;
  }

  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  uint64_t number(size_t size) {  // of 1 to 8 bytes
    const auto part = take(size);
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(part[i]);
    return value;
  }

  std::span<const std::byte> take(uint64_t size) {
    if (size > left()) fail("the file ends too early", truncated);
    const auto part = bytes_.subspan(at_, static_cast<size_t>(size));
    at_ += static_cast<size_t>(size);
    return part;
  }
  std::string_view text(uint64_t size) {
    const auto part = take(size);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::string_view line() {  // up to a newline, which is skipped
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, left());
    const size_t length = rest.find('\n');
    if (length == std::string_view::npos) fail("the file ends too early", truncated);
    at_ += length + 1;
    return rest.substr(0, length);
  }

  [[noreturn]] void fail(const std::string& cause, const std::string& remedy = "") const {
    fail_at(offset(), cause, remedy);
  }
  [[noreturn]] void fail_at(size_t offset, const std::string& cause,
                            const std::string& remedy = "") const {
    throw Error(fmt::format("{}: byte {}", place_, offset), cause, remedy);
  }

 private:
  static constexpr const char* truncated = "it was cut short or damaged";

  std::span<const std::byte> bytes_;
  std::string place_;
  size_t origin_;
  size_t at_ = 0;
};

}  // namespace mase
