// SPDX-License-Identifier: Apache-2.0
// Protocol buffers' wire form: fields one after the other, each a number, a kind and a value. Read
// without copying; what is nested too deep, ends too early or has another kind than its field is an
// Error at its byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "mase/io/read_limits.h"

namespace mase::onnx {

// What all readers of one file share.
struct WireFile {
  std::span<const std::byte> bytes;
  std::string place;  // its path
  MemoryBudget* budget;
  size_t depth_limit = 64;
};

class WireReader {
 public:
  explicit WireReader(const WireFile& file) : WireReader(file, file.bytes, 0) {}

  // The next field; false at the end of the message.
  bool next();
  uint32_t field() const { return field_; }

  // The value of the field that next() found.
  uint64_t varint() const;
  int64_t integer() const { return static_cast<int64_t>(varint()); }
  float number() const;
  std::span<const std::byte> bytes() const;
  std::string bytes_text() const;  // any bytes
  std::string text() const;        // UTF-8 without NUL: names
  WireReader message() const;      // one level deeper

  // Repeated numbers, packed into one field or one by one.
  void integers(std::vector<int64_t>& to) const;
  void numbers(std::vector<float>& to) const;
  bool is_bytes() const { return kind_ == Kind::bytes; }

  const WireFile& file() const { return *file_; }
  void charge(size_t size) const { file_->budget->charge(size, file_->place); }
  [[noreturn]] void fail(const std::string& cause, const std::string& remedy = "") const;

 private:
  enum class Kind : uint8_t { varint = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };

  WireReader(const WireFile& file, std::span<const std::byte> bytes, size_t depth);
  uint64_t read_varint();
  uint64_t read_fixed(size_t size);
  void want(Kind kind) const;

  const WireFile* file_;
  std::span<const std::byte> rest_;
  size_t depth_;
  const std::byte* field_begin_ = nullptr;  // for messages
  uint32_t field_ = 0;
  Kind kind_ = Kind::varint;
  uint64_t value_ = 0;
  std::span<const std::byte> bytes_ = {};
};

// The same form written. Sizes of nested messages stand before them, so a message is written into a
// buffer of its own; large values are kept where they are and written in their turn.
class WireWriter {
 public:
  void integer(uint32_t field, int64_t value);
  void number(uint32_t field, float value);
  void text(uint32_t field, const std::string& value);
  void integers(uint32_t field, const std::vector<int64_t>& values);  // packed
  void numbers(uint32_t field, const std::vector<float>& values);     // packed
  // Bytes that stay where they are until write(): the caller keeps them alive.
  void reference(uint32_t field, std::span<const std::byte> bytes);
  void message(uint32_t field, WireWriter&& inner);

  size_t size() const { return size_; }
  void write(const std::function<void(const void* data, size_t size)>& put) const;

 private:
  struct Piece {
    std::string own;
    std::span<const std::byte> foreign;
  };
  std::string& tail();
  void tag(uint32_t field, uint32_t kind);
  void varint(uint64_t value);

  std::vector<Piece> pieces_;
  size_t size_ = 0;
};

}  // namespace mase::onnx
