// SPDX-License-Identifier: Apache-2.0
// NumPy arrays as tables: rows along the first axis. Versions 1 to 3, C and Fortran order, numbers
// of every width and byte order, records with named fields.
#include "mase/io/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "mase/io/table_source.h"

namespace mase {
namespace {

class NpySource : public TableSource {
 public:
  explicit NpySource(const std::string& path) : TableSource(path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) throw Error(path, fmt::format("cannot open the file: {}", std::strerror(errno)));
    try {
      open();
    } catch (...) {
      ::close(fd_);
      throw;
    }
  }
  ~NpySource() override { ::close(fd_); }

  int64_t read(double* cells, int64_t at_most) override {
    first_ = next_;
    const int64_t count = std::min(at_most, rows_ - next_);
    if (count <= 0) return 0;
    if (header_.fortran_order && header_.shape.size() > 1)
      read_columns(cells, count);
    else
      read_rows(cells, count);
    next_ += count;
    return count;
  }

  std::string place(int64_t row) const override {
    return fmt::format("{}: row {}", path_, first_ + row);
  }

 private:
  void open() {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) throw Error(path_, "cannot read the file");
    const auto size = static_cast<uint64_t>(status.st_size);
    std::vector<std::byte> head(std::min<uint64_t>(size, largest_npy_header));
    read_at(head.data(), head.size(), 0);
    header_ = parse_npy_header(head, path_);
    if (header_.data_offset + header_.data_bytes() != size)
      throw Error(path_,
                  fmt::format("the header promises {} bytes of numbers, the file has {}",
                              header_.data_bytes(), size - header_.data_offset),
                  "the file is cut short or damaged");
    if (header_.shape.empty()) throw Error(path_, "holds a single number, not a table");
    rows_ = header_.rows();
    if (rows_ == 0) throw Error(path_, "the array has no rows");
    if (header_.fields.size() > 1 && header_.shape.size() > 1)
      throw Error(path_, "records in more than one dimension are not supported");
    std::vector<TableColumn> columns;
    if (header_.fields[0].name.empty()) {
      const int64_t width = header_.width();
      if (width == 0) throw Error(path_, "the array has no columns");
      if (width > 1 << 20) throw Error(path_, fmt::format("the array has {} columns", width));
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

  void read_at(std::byte* to, size_t size, uint64_t offset) const {
    while (size > 0) {
      const ssize_t got = ::pread(fd_, to, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw Error(path_, fmt::format("cannot read: {}", std::strerror(errno)));
      if (got == 0) throw Error(path_, "the file ends too early");
      to += got;
      size -= static_cast<size_t>(got);
      offset += static_cast<uint64_t>(got);
    }
  }

  void read_rows(double* cells, int64_t count) {
    const bool records = !header_.fields[0].name.empty();
    const size_t row_bytes =
        records ? header_.item_size : header_.item_size * static_cast<size_t>(header_.width());
    buffer_.resize(row_bytes * static_cast<size_t>(count));
    read_at(buffer_.data(), buffer_.size(),
            header_.data_offset + static_cast<uint64_t>(next_) * row_bytes);
    for (int64_t row = 0; row < count; ++row) {
      const std::byte* item = buffer_.data() + static_cast<size_t>(row) * row_bytes;
      for (const size_t column : selected_)
        *cells++ = records ? npy_value(item, header_.fields[column])
                           : npy_value(item + column * header_.item_size, header_.fields[0]);
    }
  }

  // Fortran order: a column lies in one piece; each block takes its part of every column.
  void read_columns(double* cells, int64_t count) {
    buffer_.resize(header_.item_size * static_cast<size_t>(count));
    for (size_t i = 0; i < selected_.size(); ++i) {
      // Columns are numbered in C order; the position of one in the file follows Fortran order.
      size_t rest = selected_[i], position = 0, stride = 1;
      std::vector<size_t> index(header_.shape.size());
      for (size_t axis = header_.shape.size(); axis-- > 1;) {
        index[axis] = rest % static_cast<size_t>(header_.shape[axis]);
        rest /= static_cast<size_t>(header_.shape[axis]);
      }
      for (size_t axis = 1; axis < header_.shape.size(); ++axis) {
        position += index[axis] * stride;
        stride *= static_cast<size_t>(header_.shape[axis]);
      }
      const uint64_t element = static_cast<uint64_t>(position) * static_cast<uint64_t>(rows_) +
                               static_cast<uint64_t>(next_);
      read_at(buffer_.data(), buffer_.size(), header_.data_offset + element * header_.item_size);
      for (int64_t row = 0; row < count; ++row)
        cells[static_cast<size_t>(row) * selected_.size() + i] = npy_value(
            buffer_.data() + static_cast<size_t>(row) * header_.item_size, header_.fields[0]);
    }
  }

  int fd_ = -1;
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
}  // namespace mase
