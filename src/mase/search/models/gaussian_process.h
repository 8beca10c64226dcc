// SPDX-License-Identifier: Apache-2.0
// A Gaussian process with a Matern 5/2 kernel over the unit cube, one length scale per coordinate;
// choices differ or do not. Rules of Optuna's GPSampler. Values are to be made large.
#pragma once

#include <memory>
#include <vector>

namespace mase::search {

struct GpParameters {
  std::vector<double> inverse_squared_lengths;
  double scale = 1, noise = 1e-4;
};

class GaussianProcess {
 public:
  using Vector = std::vector<double>;

  GaussianProcess(const std::vector<Vector>& points, std::vector<bool> categorical,
                  const Vector& values, GpParameters parameters);
  ~GaussianProcess();
  GaussianProcess(GaussianProcess&&) noexcept;
  GaussianProcess& operator=(GaussianProcess&&) noexcept;

  // The parameters with the largest likelihood times prior, from this start.
  static GpParameters fit(const std::vector<Vector>& points, const std::vector<bool>& categorical,
                          const Vector& values, GpParameters start);

  double log_likelihood() const;  // without the constant of the normal density
  static double log_prior(const GpParameters& parameters);
  std::vector<Vector> covariance() const;  // of the points, without noise

  struct Posterior {
    double mean, variance;
  };
  std::vector<Posterior> at(const std::vector<Vector>& points) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The logarithm of the expected improvement over `best`, right in far tails.
double log_expected_improvement(double mean, double variance, double best);

}  // namespace mase::search
