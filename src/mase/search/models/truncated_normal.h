// SPDX-License-Identifier: Apache-2.0
// The normal distribution cut to an interval, in logarithms, so that far tails neither vanish nor
// cancel. Everything is for mean 0 and deviation 1.
#pragma once

namespace mase::search {

double normal_log_cdf(double x);
double normal_quantile(double p);            // of (0, 1)
double normal_log_mass(double a, double b);  // log of the probability of [a, b]
// Where the share q of the mass of [a, b] lies to the left.
double truncated_normal_quantile(double q, double a, double b);

// The same for an interval that is asked many times, with a <= 0: probabilities left and right of
// it.
struct NormalTails {
  double left = 0, right = 0;
};
NormalTails normal_tails(double a, double b);
double normal_log_mass(double a, double b, const NormalTails& tails);
double truncated_normal_quantile(double q, double a, double b, const NormalTails& tails);

double truncated_normal_log_pdf(double x, double a, double b);

}  // namespace mase::search
