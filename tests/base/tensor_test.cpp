// SPDX-License-Identifier: Apache-2.0
// Tensors: sharing until written, alignment, dtypes, and sizes nobody can hold.
#include "mase/base/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "support/support.h"

namespace mase::tensor_test {
namespace {

TEST(Tensor, CopiesShareMemoryUntilWritten) {
  Tensor a = Tensor::of({2, 2}, {1, 2, 3, 4});
  Tensor b = a;
  EXPECT_EQ(a.raw(), b.raw());
  b.mutable_data<float>()[0] = 9;
  EXPECT_NE(a.raw(), b.raw());
  EXPECT_EQ(a.item(0), 1);
  EXPECT_EQ(b.item(0), 9);
}

TEST(Tensor, ForeignMemoryIsNeverWritten) {
  const float memory[] = {1, 2};
  Tensor view({2}, DType::f32, reinterpret_cast<const std::byte*>(memory), nullptr);
  view.mutable_data<float>()[0] = 5;
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(view.item(0), 5);
}

TEST(Tensor, MemoryIsAlignedAndZero) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{1000}}) {
    const Tensor tensor(shape);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw()) % 64, 0u);
    for (int64_t i = 0; i < tensor.numel(); ++i) EXPECT_EQ(tensor.item(i), 0);
  }
}

TEST(Tensor, EveryDtypeConverts) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
    const Tensor ones = Tensor::of({3}, {0, 1, 1}).to(dtype);
    EXPECT_EQ(ones.bytes(), 3 * dtype_size(dtype));
    EXPECT_EQ(ones.item(0), 0);
    EXPECT_EQ(ones.item(2), 1);
    EXPECT_TRUE(ones.to(DType::f64).to(dtype).same_bits(ones));
  }
  EXPECT_FALSE(dtype_from_name("float31"));
}

TEST(Tensor, IntegersSaturate) {
  const float big = 1e30f, nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor t = Tensor::of({3}, {big, -big, nan});
  const Tensor i8 = t.to(DType::i8), u8 = t.to(DType::u8), i64 = t.to(DType::i64);
  EXPECT_EQ(i8.item(0), 127);
  EXPECT_EQ(i8.item(1), -128);
  EXPECT_EQ(i8.item(2), 0);
  EXPECT_EQ(u8.item(1), 0);
  EXPECT_EQ(i64.data<int64_t>()[0], std::numeric_limits<int64_t>::max());
}

// Every half survives the way through float; floats round to the nearest half, ties to even.
TEST(Tensor, HalfPrecision) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    const uint16_t back = float_to_half(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(half_to_float(back)));
    } else {
      ASSERT_EQ(back, bits);
    }
    const float brain = bfloat16_to_float(static_cast<uint16_t>(bits));
    if (!std::isnan(brain)) {
      ASSERT_EQ(float_to_bfloat16(brain), bits);
    }
  }
  EXPECT_EQ(float_to_half(1.0f + 1.0f / 2048), 0x3C00);  // a tie, to even
  EXPECT_EQ(float_to_half(1.0f + 3.0f / 2048), 0x3C02);
  EXPECT_EQ(float_to_half(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_half(65519.0f), 0x7BFF);
  EXPECT_EQ(float_to_half(std::ldexp(1.0f, -25)), 0x0000);  // half the least subnormal, to even
  EXPECT_EQ(float_to_half(std::ldexp(1.5f, -25)), 0x0001);
}

TEST(Tensor, ImpossibleSizesAreErrors) {
  const int64_t big = int64_t{1} << 40;
  EXPECT_THROW(element_count({big, big}), Error);
  EXPECT_THROW(element_count({-1}), Error);
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({3, 0, 2}), 0);
}

TEST(Tensor, Reshape) {
  const Tensor t = Tensor::of({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(t.reshaped({3, 2}).item(5), 6);
  EXPECT_EQ(t.reshaped({3, 2}).raw(), t.raw());
  EXPECT_EQ(t.dim(-1), 3);
}

TEST(AlignedBytes, AreZeroAndAligned) {
  // What was used before is zero again; large ones begin with a huge page.
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{5} << 20, size_t{40} << 20})
    for (int again = 0; again < 3; ++again) {
      const std::shared_ptr<std::byte> memory = aligned_bytes(size);
      const auto place = reinterpret_cast<uintptr_t>(memory.get());
      EXPECT_EQ(place % (size >= size_t{4} << 20 ? size_t{2} << 20 : 64), 0u) << size;
      for (size_t i = 0; i < size; i += i % 4096 == 0 && i + 4096 < size ? 4095 : 1)
        ASSERT_EQ(memory.get()[i], std::byte{0}) << size << " at " << i;
      std::memset(memory.get(), 0xff, size);
    }
}

}  // namespace
}  // namespace mase::tensor_test
