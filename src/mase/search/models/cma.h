// SPDX-License-Identifier: Apache-2.0
// The covariance matrix adaptation evolution strategy with active updates (Hansen, "The CMA
// evolution strategy: a tutorial", 2016): numbers, not parameters.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "mase/base/random.h"

namespace mase::search {

class Cma {
 public:
  using Vector = std::vector<double>;

  Cma(Vector mean, double sigma, size_t population = 0);  // 0: 4 + 3 ln(dimensions)
  ~Cma();
  Cma(const Cma&);
  Cma& operator=(const Cma&) = delete;

  size_t population() const;
  Vector sample(Random& random) const;
  // One generation: `population` solutions and their losses.
  void tell(std::vector<std::pair<Vector, double>> solutions);
  // Not less than this deviation along each axis (0: no limit), so that whole numbers keep moving.
  void keep_deviations(const Vector& least);

  struct Constants {
    size_t mu;
    double mu_eff, c1, cmu, c_sigma, d_sigma, cc, chi_n;
    Vector weights;
  };
  const Constants& constants() const;
  Vector mean() const;
  double sigma() const;
  std::vector<Vector> covariance() const;
  Vector sigma_path() const, covariance_path() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mase::search
