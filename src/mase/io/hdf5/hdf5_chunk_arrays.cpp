// SPDX-License-Identifier: Apache-2.0
// The indices of chunks that HDF5 1.10 writes beside trees: an array of known length, and one that
// grows with the first dimension. Every block ends with a checksum.
#include <algorithm>
#include <bit>

#include "mase/io/hdf5/hdf5_file.h"

namespace mase::hdf5 {
namespace {

uint64_t blocks_of(uint64_t count, uint64_t size) { return count / size + (count % size != 0); }

}  // namespace

uint64_t Rows::most_across() const {
  return set_.most.size() == 2 ? blocks_of(set_.most[1], chunk_width_) : 1;
}

// Fixed array: a header, a block of entries, in pages each with its checksum if there are many.
void Rows::index_fixed_array() {
  const uint64_t at = set_.layout.address;
  const size_t offset_size = file_.offset_size(), length_size = file_.length_size();
  const std::vector<std::byte> head = file_.structure(at, 8 + length_size + offset_size + 4);
  ByteReader reader(head, place_, at);
  if (reader.text(4) != "FAHD") reader.fail("its chunks have no index", "the file is damaged");
  check_structure(head, at, place_);
  reader.u8();
  const bool filtered = reader.u8() == 1;
  const size_t entry = reader.u8();
  const uint64_t page = uint64_t{1} << std::min<int>(reader.u8(), 40);
  const uint64_t count = file_.length(reader);
  const uint64_t block = file_.address(reader);
  const size_t size_bytes = filtered ? entry - offset_size - 4 : 0;
  // It has room for the largest extent, of which the table may fill a part.
  const uint64_t across = most_across(), wanted = blocks_of(rows_, chunk_rows_) * across;
  if (across == 0 || across > most_chunks_across || count % across != 0 || count < wanted ||
      set_.most[0] == ~uint64_t{0} || count / across != blocks_of(set_.most[0], chunk_rows_) ||
      block == undefined_address ||
      (filtered ? entry < offset_size + 5 || size_bytes > 8 : entry != offset_size))
    reader.fail("the index of its chunks does not fit", "the file is damaged");
  const auto read_entries = [&](ByteReader& items, uint64_t first, uint64_t number) {
    for (uint64_t i = 0; i < number; ++i) {
      Chunk chunk{file_.address(items), chunk_bytes_, 0};
      if (filtered) {
        chunk.size = items.number(size_bytes);
        chunk.mask = items.u32();
      }
      const uint64_t row = (first + i) / across, column = (first + i) % across;
      if (chunk.address != undefined_address && first + i < wanted && column < across_)
        put_chunk(row * across_ + column, chunk);
    }
  };
  const uint64_t pages = count > page ? blocks_of(count, page) : 0;
  const uint64_t front = 6 + offset_size + (pages ? blocks_of(pages, 8) : count * entry) + 4;
  const std::vector<std::byte> body = file_.structure(block, front);
  check_structure(body, block, place_);
  ByteReader items(body, place_, block);
  if (items.text(4) != "FADB") items.fail("its chunks have no index", "the file is damaged");
  items.take(2 + offset_size);
  if (pages == 0) return read_entries(items, 0, count);
  const auto written = items.take(blocks_of(pages, 8));
  uint64_t next = block + front;
  for (uint64_t i = 0; i * page < wanted; ++i) {
    const uint64_t number = std::min(page, count - i * page), size = number * entry + 4;
    const bool there = (std::to_integer<int>(written[i / 8]) >> (7 - i % 8)) & 1;
    if (there) {
      const std::vector<std::byte> bytes = file_.structure(next, size);
      check_structure(bytes, next, place_);
      ByteReader entries(bytes, place_, next);
      read_entries(entries, i * page, number);
    }
    next += size;
  }
}

// Extensible array: a few entries and the first data blocks hang on an index block, later ones on
// super blocks, each holding twice as many or twice as large data blocks as the one before.
void Rows::index_extensible_array() {
  const uint64_t at = set_.layout.address;
  const size_t offset_size = file_.offset_size(), length_size = file_.length_size();
  const auto damaged = [&](const char* what) { throw Error(place_, what, "the file is damaged"); };
  // Numbered along the largest extent, which must be open downwards only.
  const bool downwards = set_.most.size() == set_.shape.size() && set_.most[0] == ~uint64_t{0} &&
                         (set_.most.size() == 1 || set_.most[1] != ~uint64_t{0});
  if (!downwards)
    throw Error(place_, "may grow in a direction that is not read here",
                "write it again in the usual form: h5py.File(..., libver='earliest')");
  const uint64_t across = most_across(), wanted = blocks_of(rows_, chunk_rows_) * across;

  const std::vector<std::byte> head = file_.structure(at, 12 + 6 * length_size + offset_size + 4);
  ByteReader reader(head, place_, at);
  if (reader.text(4) != "EAHD") damaged("its chunks have no index");
  check_structure(head, at, place_);
  reader.u8();
  const bool filtered = reader.u8() == 1;
  const size_t entry = reader.u8();
  const int bits = reader.u8();
  const uint64_t first_entries = reader.u8(), least = reader.u8(), pointers = reader.u8();
  const int page_bits = reader.u8();
  reader.take(6 * length_size);
  const uint64_t index_block = file_.address(reader);
  const size_t size_bytes = filtered ? entry - offset_size - 4 : 0;
  if (bits < 1 || bits > 63 || page_bits > 40 || !std::has_single_bit(least) ||
      !std::has_single_bit(pointers) || pointers < 2 || index_block == undefined_address ||
      (filtered ? entry < offset_size + 5 || size_bytes > 8 : entry != offset_size) ||
      across == 0 || across > most_chunks_across)
    damaged("the index of its chunks does not fit");
  const size_t block_offset = static_cast<size_t>(bits + 7) / 8;
  const uint64_t page = uint64_t{1} << page_bits;

  uint64_t next = 0;  // the number of the next entry
  const auto read_entries = [&](ByteReader& items, uint64_t number) {
    for (uint64_t i = 0; i < number && next < wanted; ++i, ++next) {
      Chunk chunk{file_.address(items), chunk_bytes_, 0};
      if (filtered) {
        chunk.size = items.number(size_bytes);
        chunk.mask = items.u32();
      }
      const uint64_t column = next % across;
      if (chunk.address != undefined_address && column < across_)
        put_chunk(next / across * across_ + column, chunk);
    }
  };
  const auto read_data_block = [&](uint64_t address, uint64_t entries) {
    if (next >= wanted) return;
    if (address == undefined_address) {
      next += entries;
      return;
    }
    const uint64_t front = 6 + offset_size + block_offset;
    const bool paged = entries > page;
    const std::vector<std::byte> body =
        file_.structure(address, front + (paged ? 0 : entries * entry) + 4);
    check_structure(body, address, place_);
    ByteReader items(body, place_, address);
    if (items.text(4) != "EADB") damaged("its chunks have no index");
    items.take(front - 4);
    if (!paged) return read_entries(items, entries);
    uint64_t page_at = address + front + 4;
    for (uint64_t done = 0; done < entries && next < wanted; done += page) {
      const uint64_t size = page * entry + 4;
      const std::vector<std::byte> bytes = file_.structure(page_at, size);
      ByteReader part(bytes, place_, page_at);
      // Pages that were never written have no checksum: their entries are not asked for.
      check_structure(bytes, page_at, place_);
      read_entries(part, page);
      page_at += size;
    }
  };

  const int super_blocks = 1 + bits - std::countr_zero(least);
  const int in_index = std::min(super_blocks, 2 * std::countr_zero(pointers));
  const auto data_blocks = [](int super) { return uint64_t{1} << (super / 2); };
  const auto entries_in = [&](int super) { return least << ((super + 1) / 2); };
  uint64_t direct = 0;
  for (int i = 0; i < in_index; ++i) direct += data_blocks(i);
  const auto indirect = static_cast<uint64_t>(super_blocks - in_index);
  const std::vector<std::byte> body = file_.structure(
      index_block, 6 + offset_size + first_entries * entry + (direct + indirect) * offset_size + 4);
  check_structure(body, index_block, place_);
  ByteReader index(body, place_, index_block);
  if (index.text(4) != "EAIB") damaged("its chunks have no index");
  index.take(2 + offset_size);
  ByteReader own(index.take(first_entries * entry), place_, index_block + 6 + offset_size);
  read_entries(own, first_entries);
  for (int super = 0; super < in_index; ++super)
    for (uint64_t i = 0; i < data_blocks(super); ++i)
      read_data_block(file_.address(index), entries_in(super));
  for (int super = in_index; super < super_blocks && next < wanted; ++super) {
    const uint64_t address = file_.address(index), count = data_blocks(super);
    if (address == undefined_address) {
      next += count * entries_in(super);
      continue;
    }
    const uint64_t pages = entries_in(super) > page ? entries_in(super) / page : 0;
    const uint64_t written = pages ? count * blocks_of(pages, 8) : 0;
    const uint64_t front = 6 + offset_size + block_offset + written;
    const std::vector<std::byte> block = file_.structure(address, front + count * offset_size + 4);
    check_structure(block, address, place_);
    ByteReader items(block, place_, address);
    if (items.text(4) != "EASB") damaged("its chunks have no index");
    items.take(front - 4);
    for (uint64_t i = 0; i < count; ++i) read_data_block(file_.address(items), entries_in(super));
  }
}

}  // namespace mase::hdf5
