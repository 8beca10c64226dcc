// SPDX-License-Identifier: Apache-2.0
#include "mase/search/models/truncated_normal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace mase::search {
namespace {

constexpr double half_log_two_pi = 0.91893853320467274178;

double cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double log_difference(double larger, double smaller) {  // log(exp(larger) - exp(smaller))
  return larger + std::log1p(-std::exp(smaller - larger));
}

double ratio(double r, const double* numerator, const double* denominator) {
  double n = numerator[7], d = denominator[7];
  for (int i = 6; i >= 0; --i) {
    n = n * r + numerator[i];
    d = d * r + denominator[i];
  }
  return n / d;
}

// Solves normal_log_cdf(x) = y by Newton's method; for probabilities that no double holds.
double quantile_of_logarithm(double y) {
  double x = -std::sqrt(-2 * (y + half_log_two_pi));
  for (int i = 0; i < 100; ++i) {
    const double at = normal_log_cdf(x);
    const double step = (at - y) * std::exp(at + 0.5 * x * x + half_log_two_pi);
    x -= step;
    if (std::abs(step) < 1e-14 * std::abs(x)) break;
  }
  return x;
}

}  // namespace

double normal_log_cdf(double x) {
  if (x > 5) return std::log1p(-cdf(-x));
  if (x > -35) return std::log(cdf(x));
  // Asymptotic series of Mills' ratio.
  const double s = 1 / (x * x);
  const double series = 1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s * (1 - 9 * s))));
  return -0.5 * x * x - half_log_two_pi - std::log(-x) + std::log(series);
}

// Wichura's AS 241 (PPND16, 1988): relative error about 1e-16.
double normal_quantile(double p) {
  static constexpr double a[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                 1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                 3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double b[] = {1.0,
                                 4.2313330701600911252e+1,
                                 6.8718700749205790830e+2,
                                 5.3941960214247511077e+3,
                                 2.1213794301586595867e+4,
                                 3.9307895800092710610e+4,
                                 2.8729085735721942674e+4,
                                 5.2264952788528545610e+3};
  static constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                 5.76949722146069140550e0,  3.64784832476320460504e0,
                                 1.27045825245236838258e0,  2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double d[] = {1.0,
                                 2.05319162663775882187e0,
                                 1.67638483018380384940e0,
                                 6.89767334985100004550e-1,
                                 1.48103976427480074590e-1,
                                 1.51986665636164571966e-2,
                                 5.47593808499534494600e-4,
                                 1.05075007164441684324e-9};
  static constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                 1.78482653991729133580e0,  2.96560571828504891230e-1,
                                 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double f[] = {1.0,
                                 5.99832206555887937690e-1,
                                 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2,
                                 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5,
                                 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) return q * ratio(0.180625 - q * q, a, b);
  double r = q < 0 ? p : 1 - p;
  if (r <= 0)
    return q < 0 ? -std::numeric_limits<double>::infinity()
                 : std::numeric_limits<double>::infinity();
  r = std::sqrt(-std::log(r));
  const double x = r <= 5 ? ratio(r - 1.6, c, d) : ratio(r - 5, e, f);
  return q < 0 ? -x : x;
}

double normal_log_mass(double a, double b) {
  if (a > 0) return normal_log_mass(-b, -a);
  return normal_log_mass(a, b, normal_tails(a, b));
}

NormalTails normal_tails(double a, double b) { return {cdf(a), cdf(-b)}; }

double normal_log_mass(double a, double b, const NormalTails& tails) {
  if (b <= 0) return log_difference(normal_log_cdf(b), normal_log_cdf(a));
  return std::log1p(-tails.left - tails.right);
}

double truncated_normal_quantile(double q, double a, double b) {
  if (a > 0) return -truncated_normal_quantile(1 - q, -b, -a);
  return truncated_normal_quantile(q, a, b, normal_tails(a, b));
}

double truncated_normal_quantile(double q, double a, double b, const NormalTails& tails) {
  const auto [left, right] = tails;
  const double mass = b <= 0 ? cdf(b) - left : 1 - left - right;
  double x;
  if (mass > 1e-250) {
    const double p = left + q * mass;
    // The smaller of the two tails keeps the digits.
    x = p <= 0.5 ? normal_quantile(p) : -normal_quantile(right + (1 - q) * mass);
  } else {
    const double log_left = normal_log_cdf(a), inside = normal_log_mass(a, b) + std::log(q);
    const double larger = std::max(log_left, inside), smaller = std::min(log_left, inside);
    x = quantile_of_logarithm(larger + std::log1p(std::exp(smaller - larger)));
  }
  return std::clamp(x, a, b);
}

double truncated_normal_log_pdf(double x, double a, double b) {
  if (x < a || x > b) return -std::numeric_limits<double>::infinity();
  return -0.5 * x * x - half_log_two_pi - normal_log_mass(a, b);
}

}  // namespace mase::search
