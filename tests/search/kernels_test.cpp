// SPDX-License-Identifier: Apache-2.0
// The inner loops of search/ beside plain ones, on values that hurt: terms far apart and equal,
// infinities, counts that fill no vector; sums that must not depend on the order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "mase/base/random.h"
#include "mase/base/tensor.h"
#include "mase/engine/kernels/integer_dot.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/formats/fixed.h"
#include "mase/search/kernels/integer_hits.h"
#include "mase/search/kernels/parzen.h"

namespace mase::search::kernels_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double plain_log_sum(const std::vector<double>& terms, const std::vector<double>& weights) {
  const double largest = *std::max_element(terms.begin(), terms.end());
  if (std::isinf(largest)) return largest;
  long double sum = 0;
  for (size_t i = 0; i < terms.size(); ++i)
    sum += static_cast<long double>(weights[i]) *
           std::exp(static_cast<long double>(terms[i] - largest));
  return static_cast<double>(static_cast<long double>(largest) + std::log(sum));
}

TEST(Kernels, LogSumExpIsThatOfLongDoubles) {
  Random random(1, "kernels");
  for (const size_t count : {1, 2, 7, 8, 9, 31, 1000}) {
    for (const double spread : {0.0, 1e-9, 1.0, 30.0, 44.9, 2000.0}) {
      std::vector<double> terms(count), weights(count);
      for (size_t i = 0; i < count; ++i) {
        terms[i] = 100 - spread * random.uniform();
        weights[i] = 1e-3 + 0.999 * random.uniform();
        if (i % 5 == 3) terms[i] = -infinity;
      }
      const double value = kernels::log_sum_exp(terms.data(), weights.data(), count);
      EXPECT_NEAR(value, plain_log_sum(terms, weights), 1e-13) << count << " " << spread;
      // In another order, cut into other vectors: the same bits.
      std::vector<double> turned(terms.rbegin(), terms.rend()),
          turned_weights(weights.rbegin(), weights.rend());
      EXPECT_EQ(value, kernels::log_sum_exp(turned.data(), turned_weights.data(), count));
      std::rotate(turned.begin(), turned.begin() + static_cast<int64_t>(count / 3), turned.end());
      std::rotate(turned_weights.begin(), turned_weights.begin() + static_cast<int64_t>(count / 3),
                  turned_weights.end());
      EXPECT_EQ(value, kernels::log_sum_exp(turned.data(), turned_weights.data(), count));
    }
  }
  const std::vector<double> none(9, -infinity), ones(9, 1.0);
  EXPECT_EQ(kernels::log_sum_exp(none.data(), ones.data(), none.size()), -infinity);
}

// Kernels as an estimator has them: none narrower than a hundredth of its range, the first as wide
// as all of it. Some have gone: no width, no weight, a term of minus infinity.
struct SomeKernels {
  size_t dimensions, count;
  std::vector<double> rows, terms, weights, low, range;
  std::vector<std::vector<float>> scale, offset;
  std::vector<const float*> scale_at, offset_at;

  // `near`: means lie so close together that many of the terms matter.
  SomeKernels(size_t dims, size_t kernels, bool near, Random& random)
      : dimensions(dims), count(kernels), rows(kernels * 2 * dims), terms(kernels) {
    const size_t whole = (count + kernels::padding - 1) / kernels::padding * kernels::padding;
    for (size_t i = 0; i < count; ++i) weights.push_back(1e-3 + 0.999 * random.uniform());
    for (size_t d = 0; d < dimensions; ++d) {
      low.push_back(1e3 * (random.uniform() - 0.5));
      range.push_back(std::exp(20 * (random.uniform() - 0.5)));
      scale.emplace_back(whole);
      offset.emplace_back(whole);
    }
    for (size_t i = 0; i < count; ++i) {
      const bool gone = i > 0 && i % 7 == 3;
      if (gone) {
        weights[i] = 0;
        terms[i] = -infinity;
      }
      for (size_t d = 0; d < dimensions; ++d) {
        const double share = near ? 0.3 + 0.05 * random.uniform() : random.uniform();
        const double sigma = i == 0 ? 1.0 : near ? 0.01 + 0.1 * random.uniform() : 0.01;
        const double mu = low[d] + range[d] * share;
        const double inverse = gone ? 0 : std::sqrt(0.5) / (sigma * range[d]);
        rows[i * 2 * dimensions + d] = mu;
        rows[i * 2 * dimensions + dimensions + d] = inverse;
        scale[d][i] = static_cast<float>(inverse * range[d]);
        offset[d][i] = static_cast<float>(inverse * (mu - low[d]));
        if (!gone) terms[i] -= std::log(sigma * range[d]);
      }
    }
    for (size_t d = 0; d < dimensions; ++d) {
      scale_at.push_back(scale[d].data());
      offset_at.push_back(offset[d].data());
    }
  }

  kernels::Normals normals() const {
    return {dimensions, rows.data(), scale_at.data(), offset_at.data()};
  }

  double plain(const double* x, const double* own) const {
    std::vector<double> all(own, own + count);
    for (size_t i = 0; i < count; ++i)
      for (size_t d = 0; d < dimensions; ++d) {
        const double z =
            (x[d] - rows[i * 2 * dimensions + d]) * rows[i * 2 * dimensions + dimensions + d];
        all[i] -= z * z;
      }
    return kernels::log_sum_exp(all.data(), weights.data(), count);
  }
};

// Single precision chooses, and nothing that it leaves out would have changed a bit.
TEST(Kernels, LogSumsAreThoseOfAllKernels) {
  Random random(2, "kernels");
  for (const size_t count : {1, 5, 16, 37, 500})
    for (const size_t points : {1, 3, 4, 9})
      for (const size_t dimensions : {0, 1, 3, 10, 60})
        for (const bool near : {false, true}) {
          const SomeKernels some(dimensions, count, near, random);
          std::vector<double> x, terms, out(points), wanted(points), best(points);
          std::vector<float> shares;
          for (size_t p = 0; p < points; ++p) {
            wanted[p] = 20 * random.uniform();
            for (size_t d = 0; d < dimensions; ++d) {
              // At a kernel's mean, at an end of the range, or anywhere.
              const double mu = some.rows[(p % count) * 2 * dimensions + d];
              const double share = p % 3 == 0   ? (mu - some.low[d]) / some.range[d]
                                   : p % 3 == 1 ? static_cast<double>(p % 2)
                                                : random.uniform();
              x.push_back(some.low[d] + some.range[d] * share);
              shares.push_back(static_cast<float>(share));
            }
          }
          for (const bool own : {false, true}) {  // terms of their own for each point
            terms.clear();
            for (size_t p = 0; p < (own ? points : 1); ++p)
              for (size_t i = 0; i < count; ++i)
                terms.push_back(some.terms[i] - (own ? 5 * random.uniform() : 0));
            const size_t stride = own ? count : 0;
            kernels::log_sums(some.normals(), x.data(), shares.data(), points, terms.data(), stride,
                              some.weights.data(), count, nullptr, out.data());
            for (size_t p = 0; p < points; ++p)
              EXPECT_EQ(out[p], some.plain(x.data() + p * dimensions, terms.data() + p * stride))
                  << count << " " << points << " " << dimensions << " " << near << " " << own;
            const kernels::Contest contest{wanted.data(), std::log(1e-3)};
            kernels::log_sums(some.normals(), x.data(), shares.data(), points, terms.data(), stride,
                              some.weights.data(), count, &contest, best.data());
            size_t winner = 0;
            for (size_t p = 0; p < points; ++p) {
              EXPECT_TRUE(best[p] == out[p] || best[p] == infinity);
              if (wanted[p] - out[p] > wanted[winner] - out[winner]) winner = p;
            }
            EXPECT_EQ(best[winner], out[winner]);
          }
        }
}

// Product, norm and comparison one after the other give the same hits.
TEST(Kernels, IntegerHitsAreThoseOfTheSteps) {
  if (!::mase::kernels::has_integer_dot()) GTEST_SKIP() << "no integer dot product here";
  Random random(3, "kernels");
  constexpr int64_t stride = 208;  // thirteen vectors
  for (const int64_t classes : {1, 2, 5, 6, 7, 13})
    for (const int64_t quads : {1, 8})
      for (const int64_t n : {1, 15, 16, 64, 65, 200})
        for (const int kind : {0, 1, 2, 3}) {  // norm, relu
          const auto words = [&](int64_t count) {
            std::vector<uint32_t> all(static_cast<size_t>(count));
            for (uint32_t& word : all) word = random.next_word();
            return all;
          };
          const auto floats = [&](double scale) {
            std::vector<float> all(static_cast<size_t>(classes));
            for (float& x : all) x = static_cast<float>(scale * (random.uniform() - 0.5));
            return all;
          };
          const std::vector<uint32_t> w = words(classes * quads), x = words(quads * stride);
          std::vector<int32_t> starts, labels(stride);
          for (int64_t c = 0; c < classes; ++c)
            starts.push_back(static_cast<int32_t>(1000 * random.uniform()) - 500);
          for (int32_t& label : labels)
            label = static_cast<int32_t>(random.uniform() * static_cast<double>(classes));
          const std::vector<float> bias = floats(100), mean = floats(50), factor = floats(2),
                                   shift = floats(10);
          const bool norm = kind & 1, relu = kind & 2;
          std::vector<int64_t> offsets;
          for (int64_t q = 0; q < quads; ++q) offsets.push_back(q * stride);
          const std::shared_ptr<std::byte> memory =
              aligned_bytes(static_cast<size_t>(2 * classes * stride) * sizeof(float));
          float* y = reinterpret_cast<float*>(memory.get());
          float* normal = y + classes * stride;
          std::fill(y, normal + classes * stride, 0.0f);
          ::mase::kernels::integer_linear({.out = classes,
                                           .in = quads,
                                           .out_step = quads,
                                           .in_step = 1,
                                           .offsets = offsets.data(),
                                           .y_stride = stride,
                                           .n = n},
                                          w.data(), starts.data(), 1.0f / 64, bias.data(), x.data(),
                                          y, ::mase::kernels::Finish::relu(relu && !norm));
          if (norm)
            ::mase::kernels::norm_apply(
                {.channels = classes, .positions = 1, .stride = stride, .n = n},
                {factor.data(), shift.data(), 1e-5, relu ? 0.0f : -INFINITY}, y, mean.data(),
                std::vector<float>(static_cast<size_t>(classes), 1.0f).data(), normal, {});
          const int64_t expected =
              ::mase::kernels::hits(norm ? normal : y, classes, stride, n, labels.data());
          const IntegerHits layer{.classes = classes,
                                  .quads = quads,
                                  .stride = stride,
                                  .n = n,
                                  .words = w.data(),
                                  .starts = starts.data(),
                                  .unit = 1.0f / 64,
                                  .bias = bias.data(),
                                  .mean = norm ? mean.data() : nullptr,
                                  .factor = factor.data(),
                                  .shift = shift.data(),
                                  .relu = relu};
          EXPECT_EQ(integer_hits(layer, x.data(), labels.data()), expected)
              << classes << " classes, " << quads << " quads, " << n << " rows, kind " << kind;
        }
}

// Rounding straight to codes is rounding, then packing.
TEST(Kernels, RoundedQuadsAreWhatIsRoundedAndPacked) {
  if (!::mase::kernels::has_integer_dot()) GTEST_SKIP() << "no integer dot product here";
  Random random(4, "kernels");
  constexpr int64_t stride = 80;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t rows : {1, 4, 7})
    for (const int64_t n : {1, 16, 77})
      for (const int width : {1, 2, 5, 8})
        for (const int frac : {-2, 0, 4, 9})
          for (const int kind : {0, 1, 2}) {  // signed, unsigned, without the lowest number
            Fixed type;
            type.width = width;
            type.frac = frac;
            type.is_signed = kind != 1;
            type.narrow = kind == 2;
            const IntegerSpec spec = integer_spec(type);
            ASSERT_TRUE(rounds_to_quads(spec));
            std::vector<float> x(static_cast<size_t>(rows * stride)), rounded(x.size());
            for (size_t i = 0; i < x.size(); ++i) {
              x[i] =
                  static_cast<float>(std::ldexp(random.normal(), static_cast<int>(i % 9) - frac));
              if (i % 5 == 2)  // halves of a step
                x[i] = std::ldexp(static_cast<float>(static_cast<int>(i % 41) - 20), -frac - 1);
              if (i % 31 == 3) x[i] = static_cast<float>(i % 2 ? infinity : -infinity);
              if (i % 29 == 3) x[i] = -0.0f;
            }
            integer_kernel(spec, x.data(), rounded.data(), x.size(), 0);
            const ::mase::kernels::Quads shape{
                rows, stride, n, spec.scale, type.is_signed ? 128 : 0, stride};
            std::vector<uint32_t> ours(static_cast<size_t>(2 * stride)), theirs = ours;
            EXPECT_TRUE(round_quads(spec, shape, x.data(), ours.data()));
            EXPECT_TRUE(
                ::mase::kernels::reference::pack_quads(shape, rounded.data(), theirs.data()));
            for (int64_t q = 0; q < (rows + 3) / 4; ++q)
              for (int64_t l = 0; l < n; ++l)
                EXPECT_EQ(ours[static_cast<size_t>(q * stride + l)],
                          theirs[static_cast<size_t>(q * stride + l)])
                    << rows << " rows, " << width << "/" << frac << " kind " << kind;
            x[static_cast<size_t>((rows - 1) * stride + n - 1)] = nan;
            EXPECT_FALSE(round_quads(spec, shape, x.data(), ours.data()));
          }
}

}  // namespace
}  // namespace mase::search::kernels_test
