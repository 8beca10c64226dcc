// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy header: what the array is, checked before a byte of it is believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mase {

struct NpyField {
  std::string name;          // empty for a plain array
  char kind = 'f';           // f, i, u, b
  size_t size = 4;           // bytes
  bool swapped = false;      // big-endian
  size_t offset = 0;         // in the item
  std::string problem = {};  // why it cannot be read (text, dates, ...)
};

struct NpyHeader {
  std::vector<NpyField> fields;  // one for a plain array
  std::vector<int64_t> shape;
  bool fortran_order = false;
  size_t item_size = 0;
  size_t data_offset = 0;

  int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  int64_t width() const;        // elements per row
  uint64_t data_bytes() const;  // what must follow the header
};

// `head` is the beginning of the file, at least up to the end of the header; `place` names it in
// errors. Pickled object arrays are refused: reading them would run code.
NpyHeader parse_npy_header(std::span<const std::byte> head, const std::string& place);
constexpr size_t largest_npy_header = (size_t{1} << 20) + 12;

double npy_value(const std::byte* item, const NpyField& field);

// Rows of a Fortran-ordered array that begins at `data_offset` of a file, as row-major items.
void read_fortran_rows(int fd, const NpyHeader& header, uint64_t data_offset, int64_t first,
                       int64_t count, std::byte* items, const std::string& place);

}  // namespace mase
