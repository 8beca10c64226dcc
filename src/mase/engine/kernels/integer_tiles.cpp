// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/kernels/integer_tiles.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mase::kernels {
namespace {

constexpr int64_t side = 16;  // rows of a tile, and words of a row

// The tile registers as plain memory.
struct EmulatedTiles {
  uint32_t tile[8][side][side] = {};

  template <int kTile>
  void zero() {
    std::memset(tile[kTile], 0, sizeof tile[kTile]);
  }
  template <int kTile>
  void load(const uint32_t* from, int64_t stride) {
    for (int64_t r = 0; r < side; ++r)
      std::memcpy(tile[kTile][r], from + r * stride, sizeof tile[kTile][r]);
  }
  template <int kTile>
  void store(int32_t* to) {
    std::memcpy(to, tile[kTile], sizeof tile[kTile]);
  }
  // sums += signed bytes of A, a row for each output, times unsigned bytes of B, a word for each
  // lane: TDPBSUD.
  template <int kSums, int kA, int kB>
  void multiply_add() {
    for (int64_t m = 0; m < side; ++m)
      for (int64_t k = 0; k < side; ++k)
        for (int64_t n = 0; n < side; ++n)
          for (int byte = 0; byte < 4; ++byte)
            tile[kSums][m][n] +=
                static_cast<uint32_t>(static_cast<int8_t>(tile[kA][m][k] >> (8 * byte)) *
                                      static_cast<int32_t>(tile[kB][k][n] >> (8 * byte) & 255));
  }
};

#if defined(__x86_64__) && defined(__linux__)

// The registers themselves, all of 16 rows of 64 bytes (palette 1), as long as this lives. By
// assembly: GCC's own names for these take numbers that are written out, and no template's.
struct Tiles {
  Tiles() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t bytes[16] = {};
      uint8_t rows[16] = {};
    } config;
    static_assert(sizeof config == 64);
    for (int i = 0; i < 8; ++i) {
      config.bytes[i] = 64;
      config.rows[i] = 16;
    }
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int kTile>
  void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  void load(const uint32_t* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(stride * static_cast<int64_t>(sizeof(uint32_t))), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  void store(int32_t* to) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(to), "r"(side * static_cast<int64_t>(sizeof(int32_t))), "i"(kTile)
                 : "memory");
  }
  template <int kSums, int kA, int kB>
  void multiply_add() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
  }
};

#endif

// Words of a matrix as a tile, zeros where it ends: rows are `stride` words apart.
void pad_tile(const uint32_t* from, int64_t stride, int64_t rows, int64_t words, uint32_t* to) {
  std::memset(to, 0, side * side * sizeof(uint32_t));
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(to + r * side, from + r * stride, static_cast<size_t>(words) * sizeof(uint32_t));
}

// Up to four tiles of outputs by 16 lanes: registers 0 to 3 are the sums, 4 the lanes' codes, 5 the
// weights'.
constexpr int64_t band = 4;

template <class Registers>
struct Band {
  Registers& tiles;
  const ShiftedShape& s;
  int64_t outs;  // of this band

  template <int kTile>
  void multiply(const uint32_t* w, int64_t k, int64_t words) {
    const int64_t rows = std::min(side, outs - kTile * side);
    if (rows <= 0) return;
    const uint32_t* from = w + kTile * side * s.out_step + k;
    alignas(64) uint32_t padded[side * side];
    const bool whole = rows == side && words == side;
    if (!whole) pad_tile(from, s.out_step, rows, words, padded);
    tiles.template load<5>(whole ? from : padded, whole ? s.out_step : side);
    tiles.template multiply_add<kTile, 5, 4>();
  }

  template <int kTile>
  void finish(const int32_t* start, const IntegerTotals& totals, float* y, int64_t lanes) {
    const int64_t rows = std::min(side, outs - kTile * side);
    if (rows <= 0) return;
    alignas(64) int32_t sums[side * side];
    tiles.template store<kTile>(sums);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t o = kTile * side + r;
      float* to = y + o * s.y_stride;
      for (int64_t l = 0; l < lanes; ++l) {
        const auto sum = static_cast<int32_t>(static_cast<uint32_t>(sums[r * side + l]) +
                                              static_cast<uint32_t>(start[o]));
        const Finish& last = totals.finish;
        float total =
            (totals.bias ? totals.bias[o] : to[l]) + static_cast<float>(sum) * totals.unit;
        if (last.add) total += last.add[o * s.y_stride + l];
        to[l] = total < last.low ? last.low : total > last.high ? last.high : total;
      }
    }
  }

  void run(const uint32_t* w, const int32_t* start, const IntegerTotals& totals, const uint32_t* x,
           float* y, int64_t lanes) {
    tiles.template zero<0>();
    tiles.template zero<1>();
    tiles.template zero<2>();
    tiles.template zero<3>();
    for (int64_t k = 0; k < s.in; k += side) {
      const int64_t words = std::min(side, s.in - k);
      alignas(64) uint32_t codes[side * side];
      if (words < side || lanes < side) std::memset(codes, 0, sizeof codes);
      for (int64_t r = 0; r < words; ++r)
        std::memcpy(codes + r * side, x + s.offsets[k + r],
                    static_cast<size_t>(lanes) * sizeof(uint32_t));
      tiles.template load<4>(codes, side);
      multiply<0>(w, k, words);
      multiply<1>(w, k, words);
      multiply<2>(w, k, words);
      multiply<3>(w, k, words);
    }
    finish<0>(start, totals, y, lanes);
    finish<1>(start, totals, y, lanes);
    finish<2>(start, totals, y, lanes);
    finish<3>(start, totals, y, lanes);
  }
};

template <class Registers>
void run_segment(const ShiftedShape& s, const uint32_t* w, const int32_t* start,
                 const IntegerTotals& totals, const uint32_t* x, float* y) {
  Registers tiles;
  for (int64_t o = 0; o < s.out; o += band * side) {
    IntegerTotals own = totals;
    if (own.bias) own.bias += o;
    Band<Registers> rows{tiles, s, std::min(band * side, s.out - o)};
    for (int64_t l = 0; l < s.n; l += side) {
      own.finish = totals.finish.at(o * s.y_stride + l);
      rows.run(w + o * s.out_step, start + o, own, x + l, y + o * s.y_stride + l,
               std::min(side, s.n - l));
    }
  }
}

}  // namespace

void emulated_integer_tile_segment(const ShiftedShape& shape, const uint32_t* w,
                                   const int32_t* start, const IntegerTotals& totals,
                                   const uint32_t* x, float* y) {
  run_segment<EmulatedTiles>(shape, w, start, totals, x, y);
}

#if defined(__x86_64__) && defined(__linux__)

bool has_integer_tiles() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned tile = 1u << 24, bytes = 1u << 25;  // AMX-TILE, AMX-INT8
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & tile) == 0 || (d & bytes) == 0)
      return false;
    // The registers are 8 KB that the system saves at every switch: a process has to ask for them.
    constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  }();
  return has;
}

void integer_tile_segment(const ShiftedShape& shape, const uint32_t* w, const int32_t* start,
                          const IntegerTotals& totals, const uint32_t* x, float* y) {
  run_segment<Tiles>(shape, w, start, totals, x, y);
}

#else

bool has_integer_tiles() { return false; }
void integer_tile_segment(const ShiftedShape& shape, const uint32_t* w, const int32_t* start,
                          const IntegerTotals& totals, const uint32_t* x, float* y) {
  emulated_integer_tile_segment(shape, w, start, totals, x, y);
}

#endif

}  // namespace mase::kernels
