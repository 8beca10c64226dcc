// SPDX-License-Identifier: Apache-2.0
// NumPy archives: a zip of .npy arrays. Arrays with the same number of rows are one table side by
// side: a vector `y` is the column y, a matrix `X` the columns X_1, X_2, ...
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "mase/base/cut_files.h"
#include "mase/base/file.h"
#include "mase/io/numpy/npy.h"
#include "mase/io/tables/table_source.h"
#include "mase/io/zip/zip_reader.h"

namespace mase::npz_reader {
namespace {

constexpr int most_members = 4096;

// A file without a name: gone when it is closed.
class Spill {
 public:
  explicit Spill(const std::string& place) {
    std::error_code ignored;
    std::string path = std::filesystem::temp_directory_path(ignored).string() + "/mase-XXXXXX";
    fd_ = ::mkostemp(path.data(), O_CLOEXEC);
    if (fd_ < 0)
      throw Error(place, fmt::format("cannot be unpacked: {}", std::strerror(errno)),
                  "save the array in C order: numpy.ascontiguousarray");
    ::unlink(path.c_str());
  }
  ~Spill() { ::close(fd_); }
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

struct Member {
  std::string name;
  NpyHeader header;
  std::unique_ptr<ZipStream> stream;
  std::unique_ptr<Spill> spill = {};   // Fortran order only: a zip cannot be read out of order
  std::vector<std::byte> buffer = {};  // the rows of one block
};

ReadLimits npz_limits() {
  ReadLimits limits;
  limits.inflate_ratio = 1100;  // all that deflate can: refuse_bomb() says what a table may
  limits.entries = most_members;
  return limits;
}

class NpzSource : public TableSource {
 public:
  NpzSource(const std::string& path, const TableOptions& options)
      : TableSource(path),
        file_(MappedFile::open(path, 0)),  // mapped: tables may be larger than memory
        budget_({}, file_->bytes().size()),
        zip_(file_->bytes(), path, budget_, npz_limits()) {
    open(options);
  }

  int64_t read(double* cells, int64_t at_most) override {
    first_ = next_;
    const int64_t count = std::min(at_most, rows_ - next_);
    if (count <= 0) return 0;
    for (Member& member : members_) load_block(member, count);
    throw_if_cut();
    file_->forget_pages();
    for (int64_t row = 0; row < count; ++row)
      for (const size_t column : selected_) *cells++ = value(sources_[column], row);
    next_ += count;
    return count;
  }

  std::string place(int64_t row) const override {
    return fmt::format("{}: row {}", path_, first_ + row);
  }

 private:
  struct Origin {
    size_t member, element, field;
  };

  void open(const TableOptions& options) {
    uint64_t expanded = 0, stored = 0;
    for (const ZipReader::Entry& entry : zip_.entries()) {
      if (!ends_with(entry.name, ".npy")) continue;
      const std::string stem(entry.name.substr(0, entry.name.size() - 4));
      if (!options.table.empty() && options.table != stem) continue;
      stored += entry.stored_size;
      if (__builtin_add_overflow(expanded, entry.size, &expanded))
        throw Error(path_, "the archive is damaged");
      refuse_bomb(fmt::format("{}: {}", path_, printable(entry.name)), entry.stored_size,
                  entry.size);
      add_member(stem, entry);
    }
    refuse_bomb(path_, stored, expanded);
    if (members_.empty())
      throw Error(path_, options.table.empty()
                             ? std::string("the archive holds no .npy array")
                             : fmt::format("there is no array '{}'", printable(options.table)));
    keep_matching();
    add_columns();
    throw_if_cut();
  }

  void add_member(const std::string& stem, const ZipReader::Entry& entry) {
    const std::string place = fmt::format("{}: {}.npy", path_, printable(stem));
    const uint64_t size = entry.size;
    Member added;
    added.name = stem;
    added.stream = std::make_unique<ZipStream>(zip_, entry, place);
    if (size < 12) throw Error(place, "the array is cut short");
    // The header's length stands in its first bytes; no more than it is read.
    std::vector<std::byte> head(12);
    added.stream->read(head.data(), 12);
    const auto byte = [&](size_t i) { return static_cast<size_t>(head[i]); };
    size_t length = 10 + (byte(8) | byte(9) << 8);
    if (byte(6) > 1) length = 12 + (byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24);
    if (length > largest_npy_header || length > size)
      throw Error(place, "the .npy header is too long");
    if (length > 12) {
      head.resize(length);
      added.stream->read(head.data() + 12, length - 12);
    }
    added.header = parse_npy_header(head, place);
    if (added.header.data_offset != head.size() ||
        added.header.data_offset + added.header.data_bytes() != size)
      throw Error(
          place,
          fmt::format("the header promises {} bytes of numbers, the archive has {}",
                      added.header.data_bytes(), size - std::min<uint64_t>(size, head.size())),
          "the file is cut short or damaged");
    members_.push_back(std::move(added));
  }

  // With X and y beside small extras (class names, a scale), the table is the arrays of most rows.
  void keep_matching() {
    for (const Member& member : members_) rows_ = std::max(rows_, shape_rows(member));
    std::erase_if(members_,
                  [&](const Member& member) { return rows_ == 0 || shape_rows(member) != rows_; });
    if (members_.empty()) throw Error(path_, "the archive holds no array with rows");
    std::sort(members_.begin(), members_.end(),
              [](const Member& a, const Member& b) { return a.name < b.name; });
  }

  static int64_t shape_rows(const Member& member) {
    return member.header.shape.empty() ? 0 : member.header.shape[0];
  }

  void add_columns() {
    std::vector<TableColumn> columns;
    for (size_t m = 0; m < members_.size(); ++m) {
      const NpyHeader& header = members_[m].header;
      const std::string& name = members_[m].name;
      if (!header.fields[0].name.empty()) {
        for (size_t f = 0; f < header.fields.size() && header.shape.size() == 1; ++f) {
          columns.push_back({.name = header.fields[f].name, .problem = header.fields[f].problem});
          sources_.push_back({m, 0, f});
        }
        continue;
      }
      const int64_t width = header.width();
      if (width > most_columns - static_cast<int64_t>(columns.size()))
        throw Error(path_, fmt::format("more than {} columns", most_columns));
      for (int64_t i = 0; i < width; ++i) {
        columns.push_back(
            {.name = header.shape.size() == 1 ? name : fmt::format("{}_{}", name, i + 1),
             .problem = header.fields[0].problem});
        sources_.push_back({m, static_cast<size_t>(i), 0});
      }
      if (header.fortran_order && header.shape.size() > 1) unpack(members_[m]);
    }
    if (columns.empty()) throw Error(path_, "the archive holds no columns");
    set_columns(std::move(columns));
  }

  void unpack(Member& member) {
    const std::string place = fmt::format("{}: {}.npy", path_, printable(member.name));
    member.spill = std::make_unique<Spill>(place);
    std::vector<std::byte> chunk(size_t{1} << 20);
    for (uint64_t left = member.header.data_bytes(); left > 0;) {
      const size_t size = std::min<uint64_t>(left, chunk.size());
      member.stream->read(chunk.data(), size);
      write_all(member.spill->fd(), chunk.data(), size, place);
      left -= size;
      file_->forget_pages();
    }
  }

  void load_block(Member& member, int64_t count) {
    const std::string place = fmt::format("{}: {}.npy", path_, printable(member.name));
    const size_t row_bytes = static_cast<size_t>(member.header.width()) * member.header.item_size;
    member.buffer.resize(row_bytes * static_cast<size_t>(count));
    if (member.spill)
      read_fortran_rows(member.spill->fd(), member.header, 0, next_, count, member.buffer.data(),
                        place);
    else
      member.stream->read(member.buffer.data(), member.buffer.size());
  }

  double value(const Origin& origin, int64_t row) const {
    const Member& member = members_[origin.member];
    const NpyHeader& header = member.header;
    const NpyField& field = header.fields[origin.field];
    const size_t at =
        static_cast<size_t>(row) * static_cast<size_t>(header.width()) + origin.element;
    return npy_value(member.buffer.data() + at * header.item_size, field);
  }

  std::shared_ptr<const MappedFile> file_;
  MemoryBudget budget_;
  ZipReader zip_;
  std::vector<Member> members_;
  std::vector<Origin> sources_;
  int64_t next_ = 0, first_ = 0;
};

const Register<TableReaderRecord> registered{
    {.name = "npz",
     .summary = "a NumPy archive",
     .extensions = {".npz"},
     .recognises =
         [](std::span<const std::byte> head) {
           return head.size() >= 4 && std::memcmp(head.data(), "PK\3\4", 4) == 0;
         },
     .open =
         [](const std::string& path, const TableOptions& options) {
           return std::unique_ptr<TableSource>(new NpzSource(path, options));
         }}};

}  // namespace
}  // namespace mase::npz_reader
