// SPDX-License-Identifier: Apache-2.0
#include "mase/io/zip/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <optional>

#include "mase/base/tensor.h"
#include "mase/base/text.h"
#include "mase/io/byte_reader.h"

namespace mase {
namespace {

constexpr uint32_t local_signature = 0x04034B50, directory_signature = 0x02014B50,
                   descriptor_signature = 0x08074B50, end_signature = 0x06054B50,
                   end64_signature = 0x06064B50, locator_signature = 0x07064B50;
constexpr size_t end_size = 22, locator_size = 20, end64_size = 56, directory_entry_size = 46;
constexpr uint32_t clipped32 = 0xFFFFFFFF;
constexpr uint16_t clipped16 = 0xFFFF;
constexpr uint16_t has_descriptor = 0x0008;
constexpr uint16_t known_flags = 0x080E;  // deflate's levels, a descriptor, UTF-8 names
constexpr size_t entry_cost = 200;
constexpr size_t longest_name = 1024;

std::string shown(std::string_view name) { return printable(std::string(name.substr(0, 200))); }

// What is wrong with a name, if anything: it must stay below the folder a file is unpacked in.
std::optional<std::string> name_fault(std::string_view name) {
  if (name.empty()) return "an entry has no name";
  if (name.size() > longest_name) return "an entry's name is too long";
  const auto fault = [&](const char* why) {
    return fmt::format("the entry name '{}' {}", shown(name), why);
  };
  if (name.find('\0') != std::string_view::npos) return fault("holds a zero byte");
  if (name.find('\\') != std::string_view::npos) return fault("holds a backslash");
  if (name[0] == '/' || (name.size() > 1 && name[1] == ':')) return fault("is not relative");
  for (const std::string& part : split(name, '/'))
    if (part == "..") return fault("leaves its folder");
  return {};
}

// The 64-bit values that stand in an extra field for those clipped to 32 bits.
struct Sizes {
  uint64_t size, stored_size, offset;
};
bool read_zip64(std::span<const std::byte> extra, const ByteReader& where, size_t origin,
                Sizes& sizes, bool with_offset) {
  const bool wanted = sizes.size == clipped32 || sizes.stored_size == clipped32 ||
                      (with_offset && sizes.offset == clipped32);
  ByteReader fields(extra, where.place(), origin);
  bool found = false;
  while (fields.left() >= 4) {
    const uint16_t id = fields.u16(), length = fields.u16();
    if (length > fields.left()) fields.fail("an extra field is longer than its place");
    ByteReader field(fields.take(length), where.place(), fields.offset() - length);
    if (id != 1) continue;
    if (found) field.fail("two 64-bit size fields");
    found = true;
    if (sizes.size == clipped32) sizes.size = field.u64();
    if (sizes.stored_size == clipped32) sizes.stored_size = field.u64();
    if (with_offset && sizes.offset == clipped32) sizes.offset = field.u64();
  }
  if (wanted && !found) fields.fail("a 64-bit size field is missing");
  return found;
}

}  // namespace

bool looks_like_zip(std::span<const std::byte> bytes) {
  if (bytes.size() < end_size) return false;
  const uint32_t signature = ByteReader(bytes, "").u32();
  return signature == local_signature || signature == end_signature;
}

ZipReader::ZipReader(std::span<const std::byte> bytes, const std::string& place,
                     MemoryBudget& budget, const ReadLimits& limits)
    : bytes_(bytes), place_(place), limits_(limits) {
  read_directory(budget);
  check_order();
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  for (size_t i = 1; i < entries_.size(); ++i)
    if (entries_[i].name == entries_[i - 1].name)
      throw Error(fmt::format("{}: byte {}", place_, entries_[i].header_offset),
                  fmt::format("two entries are named '{}'", shown(entries_[i].name)));
}

void ZipReader::read_directory(MemoryBudget& budget) {
  ByteReader end(bytes_, place_);
  if (bytes_.size() < end_size) end.fail("the file is too short to be a zip");
  const size_t end_at = bytes_.size() - end_size;
  end.seek(end_at);
  if (end.u32() != end_signature)
    end.fail_at(end_at, "the zip has no directory at its end", "the file was cut short or damaged");
  const uint16_t disk = end.u16(), directory_disk = end.u16();
  uint64_t count_here = end.u16(), count = end.u16();
  uint64_t size = end.u32(), offset = end.u32();
  if (end.u16() != 0) end.fail_at(end_at, "the zip has a comment after its directory");
  if (disk != 0 || directory_disk != 0) end.fail_at(end_at, "the zip spans several files");
  size_t directory_end = end_at;

  ByteReader locator(bytes_, place_);
  const bool clipped = count == clipped16 || size == clipped32 || offset == clipped32;
  bool zip64 = false;
  if (end_at >= locator_size) {
    locator.seek(end_at - locator_size);
    zip64 = locator.u32() == locator_signature;
  }
  if (clipped && !zip64) end.fail_at(end_at, "the 64-bit directory record is missing");
  if (zip64) {
    const size_t locator_at = end_at - locator_size;
    if (locator.u32() != 0) locator.fail("the zip spans several files");
    const uint64_t record_at = locator.u64();
    if (locator.u32() > 1) locator.fail("the zip spans several files");
    if (locator_at < end64_size || record_at != locator_at - end64_size)
      locator.fail_at(locator_at, "the 64-bit directory record is not where it should be");
    ByteReader record(bytes_, place_);
    record.seek(static_cast<size_t>(record_at));
    if (record.u32() != end64_signature || record.u64() != end64_size - 12)
      record.fail_at(static_cast<size_t>(record_at), "the 64-bit directory record is damaged");
    record.take(4);  // versions
    const bool one_file = record.u32() == 0 && record.u32() == 0;
    const uint64_t here64 = record.u64(), count64 = record.u64();
    const uint64_t size64 = record.u64(), offset64 = record.u64();
    const auto agrees = [](uint64_t small, uint64_t limit, uint64_t large) {
      return small == limit || small == large;
    };
    if (!one_file || !agrees(count_here, clipped16, here64) || !agrees(count, clipped16, count64) ||
        !agrees(size, clipped32, size64) || !agrees(offset, clipped32, offset64))
      record.fail_at(static_cast<size_t>(record_at), "the two directory records disagree");
    count_here = here64;
    count = count64;
    size = size64;
    offset = offset64;
    directory_end = static_cast<size_t>(record_at);
  }
  if (count_here != count) end.fail_at(end_at, "the zip spans several files");
  if (offset > directory_end || size != directory_end - offset)
    end.fail_at(end_at, "the zip's directory is not where it should be",
                "the file was cut short or damaged");
  if (count > limits_.entries || count > size / directory_entry_size)
    end.fail_at(end_at, fmt::format("the zip claims {} entries", count));
  budget.charge(static_cast<size_t>(count) * entry_cost, place_);
  entries_.reserve(static_cast<size_t>(count));
  ByteReader directory(bytes_.first(directory_end), place_);
  directory.seek(static_cast<size_t>(offset));
  for (uint64_t i = 0; i < count; ++i) read_entry(directory, offset);
  if (directory.left() != 0) directory.fail("the zip's directory has bytes that are no entry");
}

void ZipReader::read_entry(ByteReader& directory, uint64_t directory_offset) {
  const size_t begin = directory.offset();
  if (directory.u32() != directory_signature)
    directory.fail_at(begin, "an entry of the zip's directory is damaged");
  directory.take(4);  // versions
  const uint16_t flags = directory.u16(), method = directory.u16();
  directory.take(4);  // time
  Entry entry;
  entry.crc = directory.u32();
  Sizes sizes{};
  sizes.stored_size = directory.u32();
  sizes.size = directory.u32();
  const uint16_t name_size = directory.u16(), extra_size = directory.u16();
  const uint16_t comment_size = directory.u16(), disk = directory.u16();
  directory.take(6);  // attributes
  sizes.offset = directory.u32();
  entry.name = directory.text(name_size);
  const size_t extra_at = directory.offset();
  read_zip64(directory.take(extra_size), directory, extra_at, sizes, true);
  directory.take(comment_size);
  entry.size = sizes.size;
  entry.stored_size = sizes.stored_size;
  entry.header_offset = sizes.offset;
  if (auto fault = name_fault(entry.name)) directory.fail_at(begin, *fault);
  const auto fail = [&](const std::string& cause) {
    directory.fail_at(begin, fmt::format("entry '{}': {}", shown(entry.name), cause));
  };
  if (disk != 0) fail("the zip spans several files");
  if (flags & 1) fail("is encrypted");
  if (flags & ~known_flags) fail(fmt::format("has unknown flags {:#06x}", flags));
  if (method != 0 && method != 8) fail(fmt::format("is packed by unknown method {}", method));
  entry.deflated = method == 8;
  if (!entry.deflated && entry.size != entry.stored_size) fail("two sizes for stored data");
  if (entry.deflated &&
      entry.size / std::max<uint64_t>(1, limits_.inflate_ratio) > entry.stored_size + 16)
    fail(fmt::format("{} bytes would inflate to {}", entry.stored_size, entry.size));
  check_local_header(entry, flags, directory_offset);
  entries_.push_back(entry);
}

void ZipReader::check_local_header(Entry& entry, uint16_t flags, uint64_t directory_offset) const {
  ByteReader header(bytes_.first(static_cast<size_t>(directory_offset)), place_);
  const auto fail = [&](const std::string& cause) {
    header.fail_at(static_cast<size_t>(entry.header_offset),
                   fmt::format("entry '{}': {}", shown(entry.name), cause));
  };
  if (entry.header_offset >= directory_offset) fail("begins outside the zip's data");
  header.seek(static_cast<size_t>(entry.header_offset));
  if (header.u32() != local_signature) fail("there is no entry where the directory says");
  header.take(2);  // version
  const uint16_t local_flags = header.u16(), method = header.u16();
  header.take(4);  // time
  const uint32_t crc = header.u32();
  Sizes sizes{};
  sizes.stored_size = header.u32();
  sizes.size = header.u32();
  const uint16_t name_size = header.u16(), extra_size = header.u16();
  const std::string_view name = header.text(name_size);
  const size_t extra_at = header.offset();
  const bool zip64 = read_zip64(header.take(extra_size), header, extra_at, sizes, false);
  if (local_flags != flags || method != (entry.deflated ? 8 : 0) || name != entry.name)
    fail("the entry and the zip's directory disagree");
  const bool later = flags & has_descriptor;
  const auto agrees = [&](uint64_t here, uint64_t there) {
    return here == there || (later && here == 0);
  };
  if (!agrees(crc, entry.crc) || !agrees(sizes.size, entry.size) ||
      !agrees(sizes.stored_size, entry.stored_size))
    fail("the entry and the zip's directory disagree about its size or checksum");
  entry.data_offset = header.offset();
  if (entry.stored_size > header.left())
    fail(fmt::format("its {} bytes reach into the zip's directory", entry.stored_size));
  header.take(entry.stored_size);
  if (later) {
    // The signature is optional; the sizes have 8 bytes in entries that need them.
    const bool wide = zip64 || entry.size >= clipped32 || entry.stored_size >= clipped32;
    uint32_t first = header.u32();
    if (first == descriptor_signature) first = header.u32();
    const uint64_t stored = wide ? header.u64() : header.u32();
    const uint64_t size = wide ? header.u64() : header.u32();
    if (first != entry.crc || stored != entry.stored_size || size != entry.size)
      fail("what follows the entry and the zip's directory disagree about its size or checksum");
  }
  entry.end_offset = header.offset();
}

void ZipReader::check_order() const {
  std::vector<const Entry*> by_offset;
  by_offset.reserve(entries_.size());
  for (const Entry& entry : entries_) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const Entry* a, const Entry* b) { return a->header_offset < b->header_offset; });
  for (size_t i = 1; i < by_offset.size(); ++i)
    if (by_offset[i]->header_offset < by_offset[i - 1]->end_offset)
      throw Error(fmt::format("{}: byte {}", place_, by_offset[i]->header_offset),
                  fmt::format("the entries '{}' and '{}' overlap", shown(by_offset[i - 1]->name),
                              shown(by_offset[i]->name)));
}

const ZipReader::Entry* ZipReader::find(std::string_view name) const {
  const auto entry =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const Entry& a, std::string_view b) { return a.name < b; });
  return entry != entries_.end() && entry->name == name ? &*entry : nullptr;
}

void ZipReader::allow_missing_checksums() {
  const bool none = std::all_of(entries_.begin(), entries_.end(),
                                [](const Entry& entry) { return entry.crc == 0; });
  for (Entry& entry : entries_) entry.checked = !none;
}

std::span<const std::byte> ZipReader::stored(const Entry& entry) const {
  return bytes_.subspan(static_cast<size_t>(entry.data_offset),
                        static_cast<size_t>(entry.stored_size));
}

ZipReader::Content ZipReader::content(const Entry& entry, std::shared_ptr<const void> owner,
                                      MemoryBudget& budget) const {
  const auto fail = [&](const char* cause, const char* remedy = "") {
    throw Error(fmt::format("{}: byte {}", place_, entry.data_offset),
                fmt::format("entry '{}': {}", shown(entry.name), cause), remedy);
  };
  const auto check = [&](std::span<const std::byte> bytes) {
    if (entry.checked &&
        ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()) != entry.crc)
      fail("its checksum is wrong", "the file is damaged: fetch or write it again");
  };
  const std::span<const std::byte> packed = stored(entry);
  if (!entry.deflated) {
    check(packed);
    return {packed, std::move(owner)};
  }
  constexpr uint64_t largest = uint64_t{1} << 31;  // zlib counts in 32 bits
  if (entry.size >= largest || entry.stored_size >= largest) fail("is too large to inflate");
  budget.charge(static_cast<size_t>(entry.size) + 64, place_);
  const auto memory = aligned_bytes(static_cast<size_t>(entry.size));
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail("cannot be inflated");
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  Bytef empty[1];
  stream.next_out = entry.size ? reinterpret_cast<Bytef*>(memory.get()) : empty;
  stream.avail_out = static_cast<uInt>(entry.size);
  const int status = ::inflate(&stream, Z_FINISH);
  const bool whole = status == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
  ::inflateEnd(&stream);
  if (!whole) fail("cannot be inflated to the size the zip's directory gives");
  const std::span<const std::byte> bytes(memory.get(), static_cast<size_t>(entry.size));
  check(bytes);
  return {bytes, memory};
}

struct ZipStream::Inflater {
  z_stream stream{};
  ~Inflater() { ::inflateEnd(&stream); }
};

ZipStream::ZipStream(const ZipReader& zip, const ZipReader::Entry& entry, std::string place)
    : entry_(entry), left_(zip.stored(entry)), place_(std::move(place)) {
  if (!entry.deflated) return;
  inflater_ = std::make_unique<Inflater>();
  if (::inflateInit2(&inflater_->stream, -MAX_WBITS) != Z_OK)
    throw Error(place_, "cannot be unpacked: out of memory");
}

ZipStream::~ZipStream() = default;

void ZipStream::read(std::byte* to, size_t size) {
  constexpr size_t most_at_once = size_t{1} << 30;  // zlib counts in 32 bits
  while (size > 0) {
    size_t got = 0;
    if (!inflater_) {
      got = std::min(size, left_.size());
      std::copy_n(left_.data(), got, to);
      left_ = left_.subspan(got);
    } else {
      z_stream& stream = inflater_->stream;
      const size_t offered = std::min(left_.size(), most_at_once);
      const size_t wanted = std::min(size, most_at_once);
      stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(left_.data()));
      stream.avail_in = static_cast<uInt>(offered);
      stream.next_out = reinterpret_cast<Bytef*>(to);
      stream.avail_out = static_cast<uInt>(wanted);
      const int status = ::inflate(&stream, Z_NO_FLUSH);
      got = wanted - stream.avail_out;
      left_ = left_.subspan(offered - stream.avail_in);
      if (status != Z_OK && status != Z_STREAM_END) got = 0;
    }
    if (got == 0) throw Error(place_, "cannot be unpacked", "the file is cut short or damaged");
    crc_ = static_cast<uint32_t>(::crc32_z(crc_, reinterpret_cast<const Bytef*>(to), got));
    delivered_ += got;
    to += got;
    size -= got;
  }
  if (entry_.checked && delivered_ == entry_.size && crc_ != entry_.crc)
    throw Error(place_, "its checksum is wrong", "the file is damaged: fetch or write it again");
}

}  // namespace mase
