// SPDX-License-Identifier: Apache-2.0
// Every vector kernel against its plain twin: odd sizes, padding full of NaN, hostile values.
#include "mase/engine/kernels/kernels.h"
#include "mase/engine/kernels/pool.h"
#include "mase/engine/kernels/sample_norm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "engine/instruction_sets.h"
#include "engine/kernel_rows.h"
#include "mase/base/random.h"
#include "mase/base/tensor.h"
#include "mase/engine/kernels/optimizer.h"

namespace mase::kernels::kernels_test {
namespace {

// With hostile values single precision may overflow where the reference's double does not: only
// what is a number on both sides, and which results are NaN, can be compared.
void expect_same_kind(const Rows& got, const Rows& wanted, const std::string& where,
                      double tolerance = 2e-5) {
  for (int64_t r = 0; r < got.rows; ++r)
    for (int64_t b = 0; b < got.n; ++b) {
      const float a = got.data[r * got.stride + b], e = wanted.data[r * wanted.stride + b];
      if (std::isfinite(e) && std::abs(e) < 1e30f && std::isfinite(a))
        expect_close(a, e, tolerance, where);
      if (std::isnan(e)) {
        EXPECT_TRUE(std::isnan(a)) << where << " row " << r << " sample " << b;
      }
    }
}

TEST(Kernels, LinearMatchesReference) {
  for (const int64_t n : sizes)
    for (const int64_t out : {1, 2, 3, 4, 5, 6, 7, 13})
      for (const int64_t in : {1, 3, 16}) {
        const Rows x(in, n, 1), w(1, out * in, 2), bias(1, out, 3);
        for (const bool transposed : {false, true})
          for (const int mode : {0, 1, 2}) {
            LinearShape shape{out, in, transposed ? 1 : in, transposed ? out : 1, x.stride, n};
            Rows fast(out, n, 4), plain(out, n, 4);
            linear(shape, w.data, bias.data, x.data, fast.data, mode == 1, mode == 2);
            reference::linear(shape, w.data, bias.data, x.data, plain.data, mode == 1, mode == 2);
            expect_rows(fast, plain, 1e-5,
                        fmt::format("linear {}x{}x{} mode {}", out, in, n, mode));
          }
      }
}

TEST(Kernels, LinearOfOneSampleMatchesReference) {
  for (const int64_t in : {16, 17, 31, 65, 400, 1024, 1030, 2100})
    for (const int64_t out : {1, 3, 8, 13, 70})
      for (const int mode : {0, 1, 2}) {
        const Rows x(in, 1, 1), w(1, out * in, 2), bias(1, out, 3);
        const LinearShape shape{out, in, in, 1, x.stride, 1};
        Rows fast(out, 1, 4), plain(out, 1, 4);
        linear(shape, w.data, mode == 1 ? nullptr : bias.data, x.data, fast.data, mode == 0,
               mode == 2);
        reference::linear(shape, w.data, mode == 1 ? nullptr : bias.data, x.data, plain.data,
                          mode == 0, mode == 2);
        expect_rows(fast, plain, 1e-4, fmt::format("linear {}x{} mode {}", out, in, mode));
      }
}

// Those that take the tiles of the convolutions; with one thread and two.
TEST(Kernels, LargeLinearMatchesReference) {
  for (const int64_t n : {128, 150})
    for (const auto& [out, in] : {std::pair<int64_t, int64_t>{97, 340}, {260, 131}, {49, 700}})
      for (const bool transposed : {false, true})
        for (const bool accumulate : {false, true}) {
          const Rows x(in, n, 1), w(1, out * in, 2), bias(1, out, 3), g(out, n, 5);
          LinearShape shape{out, in, transposed ? 1 : in, transposed ? out : 1, x.stride, n};
          Rows fast(out, n, 4), plain(out, n, 4), shared(out, n, 4);
          linear(shape, w.data, bias.data, x.data, fast.data, !accumulate, accumulate);
          reference::linear(shape, w.data, bias.data, x.data, plain.data, !accumulate, accumulate);
          expect_rows(fast, plain, 1e-4, fmt::format("linear {}x{}x{}", out, in, n));
          std::vector<float> a(static_cast<size_t>(out * in), 0.5f), b = a, c = a;
          linear_gradient(shape, g.data, x.data, a.data(), nullptr, accumulate);
          reference::linear_gradient(shape, g.data, x.data, b.data(), nullptr, accumulate);
          for (size_t i = 0; i < a.size(); ++i) expect_close(a[i], b[i], 1e-4, "weight gradient");
          shape.threads = 2;
          linear(shape, w.data, bias.data, x.data, shared.data, !accumulate, accumulate);
          linear_gradient(shape, g.data, x.data, c.data(), nullptr, accumulate);
          EXPECT_EQ(a, c);
          expect_rows(shared, fast, 0, "two threads");
        }
}

void linear_gradient_matches_reference(std::span<const int64_t> widths) {
  for (const int64_t n : widths)
    for (const int64_t out : {1, 2, 3, 4, 5, 6, 13})
      for (const int64_t in : {1, 2, 3, 4, 5, 16}) {
        const Rows x(in, n, 1), g(out, n, 2);
        for (const bool accumulate : {false, true}) {
          LinearShape shape{out, in, in, 1, x.stride, n};
          std::vector<float> a(static_cast<size_t>(out * in), 0.5f),
              b = a, c(static_cast<size_t>(out), 1.f), e = c;
          linear_gradient(shape, g.data, x.data, a.data(), c.data(), accumulate);
          reference::linear_gradient(shape, g.data, x.data, b.data(), e.data(), accumulate);
          for (size_t i = 0; i < a.size(); ++i) expect_close(a[i], b[i], 2e-5, "weight gradient");
          for (size_t i = 0; i < c.size(); ++i) expect_close(c[i], e[i], 2e-5, "bias gradient");
        }
      }
}

TEST(Kernels, LinearGradientMatchesReference) {
  linear_gradient_matches_reference(sizes);
  // Long rows have taller tiles where there are registers for them.
  with_every_instruction_set([] {
    for (const int64_t n : {100, 511, 512, 525}) linear_gradient_matches_reference({&n, 1});
  });
}

TEST(Kernels, BatchNormMatchesReference) {
  for (const int64_t n : sizes)
    for (const int64_t positions : {1, 3})
      for (const bool relu : {false, true}) {
        const int64_t channels = 11;
        const Rows x(channels * positions, n, 1), g(channels * positions, n, 2), b(1, channels, 4);
        Rows w(1, channels, 3);  // of both signs
        w.data[4] = 0;
        w.data[5] = -0.0f;
        const NormShape shape{channels, positions, x.stride, n};
        const NormParameters parameters{w.data, b.data, 1e-5, relu ? 0.0f : -INFINITY};
        struct Result {
          Rows y, dx;
          std::vector<float> mean = std::vector<float>(channels), variance = mean, inverse = mean,
                             sum_g = mean, sum_gx = mean;
          Result(int64_t rows, int64_t n) : y(rows, n, 5), dx(rows, n, 6) {}
        } fast(channels * positions, n), plain(channels * positions, n);
        norm_forward(shape, parameters, x.data, fast.mean.data(), fast.variance.data(),
                     fast.inverse.data(), fast.y.data, {});
        reference::norm_forward(shape, parameters, x.data, plain.mean.data(), plain.variance.data(),
                                plain.inverse.data(), plain.y.data, {});
        const std::string where = fmt::format("norm n {} positions {} relu {}", n, positions, relu);
        const double loose = n * positions == 1 ? 1e-3 : 2e-5;
        expect_rows(fast.y, plain.y, loose, where + " y");
        const NormParameters limited{w.data, b.data, 1e-5, relu ? 0.0f : -0.5f, 0.75f};
        Rows y(channels * positions, n, 5), wanted(channels * positions, n, 5);
        norm_apply(shape, limited, x.data, plain.mean.data(), plain.inverse.data(), y.data, {});
        reference::norm_apply(shape, limited, x.data, plain.mean.data(), plain.inverse.data(),
                              wanted.data, {});
        expect_rows(y, wanted, loose, where + " limited");
        // The same statistics for both gradients: a sample at the relu's edge may fall either way.
        norm_backward(shape, parameters, x.data, g.data, plain.mean.data(), plain.inverse.data(),
                      fast.sum_g.data(), fast.sum_gx.data(), fast.dx.data, false);
        reference::norm_backward(shape, parameters, x.data, g.data, plain.mean.data(),
                                 plain.inverse.data(), plain.sum_g.data(), plain.sum_gx.data(),
                                 plain.dx.data, false);
        for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
          expect_close(fast.mean[c], plain.mean[c], 1e-6, where + " mean");
          expect_close(fast.variance[c], plain.variance[c], 1e-5, where + " variance");
          expect_close(fast.sum_g[c], plain.sum_g[c], 1e-4, where + " sum g");
          expect_close(fast.sum_gx[c], plain.sum_gx[c], 1e-4, where + " sum gx");
        }
        if (n * positions > 2) expect_rows(fast.dx, plain.dx, 1e-4, where + " dx");
      }
}

// Channels are worked on in groups, and threads cut them differently: no bit may show it.
TEST(Kernels, BatchNormChannelsDoNotDependOnTheirNeighbours) {
  constexpr int64_t channels = 13;
  for (const int64_t n : {1, 7, 8, 15, 16, 31, 33, 256, 5000})
    for (const bool relu : {false, true}) {
      Rows x(channels, n, 1), g(channels, n, 2), y(channels, n, 3), dx(channels, n, 4);
      const Rows w(1, channels, 5), b(1, channels, 6);
      x.data[5 * x.stride] = nan;
      float mean[channels], variance[channels], inverse[channels], sum_g[channels],
          sum_gx[channels];
      const NormShape all{channels, 1, x.stride, n};
      const float low = relu ? 0.0f : -INFINITY;
      norm_forward(all, {w.data, b.data, 1e-5, low}, x.data, mean, variance, inverse, y.data, {});
      norm_backward(all, {w.data, b.data, 1e-5, low}, x.data, g.data, mean, inverse, sum_g, sum_gx,
                    dx.data, false);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t at = c * x.stride;
        Rows one(1, n, 7), back(1, n, 8);
        float m, v, i, sg, sx;
        const NormShape single{1, 1, x.stride, n};
        const NormParameters own{w.data + c, b.data + c, 1e-5, low};
        norm_forward(single, own, x.data + at, &m, &v, &i, one.data, {});
        norm_backward(single, own, x.data + at, g.data + at, &m, &i, &sg, &sx, back.data, false);
        const auto same = [&](float a, float e) {
          return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(e) ||
                 (std::isnan(a) && std::isnan(e));
        };
        EXPECT_TRUE(same(m, mean[c]) && same(v, variance[c]) && same(sg, sum_g[c]) &&
                    same(sx, sum_gx[c]))
            << c << " of " << n;
        for (int64_t s = 0; s < n; ++s)
          EXPECT_TRUE(same(one.data[s], y.data[at + s]) && same(back.data[s], dx.data[at + s]))
              << c << " of " << n << " sample " << s;
        EXPECT_EQ(std::isnan(m), c == 5);
      }
    }
}

TEST(Kernels, BatchNormKeepsNaNInItsChannel) {
  Rows x(2, 17, 1), y(2, 17, 2);
  x.data[3] = nan;
  const NormShape shape{2, 1, x.stride, 17};
  float mean[2], variance[2], inverse[2];
  norm_forward(shape, {.low = 0}, x.data, mean, variance, inverse, y.data, {});
  for (int64_t b = 0; b < 17; ++b) {
    EXPECT_TRUE(std::isnan(y.data[b]));
    EXPECT_FALSE(std::isnan(y.data[y.stride + b]));
  }
}

TEST(Kernels, CrossEntropyMatchesReference) {
  for (const int64_t n : sizes)
    for (const int64_t classes : {1, 2, 5, 10})
      for (const bool weighted : {false, true}) {
        const Rows x(classes, n, 1);
        std::vector<int32_t> labels(static_cast<size_t>(n + 16), 0);
        Random random(3, "labels");
        for (int64_t b = 0; b < n; ++b)
          labels[static_cast<size_t>(b)] =
              static_cast<int32_t>(random.below(static_cast<uint64_t>(classes)));
        const Rows weights(1, classes, 8);
        Rows fast(classes, n, 4), plain(classes, n, 4);
        const float* w = weighted ? weights.data : nullptr;
        const auto a =
            cross_entropy(x.data, classes, x.stride, n, labels.data(), w, 0.25f, fast.data);
        const auto b = reference::cross_entropy(x.data, classes, x.stride, n, labels.data(), w,
                                                0.25f, plain.data);
        EXPECT_NEAR(a.loss, b.loss, 1e-5 * std::max(1.0, std::abs(b.loss)));
        EXPECT_EQ(a.correct, b.correct);
        EXPECT_EQ(hits(x.data, classes, x.stride, n, labels.data()), b.correct);
        EXPECT_EQ(reference::hits(x.data, classes, x.stride, n, labels.data()), b.correct);
        expect_rows(fast, plain, 1e-6, "cross entropy");
      }
}

TEST(Kernels, LargestRowMatchesReference) {
  for (const int64_t n : {0, 1, 7, 8, 16, 31, 32, 33, 64, 255, 256, 257})
    for (int64_t place = 0; place < std::max<int64_t>(n, 1); ++place) {
      std::vector<uint32_t> rows(static_cast<size_t>(n), 5);
      if (n) rows[static_cast<size_t>(place)] = 0xffffffffu - static_cast<uint32_t>(place);
      EXPECT_EQ(largest_row(rows.data(), n), reference::largest_row(rows.data(), n)) << n;
    }
}

TEST(Kernels, GatherAndScatterMatchReference) {
  for (const int64_t n : sizes)
    for (const int64_t features : {1, 2, 3, 4, 5, 6, 7, 8, 16, 17}) {
      Rows source(1, (n + 3) * features, 1);
      std::vector<uint32_t> order;
      for (int64_t b = 0; b < n; ++b) order.push_back(static_cast<uint32_t>((b * 7 + 3) % (n + 3)));
      for (const bool shuffled : {false, true}) {
        Rows fast(features, n, 2), plain(features, n, 2);
        const uint32_t* rows = shuffled ? order.data() : nullptr;
        gather(source.data, features, rows, 2, n, fast.data, fast.stride);
        reference::gather(source.data, features, rows, 2, n, plain.data, plain.stride);
        expect_rows(fast, plain, 0, "gather");
        const Rows scale(1, features, 5), shift(1, features, 6);
        for (const float low : {0.0f, -INFINITY}) {
          const Normalizer by{scale.data, shift.data, low};
          Rows normal(features, n, 3), expected(features, n, 3);
          gather(source.data, features, rows, 2, n, normal.data, normal.stride, &by);
          reference::gather(source.data, features, rows, 2, n, expected.data, expected.stride, &by);
          expect_rows(normal, expected, 1e-6, "gather and normalise");
        }
        std::vector<float> a(static_cast<size_t>(n * features)), b = a;
        scatter(fast.data, features, fast.stride, n, a.data());
        reference::scatter(plain.data, features, plain.stride, n, b.data());
        EXPECT_EQ(a, b);
      }
    }
}

TEST(Kernels, GatherLinearMatchesReference) {
  for (const int64_t n : {1, 5, 15, 16, 17, 33, 257})
    for (const int64_t features : {1, 3, 4, 16, 17, 64})
      for (const int64_t out : {1, 2, 3, 4, 5, 6, 7, 8})
        for (const bool hostile : {false, true}) {
          const Rows source(1, (n + 3) * features, 1, hostile), w(1, out * features, 2),
              bias(1, out, 3), scale(1, features, 5), shift(1, features, 6);
          std::vector<uint32_t> order;
          for (int64_t b = 0; b < n; ++b)
            order.push_back(static_cast<uint32_t>((b * 7 + 3) % (n + 3)));
          for (const int mode : {0, 1, 2, 3, 4, 5}) {
            const bool transposed = mode == 2;
            Rows fast(out, n, 4), plain(out, n, 4);
            const LinearShape shape{
                out, features, transposed ? 1 : features, transposed ? out : 1, fast.stride, n};
            const Normalizer by{scale.data, shift.data, mode == 3 ? -INFINITY : 0.0f};
            const Samples samples{source.data, mode == 4 ? order.data() : nullptr, 2};
            const auto run = [&](auto* kernel, float* y) {
              kernel(samples, mode == 1 ? nullptr : &by, shape, w.data,
                     mode == 5 ? nullptr : bias.data, mode != 3, y, {});
            };
            run(gather_linear, fast.data);
            run(reference::gather_linear, plain.data);
            const std::string where =
                fmt::format("gather_linear {}x{}x{} mode {}", out, features, n, mode);
            // Infinities of both signs make NaN in either; the order of sums decides about 3e38.
            if (!hostile)
              expect_rows(fast, plain, 2e-5, where);
            else
              expect_same_kind(fast, plain, where);
            // The same bits as one after the other.
            Rows x(features, n, 7), y(out, n, 8);
            gather(samples.source, features, samples.rows, samples.first, n, x.data, x.stride,
                   mode == 1 ? nullptr : &by);
            linear(shape, w.data, mode == 5 ? nullptr : bias.data, x.data, y.data, mode != 3,
                   false);
            expect_rows(fast, y, 0, where + " in two steps");
          }
        }
}

TEST(Kernels, LayersBehindGatherLinearMatchReference) {
  with_every_instruction_set([] {
    for (const int64_t n : {1, 5, 15, 16, 17, 31, 32, 33, 64, 257})
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{16, 8, 5},
                                                {16, 8, 8, 5},
                                                {16, 8, 8, 8, 1},
                                                {16, 8, 7, 8},
                                                {16, 5, 8, 3},
                                                {7, 8, 8, 2},
                                                {64, 1, 8, 6, 4, 2, 3, 8, 7}})
        for (const bool hostile : {false, true})
          for (const int mode : {0, 1, 2, 3, 4, 5}) {
            const int64_t features = sizes[0], out = sizes.back();
            const bool transposed = mode == 2, relu = mode != 3;
            const Rows source(1, (n + 3) * features, 1, hostile), scale(1, features, 5),
                shift(1, features, 6);
            std::vector<uint32_t> order;
            for (int64_t b = 0; b < n; ++b)
              order.push_back(static_cast<uint32_t>((b * 7 + 3) % (n + 3)));
            const Normalizer by{scale.data, shift.data, mode == 3 ? -INFINITY : 0.0f};
            const Samples samples{source.data, mode == 4 ? order.data() : nullptr, 2};
            const Normalizer* normalizer = mode == 1 ? nullptr : &by;
            std::vector<Rows> weights, biases;
            for (size_t i = 1; i < sizes.size(); ++i) {
              weights.emplace_back(1, sizes[i - 1] * sizes[i], 10 + i);
              biases.emplace_back(1, sizes[i], 20 + i);
            }
            Rows fast(out, n, 4), plain(out, n, 4);
            const auto shape_of = [&](size_t i) {
              const int64_t from = sizes[i], to = sizes[i + 1];
              return LinearShape{to,          from, transposed ? 1 : from, transposed ? to : 1,
                                 fast.stride, n};
            };
            const auto bias_of = [&](size_t i) { return mode == 5 ? nullptr : biases[i].data; };
            std::vector<NextLayer> next;
            for (size_t i = 1; i + 1 < sizes.size(); ++i) {
              const LinearShape shape = shape_of(i);
              next.push_back(
                  {shape.out, shape.out_step, shape.in_step, weights[i].data, bias_of(i), relu});
            }
            gather_linear(samples, normalizer, shape_of(0), weights[0].data, bias_of(0), relu,
                          fast.data, next);
            reference::gather_linear(samples, normalizer, shape_of(0), weights[0].data, bias_of(0),
                                     relu, plain.data, next);
            const std::string where = fmt::format("{} samples, {} layers from {} features, mode {}",
                                                  n, next.size() + 1, features, mode);
            // Each layer adds to what single precision rounded before it.
            if (!hostile)
              expect_rows(fast, plain, 1e-3, where);
            else
              expect_same_kind(fast, plain, where, 1e-3);
            // The same bits as one after the other.
            Rows x(features, n, 7);
            gather(samples.source, features, samples.rows, samples.first, n, x.data, x.stride,
                   normalizer);
            for (size_t i = 0; i + 1 < sizes.size(); ++i) {
              Rows y(sizes[i + 1], n, 8);
              linear(shape_of(i), weights[i].data, bias_of(i), x.data, y.data, relu, false);
              std::swap(x, y);
            }
            expect_rows(fast, x, 0, where + " one by one");
          }
  });
}

// Other sizes would be computed as eight outputs, or overrun the tile.
TEST(Kernels, GatherLinearTakesSmallLayersOnly) {
  EXPECT_FALSE(can_gather_linear(0, 16));
  EXPECT_FALSE(can_gather_linear(9, 16));
  EXPECT_FALSE(can_gather_linear(5, 65));
  EXPECT_TRUE(can_gather_linear(8, 64));
}

TEST(Kernels, MaxPoolMatchesReferenceOnHostileValues) {
  const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 3.4e38f, 1e-45f};
  Random random(5, "pool");
  struct Case {
    int64_t kernel, stride, padding, dilation, height, width;
  };
  for (const int64_t n : {1, 3, 7, 8, 9, 16, 17, 33})
    for (const Case& c :
         {Case{2, 2, 0, 1, 4, 28}, Case{2, 2, 0, 1, 5, 19}, Case{3, 2, 1, 1, 6, 40},
          Case{3, 2, 0, 1, 7, 7}, Case{3, 1, 1, 1, 4, 9}, Case{1, 3, 0, 1, 3, 8},
          Case{2, 1, 2, 2, 3, 3}, Case{4, 2, 3, 1, 5, 11}, Case{2, 2, 1, 2, 9, 9}}) {
      const auto axis = [&](int64_t size) {
        const int64_t reach = c.dilation * (c.kernel - 1) + 1;
        return WindowAxis{c.kernel,   c.stride, c.padding,
                          c.dilation, size,     (size + 2 * c.padding - reach) / c.stride + 1};
      };
      const Windowing windows(axis(c.height), axis(c.width));
      const PlaneWindows shape = windows.of(n);
      const int64_t results = shape.height.result * shape.width.result * n;
      std::vector<float> x(static_cast<size_t>(c.height * c.width * n));
      std::vector<float> up(static_cast<size_t>(results));
      for (float& value : x) value = values[random.below(std::size(values))];
      for (float& value : up) value = static_cast<float>(random.below(9));  // sums are exact
      // One value more behind each: nothing may be written there.
      std::vector<float> fast(static_cast<size_t>(results) + 1, 7.0f), plain = fast;
      max_pool(shape, x.data(), fast.data());
      reference::max_pool(shape, x.data(), plain.data());
      EXPECT_EQ(std::memcmp(fast.data(), plain.data(), fast.size() * 4), 0)
          << n << " " << c.kernel << " " << c.stride << " " << c.width;
      std::vector<float> dx(x.size() + 1, 0.5f), expected = dx;
      max_pool_gradient(shape, x.data(), plain.data(), up.data(), dx.data());
      reference::max_pool_gradient(shape, x.data(), plain.data(), up.data(), expected.data());
      EXPECT_EQ(dx, expected) << n << " " << c.kernel << " " << c.stride << " " << c.width;
    }
}

TEST(Kernels, SoftmaxMatchesReference) {
  for (const int64_t n : sizes)
    for (const int64_t length : {1, 2, 5, 17})
      for (const bool hostile : {false, true})
        for (const bool logarithm : {false, true}) {
          const Rows x(length, n, 1, hostile), g(length, n, 2);
          const SampleRange range{length, x.stride, n};
          Rows fast(length, n, 3), plain(length, n, 3);
          softmax(range, x.data, fast.data, logarithm);
          reference::softmax(range, x.data, plain.data, logarithm);
          expect_rows(fast, plain, 1e-6, "softmax");
          for (const bool accumulate : {false, true}) {
            Rows a(length, n, 4), b(length, n, 4);
            softmax_gradient(range, plain.data, g.data, a.data, logarithm, accumulate);
            reference::softmax_gradient(range, plain.data, g.data, b.data, logarithm, accumulate);
            if (!hostile) expect_rows(a, b, 1e-5, "softmax gradient");
          }
        }
}

TEST(Kernels, LayerNormMatchesReference) {
  for (const int64_t n : sizes)
    for (const int64_t length : {1, 2, 5, 17})
      for (const bool affine : {false, true})
        for (const bool accumulate : {false, true}) {
          const Rows x(length, n, 1), g(length, n, 2), weight(1, length, 3), bias(1, length, 4);
          const float* w = affine ? weight.data : nullptr;
          const SampleRange range{length, x.stride, n};
          Rows fast(length, n, 5), plain(length, n, 5);
          layer_norm(range, x.data, w, affine ? bias.data : nullptr, 1e-3, fast.data);
          reference::layer_norm(range, x.data, w, affine ? bias.data : nullptr, 1e-3, plain.data);
          expect_rows(fast, plain, 1e-5, "layer norm");
          Rows a(length, n, 6), b(length, n, 6);
          const auto count = static_cast<size_t>(length);
          std::vector<double> dw(count), db(count), dw_plain(count), db_plain(count);
          layer_norm_gradient(range, x.data, g.data, w, 1e-3, a.data, accumulate,
                              {dw.data(), db.data()});
          reference::layer_norm_gradient(range, x.data, g.data, w, 1e-3, b.data, accumulate,
                                         {dw_plain.data(), db_plain.data()});
          expect_rows(a, b, 1e-4, "layer norm gradient");
          for (size_t i = 0; i < count; ++i) {
            expect_close(dw[i], dw_plain[i], 1e-4, "weight");
            expect_close(db[i], db_plain[i], 1e-4, "bias");
          }
        }
}

TEST(Kernels, OptimisersMatchReference) {
  for (const int64_t n : sizes) {
    const Rows start(3, n, 1), g(1, n, 2);
    const auto count = static_cast<size_t>(n);
    for (const bool decoupled : {false, true}) {
      std::vector<float> p(start.data, start.data + n), m(count), v(count), q = p, k = m, u = v;
      for (int step = 1; step < 4; ++step) {
        const AdamUpdate update{.weight_decay = 0.1, .decoupled = decoupled, .step = step};
        adam(p, {g.data, count}, m, v, update);
        reference::adam(q, {g.data, count}, k, u, update);
      }
      EXPECT_EQ(p, q);
      EXPECT_EQ(v, u);
    }
    for (const bool nesterov : {false, true}) {
      std::vector<float> p(start.data, start.data + n), m(count), q = p, k = m;
      for (int step = 1; step < 4; ++step) {
        const SgdUpdate update{
            .momentum = 0.9, .weight_decay = 0.1, .nesterov = nesterov, .first = step == 1};
        sgd(p, {g.data, count}, m, update);
        reference::sgd(q, {g.data, count}, k, update);
      }
      EXPECT_EQ(p, q);
      EXPECT_EQ(m, k);
    }
  }
}

}  // namespace
}  // namespace mase::kernels::kernels_test
