// SPDX-License-Identifier: Apache-2.0
// Every value of a stream, for quantiles and histograms: kept as they are up to a budget, and
// counted by their leading bits above it. The counters are those of the float's own order (sign,
// exponent, leading fraction bits), so a rank is exact and a value is known to a relative error
// of 2^-12, whatever the distribution and the order of arrival; memory then no longer grows.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace mase {

class ValueSketch {
 public:
  explicit ValueSketch(size_t most_exact) : most_exact_(most_exact) {}

  void add(float value);
  int64_t count() const { return count_; }  // NaNs not counted
  int64_t nans() const { return nans_; }
  bool exact() const { return pages_.empty(); }
  float lowest() const { return lowest_; }
  float largest() const { return largest_; }

  // Linear interpolation between order statistics, as torch.quantile: q in [0, 1].
  double quantile(double q) const;
  // Counts in equal bins over [low, high]; the last bin holds `high` itself.
  std::vector<int64_t> histogram(double low, double high, int bins) const;

  // Largest relative error of a value once counters have taken over.
  static constexpr double relative_error = 1.0 / 4096;

 private:
  static constexpr int fraction_bits = 11;
  static constexpr size_t page_size = size_t{1} << fraction_bits;
  using Page = std::array<int64_t, page_size>;

  void count_value(float value);
  void spill();
  double order_statistic(int64_t rank) const;

  size_t most_exact_;
  mutable std::vector<float> values_;
  mutable bool sorted_ = false;
  std::vector<std::unique_ptr<Page>> pages_;  // one per sign and exponent, made when needed
  int64_t count_ = 0, nans_ = 0;
  float lowest_ = 0, largest_ = 0;
};

}  // namespace mase
