// SPDX-License-Identifier: Apache-2.0
// The header is a Python dict literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
// A small parser of exactly that language reads it; nothing is evaluated.
#include <bit>
#include <cstring>

#include "mase/base/error.h"
#include "mase/base/tensor.h"
#include "mase/base/text.h"
#include "mase/io/numpy/npy.h"

namespace mase {
namespace {

constexpr size_t most_fields = 65536;

class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(place_, fmt::format("the .npy header is damaged: {}", what));
  }
  char peek() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) && text_[at_]) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' is missing", c));
  }
  std::string text() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("a text is missing");
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) fail("a text is never closed");
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  int64_t integer() {
    peek();
    size_t end = at_;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    const auto value = parse_integer(text_.substr(at_, end - at_));
    if (!value) fail("a dimension is not a number");
    at_ = end;
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    return *value;
  }
  bool boolean() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    fail("neither True nor False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> numbers;
    expect('(');
    while (!accept(')')) {
      numbers.push_back(integer());
      if (numbers.size() > 32) fail("more than 32 dimensions");
      if (!accept(',') && peek() != ')') fail("',' is missing");
    }
    return numbers;
  }

 private:
  std::string_view text_;
  const std::string& place_;
  size_t at_ = 0;
};

NpyField parse_type(const std::string& descr, const std::string& place) {
  NpyField field;
  if (descr.size() < 2) throw Error(place, fmt::format("unknown dtype '{}'", printable(descr)));
  size_t at = 0;
  if (std::strchr("<>|=", descr[0])) {
    field.swapped = descr[0] == '>';
    at = 1;
  }
  field.kind = at < descr.size() ? descr[at] : '?';
  if (field.kind == 'O')
    throw Error(place, "holds pickled Python objects, which are refused: reading them runs code",
                "save it as numbers: numpy.save(file, array.astype('float32'))");
  const auto size = parse_integer(std::string_view(descr).substr(at + 1));
  if (!size || *size < 0 || *size > (1 << 20))
    throw Error(place, fmt::format("unknown dtype '{}'", printable(descr)));
  field.size = static_cast<size_t>(*size);
  const bool number = (field.kind == 'f' && (*size == 2 || *size == 4 || *size == 8)) ||
                      ((field.kind == 'i' || field.kind == 'u') &&
                       (*size == 1 || *size == 2 || *size == 4 || *size == 8)) ||
                      (field.kind == 'b' && *size == 1);
  if (number) return field;
  if (!std::strchr("fcSUVMmab", field.kind) || field.kind == '\0')
    throw Error(place, fmt::format("unknown dtype '{}'", printable(descr)));
  field.problem = fmt::format("is of dtype '{}', not a number", printable(descr));
  if (field.kind == 'U') field.size *= 4;
  return field;
}

void parse_descr(HeaderText& text, const std::string& place, NpyHeader& header) {
  if (!text.accept('[')) {
    NpyField field = parse_type(text.text(), place);
    header.item_size = field.size;
    header.fields = {std::move(field)};
    return;
  }
  while (!text.accept(']')) {
    text.expect('(');
    const std::string name = text.text();
    text.expect(',');
    if (text.peek() == '[') text.fail("nested records are not supported");
    NpyField field = parse_type(text.text(), place);
    field.name = name;
    field.offset = header.item_size;
    size_t count = 1;
    if (text.accept(',') && text.peek() == '(') {
      for (const int64_t dim : text.tuple()) {
        if (dim < 0 || dim > (1 << 20) || count > (1 << 20)) text.fail("a field is too large");
        count *= static_cast<size_t>(dim);
      }
      if (field.problem.empty()) field.problem = "holds an array in each cell";
    }
    text.expect(')');
    header.item_size += field.size * count;
    header.fields.push_back(std::move(field));
    if (header.fields.size() > most_fields || header.item_size > (size_t{1} << 24))
      text.fail("its rows are too large");
    if (!text.accept(',') && text.peek() != ']') text.fail("',' is missing");
  }
  if (header.fields.empty()) text.fail("a record has no fields");
}

template <class T>
T load(const std::byte* at, bool swapped) {
  std::byte bytes[sizeof(T)];
  for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = at[swapped ? sizeof(T) - 1 - i : i];
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class Signed, class Unsigned>
double integer_value(const std::byte* at, const NpyField& field) {
  return field.kind == 'u' ? static_cast<double>(load<Unsigned>(at, field.swapped))
                           : static_cast<double>(load<Signed>(at, field.swapped));
}

}  // namespace

int64_t NpyHeader::width() const {
  int64_t width = 1;
  for (size_t i = 1; i < shape.size(); ++i) width *= shape[i];
  return width;
}

uint64_t NpyHeader::data_bytes() const {
  return static_cast<uint64_t>(rows()) * static_cast<uint64_t>(width()) * item_size;
}

NpyHeader parse_npy_header(std::span<const std::byte> head, const std::string& place) {
  const auto byte = [&](size_t i) { return static_cast<unsigned>(head[i]); };
  if (head.size() < 10 || std::memcmp(head.data(), "\x93NUMPY", 6) != 0)
    throw Error(place, "is not a .npy array, or is damaged");
  const unsigned version = byte(6);
  if (version < 1 || version > 3)
    throw Error(place, fmt::format("is .npy version {}; 1 to 3 are known", version));
  size_t length = byte(8) | byte(9) << 8, start = 10;
  if (version > 1) {
    if (head.size() < 12) throw Error(place, "the .npy header is cut short");
    length |= size_t{byte(10)} << 16 | size_t{byte(11)} << 24;
    start = 12;
  }
  if (length > head.size() - start)
    throw Error(place, fmt::format("the .npy header claims {} bytes and is cut short", length));
  NpyHeader header;
  header.data_offset = start + length;
  HeaderText text({reinterpret_cast<const char*>(head.data()) + start, length}, place);
  bool has_descr = false, has_order = false, has_shape = false;
  text.expect('{');
  while (!text.accept('}')) {
    const std::string key = text.text();
    text.expect(':');
    if (key == "descr" && !has_descr) {
      parse_descr(text, place, header);
      has_descr = true;
    } else if (key == "fortran_order" && !has_order) {
      header.fortran_order = text.boolean();
      has_order = true;
    } else if (key == "shape" && !has_shape) {
      header.shape = text.tuple();
      has_shape = true;
    } else {
      text.fail(fmt::format("unexpected key '{}'", printable(key)));
    }
    if (!text.accept(',') && text.peek() != '}') text.fail("',' is missing");
  }
  if (!has_descr || !has_order || !has_shape) text.fail("descr, fortran_order or shape is missing");
  // Bounds the product, so that nothing computed from it overflows.
  int64_t count = 0;
  try {
    count = element_count(header.shape);
  } catch (const Error& error) {
    text.fail(error.what());
  }
  if (header.item_size > 0 && count > (int64_t{1} << 56) / static_cast<int64_t>(header.item_size))
    text.fail("the array is too large");
  return header;
}

double npy_value(const std::byte* item, const NpyField& field) {
  const std::byte* at = item + field.offset;
  if (field.kind == 'b') return load<uint8_t>(at, false) != 0;
  if (field.kind == 'f') {
    if (field.size == 2) return double{half_to_float(load<uint16_t>(at, field.swapped))};
    if (field.size == 4) return double{load<float>(at, field.swapped)};
    return load<double>(at, field.swapped);
  }
  if (field.size == 1) return integer_value<int8_t, uint8_t>(at, field);
  if (field.size == 2) return integer_value<int16_t, uint16_t>(at, field);
  if (field.size == 4) return integer_value<int32_t, uint32_t>(at, field);
  return integer_value<int64_t, uint64_t>(at, field);
}

}  // namespace mase
