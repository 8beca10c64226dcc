// SPDX-License-Identifier: Apache-2.0
// Both directions of each transform are done to a vector of tiles (or of kernels) in registers.
#include "mase/engine/kernels/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/winograd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace winograd {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

// One direction of each transform, from 3, 4 or 2 values to 4, 3, 4 or 2.
struct Weights {
  static constexpr int from = 3, to = 4;
  template <class V>
  static HWY_INLINE void Apply(const V* x, V* y) {
    const auto half = hn::Set(hn::DFromV<V>(), 0.5f);
    const V outer = hn::Add(x[0], x[2]);
    y[0] = x[0];
    y[1] = hn::Mul(half, hn::Add(outer, x[1]));
    y[2] = hn::Mul(half, hn::Sub(outer, x[1]));
    y[3] = x[2];
  }
};

struct WeightsGradient {
  static constexpr int from = 4, to = 3;
  template <class V>
  static HWY_INLINE void Apply(const V* x, V* y) {
    const auto half = hn::Set(hn::DFromV<V>(), 0.5f);
    const V inner = hn::Mul(half, hn::Add(x[1], x[2]));
    y[0] = hn::Add(x[0], inner);
    y[1] = hn::Mul(half, hn::Sub(x[1], x[2]));
    y[2] = hn::Add(inner, x[3]);
  }
};

struct Image {
  static constexpr int from = 4, to = 4;
  template <class V>
  static HWY_INLINE void Apply(const V* x, V* y) {
    y[0] = hn::Sub(x[0], x[2]);
    y[1] = hn::Add(x[1], x[2]);
    y[2] = hn::Sub(x[2], x[1]);
    y[3] = hn::Sub(x[1], x[3]);
  }
};

struct Result {
  static constexpr int from = 4, to = 2;
  template <class V>
  static HWY_INLINE void Apply(const V* x, V* y) {
    y[0] = hn::Add(hn::Add(x[0], x[1]), x[2]);
    y[1] = hn::Sub(hn::Sub(x[1], x[2]), x[3]);
  }
};

struct ResultGradient {
  static constexpr int from = 2, to = 4;
  template <class V>
  static HWY_INLINE void Apply(const V* x, V* y) {
    y[0] = x[0];
    y[1] = hn::Add(x[0], x[1]);
    y[2] = hn::Sub(x[0], x[1]);
    y[3] = hn::Neg(x[1]);
  }
};

// Both directions: x [from][from] by rows => y [to][to].
template <class Transform, class V>
HWY_INLINE void Twice(const V* x, V* y) {
  constexpr int from = Transform::from, to = Transform::to;
  V half[to * from];
  for (int j = 0; j < from; ++j) {
    V column[from], result[to];
    for (int i = 0; i < from; ++i) column[i] = x[i * from + j];
    Transform::Apply(column, result);
    for (int i = 0; i < to; ++i) half[i * from + j] = result[i];
  }
  for (int i = 0; i < to; ++i) Transform::Apply(half + i * from, y + i * to);
}

// Lanes [0, n): body(first) for whole vectors, the last of which may begin before the one before it
// ends; rest(count) if there are fewer than one vector has.
template <class Body, class Rest>
HWY_INLINE void EachVector(int64_t n, const Body& body, const Rest& rest) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  if (n < lanes) {
    if (n > 0) rest(n);
    return;
  }
  for (int64_t first = 0; first < n; first += lanes) body(first + lanes <= n ? first : n - lanes);
}

template <class Transform>
HWY_INLINE void Tiles(const WinogradTiles& s, const float* x, float* places) {
  using V = hn::Vec<D>;
  constexpr int count = Transform::from * Transform::from;
  const D d;
  for (int64_t row = 0; row < s.rows; ++row) {
    const float* from = x + row * s.pitch;
    float* to = places + row * s.lanes;
    EachVector(
        s.lanes,
        [&](int64_t at) HWY_ATTR {
          V value[count], result[winograd_places];
          for (int i = 0; i < count; ++i) value[i] = hn::LoadU(d, from + s.offsets[i] + at);
          Twice<Transform>(value, result);
          for (int i = 0; i < winograd_places; ++i) hn::StoreU(result[i], d, to + i * s.step + at);
        },
        [&](int64_t left) HWY_ATTR {
          const auto mask = hn::FirstN(d, static_cast<size_t>(left));
          V value[count], result[winograd_places];
          for (int i = 0; i < count; ++i) value[i] = MaskedRead(mask, d, from + s.offsets[i]);
          Twice<Transform>(value, result);
          for (int i = 0; i < winograd_places; ++i)
            hn::BlendedStore(result[i], mask, d, to + i * s.step);
        });
  }
}

// Calls body(tag, at) for each vector of kernels, then for each single one that is left.
template <class Body>
HWY_INLINE void EachKernel(int64_t kernels, const Body& body) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t at = 0;
  for (; at + lanes <= kernels; at += lanes) body(d, at);
  for (; at < kernels; ++at) body(One(), at);
}

// Where the same tap of the kernels of one vector lies.
template <class Tag>
HWY_INLINE auto TapIndex(Tag /*of the vectors*/) {
  const hn::RebindToSigned<Tag> di;
  return hn::Mul(hn::Iota(di, 0), hn::Set(di, 9));
}

}  // namespace winograd

void WinogradImage(const WinogradTiles& tiles, const float* x, float* places) {
  winograd::Tiles<winograd::Image>(tiles, x, places);
}

void WinogradResultGradient(const WinogradTiles& tiles, const float* g, float* places) {
  winograd::Tiles<winograd::ResultGradient>(tiles, g, places);
}

void WinogradResult(const float* places, int64_t step, int64_t columns, int64_t n, float bias,
                    float* rows, int64_t row_step) {
  using namespace winograd;
  using V = hn::Vec<D>;
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V start = hn::Set(d, bias);
  const auto sums = [&](const V* value, V* result) HWY_ATTR {
    Twice<Result>(value, result);
    for (int i = 0; i < 4; ++i) result[i] = hn::Add(result[i], start);
  };
  const auto load = [&](int64_t at, V* value) HWY_ATTR {
    for (int i = 0; i < winograd_places; ++i) value[i] = hn::LoadU(d, places + i * step + at);
  };
  if (n % lanes == 0) {  // a tile's samples are whole vectors
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t b = 0; b < n; b += lanes) {
        V value[winograd_places], result[4];
        load(column * n + b, value);
        sums(value, result);
        for (int i = 0; i < 4; ++i)
          hn::StoreU(result[i], d, rows + i / 2 * row_step + (2 * column + i % 2) * n + b);
      }
    return;
  }
  const auto spread = [&](const V* result, int64_t at, int64_t count) HWY_ATTR {
    HWY_ALIGN float values[4][64];
    for (int i = 0; i < 4; ++i) hn::Store(result[i], d, values[i]);
    int64_t column = at / n, b = at % n;
    for (int64_t l = 0; l < count; ++l) {
      for (int i = 0; i < 4; ++i)
        rows[i / 2 * row_step + (2 * column + i % 2) * n + b] = values[i][l];
      if (++b == n) {
        b = 0;
        ++column;
      }
    }
  };
  EachVector(
      columns * n,
      [&](int64_t at) HWY_ATTR {
        V value[winograd_places], result[4];
        load(at, value);
        sums(value, result);
        if (n == 1) {
          hn::StoreInterleaved2(result[0], result[1], d, rows + 2 * at);
          hn::StoreInterleaved2(result[2], result[3], d, rows + row_step + 2 * at);
        } else {
          spread(result, at, lanes);
        }
      },
      [&](int64_t left) HWY_ATTR {
        const auto mask = hn::FirstN(d, static_cast<size_t>(left));
        V value[winograd_places], result[4];
        for (int i = 0; i < winograd_places; ++i) value[i] = MaskedRead(mask, d, places + i * step);
        sums(value, result);
        spread(result, 0, left);
      });
}

void WinogradWeights(const float* w, int64_t kernels, float* u) {
  using namespace winograd;
  EachKernel(kernels, [&](auto d, int64_t at) HWY_ATTR {
    hn::Vec<decltype(d)> value[9], result[winograd_places];
    for (int i = 0; i < 9; ++i) value[i] = hn::GatherIndex(d, w + at * 9 + i, TapIndex(d));
    Twice<Weights>(value, result);
    for (int i = 0; i < winograd_places; ++i) hn::StoreU(result[i], d, u + i * kernels + at);
  });
}

void WinogradWeightsGradient(const float* du, int64_t kernels, float* dw, bool accumulate) {
  using namespace winograd;
  EachKernel(kernels, [&](auto d, int64_t at) HWY_ATTR {
    hn::Vec<decltype(d)> value[winograd_places], result[9];
    for (int i = 0; i < winograd_places; ++i) value[i] = hn::LoadU(d, du + i * kernels + at);
    Twice<WeightsGradient>(value, result);
    for (int i = 0; i < 9; ++i) {
      float* to = dw + at * 9 + i;
      if (accumulate) result[i] = hn::Add(hn::GatherIndex(d, to, TapIndex(d)), result[i]);
      hn::ScatterIndex(result[i], d, to, TapIndex(d));
    }
  });
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(WinogradImage);
HWY_EXPORT(WinogradResultGradient);
HWY_EXPORT(WinogradResult);
HWY_EXPORT(WinogradWeights);
HWY_EXPORT(WinogradWeightsGradient);

// The matrices of the paper.
constexpr double weights_matrix[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
constexpr double image_matrix[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
constexpr double result_matrix[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};

// result(a, b) = sum over i, j of matrix(a, i) matrix(b, j) value(i, j)
template <class Matrix, class Value>
double transformed(int64_t a, int64_t b, int64_t size, const Matrix& matrix, const Value& value) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j) sum += matrix(a, i) * matrix(b, j) * value(i, j);
  return sum;
}

}  // namespace

namespace reference {

void winograd_weights(const float* w, int64_t kernels, float* u) {
  for (int64_t k = 0; k < kernels; ++k)
    for (int64_t p = 0; p < winograd_places; ++p)
      u[p * kernels + k] = static_cast<float>(transformed(
          p / 4, p % 4, 3, [](int64_t a, int64_t i) { return weights_matrix[a][i]; },
          [&](int64_t i, int64_t j) { return w[k * 9 + i * 3 + j]; }));
}

void winograd_weights_gradient(const float* du, int64_t kernels, float* dw, bool accumulate) {
  for (int64_t k = 0; k < kernels; ++k)
    for (int64_t t = 0; t < 9; ++t) {
      const double sum = transformed(
          t / 3, t % 3, 4, [](int64_t a, int64_t i) { return weights_matrix[i][a]; },
          [&](int64_t i, int64_t j) { return du[(i * 4 + j) * kernels + k]; });
      dw[k * 9 + t] = static_cast<float>(sum + (accumulate ? dw[k * 9 + t] : 0.0f));
    }
}

void winograd_image(const WinogradTiles& s, const float* x, float* places) {
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t l = 0; l < s.lanes; ++l)
      for (int64_t p = 0; p < winograd_places; ++p)
        places[p * s.step + row * s.lanes + l] = static_cast<float>(transformed(
            p / 4, p % 4, 4, [](int64_t a, int64_t i) { return image_matrix[a][i]; },
            [&](int64_t i, int64_t j) { return x[row * s.pitch + s.offsets[i * 4 + j] + l]; }));
}

void winograd_result_gradient(const WinogradTiles& s, const float* g, float* places) {
  for (int64_t row = 0; row < s.rows; ++row)
    for (int64_t l = 0; l < s.lanes; ++l)
      for (int64_t p = 0; p < winograd_places; ++p)
        places[p * s.step + row * s.lanes + l] = static_cast<float>(transformed(
            p / 4, p % 4, 2, [](int64_t a, int64_t i) { return result_matrix[i][a]; },
            [&](int64_t i, int64_t j) { return g[row * s.pitch + s.offsets[i * 2 + j] + l]; }));
}

void winograd_result(const float* places, int64_t step, int64_t columns, int64_t n, float bias,
                     float* rows, int64_t row_step) {
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t b = 0; b < n; ++b)
      for (int64_t t = 0; t < 4; ++t)
        rows[t / 2 * row_step + (2 * column + t % 2) * n + b] =
            bias +
            static_cast<float>(transformed(
                t / 2, t % 2, 4, [](int64_t a, int64_t i) { return result_matrix[a][i]; },
                [&](int64_t i, int64_t j) { return places[(i * 4 + j) * step + column * n + b]; }));
}

}  // namespace reference

void winograd_weights(const float* w, int64_t kernels, float* u) {
  HWY_DYNAMIC_DISPATCH(WinogradWeights)(w, kernels, u);
}

void winograd_weights_gradient(const float* du, int64_t kernels, float* dw, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(WinogradWeightsGradient)(du, kernels, dw, accumulate);
}

void winograd_image(const WinogradTiles& tiles, const float* x, float* places) {
  HWY_DYNAMIC_DISPATCH(WinogradImage)(tiles, x, places);
}

void winograd_result_gradient(const WinogradTiles& tiles, const float* g, float* places) {
  HWY_DYNAMIC_DISPATCH(WinogradResultGradient)(tiles, g, places);
}

void winograd_result(const float* places, int64_t step, int64_t columns, int64_t n, float bias,
                     float* rows, int64_t row_step) {
  HWY_DYNAMIC_DISPATCH(WinogradResult)(places, step, columns, n, bias, rows, row_step);
}

}  // namespace mase::kernels
#endif
