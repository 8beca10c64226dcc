// SPDX-License-Identifier: Apache-2.0
// The two checksums of HDF5: Bob Jenkins's lookup3 over its structures (public domain, 2006), and
// Fletcher's over 16-bit words for the data of a chunk.
#include <bit>

#include "mase/io/hdf5/hdf5_file.h"

namespace mase::hdf5 {

uint32_t lookup3(std::span<const std::byte> bytes) {
  uint32_t a = 0xdeadbeef + static_cast<uint32_t>(bytes.size()), b = a, c = a;
  const auto word = [](std::span<const std::byte> part, size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4 && at + i < part.size(); ++i)
      value |= std::to_integer<uint32_t>(part[at + i]) << (8 * i);
    return value;
  };
  for (; bytes.size() > 12; bytes = bytes.subspan(12)) {
    a += word(bytes, 0);
    b += word(bytes, 4);
    c += word(bytes, 8);
    a = (a - c) ^ std::rotl(c, 4);
    c += b;
    b = (b - a) ^ std::rotl(a, 6);
    a += c;
    c = (c - b) ^ std::rotl(b, 8);
    b += a;
    a = (a - c) ^ std::rotl(c, 16);
    c += b;
    b = (b - a) ^ std::rotl(a, 19);
    a += c;
    c = (c - b) ^ std::rotl(b, 4);
    b += a;
  }
  if (bytes.empty()) return c;
  a += word(bytes, 0);
  b += word(bytes, 4);
  c += word(bytes, 8);
  c = (c ^ b) - std::rotl(b, 14);
  a = (a ^ c) - std::rotl(c, 11);
  b = (b ^ a) - std::rotl(a, 25);
  c = (c ^ b) - std::rotl(b, 16);
  a = (a ^ c) - std::rotl(c, 4);
  b = (b ^ a) - std::rotl(a, 14);
  c = (c ^ b) - std::rotl(b, 24);
  return c;
}

uint32_t fletcher32(std::span<const std::byte> bytes) {
  uint32_t low = 0, high = 0;
  const auto fold = [&] {
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
  };
  constexpr size_t longest_sum = 360;  // words before 32 bits could overflow
  size_t words = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const uint32_t second = i + 1 < bytes.size() ? std::to_integer<uint32_t>(bytes[i + 1]) : 0;
    low += std::to_integer<uint32_t>(bytes[i]) << 8 | second;
    high += low;
    if (++words % longest_sum == 0) fold();
  }
  fold();
  fold();
  return high << 16 | low;
}

void check_structure(std::span<const std::byte> bytes, uint64_t address, const std::string& place) {
  ByteReader reader(bytes, place, address);
  if (bytes.size() < 4) reader.fail("the file ends too early", "it was cut short or damaged");
  const auto body = bytes.first(bytes.size() - 4);
  reader.seek(body.size());
  if (reader.u32() != lookup3(body))
    reader.fail_at(address, "a checksum is wrong", "the file is cut short or damaged");
}

}  // namespace mase::hdf5
