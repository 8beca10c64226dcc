// SPDX-License-Identifier: Apache-2.0
// NumPy arrays as tables: rows along the first axis. Versions 1 to 3, C and Fortran order, numbers
// of every width and byte order, records with named fields.
#include "mase/io/numpy/npy.h"

#include <algorithm>
#include <cstring>

#include "mase/base/file.h"
#include "mase/base/tensor.h"
#include "mase/io/tables/table_source.h"

namespace mase {

// A column lies in one piece; each block takes its part of every column.
void read_fortran_rows(int fd, const NpyHeader& header, uint64_t data_offset, int64_t first,
                       int64_t count, std::byte* items, const std::string& place) {
  const auto rows = static_cast<uint64_t>(header.rows());
  const auto width = static_cast<size_t>(header.width());
  std::vector<std::byte> part(header.item_size * static_cast<size_t>(count));
  for (size_t column = 0; column < width; ++column) {
    // Columns are numbered in C order; the position of one in the file follows Fortran order.
    uint64_t position = 0, stride = static_cast<uint64_t>(element_count(header.shape)) / rows;
    size_t rest = column;
    for (size_t axis = header.shape.size(); axis-- > 1;) {
      const auto extent = static_cast<size_t>(header.shape[axis]);
      stride /= extent;
      position += rest % extent * stride;
      rest /= extent;
    }
    read_at(fd, part.data(), part.size(),
            data_offset + (position * rows + static_cast<uint64_t>(first)) * header.item_size,
            place);
    for (size_t row = 0; row < static_cast<size_t>(count); ++row)
      std::memcpy(items + (row * width + column) * header.item_size,
                  part.data() + row * header.item_size, header.item_size);
  }
}

}  // namespace mase

namespace mase::npy_reader {
namespace {

class NpySource : public TableSource {
 public:
  explicit NpySource(const std::string& path) : TableSource(path), file_(path) { open(); }

  int64_t read(double* cells, int64_t at_most) override {
    first_ = next_;
    const int64_t count = std::min(at_most, rows_ - next_);
    if (count <= 0) return 0;
    // A record array has one record in a row; its fields are the columns.
    const bool records = !header_.fields[0].name.empty();
    const size_t row_bytes = header_.item_size * static_cast<size_t>(records ? 1 : header_.width());
    buffer_.resize(row_bytes * static_cast<size_t>(count));
    if (header_.fortran_order && header_.shape.size() > 1)
      read_fortran_rows(file_.fd(), header_, header_.data_offset, next_, count, buffer_.data(),
                        path_);
    else
      file_.read(buffer_.data(), buffer_.size(),
                 header_.data_offset + static_cast<uint64_t>(next_) * row_bytes, path_);
    for (const std::byte* row = buffer_.data(); row < buffer_.data() + buffer_.size();
         row += row_bytes)
      for (const size_t column : selected_)
        *cells++ = records ? npy_value(row, header_.fields[column])
                           : npy_value(row + column * header_.item_size, header_.fields[0]);
    next_ += count;
    return count;
  }

  std::string place(int64_t row) const override {
    return fmt::format("{}: row {}", path_, first_ + row);
  }

 private:
  void open() {
    const uint64_t size = file_.size();
    std::vector<std::byte> head(std::min<uint64_t>(size, largest_npy_header));
    file_.read(head.data(), head.size(), 0, path_);
    header_ = parse_npy_header(head, path_);
    if (header_.data_offset + header_.data_bytes() != size)
      throw Error(path_,
                  fmt::format("the header promises {} bytes of numbers, the file has {}",
                              header_.data_bytes(), size - header_.data_offset),
                  "the file is cut short or damaged");
    if (header_.shape.empty()) throw Error(path_, "holds a single number, not a table");
    rows_ = header_.rows();
    if (rows_ == 0) throw Error(path_, "the array has no rows");
    if (!header_.fields[0].name.empty() && header_.shape.size() > 1)
      throw Error(path_, "records in more than one dimension are not supported");
    std::vector<TableColumn> columns;
    if (header_.fields[0].name.empty()) {
      const int64_t width = header_.width();
      if (width == 0) throw Error(path_, "the array has no columns");
      if (width > most_columns) throw Error(path_, fmt::format("the array has {} columns", width));
      for (int64_t i = 1; i <= width; ++i)
        columns.push_back(
            {.name = fmt::format("column_{}", i), .problem = header_.fields[0].problem});
    } else {
      for (const NpyField& field : header_.fields)
        columns.push_back({.name = field.name, .problem = field.problem});
    }
    if (!header_.fields[0].problem.empty() && header_.fields.size() == 1)
      throw Error(path_, "the array " + header_.fields[0].problem);
    set_columns(std::move(columns));
  }

  InputFile file_;
  NpyHeader header_;
  int64_t next_ = 0, first_ = 0;
  std::vector<std::byte> buffer_;
};

const Register<TableReaderRecord> registered{
    {.name = "npy",
     .summary = "a NumPy array",
     .extensions = {".npy"},
     .recognises =
         [](std::span<const std::byte> head) {
           return head.size() >= 6 && std::memcmp(head.data(), "\x93NUMPY", 6) == 0;
         },
     .open =
         [](const std::string& path, const TableOptions&) {
           return std::unique_ptr<TableSource>(new NpySource(path));
         }}};

}  // namespace
}  // namespace mase::npy_reader
