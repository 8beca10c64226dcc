// SPDX-License-Identifier: Apache-2.0
#include "mase/io/torch/pickle_writer.h"

#include <bit>

#include "mase/base/text.h"

namespace mase {
namespace {

struct StorageClass {
  DType dtype;
  const char* name;
};
// PyTorch has no typed storage for the wider unsigned integers; see tensor().
constexpr StorageClass storage_classes[] = {
    {DType::f64, "DoubleStorage"},    {DType::f32, "FloatStorage"}, {DType::f16, "HalfStorage"},
    {DType::bf16, "BFloat16Storage"}, {DType::i64, "LongStorage"},  {DType::i32, "IntStorage"},
    {DType::i16, "ShortStorage"},     {DType::i8, "CharStorage"},   {DType::u8, "ByteStorage"},
    {DType::boolean, "BoolStorage"},
};

bool valid_utf8(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xC2 ? 0
                          : lead < 0xE0 ? 2
                          : lead < 0xF0 ? 3
                          : lead < 0xF5 ? 4
                                        : 0;
    if (length == 0 || at + length > text.size()) return false;
    uint32_t point = length == 1 ? lead : lead & (0x7F >> length);
    for (size_t i = 1; i < length; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      if ((byte & 0xC0) != 0x80) return false;
      point = point << 6 | (byte & 0x3F);
    }
    const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    if (overlong || (point >= 0xD800 && point < 0xE000) || point > 0x10FFFF) return false;
    at += length;
  }
  return true;
}

void append(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

}  // namespace

PickleWriter::PickleWriter() : out_("\x80\x02", 2) {}

void PickleWriter::none() { out_ += 'N'; }
void PickleWriter::boolean(bool value) { out_ += value ? '\x88' : '\x89'; }

void PickleWriter::integer(int64_t value) {
  if (value >= 0 && value < 256) {
    out_ += 'K';
    append(out_, static_cast<uint64_t>(value), 1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_ += 'J';
    append(out_, static_cast<uint64_t>(value), 4);
  } else {
    out_ += "\x8a\x08";
    append(out_, static_cast<uint64_t>(value), 8);
  }
}

void PickleWriter::number(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  out_ += 'G';
  for (int i = 7; i >= 0; --i) out_ += static_cast<char>(bits >> (8 * i));
}

void PickleWriter::text(const std::string& value) {
  const std::string& shown = valid_utf8(value) ? value : printable(value);
  out_ += 'X';
  append(out_, shown.size(), 4);
  out_ += shown;
}

void PickleWriter::begin_list() { out_ += "]("; }
void PickleWriter::end_list() { out_ += 'e'; }
void PickleWriter::begin_dict() { out_ += "}("; }
void PickleWriter::end_dict() { out_ += 'u'; }
void PickleWriter::begin_ordered_dict() {
  empty_ordered_dict();
  out_ += '(';
}

void PickleWriter::empty_ordered_dict() {
  global("collections", "OrderedDict");
  out_ += ")R";
}

void PickleWriter::global(const std::string& module, const std::string& name) {
  const std::string words = module + "\n" + name + "\n";
  if (auto known = memo_.find(words); known != memo_.end()) {
    out_ += 'h';
    append(out_, known->second, 1);
    return;
  }
  const auto index = static_cast<uint32_t>(memo_.size());  // a dozen names: one byte is enough
  memo_[words] = index;
  out_ += "c" + words + "q";
  append(out_, index, 1);
}

void PickleWriter::integers(const std::vector<int64_t>& values) {
  if (values.empty()) {
    out_ += ')';
    return;
  }
  out_ += '(';
  for (const int64_t value : values) integer(value);
  out_ += 't';
}

void PickleWriter::tensor(const Tensor& tensor, const std::string& storage_key) {
  const char* storage_class = nullptr;
  for (const StorageClass& known : storage_classes)
    if (known.dtype == tensor.dtype()) storage_class = known.name;
  // The form with an untyped storage and a dtype is what PyTorch writes since it has these dtypes.
  const bool typed = storage_class != nullptr;
  global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  out_ += "((";
  text("storage");
  if (typed)
    global("torch", storage_class);
  else
    global("torch.storage", "UntypedStorage");
  text(storage_key);
  text("cpu");
  integer(typed ? tensor.numel() : static_cast<int64_t>(tensor.bytes()));
  out_ += "tQ";
  integer(0);
  integers(tensor.shape());
  std::vector<int64_t> strides(tensor.shape().size(), 1);
  for (size_t i = strides.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(1, tensor.shape()[i]);
  integers(strides);
  boolean(false);
  empty_ordered_dict();
  if (!typed) global("torch", dtype_name(tensor.dtype()));
  out_ += "tR";
}

std::string PickleWriter::finish() {
  out_ += '.';
  return std::move(out_);
}

}  // namespace mase
