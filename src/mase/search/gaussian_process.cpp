// SPDX-License-Identifier: Apache-2.0
#include "mase/search/gaussian_process.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace mase::search {
namespace {

using Matrix = Eigen::MatrixXd;
using Column = Eigen::VectorXd;

constexpr double least_noise = 1e-6;
constexpr double gp_log_root_two_pi = 0.91893853320467274178;

double squared_distance(const std::vector<double>& a, const std::vector<double>& b,
                        const std::vector<bool>& categorical, const std::vector<double>& inverse) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    const double gap = categorical[k] ? (a[k] != b[k] ? 1.0 : 0.0) : (a[k] - b[k]) * (a[k] - b[k]);
    sum += inverse[k] * gap;
  }
  return sum;
}

double matern(double squared) {
  const double root = std::sqrt(5 * squared);
  return std::exp(-root) * (1 + root + 5.0 / 3.0 * squared);
}

// The derivative of matern by the squared distance.
double matern_slope(double squared) {
  const double root = std::sqrt(5 * squared);
  return -5.0 / 6.0 * (1 + root) * std::exp(-root);
}

GpParameters unpacked(const Column& logs) {
  GpParameters parameters;
  const Eigen::Index d = logs.size() - 2;
  for (Eigen::Index k = 0; k < d; ++k)
    parameters.inverse_squared_lengths.push_back(std::exp(logs(k)));
  parameters.scale = std::exp(logs(d));
  parameters.noise = std::exp(logs(d + 1)) + least_noise;
  return parameters;
}

using Loss = std::function<double(const Column& at, Column& gradient)>;

// Plain L-BFGS with backtracking. Debian has no kept C++ library of L-BFGS-B, and ten unbounded
// logarithms do not need one.
Column minimise(const Loss& loss, Column x, int rounds) {
  constexpr size_t memory = 8;
  std::vector<Column> steps, changes;
  Column gradient(x.size());
  double value = loss(x, gradient);
  for (int round = 0; round < rounds && gradient.lpNorm<Eigen::Infinity>() > 1e-2; ++round) {
    Column direction = -gradient;
    std::vector<double> alphas(steps.size());
    for (size_t i = steps.size(); i-- > 0;) {
      alphas[i] = steps[i].dot(direction) / steps[i].dot(changes[i]);
      direction -= alphas[i] * changes[i];
    }
    if (!steps.empty())
      direction *= steps.back().dot(changes.back()) / changes.back().squaredNorm();
    for (size_t i = 0; i < steps.size(); ++i)
      direction += (alphas[i] - changes[i].dot(direction) / steps[i].dot(changes[i])) * steps[i];
    double slope = direction.dot(gradient);
    if (!(slope < 0)) {
      direction = -gradient;
      slope = -gradient.squaredNorm();
      steps.clear();
      changes.clear();
    }
    double length = std::min(1.0, 2.0 / std::max(1e-12, direction.lpNorm<Eigen::Infinity>()));
    Column next_gradient(x.size());
    bool better = false;
    for (int attempt = 0; attempt < 20 && !better; ++attempt, length /= 2) {
      const Column next = x + length * direction;
      const double next_value = loss(next, next_gradient);
      if (!(next_value <= value + 1e-4 * length * slope)) continue;
      better = true;
      const Column step = next - x, change = next_gradient - gradient;
      if (step.dot(change) > 1e-10) {
        steps.push_back(step);
        changes.push_back(change);
        if (steps.size() > memory) {
          steps.erase(steps.begin());
          changes.erase(changes.begin());
        }
      }
      x = next;
      gradient = next_gradient;
      value = next_value;
    }
    if (!better) break;
  }
  return x;
}

}  // namespace

struct GaussianProcess::Impl {
  std::vector<Vector> points;
  std::vector<bool> categorical;
  Column values;
  GpParameters parameters;
  Matrix covariance;
  Eigen::LLT<Matrix> factor;
  Column alpha;
};

GaussianProcess::GaussianProcess(std::vector<Vector> points, std::vector<bool> categorical,
                                 Vector values, GpParameters parameters)
    : impl_(std::make_unique<Impl>()) {
  Impl& in = *impl_;
  in.points = std::move(points);
  in.categorical = std::move(categorical);
  in.values = Eigen::Map<const Column>(values.data(), static_cast<Eigen::Index>(values.size()));
  in.parameters = std::move(parameters);
  const Eigen::Index n = in.values.size();
  in.covariance.resize(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j <= i; ++j)
      in.covariance(i, j) = in.covariance(j, i) =
          in.parameters.scale *
          matern(squared_distance(in.points[static_cast<size_t>(i)],
                                  in.points[static_cast<size_t>(j)], in.categorical,
                                  in.parameters.inverse_squared_lengths));
  Matrix noisy = in.covariance;
  noisy.diagonal().array() += in.parameters.noise;
  in.factor.compute(noisy);
  in.alpha = in.factor.solve(in.values);
}

GaussianProcess::~GaussianProcess() = default;
GaussianProcess::GaussianProcess(GaussianProcess&&) noexcept = default;
GaussianProcess& GaussianProcess::operator=(GaussianProcess&&) noexcept = default;

double GaussianProcess::log_likelihood() const {
  const Impl& in = *impl_;
  double log_root = 0;
  const Matrix lower = in.factor.matrixL();
  for (Eigen::Index i = 0; i < lower.rows(); ++i) log_root += std::log(lower(i, i));
  return -0.5 * in.values.dot(in.alpha) - log_root;
}

double GaussianProcess::log_prior(const GpParameters& parameters) {
  double sum = 0;
  for (const double s : parameters.inverse_squared_lengths) sum -= 0.1 / s + 0.1 * s;
  // Gamma(2, 1) of the scale, Gamma(1.1, 30) of the noise, constants apart.
  sum += std::log(parameters.scale) - parameters.scale;
  sum += 0.1 * std::log(parameters.noise) - 30 * parameters.noise;
  return sum;
}

std::vector<GaussianProcess::Vector> GaussianProcess::covariance() const {
  std::vector<Vector> rows;
  for (Eigen::Index i = 0; i < impl_->covariance.rows(); ++i) {
    const Column row = impl_->covariance.row(i).transpose();
    rows.emplace_back(row.data(), row.data() + row.size());
  }
  return rows;
}

GpParameters GaussianProcess::fit(const std::vector<Vector>& points,
                                  const std::vector<bool>& categorical, const Vector& values,
                                  GpParameters start) {
  const auto d = static_cast<Eigen::Index>(categorical.size());
  const auto n = static_cast<Eigen::Index>(values.size());
  const Loss loss = [&](const Column& logs, Column& gradient) {
    const GpParameters parameters = unpacked(logs);
    const GaussianProcess process(points, categorical, values, parameters);
    const Impl& in = *process.impl_;
    const Matrix inverse = in.factor.solve(Matrix::Identity(n, n));
    // d(log likelihood) / dK = (alpha alpha' - K^-1) / 2
    const Matrix weight = 0.5 * (in.alpha * in.alpha.transpose() - inverse);
    Column slope = Column::Zero(d + 2);
    for (Eigen::Index i = 0; i < n; ++i)
      for (Eigen::Index j = 0; j < i; ++j) {
        const Vector &a = points[static_cast<size_t>(i)], &b = points[static_cast<size_t>(j)];
        const double squared =
            squared_distance(a, b, categorical, parameters.inverse_squared_lengths);
        const double factor = 2 * weight(i, j) * parameters.scale * matern_slope(squared);
        for (size_t k = 0; k < a.size(); ++k) {
          const double gap =
              categorical[k] ? (a[k] != b[k] ? 1.0 : 0.0) : (a[k] - b[k]) * (a[k] - b[k]);
          slope(static_cast<Eigen::Index>(k)) += factor * gap;
        }
      }
    for (Eigen::Index k = 0; k < d; ++k) {
      const double s = parameters.inverse_squared_lengths[static_cast<size_t>(k)];
      slope(k) = (slope(k) + 0.1 / (s * s) - 0.1) * s;
    }
    slope(d) =
        (weight.cwiseProduct(in.covariance).sum() / parameters.scale + 1 / parameters.scale - 1) *
        parameters.scale;
    slope(d + 1) =
        (weight.trace() + 0.1 / parameters.noise - 30) * (parameters.noise - least_noise);
    gradient = -slope;
    const double value = -(process.log_likelihood() + log_prior(parameters));
    return std::isfinite(value) ? value : 1e30;
  };
  Column logs(d + 2);
  for (Eigen::Index k = 0; k < d; ++k)
    logs(k) = std::log(start.inverse_squared_lengths[static_cast<size_t>(k)]);
  logs(d) = std::log(start.scale);
  logs(d + 1) = std::log(std::max(start.noise - least_noise, 1e-10));
  return unpacked(minimise(loss, logs, 60));
}

GaussianProcess::Posterior GaussianProcess::at(const Vector& point) const {
  const Impl& in = *impl_;
  Column k(in.values.size());
  for (Eigen::Index i = 0; i < k.size(); ++i)
    k(i) = in.parameters.scale *
           matern(squared_distance(point, in.points[static_cast<size_t>(i)], in.categorical,
                                   in.parameters.inverse_squared_lengths));
  const Column half = in.factor.matrixL().solve(k);
  return {k.dot(in.alpha), std::max(0.0, in.parameters.scale - half.squaredNorm())};
}

double log_expected_improvement(double mean, double variance, double best) {
  const double sigma = std::sqrt(std::max(variance, 1e-12)), z = (mean - best) / sigma;
  if (z > -25) {
    const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
    const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
    return std::log(density + z * below) + std::log(sigma);
  }
  // 1 - |z| Mills(|z|) as an asymptotic series.
  const double s = 1 / (z * z);
  const double series = 1 - 3 * s * (1 - 5 * s * (1 - 7 * s * (1 - 9 * s)));
  return -0.5 * z * z - gp_log_root_two_pi + std::log(s * series) + std::log(sigma);
}

}  // namespace mase::search
