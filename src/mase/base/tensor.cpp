// SPDX-License-Identifier: Apache-2.0
#include "mase/base/tensor.h"

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>

namespace mase {
namespace {

struct DTypeInfo {
  DType dtype;
  size_t size;
  const char* name;
};

constexpr DTypeInfo infos[] = {
    {DType::f64, 8, "float64"},   {DType::f32, 4, "float32"}, {DType::f16, 2, "float16"},
    {DType::bf16, 2, "bfloat16"}, {DType::i64, 8, "int64"},   {DType::i32, 4, "int32"},
    {DType::i16, 2, "int16"},     {DType::i8, 1, "int8"},     {DType::u64, 8, "uint64"},
    {DType::u32, 4, "uint32"},    {DType::u16, 2, "uint16"},  {DType::u8, 1, "uint8"},
    {DType::boolean, 1, "bool"},
};

const DTypeInfo& info(DType dtype) { return infos[static_cast<size_t>(dtype)]; }

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double element(const std::byte* at, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return load<double>(at);
    case DType::f32:
      return load<float>(at);
    case DType::f16:
      return half_to_float(load<uint16_t>(at));
    case DType::bf16:
      return bfloat16_to_float(load<uint16_t>(at));
    case DType::i64:
      return static_cast<double>(load<int64_t>(at));
    case DType::i32:
      return load<int32_t>(at);
    case DType::i16:
      return load<int16_t>(at);
    case DType::i8:
      return load<int8_t>(at);
    case DType::u64:
      return static_cast<double>(load<uint64_t>(at));
    case DType::u32:
      return load<uint32_t>(at);
    case DType::u16:
      return load<uint16_t>(at);
    case DType::u8:
      return load<uint8_t>(at);
    case DType::boolean:
      return load<uint8_t>(at) != 0;
  }
  return 0;
}

template <class T>
T to_integer(double value) {  // saturating; NaN gives 0: a plain cast would be undefined
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void set_element(std::byte* at, DType dtype, double value) {
  switch (dtype) {
    case DType::f64:
      return store(at, value);
    case DType::f32:
      return store(at, static_cast<float>(value));
    case DType::f16:
      return store(at, float_to_half(static_cast<float>(value)));
    case DType::bf16:
      return store(at, float_to_bfloat16(static_cast<float>(value)));
    case DType::i64:
      return store(at, to_integer<int64_t>(value));
    case DType::i32:
      return store(at, to_integer<int32_t>(value));
    case DType::i16:
      return store(at, to_integer<int16_t>(value));
    case DType::i8:
      return store(at, to_integer<int8_t>(value));
    case DType::u64:
      return store(at, to_integer<uint64_t>(value));
    case DType::u32:
      return store(at, to_integer<uint32_t>(value));
    case DType::u16:
      return store(at, to_integer<uint16_t>(value));
    case DType::u8:
      return store(at, to_integer<uint8_t>(value));
    case DType::boolean:
      return store(at, static_cast<uint8_t>(value != 0));
  }
}

}  // namespace

size_t dtype_size(DType dtype) { return info(dtype).size; }
const char* dtype_name(DType dtype) { return info(dtype).name; }

std::optional<DType> dtype_from_name(const std::string& name) {
  for (const DTypeInfo& candidate : infos)
    if (name == candidate.name) return candidate.dtype;
  return {};
}

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) throw Error("", fmt::format("negative dimension in shape {}", shape_text(shape)));
    if (dim == 0)
      empty = true;
    else if (__builtin_mul_overflow(count, dim, &count) || count > (int64_t{1} << 56))
      throw Error("", fmt::format("shape {} has too many elements", shape_text(shape)));
  }
  return empty ? 0 : count;
}

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::shared_ptr<std::byte> aligned_bytes(size_t size) {
  // Shuffled rows of a large table are spread over its pages: with huge ones the processor's table
  // of page addresses holds them all. The last part has small pages, so that no more memory is
  // taken than was asked for.
  constexpr size_t huge_page = size_t{2} << 20;
  const bool large = size >= 2 * huge_page;
  const size_t rounded = std::max<size_t>(64, (size + 63) / 64 * 64);
  // Fresh pages are zero already: calloc knows, and what is never used is never made.
  size_t room = rounded + (large ? huge_page : 64);
  void* block = std::calloc(room, 1);
  void* memory = block;
  if (!block || !std::align(large ? huge_page : 64, rounded, memory, room)) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (large)  // a wish: without it nothing is wrong
    ::madvise(memory, rounded / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  return {static_cast<std::byte*>(memory), [block](std::byte*) { std::free(block); }};
}

Tensor::Tensor(Shape shape, DType dtype)
    : shape_(std::move(shape)), dtype_(dtype), numel_(element_count(shape_)) {
  auto memory = aligned_bytes(bytes());
  data_ = memory.get();
  owner_ = std::move(memory);
}

Tensor::Tensor(Shape shape, DType dtype, const std::byte* data, std::shared_ptr<const void> owner)
    : shape_(std::move(shape)),
      dtype_(dtype),
      numel_(element_count(shape_)),
      owner_(std::move(owner)),
      data_(data),
      foreign_(true) {}

struct Tensor::Packed {
  PackedTypePtr type;
  std::span<const std::byte> blocks;
  std::shared_ptr<const void> owner;
  std::once_flag once;
  std::shared_ptr<std::byte> floats;  // made when first asked for

  int64_t count() const { return static_cast<int64_t>(blocks.size()) / type->bytes; }
};

Tensor::Tensor(Shape shape, PackedTypePtr type, const std::byte* blocks,
               std::shared_ptr<const void> owner)
    : shape_(std::move(shape)), numel_(element_count(shape_)), packed_(std::make_shared<Packed>()) {
  const int64_t last = shape_.empty() ? 1 : shape_.back();
  MASE_CHECK(last % type->values == 0, "rows of {} in blocks of {}", last, type->values);
  packed_->blocks = {blocks, static_cast<size_t>(numel_ / type->values * type->bytes)};
  packed_->type = std::move(type);
  packed_->owner = std::move(owner);
}

const PackedType* Tensor::packed() const { return packed_ ? packed_->type.get() : nullptr; }
const PackedTypePtr& Tensor::packed_type() const { return packed_->type; }

std::span<const std::byte> Tensor::blocks() const {
  return packed_ ? packed_->blocks : std::span<const std::byte>();
}

std::shared_ptr<const void> Tensor::blocks_owner() const {
  return packed_ ? packed_->owner : nullptr;
}

size_t Tensor::stored_bytes() const { return packed_ ? packed_->blocks.size() : bytes(); }

const std::byte* Tensor::widened() const {
  std::call_once(packed_->once, [&] {
    auto floats = aligned_bytes(bytes());
    packed_->type->widen(*packed_->type, packed_->blocks.data(), packed_->count(),
                         reinterpret_cast<float*>(floats.get()));
    packed_->floats = std::move(floats);
  });
  return packed_->floats.get();
}

Tensor Tensor::of(Shape shape, const std::vector<float>& values) {
  return of<float>(std::move(shape), std::span<const float>(values));
}

int64_t Tensor::dim(int index) const {
  const int rank = static_cast<int>(shape_.size());
  MASE_CHECK(index >= -rank && index < rank, "dimension {} of {}", index, shape_text(shape_));
  return shape_[static_cast<size_t>(index < 0 ? index + rank : index)];
}

std::byte* Tensor::mutable_raw() {
  if (packed_) *this = to(DType::f32);
  const bool alone = !foreign_ && owner_.use_count() == 1;
  if (alone) {  // what the last other owner read, it read before it let go
    std::atomic_thread_fence(std::memory_order_acquire);
  } else {
    auto memory = aligned_bytes(bytes());
    if (bytes() > 0) std::memcpy(memory.get(), data_, bytes());
    data_ = memory.get();
    owner_ = std::move(memory);
    foreign_ = false;
  }
  return const_cast<std::byte*>(data_);
}

Tensor Tensor::to(DType dtype) const {
  if (packed_) {
    Tensor wide(shape_);
    packed_->type->widen(*packed_->type, packed_->blocks.data(), packed_->count(),
                         wide.mutable_data<float>());
    return wide.to(dtype);
  }
  if (dtype == dtype_) return *this;
  Tensor result(shape_, dtype);
  std::byte* out = result.mutable_raw();
  const size_t from = dtype_size(dtype_), to = dtype_size(dtype);
  for (int64_t i = 0; i < numel_; ++i)
    set_element(out + static_cast<size_t>(i) * to, dtype,
                element(data_ + static_cast<size_t>(i) * from, dtype_));
  return result;
}

Tensor Tensor::reshaped(Shape shape) const {
  MASE_CHECK(element_count(shape) == numel_, "{} as {}", shape_text(shape_), shape_text(shape));
  const int64_t last = shape.empty() ? 1 : shape.back();
  if (packed_ && last % packed_->type->values != 0)
    return to(DType::f32).reshaped(std::move(shape));
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

double Tensor::item(int64_t index) const {
  MASE_CHECK(index >= 0 && index < numel_, "element {} of {}", index, numel_);
  return element(raw() + static_cast<size_t>(index) * dtype_size(dtype_), dtype_);
}

bool Tensor::same_bits(const Tensor& other) const {
  if (shape_ != other.shape_ || dtype_ != other.dtype_) return false;
  if (bytes() == 0 || (packed_ && packed_ == other.packed_)) return true;
  if (packed_ && other.packed_ && packed_->type == other.packed_->type &&
      std::equal(packed_->blocks.begin(), packed_->blocks.end(), other.packed_->blocks.begin(),
                 other.packed_->blocks.end()))
    return true;
  if (packed_ || other.packed_) return to(dtype_).same_bits(other.to(dtype_));
  return std::memcmp(data_, other.data_, bytes()) == 0;
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F, fraction = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // rounds to infinity
  if (magnitude < 0x38800000) {  // subnormal: let the addition of 0.5 do the rounding
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000));
  }
  const uint32_t rounded = magnitude - 0x38000000 + 0xFFF + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace mase
