// SPDX-License-Identifier: Apache-2.0
// Codes in as few bytes as they need: value i takes bits [i * bits, (i + 1) * bits), least
// significant bit first. A 4-bit tensor takes four bits per value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mase {

std::vector<std::byte> pack_codes(std::span<const uint32_t> codes, int bits);
std::vector<uint32_t> unpack_codes(std::span<const std::byte> bytes, int bits, size_t count);
size_t packed_size(size_t count, int bits);

}  // namespace mase
