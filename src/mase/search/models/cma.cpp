// SPDX-License-Identifier: Apache-2.0
#include "mase/search/models/cma.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "mase/base/error.h"

namespace mase::search {
namespace {

using Matrix = Eigen::MatrixXd;
using Column = Eigen::VectorXd;

Cma::Vector plain(const Column& column) { return {column.data(), column.data() + column.size()}; }

Column column(const Cma::Vector& numbers) {
  return Eigen::Map<const Column>(numbers.data(), static_cast<Eigen::Index>(numbers.size()));
}

Cma::Constants constants_for(double n, size_t population) {
  const size_t mu = population / 2;
  std::vector<double> raw;
  for (size_t i = 0; i < population; ++i)
    raw.push_back(std::log((static_cast<double>(population) + 1) / 2) -
                  std::log(static_cast<double>(i + 1)));
  const auto effective = [&](size_t from, size_t to) {
    double sum = 0, squares = 0;
    for (size_t i = from; i < to; ++i) {
      sum += raw[i];
      squares += raw[i] * raw[i];
    }
    return sum * sum / squares;
  };
  Cma::Constants k{};
  k.mu = mu;
  k.mu_eff = effective(0, mu);
  const double minus_eff = effective(mu, population);
  k.c1 = 2 / ((n + 1.3) * (n + 1.3) + k.mu_eff);
  k.cmu =
      std::min(1 - k.c1 - 1e-8, 2 * (k.mu_eff - 2 + 1 / k.mu_eff) / ((n + 2) * (n + 2) + k.mu_eff));
  const double alpha = std::min(
      {1 + k.c1 / k.cmu, 1 + 2 * minus_eff / (k.mu_eff + 2), (1 - k.c1 - k.cmu) / (n * k.cmu)});
  double positive = 0, negative = 0;
  for (const double w : raw) (w > 0 ? positive : negative) += std::abs(w);
  for (const double w : raw) k.weights.push_back(w >= 0 ? w / positive : alpha * w / negative);
  k.c_sigma = (k.mu_eff + 2) / (n + k.mu_eff + 5);
  k.d_sigma = 1 + 2 * std::max(0.0, std::sqrt((k.mu_eff - 1) / (n + 1)) - 1) + k.c_sigma;
  k.cc = (4 + k.mu_eff / n) / (n + 4 + 2 * k.mu_eff / n);
  k.chi_n = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
  return k;
}

}  // namespace

struct Cma::Impl {
  size_t population;
  Constants k;
  Column mean, p_sigma, p_c;
  double sigma;
  Matrix covariance, basis;
  Column scales;  // square roots of the eigenvalues
  int generation = 0;

  void decompose() {
    covariance = (covariance + covariance.transpose()) / 2;
    const Eigen::SelfAdjointEigenSolver<Matrix> solver(covariance);
    constexpr double least = 1e-8;
    basis = solver.eigenvectors();
    scales = solver.eigenvalues().unaryExpr([](double x) { return std::sqrt(x < 0 ? least : x); });
    covariance = basis * scales.cwiseAbs2().asDiagonal() * basis.transpose();
  }
};

Cma::Cma(Vector mean, double sigma, size_t population) : impl_(std::make_unique<Impl>()) {
  const auto n = static_cast<double>(mean.size());
  Impl& in = *impl_;
  in.population = population ? population : 4 + static_cast<size_t>(std::floor(3 * std::log(n)));
  in.k = constants_for(n, in.population);
  in.mean = column(mean);
  in.sigma = sigma;
  in.p_sigma = in.p_c = Column::Zero(in.mean.size());
  in.covariance = Matrix::Identity(in.mean.size(), in.mean.size());
  in.decompose();
}

Cma::~Cma() = default;
Cma::Cma(const Cma& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}

size_t Cma::population() const { return impl_->population; }
const Cma::Constants& Cma::constants() const { return impl_->k; }
Cma::Vector Cma::mean() const { return plain(impl_->mean); }
double Cma::sigma() const { return impl_->sigma; }
Cma::Vector Cma::sigma_path() const { return plain(impl_->p_sigma); }
Cma::Vector Cma::covariance_path() const { return plain(impl_->p_c); }

std::vector<Cma::Vector> Cma::covariance() const {
  std::vector<Vector> rows;
  for (Eigen::Index i = 0; i < impl_->covariance.rows(); ++i)
    rows.push_back(plain(impl_->covariance.row(i).transpose()));
  return rows;
}

Cma::Vector Cma::sample(Random& random) const {
  Column z(impl_->mean.size());
  for (double& x : z) x = random.normal();
  return plain(impl_->mean + impl_->sigma * (impl_->basis * (impl_->scales.asDiagonal() * z)));
}

void Cma::tell(std::vector<std::pair<Vector, double>> solutions) {
  Impl& in = *impl_;
  const Constants& k = in.k;
  MASE_CHECK(solutions.size() == in.population, "{} solutions", solutions.size());
  std::stable_sort(solutions.begin(), solutions.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  const Matrix inverse_root =
      in.basis * in.scales.cwiseInverse().asDiagonal() * in.basis.transpose();
  std::vector<Column> steps;
  Column shift = Column::Zero(in.mean.size());
  for (size_t i = 0; i < solutions.size(); ++i) {
    steps.push_back((column(solutions[i].first) - in.mean) / in.sigma);
    if (i < k.mu) shift += k.weights[i] * steps.back();
  }
  in.mean += in.sigma * shift;
  const double n = static_cast<double>(in.mean.size());
  in.p_sigma = (1 - k.c_sigma) * in.p_sigma +
               std::sqrt(k.c_sigma * (2 - k.c_sigma) * k.mu_eff) * (inverse_root * shift);
  const double length = in.p_sigma.norm();
  in.sigma = std::min(in.sigma * std::exp(k.c_sigma / k.d_sigma * (length / k.chi_n - 1)), 1e32);
  ++in.generation;
  const double settled = length / std::sqrt(1 - std::pow(1 - k.c_sigma, 2.0 * (in.generation + 1)));
  const double h = settled < (1.4 + 2 / (n + 1)) * k.chi_n ? 1 : 0;
  in.p_c = (1 - k.cc) * in.p_c + h * std::sqrt(k.cc * (2 - k.cc) * k.mu_eff) * shift;
  double sum = 0;
  Matrix update = Matrix::Zero(in.mean.size(), in.mean.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    sum += k.weights[i];
    const double norm = (inverse_root * steps[i]).squaredNorm();
    const double weight = k.weights[i] >= 0 ? k.weights[i] : k.weights[i] * n / (norm + 1e-8);
    update += weight * steps[i] * steps[i].transpose();
  }
  const double missing = (1 - h) * k.cc * (2 - k.cc);
  in.covariance = (1 + k.c1 * missing - k.c1 - k.cmu * sum) * in.covariance +
                  k.c1 * in.p_c * in.p_c.transpose() + k.cmu * update;
  in.decompose();
}

void Cma::keep_deviations(const Vector& least) {
  Impl& in = *impl_;
  bool changed = false;
  for (Eigen::Index i = 0; i < in.mean.size(); ++i) {
    const double wanted = least[static_cast<size_t>(i)];
    const double has = in.sigma * std::sqrt(in.covariance(i, i));
    if (!(has < wanted)) continue;
    const double factor = wanted / has;
    in.covariance.row(i) *= factor;
    in.covariance.col(i) *= factor;
    changed = true;
  }
  if (changed) in.decompose();
}

}  // namespace mase::search
