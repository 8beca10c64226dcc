// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/file/wire.h"

#include <bit>
#include <utility>

namespace mase::onnx {
namespace {

constexpr const char* damaged = "the file is cut short or damaged";

bool is_clean_utf8(std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const auto lead = std::to_integer<uint32_t>(bytes[i]);
    if (lead == 0) return false;
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 0 || lead > 0xF4 || i + length > bytes.size()) return false;
    uint32_t point = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto next = std::to_integer<uint32_t>(bytes[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      point = point << 6 | (next & 0x3F);
    }
    const bool too_long = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    if (too_long || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
    i += length;
  }
  return true;
}

}  // namespace

WireReader::WireReader(const WireFile& file, std::span<const std::byte> bytes, size_t depth)
    : file_(&file), rest_(bytes), depth_(depth), field_begin_(bytes.data()) {
  if (depth > file.depth_limit)
    fail(fmt::format("messages are nested deeper than {}", file.depth_limit),
         "the file is damaged or hostile");
}

void WireReader::fail(const std::string& cause, const std::string& remedy) const {
  const size_t offset =
      field_begin_ ? static_cast<size_t>(field_begin_ - file_->bytes.data()) : file_->bytes.size();
  throw Error(fmt::format("{}: byte {}", file_->place, offset), cause, remedy);
}

uint64_t WireReader::read_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (rest_.empty()) fail("a number ends too early", damaged);
    const auto byte = std::to_integer<uint64_t>(rest_.front());
    rest_ = rest_.subspan(1);
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number is longer than 64 bits", damaged);
}

uint64_t WireReader::read_fixed(size_t size) {
  if (rest_.size() < size) fail("a number ends too early", damaged);
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(rest_[i]);
  rest_ = rest_.subspan(size);
  return value;
}

bool WireReader::next() {
  if (rest_.empty()) return false;
  field_begin_ = rest_.data();
  const uint64_t tag = read_varint();
  const uint64_t number = tag >> 3;
  if (number == 0 || number > 0x1FFFFFFF) fail("is not ONNX: a field has no number", damaged);
  field_ = static_cast<uint32_t>(number);
  switch (tag & 7) {
    case 0:
      kind_ = Kind::varint;
      value_ = read_varint();
      return true;
    case 1:
      kind_ = Kind::eight_bytes;
      value_ = read_fixed(8);
      return true;
    case 5:
      kind_ = Kind::four_bytes;
      value_ = read_fixed(4);
      return true;
    case 2: {
      kind_ = Kind::bytes;
      const uint64_t size = read_varint();
      if (size > rest_.size())
        fail(fmt::format("a field claims {} bytes, {} are left", size, rest_.size()), damaged);
      bytes_ = rest_.first(static_cast<size_t>(size));
      rest_ = rest_.subspan(static_cast<size_t>(size));
      return true;
    }
    default:
      fail("is not ONNX: a field of unknown kind", damaged);
  }
}

void WireReader::want(Kind kind) const {
  if (kind_ != kind)
    fail(fmt::format("field {} has another kind than ONNX gives it", field_), damaged);
}

uint64_t WireReader::varint() const {
  want(Kind::varint);
  return value_;
}

float WireReader::number() const {
  want(Kind::four_bytes);
  return std::bit_cast<float>(static_cast<uint32_t>(value_));
}

std::span<const std::byte> WireReader::bytes() const {
  want(Kind::bytes);
  return bytes_;
}

std::string WireReader::bytes_text() const {
  const auto all = bytes();
  charge(all.size());
  return {reinterpret_cast<const char*>(all.data()), all.size()};
}

std::string WireReader::text() const {
  if (!is_clean_utf8(bytes())) fail("a name is not UTF-8 text", damaged);
  return bytes_text();
}

WireReader WireReader::message() const { return {*file_, bytes(), depth_ + 1}; }

void WireReader::integers(std::vector<int64_t>& to) const {
  if (kind_ != Kind::bytes) {
    charge(sizeof(int64_t));
    to.push_back(integer());
    return;
  }
  WireReader packed(*file_, bytes_, depth_);
  while (!packed.rest_.empty()) {
    charge(2 * sizeof(int64_t));  // a vector that grows holds up to twice its values
    to.push_back(static_cast<int64_t>(packed.read_varint()));
  }
}

void WireReader::numbers(std::vector<float>& to) const {
  if (kind_ != Kind::bytes) {
    charge(sizeof(float));
    to.push_back(number());
    return;
  }
  WireReader packed(*file_, bytes_, depth_);
  while (!packed.rest_.empty()) {
    charge(2 * sizeof(float));
    to.push_back(std::bit_cast<float>(static_cast<uint32_t>(packed.read_fixed(4))));
  }
}

std::string& WireWriter::tail() {
  if (pieces_.empty() || !pieces_.back().foreign.empty()) pieces_.emplace_back();
  return pieces_.back().own;
}

void WireWriter::varint(uint64_t value) {
  std::string& to = tail();
  const size_t before = to.size();
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7F) | 0x80);
  to += static_cast<char>(value);
  size_ += to.size() - before;
}

void WireWriter::tag(uint32_t field, uint32_t kind) { varint(uint64_t{field} << 3 | kind); }

void WireWriter::integer(uint32_t field, int64_t value) {
  tag(field, 0);
  varint(static_cast<uint64_t>(value));
}

void WireWriter::number(uint32_t field, float value) {
  tag(field, 5);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) tail() += static_cast<char>(bits >> (8 * i));
  size_ += 4;
}

void WireWriter::text(uint32_t field, const std::string& value) {
  tag(field, 2);
  varint(value.size());
  tail() += value;
  size_ += value.size();
}

void WireWriter::integers(uint32_t field, const std::vector<int64_t>& values) {
  WireWriter packed;
  for (const int64_t value : values) packed.varint(static_cast<uint64_t>(value));
  message(field, std::move(packed));
}

void WireWriter::numbers(uint32_t field, const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values)
    for (int i = 0; i < 4; ++i)
      bytes += static_cast<char>(std::bit_cast<uint32_t>(value) >> (8 * i));
  text(field, bytes);
}

void WireWriter::reference(uint32_t field, std::span<const std::byte> bytes) {
  tag(field, 2);
  varint(bytes.size());
  if (bytes.empty()) return;
  pieces_.push_back({{}, bytes});
  size_ += bytes.size();
}

void WireWriter::message(uint32_t field, WireWriter&& inner) {
  tag(field, 2);
  varint(inner.size_);
  for (Piece& piece : inner.pieces_) {
    if (piece.foreign.empty())
      tail() += piece.own;
    else
      pieces_.push_back(std::move(piece));
  }
  size_ += inner.size_;
}

void WireWriter::write(const std::function<void(const void* data, size_t size)>& put) const {
  for (const Piece& piece : pieces_) {
    if (piece.foreign.empty())
      put(piece.own.data(), piece.own.size());
    else
      put(piece.foreign.data(), piece.foreign.size());
  }
}

}  // namespace mase::onnx
