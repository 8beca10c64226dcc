// SPDX-License-Identifier: Apache-2.0
#include "mase/search/models/warp.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mase::search {
namespace {

double raised(double x, double power) {
  constexpr double near = 1e-8;
  if (x >= 0)
    return std::abs(power) < near ? std::log1p(x) : std::expm1(power * std::log1p(x)) / power;
  const double other = 2 - power;
  return std::abs(other) < near ? -std::log1p(-x) : -std::expm1(other * std::log1p(-x)) / other;
}

double lowered(double y, double power) {
  constexpr double near = 1e-8;
  // Beyond what a power can give: the farthest figure there is.
  constexpr double farthest = 1e6;
  const auto inverse = [](double value, double exponent) {
    if (std::abs(exponent) < near) return std::expm1(value);
    const double inside = exponent * value;
    return inside <= -1 ? farthest : std::expm1(std::log1p(inside) / exponent);
  };
  return y >= 0 ? std::min(farthest, inverse(y, power))
                : -std::min(farthest, inverse(-y, 2 - power));
}

void moments(const std::vector<double>& values, double& mean, double& deviation) {
  mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double square = 0;
  for (const double value : values) square += (value - mean) * (value - mean);
  deviation = std::sqrt(square / static_cast<double>(values.size()));
}

double median(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

}  // namespace

Warp::Warp(const std::vector<double>& figures) {
  if (figures.empty()) return;
  middle_ = median(figures);
  std::vector<double> x;
  for (const double figure : figures) x.push_back(std::abs(figure - middle_));
  scale_ = 1.4826 * median(x);  // the deviation, were they normal
  double mean = 0, deviation = 0;
  if (!(scale_ > 0)) {
    moments(figures, mean, deviation);
    scale_ = deviation > 0 ? deviation : 1;
  }
  double slopes = 0;  // of the logarithm of the map's derivative by the power
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = (figures[i] - middle_) / scale_;
    slopes += std::copysign(std::log1p(std::abs(x[i])), x[i]);
  }
  std::vector<double> y(x.size());
  const auto likelihood = [&](double power) {
    for (size_t i = 0; i < x.size(); ++i) y[i] = raised(x[i], power);
    moments(y, mean, deviation);
    if (!(deviation > 0) || !std::isfinite(deviation))
      return -std::numeric_limits<double>::infinity();
    return -static_cast<double>(x.size()) * std::log(deviation) + (power - 1) * slopes;
  };
  // Powers far from 1 are for figures that span many orders of magnitude.
  constexpr double lowest = -4, highest = 6, step = 0.5;
  double best = likelihood(1);
  for (double power = lowest; power <= highest; power += step)
    if (const double value = likelihood(power); value > best) {
      best = value;
      power_ = power;
    }
  for (double width = step / 2; width > 0.01; width /= 2) {
    const double here = power_;
    for (const double power : {here - width, here + width})
      if (const double value = likelihood(power); value > best) {
        best = value;
        power_ = power;
      }
  }
  if (!std::isfinite(likelihood(power_))) {
    mean_ = 0, deviation_ = 1;
    return;
  }
  mean_ = mean;
  deviation_ = deviation;
}

double Warp::operator()(double figure) const {
  return (raised((figure - middle_) / scale_, power_) - mean_) / deviation_;
}

double Warp::back(double warped) const {
  return middle_ + scale_ * lowered(mean_ + deviation_ * warped, power_);
}

}  // namespace mase::search
