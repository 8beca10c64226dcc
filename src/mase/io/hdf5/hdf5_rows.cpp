// SPDX-License-Identifier: Apache-2.0
// Rows of an HDF5 data set, compact, contiguous or in chunks. All chunks are found on opening, so
// that a table is known to be whole before a row of it is believed; then one band of chunks (those
// side by side) is in memory at a time.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "mase/base/text.h"
#include "mase/io/hdf5/hdf5_file.h"
#include "mase/io/read_limits.h"
#include "mase/io/tables/table_source.h"

namespace mase::hdf5 {
namespace {

constexpr uint64_t most_rows = uint64_t{1} << 38;
constexpr uint64_t most_columns_here = 65536;
constexpr uint64_t largest_row = uint64_t{1} << 24;
constexpr uint64_t block_bytes = uint64_t{4} << 20;
constexpr uint64_t deflate_ratio = 1032;  // no stream of deflate grows more
constexpr uint64_t lzf_ratio = 200;

enum FilterId : uint16_t { deflate = 1, shuffle = 2, fletcher = 3, lzf = 32000 };

uint64_t divided_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

bool inflate_all(std::span<const std::byte> from, std::span<std::byte> to) {
  uLongf size = to.size();
  return ::uncompress(reinterpret_cast<Bytef*>(to.data()), &size,
                      reinterpret_cast<const Bytef*>(from.data()), from.size()) == Z_OK &&
         size == to.size();
}

// Bytes were sorted by their place in the element; what does not fill an element stays.
void unshuffle(std::span<const std::byte> from, std::span<std::byte> to, size_t element) {
  const size_t count = from.size() / element;
  // An element may be claimed to be of any size; one that is not there has no bytes to sort.
  for (size_t byte = 0; count > 0 && byte < element; ++byte)
    for (size_t i = 0; i < count; ++i) to[i * element + byte] = from[byte * count + i];
  const size_t rest = count * element;
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(rest), from.end(),
            to.begin() + static_cast<std::ptrdiff_t>(rest));
}

// h5py's LZF: runs of literals, and copies of what came up to 8 kB before.
bool unpack_lzf(std::span<const std::byte> from, std::span<std::byte> to) {
  size_t at = 0, out = 0;
  while (at < from.size()) {
    const auto control = std::to_integer<size_t>(from[at++]);
    if (control < 32) {
      const size_t count = control + 1;
      if (count > from.size() - at || count > to.size() - out) return false;
      std::memcpy(to.data() + out, from.data() + at, count);
      at += count;
      out += count;
      continue;
    }
    size_t count = control >> 5;
    if (count == 7) {
      if (at >= from.size()) return false;
      count += std::to_integer<size_t>(from[at++]);
    }
    if (at >= from.size()) return false;
    const size_t back = ((control & 31) << 8 | std::to_integer<size_t>(from[at++])) + 1;
    count += 2;
    if (back > out || count > to.size() - out) return false;
    for (size_t i = 0; i < count; ++i, ++out) to[out] = to[out - back];  // may overlap
  }
  return out == to.size();
}

std::string filter_name(const Filter& filter) {
  switch (filter.id) {
    case 4:
      return "szip";
    case 5:
      return "n-bit packing";
    case 6:
      return "scale-offset packing";
    default:
      return filter.name.empty() ? fmt::format("filter {}", filter.id) : printable(filter.name);
  }
}

}  // namespace

Rows::Rows(File& file, const Dataset& set, std::string place)
    : file_(file), set_(set), place_(std::move(place)) {
  if (!set.problem.empty())
    throw Error(place_, set.problem,
                "write it again in the usual form: h5py.File(..., libver='earliest')");
  const auto impossible = [&] {
    throw Error(place_, "the table has an impossible shape", "the file is damaged");
  };
  if (set.shape.empty() || set.shape.size() > 2) impossible();
  rows_ = set.shape[0];
  width_ = set.shape.size() == 2 ? set.shape[1] : 1;
  if (rows_ == 0) throw Error(place_, "the table has no rows");
  // Together the bounds keep every product below 2^63.
  if (rows_ > most_rows || width_ == 0 || width_ > most_columns_here ||
      width_ > largest_row / set.type.size)
    impossible();
  row_bytes_ = static_cast<size_t>(width_) * set.type.size;
  const uint64_t expanded = rows_ * row_bytes_;
  const auto lacking = [&](uint64_t stored) {
    throw Error(place_,
                fmt::format("declares {} rows ({}) but stores {}", rows_,
                            human_bytes(double(expanded)), human_bytes(double(stored))),
                "the file is cut short or damaged");
  };
  const Layout& layout = set.layout;
  if (layout.storage == Storage::compact) {
    if (layout.bytes.size() < expanded) lacking(layout.bytes.size());
  } else if (layout.storage == Storage::contiguous) {
    const uint64_t end = file.input().size();
    if (layout.address == undefined_address) lacking(0);
    if (layout.size < expanded) lacking(layout.size);
    if (layout.address > end || expanded > end - layout.address)
      lacking(end - std::min(end, layout.address));
  } else {
    check_filters();
    size_chunks();
    check_chunks();
  }
}

void Rows::check_filters() const {
  for (const Filter& filter : set_.filters)
    if (filter.id != deflate && filter.id != shuffle && filter.id != fletcher && filter.id != lzf)
      throw Error(place_,
                  fmt::format("is packed by {}, which is not read here", filter_name(filter)),
                  "pack it by gzip instead: h5repack -f GZIP=4 IN.h5 OUT.h5");
}

void Rows::size_chunks() {
  const Layout& layout = set_.layout;
  const auto impossible = [&] {
    throw Error(place_, "has impossible chunks", "the file is damaged");
  };
  if (layout.chunk.size() != set_.shape.size()) impossible();
  for (const uint64_t extent : layout.chunk)
    if (extent == 0 || extent > (uint64_t{1} << 32)) impossible();
  chunk_rows_ = layout.chunk[0];
  chunk_width_ = layout.chunk.size() == 2 ? layout.chunk[1] : 1;
  if (chunk_width_ > largest_row ||
      chunk_rows_ > (uint64_t{1} << 40) / chunk_width_ / set_.type.size)
    impossible();
  chunk_bytes_ = chunk_rows_ * chunk_width_ * set_.type.size;
  across_ = divided_up(width_, chunk_width_);
  const uint64_t count = divided_up(rows_, chunk_rows_) * across_;
  // One chunk in the making, one band, and the packed bytes.
  MemoryBudget budget({}, file_.input().size());
  if (!budget.take(2 * chunk_bytes_) || !budget.take(std::min(rows_, chunk_rows_) * row_bytes_))
    throw Error(
        place_,
        fmt::format("has chunks of {}, too large for a file of {}",
                    human_bytes(double(chunk_bytes_)), human_bytes(double(file_.input().size()))),
        "store it in smaller chunks: h5repack -l CHUNK=10000 IN.h5 OUT.h5");
  // Each has an entry in an index or bytes of its own: the table below follows the file's size.
  if (count > file_.input().size() / 16 + 1024)
    throw Error(place_, fmt::format("claims {} chunks, more than the file can hold", count),
                "the file is cut short or damaged");
  chunks_.resize(count);
  if (layout.address == undefined_address) return;  // nothing was ever written
  switch (layout.index) {
    case ChunkIndex::tree: {
      uint64_t entries = 0;
      index_tree(layout.address, 64, entries);
      break;
    }
    case ChunkIndex::single:
      if (count != 1) impossible();
      put_chunk(0, {layout.address, layout.filtered_single ? layout.size : chunk_bytes_,
                    layout.filtered_single ? layout.filter_mask : 0});
      break;
    case ChunkIndex::implicit:
      if (most_across() < across_ || most_across() > most_chunks_across) impossible();
      for (uint64_t i = 0; i < count; ++i) {  // numbered along the largest extent
        const uint64_t place = i / across_ * most_across() + i % across_;
        put_chunk(i, {layout.address + place * chunk_bytes_, chunk_bytes_, 0});
      }
      break;
    case ChunkIndex::fixed_array:
      index_fixed_array();
      break;
    case ChunkIndex::extensible_array:
      index_extensible_array();
      break;
  }
}

void Rows::put_chunk(uint64_t number, const Chunk& chunk) {
  const uint64_t end = file_.input().size();
  if (number >= chunks_.size() || chunks_[number].address != undefined_address)
    throw Error(place_, "a chunk is written twice or lies outside", "the file is damaged");
  if (chunk.address > end || chunk.size > end - chunk.address)
    throw Error(place_, fmt::format("the chunk at byte {} is not in the file", chunk.address),
                "the file is cut short or damaged");
  chunks_[number] = chunk;
}

void Rows::index_tree(uint64_t address, int level, uint64_t& entries) {
  const auto damaged = [&](const char* what) { throw Error(place_, what, "the file is damaged"); };
  const size_t offset_size = file_.offset_size();
  const std::vector<std::byte> head = file_.structure(address, 8 + 2 * offset_size);
  ByteReader reader(head, place_, address);
  if (reader.text(4) != "TREE" || reader.u8() != 1) damaged("its chunks have no index");
  const int own_level = reader.u8();
  if (own_level >= level) damaged("the index of its chunks leads upwards");
  const uint64_t count = reader.u16();
  const size_t rank = set_.shape.size();
  const size_t key = 8 + 8 * (rank + 1);
  const uint64_t begin = address + head.size();
  const std::vector<std::byte> body = file_.structure(begin, count * (key + offset_size));
  ByteReader items(body, place_, begin);
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t size = items.u32(), mask = items.u32();
    const uint64_t row = items.u64(), column = rank == 2 ? items.u64() : 0;
    items.u64();  // inside an element: always zero
    const uint64_t child = file_.address(items);
    if (++entries > 2 * chunks_.size() + 64) damaged("the index of its chunks has no end");
    if (own_level > 0) {
      index_tree(child, own_level, entries);
      continue;
    }
    if (row >= rows_ || column >= width_) continue;  // left over from a larger table
    if (row % chunk_rows_ != 0 || column % chunk_width_ != 0) damaged("a chunk lies askew");
    put_chunk(row / chunk_rows_ * across_ + column / chunk_width_, {child, size, mask});
  }
}

// Every chunk is there and can hold what it must: zeros are never made up.
void Rows::check_chunks() const {
  uint64_t ratio = 1;
  for (const Filter& filter : set_.filters) {
    if (filter.id == deflate) ratio *= deflate_ratio;
    if (filter.id == lzf) ratio *= lzf_ratio;
  }
  uint64_t stored = 0;
  for (uint64_t i = 0; i < chunks_.size(); ++i) {
    const Chunk& chunk = chunks_[i];
    if (chunk.address == undefined_address)
      throw Error(place_,
                  fmt::format("rows {} to {} were never written", i / across_ * chunk_rows_,
                              std::min(rows_, (i / across_ + 1) * chunk_rows_) - 1),
                  "write all rows, or the file is cut short or damaged");
    stored += chunk.size;
    const bool packed = chunk.mask == 0 && ratio > 1;
    if (packed ? chunk.size < chunk_bytes_ / ratio : chunk.size < chunk_bytes_)
      throw Error(place_,
                  fmt::format("the chunk at byte {} has {} bytes for {}", chunk.address, chunk.size,
                              human_bytes(double(chunk_bytes_))),
                  "the file is cut short or damaged");
  }
  if (stored > file_.input().size())
    throw Error(place_, "claims to store more than the whole file holds",
                "the file is cut short or damaged");
  refuse_bomb(place_, stored, rows_ * row_bytes_);
}

// The filters in reverse, from packed_ to a whole chunk in packed_.
void Rows::decode(const Chunk& chunk) {
  const auto damaged = [&](const char* what) {
    throw Error(place_, fmt::format("the chunk at byte {} {}", chunk.address, what),
                "the file is cut short or damaged");
  };
  packed_.resize(chunk.size);
  file_.input().read(packed_.data(), packed_.size(), chunk.address, place_);
  for (size_t i = set_.filters.size(); i-- > 0;) {
    const Filter& filter = set_.filters[i];
    if (i < 32 && (chunk.mask >> i & 1)) continue;
    if (filter.id == fletcher) {
      if (packed_.size() < 4) damaged("has no checksum");
      const auto body = std::span(packed_).first(packed_.size() - 4);
      const std::span<const std::byte> all(packed_);
      ByteReader sum(all.subspan(body.size()), place_);
      if (sum.u32() != fletcher32(body)) damaged("has the wrong checksum");
      packed_.resize(body.size());
      continue;
    }
    if (filter.id == shuffle) {
      const size_t element = filter.values.empty() ? set_.type.size : filter.values[0];
      if (element == 0) damaged("is shuffled by elements of no size");
      unpacked_.resize(packed_.size());
      unshuffle(packed_, unpacked_, element);
    } else {
      // A checksum inside the packing adds its four bytes.
      const bool summed =
          std::any_of(set_.filters.begin(), set_.filters.begin() + static_cast<std::ptrdiff_t>(i),
                      [](const Filter& other) { return other.id == fletcher; });
      unpacked_.resize(chunk_bytes_ + (summed ? 4 : 0));
      if (!(filter.id == deflate ? inflate_all(packed_, unpacked_)
                                 : unpack_lzf(packed_, unpacked_)))
        damaged("cannot be unpacked");
    }
    packed_.swap(unpacked_);
  }
  if (packed_.size() < chunk_bytes_) damaged("is too short");
}

void Rows::load_band(uint64_t band) {
  if (band == loaded_) return;
  const uint64_t first = band * chunk_rows_, count = std::min(chunk_rows_, rows_ - first);
  loaded_ = undefined_address;
  band_.resize(count * row_bytes_);
  const size_t element = set_.type.size, chunk_row = chunk_width_ * element;
  for (uint64_t i = 0; i < across_; ++i) {
    decode(chunks_[band * across_ + i]);
    const size_t begin = i * chunk_row, size = std::min(chunk_row, row_bytes_ - begin);
    for (uint64_t row = 0; row < count; ++row)
      std::memcpy(band_.data() + row * row_bytes_ + begin, packed_.data() + row * chunk_row, size);
  }
  loaded_ = band;
}

std::span<const std::byte> Rows::read(uint64_t first, uint64_t& count) {
  count = std::min(count, rows_ - std::min(first, rows_));
  if (set_.layout.storage == Storage::chunked) {
    const uint64_t band = first / chunk_rows_, inside = first - band * chunk_rows_;
    count = std::min(count, std::min(chunk_rows_, rows_ - band * chunk_rows_) - inside);
    if (count == 0) return {};
    load_band(band);
    return std::span<const std::byte>(band_).subspan(inside * row_bytes_, count * row_bytes_);
  }
  if (set_.layout.storage == Storage::compact)
    return std::span<const std::byte>(set_.layout.bytes)
        .subspan(first * row_bytes_, count * row_bytes_);
  count = std::min(count, std::max<uint64_t>(1, block_bytes / row_bytes_));
  band_.resize(count * row_bytes_);
  file_.input().read(band_.data(), band_.size(), set_.layout.address + first * row_bytes_, place_);
  return band_;
}

}  // namespace mase::hdf5
