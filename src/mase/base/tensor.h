// SPDX-License-Identifier: Apache-2.0
// Host tensors: dtype, shape and 64-byte aligned, contiguous, row-major memory. Copies share memory
// until one of them is written (graphs are values: copying one must be cheap). The memory may also
// belong to a mapped file, which a write then leaves untouched. A packed tensor is one of float32
// whose numbers are kept in a file's own blocks; whoever asks for its floats gets them widened.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mase/base/error.h"
#include "mase/base/packed.h"

namespace mase {

using Shape = std::vector<int64_t>;

enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

size_t dtype_size(DType dtype);
const char* dtype_name(DType dtype);  // "float32", as NumPy and PyTorch say it
std::optional<DType> dtype_from_name(const std::string& name);

// Product of the dimensions. Errors on negative dimensions and on overflow.
int64_t element_count(const Shape& shape);
std::string shape_text(const Shape& shape);  // "[8, 16]"

// 64-byte aligned bytes, zeroed. The alignment is a cache line and the widest vector.
std::shared_ptr<std::byte> aligned_bytes(size_t size);

template <class T>
constexpr DType dtype_of();

class Tensor {
 public:
  Tensor() : Tensor(Shape{0}) {}
  explicit Tensor(Shape shape, DType dtype = DType::f32);  // zeros
  // A view of foreign memory (a mapped file); `owner` keeps it alive. Contiguous, row-major, and
  // aligned to the element size.
  Tensor(Shape shape, DType dtype, const std::byte* data, std::shared_ptr<const void> owner);
  // A packed one: rows of whole blocks, the last dimension inside; `owner` keeps `blocks` alive.
  Tensor(Shape shape, PackedTypePtr type, const std::byte* blocks,
         std::shared_ptr<const void> owner);
  template <class T>
  static Tensor of(Shape shape, std::span<const T> values);
  static Tensor of(Shape shape, const std::vector<float>& values);
  static Tensor scalar(float value) { return of({}, std::vector<float>{value}); }

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t numel() const { return numel_; }
  size_t bytes() const { return static_cast<size_t>(numel_) * dtype_size(dtype_); }
  size_t stored_bytes() const;   // what it takes: the blocks of a packed one
  int64_t dim(int index) const;  // negative counts from the end

  // Null: not packed. Its blocks are what raw() and data() give as floats, which then stay.
  const PackedType* packed() const;
  const PackedTypePtr& packed_type() const;  // of a packed one
  std::span<const std::byte> blocks() const;
  std::shared_ptr<const void> blocks_owner() const;

  const std::byte* raw() const { return packed_ ? widened() : data_; }
  std::byte* mutable_raw();  // takes a private copy first if the memory is shared
  template <class T>
  const T* data() const;
  template <class T>
  T* mutable_data();
  template <class T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<size_t>(numel_)};
  }

  // Converted; the same memory if nothing changes. Of a packed one: floats of the result's own.
  Tensor to(DType dtype) const;
  Tensor reshaped(Shape shape) const;    // the same memory
  double item(int64_t index = 0) const;  // any dtype, as a double
  bool same_bits(const Tensor& other) const;

 private:
  Shape shape_;
  DType dtype_ = DType::f32;
  int64_t numel_ = 0;
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  bool foreign_ = false;
  struct Packed;
  std::shared_ptr<Packed> packed_;
  const std::byte* widened() const;
};

// Conversions of the 16-bit floats, round to nearest even.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);

template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}

template <class T>
const T* Tensor::data() const {
  MASE_CHECK(dtype_ == dtype_of<T>(), "tensor is {}", dtype_name(dtype_));
  return reinterpret_cast<const T*>(raw());
}

template <class T>
T* Tensor::mutable_data() {
  MASE_CHECK(dtype_ == dtype_of<T>(), "tensor is {}", dtype_name(dtype_));
  return reinterpret_cast<T*>(mutable_raw());
}

template <class T>
Tensor Tensor::of(Shape shape, std::span<const T> values) {
  Tensor tensor(std::move(shape), dtype_of<T>());
  MASE_CHECK(values.size() == static_cast<size_t>(tensor.numel()), "{} values for shape {}",
             values.size(), shape_text(tensor.shape()));
  std::copy(values.begin(), values.end(), tensor.mutable_data<T>());
  return tensor;
}

}  // namespace mase
