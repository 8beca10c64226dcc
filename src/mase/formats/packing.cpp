// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/packing.h"

#include "mase/base/error.h"

namespace mase {
namespace {

// Four bytes at a time, the least significant first on every machine.
void write_word(std::byte* to, uint32_t word) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(word >> (8 * i) & 0xFF);
}
uint32_t read_word(const std::byte* from) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= std::to_integer<uint32_t>(from[i]) << (8 * i);
  return word;
}

}  // namespace

size_t packed_size(size_t count, int bits) { return (count * static_cast<size_t>(bits) + 7) / 8; }

std::vector<std::byte> pack_codes(std::span<const uint32_t> codes, int bits) {
  MASE_CHECK(bits >= 1 && bits <= 32, "codes of {} bits", bits);
  std::vector<std::byte> bytes(packed_size(codes.size(), bits));
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t pending = 0;
  int held = 0;
  size_t at = 0;
  for (const uint32_t code : codes) {
    pending |= (code & mask) << held;
    held += bits;
    if (held < 32) continue;
    write_word(bytes.data() + at, static_cast<uint32_t>(pending));
    at += 4;
    pending >>= 32;
    held -= 32;
  }
  for (; held > 0; held -= 8, pending >>= 8) bytes[at++] = static_cast<std::byte>(pending & 0xFF);
  return bytes;
}

std::vector<uint32_t> unpack_codes(std::span<const std::byte> bytes, int bits, size_t count) {
  MASE_CHECK(bits >= 1 && bits <= 32, "codes of {} bits", bits);
  MASE_CHECK(bytes.size() >= packed_size(count, bits), "{} bytes for {} codes", bytes.size(),
             count);
  std::vector<uint32_t> codes(count);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t pending = 0;
  int held = 0;
  size_t at = 0;
  for (uint32_t& code : codes) {
    if (held < bits && at + 4 <= bytes.size()) {
      pending |= uint64_t{read_word(bytes.data() + at)} << held;
      at += 4;
      held += 32;
    }
    for (; held < bits; held += 8) pending |= std::to_integer<uint64_t>(bytes[at++]) << held;
    code = static_cast<uint32_t>(pending & mask);
    pending >>= bits;
    held -= bits;
  }
  return codes;
}

}  // namespace mase
