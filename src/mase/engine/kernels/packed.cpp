// SPDX-License-Identifier: Apache-2.0
// Chunks of 32 packed values become vectors of floats in registers: codes are widened to whole
// numbers and step * code + offset is one multiply-add, whose product is exact: fused or not, it is
// rounded once (steps have at most 17 significant bits, codes 5; groups of our own, whose steps may
// have more, take the zero point from the code first and round the product alone). With vectors of
// 16 lanes the sixteen values that a code of four bits can mean are such a vector themselves, and a
// code picks its lane. Two rows at a time share what is loaded of the samples.
#include "mase/engine/kernels/packed.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/packed.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;

constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
constexpr int64_t kChunk = 32;
constexpr int kVectors = static_cast<int>(kChunk / kLanes);  // of a chunk

// Bytes that are asked for before they are read: rows follow each other, which two streams of odd
// strides hide from the processor.
constexpr int64_t kAhead = 2048;

HWY_INLINE void WriteSum(const V (&sum)[2], float bias, bool relu, float* y) {
  const float total = hn::GetLane(hn::SumOfLanes(D(), hn::Add(sum[0], sum[1]))) + bias;
  *y = relu && total < 0 ? 0.0f : total;
}

// Numbers of half precision, all of them: infinities and what is no number too.
HWY_INLINE float Half(const uint8_t* at) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return _cvtsh_ss(bits);
#else
  uint32_t bits = static_cast<uint32_t>(at[0]) | static_cast<uint32_t>(at[1]) << 8;
  const uint32_t sign = (bits & 0x8000u) << 16, magnitude = (bits & 0x7FFFu) << 13;
  float value;
  std::memcpy(&value, &magnitude, sizeof value);
  value *= 0x1p112f;  // exact, subnormal numbers too
  std::memcpy(&bits, &value, sizeof bits);
  if (magnitude >= 0x0F800000u) bits = magnitude | 0x7F800000u;  // no finite number
  bits |= sign;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

// kLanes bytes as whole numbers.
HWY_INLINE VI Bytes(const uint8_t* at) {
  const hn::Rebind<uint8_t, DI> bytes;
  return hn::PromoteTo(DI(), hn::LoadU(bytes, at));
}
HWY_INLINE VI SignedBytes(const uint8_t* at) {
  const hn::Rebind<int8_t, DI> bytes;
  return hn::PromoteTo(DI(), hn::LoadU(bytes, reinterpret_cast<const int8_t*>(at)));
}

// The codes of vector v of a chunk whose 16 bytes hold its first half low and its second half high.
HWY_INLINE VI Nibbles(const uint8_t* bytes, int v) {
  const int64_t first = v * kLanes;
  const VI both = Bytes(bytes + first % 16);
  return first >= 16 ? hn::ShiftRight<4>(both) : hn::And(both, hn::Set(DI(), 15));
}

HWY_INLINE V Affine(VI code, V step, V offset) {
  return hn::MulAdd(hn::ConvertTo(D(), code), step, offset);
}
HWY_INLINE V TimesStep(VI code, V step) { return hn::Mul(hn::ConvertTo(D(), code), step); }

// Bit i of the word is the fifth one of code i: those of vector v, as 16 or 0.
HWY_INLINE VI FifthBits(const uint8_t* word, int v) {
  uint32_t bits;
  std::memcpy(&bits, word, sizeof bits);
  const VI own = hn::Set(DI(), static_cast<int32_t>(bits >> (v * kLanes)));
  const VI place = hn::Shl(hn::Set(DI(), 1), hn::Iota(DI(), 0));
  return hn::IfThenElseZero(hn::TestBit(own, place), hn::Set(DI(), 16));
}

// What a code of four bits means where 16 lanes hold it all.
struct Sixteen {
  V step, offset;
  HWY_INLINE V At(const uint8_t* bytes, int v) const {
#if HWY_MAX_BYTES >= 64
    if constexpr (kLanes == 16) {
      const V all = hn::MulAdd(hn::Iota(D(), 0.0f), step, offset);
      return hn::TableLookupLanes(all, hn::IndicesFromVec(D(), Nibbles(bytes, v)));
    }
#endif
    return Affine(Nibbles(bytes, v), step, offset);
  }
};

struct Q8_0 {
  static constexpr int64_t kValues = 32, kBytes = 34;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t, V* w) {
    const V step = hn::Set(D(), Half(block));
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) w[v] = TimesStep(SignedBytes(block + 2 + v * kLanes), step);
  }
};
struct Q4_0 {
  static constexpr int64_t kValues = 32, kBytes = 18;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t, V* w) {
    const V step = hn::Set(D(), Half(block));
    const VI middle = hn::Set(DI(), 8);
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v)
      w[v] = TimesStep(hn::Sub(Nibbles(block + 2, v), middle), step);
  }
};
struct Q4_1 {
  static constexpr int64_t kValues = 32, kBytes = 20;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t, V* w) {
    const Sixteen all{hn::Set(D(), Half(block)), hn::Set(D(), Half(block + 2))};
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) w[v] = all.At(block + 4, v);
  }
};
struct Q5_0 {
  static constexpr int64_t kValues = 32, kBytes = 22;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t, V* w) {
    const V step = hn::Set(D(), Half(block));
    const VI middle = hn::Set(DI(), 16);
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const VI code = hn::Or(Nibbles(block + 6, v), FifthBits(block + 2, v));
      w[v] = TimesStep(hn::Sub(code, middle), step);
    }
  }
};
struct Q5_1 {
  static constexpr int64_t kValues = 32, kBytes = 24;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t, V* w) {
    const V step = hn::Set(D(), Half(block)), offset = hn::Set(D(), Half(block + 2));
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v)
      w[v] = Affine(hn::Or(Nibbles(block + 8, v), FifthBits(block + 4, v)), step, offset);
  }
};

// Of 256 values: eight groups whose steps and offsets are multiples of two numbers.
struct KGroup {
  V step, offset;
  HWY_INLINE KGroup(const uint8_t* block, int64_t j) {
    const uint8_t* packed = block + 4;
    const int scale = j < 4 ? packed[j] & 63 : (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    const int least = j < 4 ? packed[j + 4] & 63 : packed[j + 4] >> 4 | (packed[j] >> 6) << 4;
    step = hn::Set(D(), Half(block) * static_cast<float>(scale));
    offset = hn::Set(D(), -(Half(block + 2) * static_cast<float>(least)));
  }
};
// Vector v of the low or the high halves of 32 bytes.
HWY_INLINE VI Halves(const uint8_t* bytes, bool high, int v) {
  const VI both = Bytes(bytes + v * kLanes);
  return high ? hn::ShiftRight<4>(both) : hn::And(both, hn::Set(DI(), 15));
}
struct Q4_K {
  static constexpr int64_t kValues = 256, kBytes = 144;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t c, V* w) {
    const KGroup group(block, c);
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v)
      w[v] = Affine(Halves(block + 16 + 32 * (c / 2), c % 2 != 0, v), group.step, group.offset);
  }
};
struct Q5_K {
  static constexpr int64_t kValues = 256, kBytes = 176;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t c, V* w) {
    const KGroup group(block, c);
    const VI bit = hn::Set(DI(), static_cast<int32_t>(1 << c));
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const VI fifth =
          hn::IfThenElseZero(hn::TestBit(Bytes(block + 16 + v * kLanes), bit), hn::Set(DI(), 16));
      const VI four = Halves(block + 48 + 32 * (c / 2), c % 2 != 0, v);
      w[v] = Affine(hn::Or(four, fifth), group.step, group.offset);
    }
  }
};
struct Q6_K {
  static constexpr int64_t kValues = 256, kBytes = 210;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t c, V* w) {
    const float step = Half(block + 208);
    const int64_t half = c / 4, part = c % 4;
    const uint8_t* low = block + 64 * half + 32 * (part % 2);
    const uint8_t* high = block + 128 + 32 * half;
    const auto* scales = reinterpret_cast<const int8_t*>(block + 192) + 2 * c;
    const VI middle = hn::Set(DI(), 32), three = hn::Set(DI(), 3);
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const VI two =
          hn::And(hn::ShiftRightSame(Bytes(high + v * kLanes), static_cast<int>(2 * part)), three);
      const VI code = hn::Or(Halves(low, part >= 2, v), hn::ShiftLeft<4>(two));
      const V own = hn::Set(D(), step * static_cast<float>(scales[v * kLanes / 16]));
      w[v] = TimesStep(hn::Sub(code, middle), own);
    }
  }
};
struct BF16 {
  static constexpr int64_t kValues = 32, kBytes = 64;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t, V* w) {
    const hn::Rebind<uint16_t, D> shorts;
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const auto bits =
          hn::LoadU(shorts, reinterpret_cast<const uint16_t*>(block + 2 * v * kLanes));
      w[v] = hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
    }
  }
};
struct F16 {
  static constexpr int64_t kValues = 32, kBytes = 64;
  static HWY_INLINE void Decode(const uint8_t* block, int64_t, V* w) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
    const hn::Rebind<hwy::float16_t, D> halves;
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v)
      w[v] = hn::PromoteTo(
          D(), hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(block + 2 * v * kLanes)));
#else
    float values[kChunk];
    for (int64_t i = 0; i < kChunk; ++i) values[i] = Half(block + 2 * i);
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) w[v] = hn::LoadU(D(), values + v * kLanes);
#endif
  }
};

// Blocks of our own formats (formats/packed_groups.h). What a group says is read once, and its
// chunks are decoded one after the other.
struct Group {
  const uint8_t* codes;
  int bits;
  const float* levels;  // null: codes mean themselves
  float step, zero;
  double exact_step;
  bool wide, zeros;
#if HWY_MAX_BYTES >= 64
  V all;  // what sixteen codes mean
#endif

  // fl(level * step) with a step of double precision.
  HWY_INLINE V Times(V level) const {
#if HWY_TARGET != HWY_SCALAR
    if (wide) {
      const hn::Repartition<double, D> dd;
      const auto by = hn::Set(dd, exact_step);
      const hn::Half<D> half;
      const auto low =
          hn::DemoteTo(half, hn::Mul(hn::PromoteTo(dd, hn::LowerHalf(half, level)), by));
      const auto high =
          hn::DemoteTo(half, hn::Mul(hn::PromoteTo(dd, hn::UpperHalf(half, level)), by));
      return hn::Combine(D(), high, low);
    }
#endif
    return hn::Mul(level, hn::Set(D(), step));
  }

  HWY_INLINE void Begin(const uint8_t* block, const PackedType& type, int step_bytes) {
    bits = type.bits;
    levels = type.levels.empty() ? nullptr : type.levels.data();
    zeros = type.offsets;
    wide = step_bytes == 8;
    step = zero = 0;
    exact_step = 0;
    if (step_bytes == 1) {  // 2^(e - 127), which is not normal where e is 0
      const uint32_t exponent = block[0], field = exponent ? exponent << 23 : uint32_t{1} << 22;
      std::memcpy(&step, &field, sizeof step);
    } else if (wide) {
      std::memcpy(&exact_step, block, sizeof exact_step);
    } else {
      std::memcpy(&step, block, sizeof step);
    }
    if (zeros) std::memcpy(&zero, block + step_bytes, sizeof zero);
    codes = block + step_bytes + (zeros ? 4 : 0);
#if HWY_MAX_BYTES >= 64
    if constexpr (kLanes == 16) {
      if (levels) {
        const int64_t count = int64_t{1} << bits;
        all = Times(count == 16
                        ? hn::LoadU(D(), levels)
                        : hn::MaskedLoad(hn::FirstN(D(), static_cast<size_t>(count)), D(), levels));
      }
    }
#endif
  }

  HWY_INLINE VI CodesOf(const uint8_t* chunk, int v) const {
    if (bits == 8) return SignedBytes(chunk + v * kLanes);
    if (bits == 4) return Nibbles(chunk, v);
    uint64_t word;
    std::memcpy(&word, chunk, sizeof word);
    const auto own = static_cast<uint32_t>(word >> (2 * v * kLanes));
    const hn::RebindToUnsigned<DI> du;
    const auto shifted = hn::Shr(hn::Set(du, own), hn::ShiftLeft<1>(hn::Iota(du, 0)));
    const VI two = hn::And(hn::BitCast(DI(), shifted), hn::Set(DI(), 3));
    return bits == 2 ? two : hn::Or(two, hn::ShiftRight<2>(FifthBits(chunk + 8, v)));
  }

  HWY_INLINE void Decode(int64_t c, V* w) const {
    const uint8_t* chunk = codes + c * 4 * bits;
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      const VI code = CodesOf(chunk, v);
      if (zeros) {
        w[v] = Times(hn::Sub(hn::ConvertTo(D(), code), hn::Set(D(), zero)));
        continue;
      }
      if (!levels) {
        w[v] = Times(hn::ConvertTo(D(), code));
        continue;
      }
#if HWY_MAX_BYTES >= 64
      if constexpr (kLanes == 16) {
        w[v] = hn::TableLookupLanes(all, hn::IndicesFromVec(D(), code));
        continue;
      }
#endif
      w[v] = Times(hn::GatherIndex(D(), levels, code));
    }
  }
};

template <int kOut, int kX>
HWY_INLINE void GroupDots(const PackedRows& rows, int step_bytes, int64_t o, const float* x,
                          const float* bias, bool relu, float* y, int64_t stride) {
  const D d;
  const int64_t bytes = rows.row_bytes(), width = packed_width(rows.in);
  const PackedType& type = *rows.type;
  V sum[kOut][kX][2];
  for (auto& one : sum)
    for (auto& sample : one)
      for (V& part : sample) part = hn::Zero(d);
  const uint8_t* row = rows.blocks + o * bytes;
  for (int64_t b = 0; b < rows.in / type.values; ++b) {
    Group group[kOut];
    HWY_UNROLL(8)
    for (int r = 0; r < kOut; ++r) {
      const uint8_t* block = row + r * bytes + b * type.bytes;
      hwy::Prefetch(block + kAhead);
      group[r].Begin(block, type, step_bytes);
    }
    for (int64_t c = 0; c < type.values / kChunk; ++c) {
      const float* from = x + b * type.values + c * kChunk;
      HWY_UNROLL(8)
      for (int r = 0; r < kOut; ++r) {
        V w[kVectors];
        group[r].Decode(c, w);
        HWY_UNROLL(8)
        for (int v = 0; v < kVectors; ++v) HWY_UNROLL(8)
        for (int s = 0; s < kX; ++s)
          sum[r][s][v % 2] =
              hn::MulAdd(w[v], hn::LoadU(d, from + s * width + v * kLanes), sum[r][s][v % 2]);
      }
    }
  }
  for (int r = 0; r < kOut; ++r)
    for (int s = 0; s < kX; ++s)
      WriteSum(sum[r][s], bias ? bias[o + r] : 0.0f, relu, y + (o + r) * stride + s);
}

void AllGroupDots(const PackedRows& rows, int step_bytes, int64_t begin, int64_t end,
                  const float* x, int64_t n, const float* bias, bool relu, float* y,
                  int64_t stride) {
  const int64_t width = packed_width(rows.in);
  for (int64_t o = begin; o < end; o += 2) {
    int64_t s = 0;
    if (o + 2 <= end) {
      for (; s + 4 <= n; s += 4)
        GroupDots<2, 4>(rows, step_bytes, o, x + s * width, bias, relu, y + s, stride);
      for (; s < n; ++s)
        GroupDots<2, 1>(rows, step_bytes, o, x + s * width, bias, relu, y + s, stride);
    } else {
      for (; s < n; ++s)
        GroupDots<1, 1>(rows, step_bytes, o, x + s * width, bias, relu, y + s, stride);
    }
  }
}

void WidenGroups(const PackedRows& rows, int step_bytes, int64_t first, int64_t count, float* out) {
  const PackedType& type = *rows.type;
  const uint8_t* block = rows.blocks + first * rows.row_bytes();
  for (int64_t b = 0; b < count * (rows.in / type.values); ++b, block += type.bytes) {
    Group group;
    group.Begin(block, type, step_bytes);
    for (int64_t c = 0; c < type.values / kChunk; ++c, out += kChunk) {
      V w[kVectors];
      group.Decode(c, w);
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) hn::StoreU(w[v], D(), out + v * kLanes);
    }
  }
}

// Chunks of a row: all that are whole, and what is left of floats of 16 bits with zeros behind.
template <class Type, class Visit>
HWY_INLINE void EachChunk(int64_t in, const Visit& visit) {
  const int64_t blocks = in / Type::kValues;
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t c = 0; c < Type::kValues / kChunk; ++c)
      visit(b * Type::kBytes, c, b * Type::kValues + c * kChunk);
}

template <class Type, int kOut, int kX>
HWY_INLINE void Dots(const PackedRows& rows, int64_t o, const float* x, const float* bias,
                     bool relu, float* y, int64_t stride) {
  const D d;
  const int64_t bytes = rows.row_bytes(), width = packed_width(rows.in);
  const uint8_t* row = rows.blocks + o * bytes;
  V sum[kOut][kX][2];
  for (auto& one : sum)
    for (auto& sample : one)
      for (V& part : sample) part = hn::Zero(d);
  const auto add = [&](const uint8_t* const* from, int64_t c, int64_t at) HWY_ATTR {
    HWY_UNROLL(8)
    for (int r = 0; r < kOut; ++r) {
      V w[kVectors];
      Type::Decode(from[r], c, w);
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) HWY_UNROLL(8)
      for (int s = 0; s < kX; ++s)
        sum[r][s][v % 2] =
            hn::MulAdd(w[v], hn::LoadU(d, x + s * width + at + v * kLanes), sum[r][s][v % 2]);
    }
  };
  EachChunk<Type>(rows.in, [&](int64_t block, int64_t c, int64_t at) HWY_ATTR {
    const uint8_t* from[kOut];
    HWY_UNROLL(8)
    for (int r = 0; r < kOut; ++r) {
      from[r] = row + r * bytes + block;
      hwy::Prefetch(from[r] + kAhead);
    }
    add(from, c, at);
  });
  if (const int64_t rest = rows.in % Type::kValues; rest > 0) {
    uint8_t last[kOut][Type::kBytes] = {};
    const uint8_t* from[kOut];
    HWY_UNROLL(8)
    for (int r = 0; r < kOut; ++r) {
      std::memcpy(last[r], row + r * bytes + 2 * (rows.in - rest), static_cast<size_t>(2 * rest));
      from[r] = last[r];
    }
    add(from, 0, rows.in - rest);
  }
  HWY_UNROLL(8)
  for (int r = 0; r < kOut; ++r) HWY_UNROLL(8)
  for (int s = 0; s < kX; ++s)
    WriteSum(sum[r][s], bias ? bias[o + r] : 0.0f, relu, y + (o + r) * stride + s);
}

template <class Type, int kX>
HWY_INLINE void DotRows(const PackedRows& rows, int64_t begin, int64_t end, const float* x,
                        const float* bias, bool relu, float* y, int64_t stride) {
  int64_t o = begin;
  for (; o + 2 <= end; o += 2) Dots<Type, 2, kX>(rows, o, x, bias, relu, y, stride);
  if (o < end) Dots<Type, 1, kX>(rows, o, x, bias, relu, y, stride);
}

template <class Type>
void AllDots(const PackedRows& rows, int64_t begin, int64_t end, const float* x, int64_t n,
             const float* bias, bool relu, float* y, int64_t stride) {
  const int64_t width = packed_width(rows.in);
  int64_t s = 0;
  for (; s + 4 <= n; s += 4)
    DotRows<Type, 4>(rows, begin, end, x + s * width, bias, relu, y + s, stride);
  for (; s < n; ++s) DotRows<Type, 1>(rows, begin, end, x + s * width, bias, relu, y + s, stride);
}

template <class Type>
void Widen(const PackedRows& rows, int64_t first, int64_t count, float* out) {
  const D d;
  for (int64_t o = first; o < first + count; ++o, out += rows.in) {
    const uint8_t* row = rows.blocks + o * rows.row_bytes();
    EachChunk<Type>(rows.in, [&](int64_t block, int64_t c, int64_t at) HWY_ATTR {
      V w[kVectors];
      Type::Decode(row + block, c, w);
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) hn::StoreU(w[v], d, out + at + v * kLanes);
    });
    if (const int64_t rest = rows.in % Type::kValues; rest > 0) {
      uint8_t last[Type::kBytes] = {};
      std::memcpy(last, row + 2 * (rows.in - rest), static_cast<size_t>(2 * rest));
      V w[kVectors];
      Type::Decode(last, 0, w);
      float values[kChunk];
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) hn::StoreU(w[v], d, values + v * kLanes);
      std::memcpy(out + rows.in - rest, values, static_cast<size_t>(rest) * sizeof(float));
    }
  }
}

// Calls body with the type of this form; false: none of them.
template <class Body>
HWY_INLINE bool WithType(PackedForm form, const Body& body) {
  switch (form) {
    case PackedForm::f16:
      return body(F16()), true;
    case PackedForm::bf16:
      return body(BF16()), true;
    case PackedForm::q4_0:
      return body(Q4_0()), true;
    case PackedForm::q4_1:
      return body(Q4_1()), true;
    case PackedForm::q5_0:
      return body(Q5_0()), true;
    case PackedForm::q5_1:
      return body(Q5_1()), true;
    case PackedForm::q8_0:
      return body(Q8_0()), true;
    case PackedForm::q4_k:
      return body(Q4_K()), true;
    case PackedForm::q5_k:
      return body(Q5_K()), true;
    case PackedForm::q6_k:
      return body(Q6_K()), true;
    case PackedForm::groups:
      return false;
  }
  return false;
}

HWY_INLINE int StepBytes(const PackedType& type) {
  return static_cast<int>(type.bytes - type.values / 8 * type.bits - (type.offsets ? 4 : 0));
}

bool PackedDots(const PackedRows& rows, int64_t begin, int64_t end, const float* x, int64_t n,
                const float* bias, bool relu, float* y, int64_t stride) {
  if (rows.type->form == PackedForm::groups)
    return AllGroupDots(rows, StepBytes(*rows.type), begin, end, x, n, bias, relu, y, stride), true;
  return WithType(rows.type->form, [&](auto type) {
    AllDots<decltype(type)>(rows, begin, end, x, n, bias, relu, y, stride);
  });
}

bool PackedWiden(const PackedRows& rows, int64_t first, int64_t count, float* out) {
  if (rows.type->form == PackedForm::groups)
    return WidenGroups(rows, StepBytes(*rows.type), first, count, out), true;
  return WithType(rows.type->form,
                  [&](auto type) { Widen<decltype(type)>(rows, first, count, out); });
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

namespace mase::kernels {
namespace {

HWY_EXPORT(PackedDots);
HWY_EXPORT(PackedWiden);

}  // namespace

namespace reference {

void packed_widen(const PackedRows& rows, int64_t first, int64_t count, float* out) {
  rows.type->widen(*rows.type,
                   reinterpret_cast<const std::byte*>(rows.blocks + first * rows.row_bytes()),
                   count * (rows.in / rows.type->values), out);
}

void packed_dots(const PackedRows& rows, int64_t first, int64_t count, const float* x, int64_t n,
                 const float* bias, bool relu, float* y, int64_t stride) {
  std::vector<float> row(static_cast<size_t>(rows.in));
  const int64_t width = packed_width(rows.in);
  for (int64_t o = first; o < first + count; ++o) {
    reference::packed_widen(rows, o, 1, row.data());
    for (int64_t s = 0; s < n; ++s) {
      double sum = bias ? static_cast<double>(bias[o]) : 0.0;
      for (int64_t i = 0; i < rows.in; ++i)
        sum += static_cast<double>(row[static_cast<size_t>(i)]) *
               static_cast<double>(x[s * width + i]);
      const auto total = static_cast<float>(sum);
      y[o * stride + s] = relu && total < 0 ? 0.0f : total;
    }
  }
}

}  // namespace reference

void packed_widen(const PackedRows& rows, int64_t first, int64_t count, float* out) {
  if (!HWY_DYNAMIC_DISPATCH(PackedWiden)(rows, first, count, out))
    reference::packed_widen(rows, first, count, out);
}

void packed_dots(const PackedRows& rows, int64_t first, int64_t count, const float* x, int64_t n,
                 const float* bias, bool relu, float* y, int64_t stride) {
  if (!HWY_DYNAMIC_DISPATCH(PackedDots)(rows, first, first + count, x, n, bias, relu, y, stride))
    reference::packed_dots(rows, first, count, x, n, bias, relu, y, stride);
}

}  // namespace mase::kernels
#endif
