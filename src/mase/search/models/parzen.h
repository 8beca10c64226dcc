// SPDX-License-Identifier: Apache-2.0
// A Parzen estimator over several parameters at once, as Optuna's TPE has it: one kernel for each
// observation and one for the prior; the kernel of a number is a truncated normal whose deviation
// comes from its neighbours, that of a choice favours the choice (Watanabe, "Tree-structured Parzen
// estimator", 2023).
//
// It is kept, not rebuilt: a new observation changes the deviations of its neighbours only, since
// from 99 kernels on the smallest deviation is a hundredth of the range for ever. What it gives is
// exactly what an estimator made afresh gives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "mase/base/random.h"
#include "mase/search/study/space.h"

namespace mase::search {

// Weights of m observations, oldest first: the last 25 count fully, older ones less and less.
std::vector<double> recency_weights(size_t m);

class ParzenEstimator {
 public:
  // Over these parameters of the space. `even`: all weights are one (the good set of several
  // objectives). `smoothing`: the kernel of a whole number gives all values of its range so much of
  // what the kernel of a choice among as many gives to all choices; Optuna has none.
  ParzenEstimator(const Space& space, std::vector<size_t> parameters, bool even_weights,
                  double smoothing = 0);
  ~ParzenEstimator();
  ParzenEstimator(ParzenEstimator&&) noexcept;
  ParzenEstimator& operator=(ParzenEstimator&&) noexcept;

  // Makes `observations` (keys in ascending order, oldest first) the whole set: what is new is put
  // in, what is gone is taken out. `point(key)` gives the observation.
  template <class PointOf>
  void observe(std::span<const uint32_t> observations, const PointOf& point) {
    std::vector<uint32_t> added = difference(observations);
    for (const uint32_t key : added) insert(key, point(key));
    finish();
  }

  size_t kernels() const;               // observations and the prior
  std::vector<double> weights() const;  // oldest first, the prior last; they add up to one
  struct Kernel {
    double mu = 0, sigma = 0;
    std::vector<double> probabilities = {};  // of choices
  };
  Kernel kernel(size_t index, size_t dimension) const;  // in the order of weights()

  // Logarithms of the density at each of `points`, whose numbers are in the order of parameters().
  void log_density(std::span<const Point> points, std::span<double> out) const;
  // The same where only the point is asked for at which `wanted` exceeds it most: at others it may
  // be infinite.
  void log_density(std::span<const Point> points, std::span<const double> wanted,
                   std::span<double> out) const;
  Point draw(Random& random) const;
  const std::vector<size_t>& parameters() const;

 private:
  std::vector<uint32_t> difference(std::span<const uint32_t> wanted);
  void insert(uint32_t key, const Point& point);
  void finish();
  void evaluate(std::span<const Point> points, const double* wanted, std::span<double> out) const;

  struct Dimension;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mase::search
