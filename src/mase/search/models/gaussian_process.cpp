// SPDX-License-Identifier: Apache-2.0
#include "mase/search/models/gaussian_process.h"

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

// Differences of two points in each coordinate, squared; choices differ by one or not at all.
double gap(double a, double b, bool categorical) {
  return categorical ? (a != b ? 1.0 : 0.0) : (a - b) * (a - b);
}

// The kernel at squared distances, in place; `slopes` receives its derivatives by them.
void matern(Eigen::Ref<Eigen::ArrayXd> squared, Eigen::ArrayXd* slopes = nullptr) {
  const Eigen::ArrayXd root = (5 * squared).sqrt(), power = (-root).exp();
  if (slopes) *slopes = -5.0 / 6.0 * (1 + root) * power;
  squared = power * (1 + root + 5.0 / 3.0 * squared);
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
  Matrix points;  // a row each
  std::vector<bool> categorical;
  Column values, inverse_squared_lengths;
  GpParameters parameters;
  Matrix covariance;
  Eigen::LLT<Matrix> factor;
  Column alpha;

  // Squared distances of a point to all points.
  Eigen::ArrayXd distances(const double* point) const {
    Eigen::ArrayXd sum = Eigen::ArrayXd::Zero(points.rows());
    for (Eigen::Index k = 0; k < points.cols(); ++k) {
      const auto others = points.col(k).array();
      const double at = point[k], inverse = inverse_squared_lengths(k);
      if (categorical[static_cast<size_t>(k)])
        sum += inverse * (others != at).cast<double>();
      else
        sum += inverse * (others - at).square();
    }
    return sum;
  }

  void factorise() {
    Matrix noisy = covariance;
    noisy.diagonal().array() += parameters.noise;
    factor.compute(noisy);
    alpha = factor.solve(values);
  }
};

GaussianProcess::GaussianProcess(const std::vector<Vector>& points, std::vector<bool> categorical,
                                 const Vector& values, GpParameters parameters)
    : impl_(std::make_unique<Impl>()) {
  Impl& in = *impl_;
  in.categorical = std::move(categorical);
  in.values = Eigen::Map<const Column>(values.data(), static_cast<Eigen::Index>(values.size()));
  in.parameters = std::move(parameters);
  const auto d = static_cast<Eigen::Index>(in.categorical.size());
  in.inverse_squared_lengths =
      Eigen::Map<const Column>(in.parameters.inverse_squared_lengths.data(), d);
  const Eigen::Index n = in.values.size();
  in.points.resize(n, d);
  for (Eigen::Index i = 0; i < n; ++i)
    in.points.row(i) =
        Eigen::Map<const Column>(points[static_cast<size_t>(i)].data(), d).transpose();
  in.covariance.resize(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    Eigen::ArrayXd squared = in.distances(points[static_cast<size_t>(i)].data());
    matern(squared);
    in.covariance.col(i) = in.parameters.scale * squared.matrix();
  }
  in.factorise();
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
  // Of all pairs, once: a row for each pair below the diagonal, column by column.
  const Eigen::Index pairs = n * (n - 1) / 2;
  Matrix gaps(pairs, d);
  for (Eigen::Index k = 0; k < d; ++k)
    for (Eigen::Index j = 0, at = 0; j < n; ++j)
      for (Eigen::Index i = j + 1; i < n; ++i)
        gaps(at++, k) = gap(points[static_cast<size_t>(i)][static_cast<size_t>(k)],
                            points[static_cast<size_t>(j)][static_cast<size_t>(k)],
                            categorical[static_cast<size_t>(k)]);
  const Column wanted = Eigen::Map<const Column>(values.data(), n);
  const Loss loss = [&](const Column& logs, Column& gradient) {
    const GpParameters parameters = unpacked(logs);
    Eigen::ArrayXd kernel =
        (gaps * Eigen::Map<const Column>(parameters.inverse_squared_lengths.data(), d)).array();
    Eigen::ArrayXd slopes;
    matern(kernel, &slopes);
    Matrix covariance(n, n);
    for (Eigen::Index j = 0, at = 0; j < n; at += n - 1 - j, ++j) {
      covariance(j, j) = parameters.scale + parameters.noise;
      covariance.col(j).tail(n - 1 - j) = parameters.scale * kernel.segment(at, n - 1 - j).matrix();
    }
    const Eigen::LLT<Matrix> factor(covariance);
    if (factor.info() != Eigen::Success) {
      gradient.setZero();
      return 1e30;
    }
    const Column alpha = factor.solve(wanted);
    const Matrix inverse = factor.solve(Matrix::Identity(n, n));
    double log_root = 0;
    for (Eigen::Index i = 0; i < n; ++i) log_root += std::log(factor.matrixLLT()(i, i));
    // d(log likelihood) / dK = (alpha alpha' - K^-1) / 2; both halves of the matrix count.
    Column weight(pairs);
    double by_scale = 0;
    for (Eigen::Index j = 0, at = 0; j < n; at += n - 1 - j, ++j) {
      const Eigen::Index rest = n - 1 - j;
      weight.segment(at, rest) = alpha(j) * alpha.tail(rest) - inverse.col(j).tail(rest);
      by_scale += weight.segment(at, rest).dot(kernel.segment(at, rest).matrix());
    }
    const double diagonal = 0.5 * (alpha.squaredNorm() - inverse.trace());
    Column slope(d + 2);
    slope.head(d) = parameters.scale * (gaps.transpose() * (weight.array() * slopes).matrix());
    for (Eigen::Index k = 0; k < d; ++k) {
      const double s = parameters.inverse_squared_lengths[static_cast<size_t>(k)];
      slope(k) = (slope(k) + 0.1 / (s * s) - 0.1) * s;
    }
    slope(d) = (by_scale + diagonal + 1 / parameters.scale - 1) * parameters.scale;
    slope(d + 1) = (diagonal + 0.1 / parameters.noise - 30) * (parameters.noise - least_noise);
    gradient = -slope;
    const double value = 0.5 * wanted.dot(alpha) + log_root - log_prior(parameters);
    return std::isfinite(value) ? value : 1e30;
  };
  Column logs(d + 2);
  for (Eigen::Index k = 0; k < d; ++k)
    logs(k) = std::log(start.inverse_squared_lengths[static_cast<size_t>(k)]);
  logs(d) = std::log(start.scale);
  logs(d + 1) = std::log(std::max(start.noise - least_noise, 1e-10));
  return unpacked(minimise(loss, logs, 60));
}

std::vector<GaussianProcess::Posterior> GaussianProcess::at(
    const std::vector<Vector>& points) const {
  const Impl& in = *impl_;
  Matrix k(in.values.size(), static_cast<Eigen::Index>(points.size()));
  for (Eigen::Index p = 0; p < k.cols(); ++p) {
    Eigen::ArrayXd squared = in.distances(points[static_cast<size_t>(p)].data());
    matern(squared);
    k.col(p) = in.parameters.scale * squared.matrix();
  }
  const Column means = k.transpose() * in.alpha;
  in.factor.matrixL().solveInPlace(k);
  std::vector<Posterior> all;
  for (Eigen::Index p = 0; p < k.cols(); ++p)
    all.push_back({means(p), std::max(0.0, in.parameters.scale - k.col(p).squaredNorm())});
  return all;
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
