// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/statistics/value_sketch.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mase {
namespace {

// Floats in their own order as unsigned numbers: negative ones flipped whole, others by the sign.
uint32_t ordered_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

float from_ordered_bits(uint32_t bits) {
  return std::bit_cast<float>(bits & 0x80000000u ? bits & 0x7FFFFFFFu : ~bits);
}

constexpr size_t page_count = 512;  // sign and eight exponent bits
constexpr int dropped_bits = 23 - 11;

}  // namespace

void ValueSketch::add(float value) {
  if (std::isnan(value)) {
    ++nans_;
    return;
  }
  lowest_ = count_ == 0 ? value : std::min(lowest_, value);
  largest_ = count_ == 0 ? value : std::max(largest_, value);
  ++count_;
  if (!pages_.empty()) return count_value(value);
  values_.push_back(value);
  sorted_ = false;
  if (values_.size() > most_exact_) spill();
}

void ValueSketch::count_value(float value) {
  const uint32_t bits = ordered_bits(value);
  std::unique_ptr<Page>& page = pages_[bits >> 23];
  if (!page) page = std::make_unique<Page>();
  ++(*page)[(bits >> dropped_bits) & (page_size - 1)];
}

void ValueSketch::spill() {
  pages_.resize(page_count);
  for (const float value : values_) count_value(value);
  values_.clear();
  values_.shrink_to_fit();
}

double ValueSketch::order_statistic(int64_t rank) const {
  if (exact()) {
    if (!sorted_) std::sort(values_.begin(), values_.end());
    sorted_ = true;
    return values_[static_cast<size_t>(rank)];
  }
  if (rank == 0) return lowest_;
  if (rank == count_ - 1) return largest_;
  int64_t below = 0;
  for (size_t p = 0; p < pages_.size(); ++p) {
    if (!pages_[p]) continue;
    for (size_t i = 0; i < page_size; ++i) {
      const int64_t here = (*pages_[p])[i];
      if (rank < below + here) {
        const uint32_t first = static_cast<uint32_t>(p << 23 | i << dropped_bits);
        const double low = std::max(from_ordered_bits(first), lowest_);
        const double high =
            std::min(from_ordered_bits(first | ((1u << dropped_bits) - 1)), largest_);
        const double share = (static_cast<double>(rank - below) + 0.5) / static_cast<double>(here);
        return low + (high - low) * share;
      }
      below += here;
    }
  }
  return largest_;
}

double ValueSketch::quantile(double q) const {
  if (count_ == 0) return std::nan("");
  // torch computes the position and the interpolation in single precision, which shows where two
  // values nearly cancel; beyond a few thousand values that would cost accuracy of the rank.
  if (exact() && count_ <= 4096) {
    const float position = static_cast<float>(q) * static_cast<float>(count_ - 1);
    const int64_t below = std::clamp<int64_t>(static_cast<int64_t>(position), 0, count_ - 1);
    const float low = static_cast<float>(order_statistic(below));
    const float high = static_cast<float>(order_statistic(std::min(below + 1, count_ - 1)));
    const float share = position - static_cast<float>(below);
    if (share == 0 || low == high) return low;
    return share < 0.5f ? low + share * (high - low) : high - (high - low) * (1 - share);
  }
  const double position = q * static_cast<double>(count_ - 1);
  const int64_t below = std::clamp<int64_t>(static_cast<int64_t>(position), 0, count_ - 1);
  const int64_t above = std::min(below + 1, count_ - 1);
  const double low = order_statistic(below), high = order_statistic(above);
  const double share = position - static_cast<double>(below);
  // Infinite neighbours must not turn into NaN when the position falls on one of them.
  return share == 0 || low == high ? low : low + (high - low) * share;
}

std::vector<int64_t> ValueSketch::histogram(double low, double high, int bins) const {
  std::vector<int64_t> counts(static_cast<size_t>(bins), 0);
  const auto put = [&](double value, int64_t how_many) {
    if (!(value >= low && value <= high)) return;
    // NaN where an end is infinite: then all but the other end stands in the first bin.
    const double place = high > low ? (value - low) / (high - low) * bins : 0;
    const int bin = place > 0 ? static_cast<int>(std::min<double>(place, bins - 1)) : 0;
    counts[static_cast<size_t>(high > low && value == high ? bins - 1 : bin)] += how_many;
  };
  if (exact()) {
    for (const float value : values_) put(value, 1);
    return counts;
  }
  for (size_t p = 0; p < pages_.size(); ++p) {
    if (!pages_[p]) continue;
    for (size_t i = 0; i < page_size; ++i) {
      if ((*pages_[p])[i] == 0) continue;
      const uint32_t middle =
          static_cast<uint32_t>(p << 23 | i << dropped_bits) | (1u << (dropped_bits - 1));
      put(std::clamp(from_ordered_bits(middle), lowest_, largest_), (*pages_[p])[i]);
    }
  }
  return counts;
}

}  // namespace mase
