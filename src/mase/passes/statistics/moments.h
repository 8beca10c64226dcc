// SPDX-License-Identifier: Apache-2.0
// Mean and central moments of a stream, in double precision, values one by one or whole runs at a
// time (Welford 1962; Pebay, "Formulas for robust, one-pass parallel computation", 2008).
#pragma once

#include <cmath>
#include <cstdint>

namespace mase {

struct Moments {
  int64_t n = 0;
  double mean = 0, m2 = 0, m3 = 0, m4 = 0;

  void add(double value) {
    const double before = static_cast<double>(n++);
    const double delta = value - mean, share = delta / static_cast<double>(n);
    const double square = share * share, term = delta * share * before;
    mean += share;
    const double count = static_cast<double>(n);
    m4 += term * square * (count * count - 3 * count + 3) + 6 * square * m2 - 4 * share * m3;
    m3 += term * share * (count - 2) - 3 * share * m2;
    m2 += term;
  }

  double sample_variance() const { return n > 1 ? m2 / static_cast<double>(n - 1) : std::nan(""); }
  double population_variance() const { return n > 0 ? m2 / static_cast<double>(n) : std::nan(""); }
};

// Mean and second moment only: cheaper, and merged run by run (Chan, Golub and LeVeque 1979).
struct MeanVariance {
  int64_t n = 0;
  double mean = 0, m2 = 0;

  void add(double value) {
    ++n;
    const double delta = value - mean;
    mean += delta / static_cast<double>(n);
    m2 += delta * (value - mean);
  }
  template <class T>
  void add_run(const T* values, int64_t count, bool absolute = false) {
    if (count == 0) return;
    double sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += absolute ? std::abs(static_cast<double>(values[i])) : static_cast<double>(values[i]);
    const double run_mean = sum / static_cast<double>(count);
    double squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double value =
          absolute ? std::abs(static_cast<double>(values[i])) : static_cast<double>(values[i]);
      squares += (value - run_mean) * (value - run_mean);
    }
    merge({count, run_mean, squares});
  }
  void merge(const MeanVariance& other) {
    const double total = static_cast<double>(n + other.n), delta = other.mean - mean;
    m2 += other.m2 + delta * delta * static_cast<double>(n) * static_cast<double>(other.n) / total;
    mean += delta * static_cast<double>(other.n) / total;
    n += other.n;
  }
  double sample_variance() const { return n > 1 ? m2 / static_cast<double>(n - 1) : std::nan(""); }
  double population_variance() const { return n > 0 ? m2 / static_cast<double>(n) : std::nan(""); }
};

}  // namespace mase
