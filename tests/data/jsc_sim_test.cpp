// SPDX-License-Identifier: Apache-2.0
// Simulated jets: the observables against their definitions, physics that must hold, determinism.
#include "mase/data/jsc_sim.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mase/data/shower.h"
#include "mase/data/substructure.h"
#include "support/support.h"

namespace mase::jsc_sim_test {
namespace {

// The definitions, written out for particles that grooming leaves alone.
struct Definitions {
  double e2[3] = {}, e3[3] = {}, least[3] = {}, two[3] = {};
};

Definitions by_definition(const std::vector<Particle>& particles) {
  double pt = 0;
  for (const Particle& p : particles) pt += p.pt;
  const auto distance = [](const Particle& a, const Particle& b) {
    return std::hypot(a.rapidity - b.rapidity, a.azimuth - b.azimuth);
  };
  Definitions sums;
  for (int beta = 0; beta < 3; ++beta)
    for (size_t i = 0; i < particles.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const double zz = particles[i].pt * particles[j].pt / (pt * pt);
        sums.e2[beta] += zz * std::pow(distance(particles[i], particles[j]), beta);
        for (size_t k = 0; k < j; ++k) {
          double t[3] = {distance(particles[i], particles[j]), distance(particles[i], particles[k]),
                         distance(particles[j], particles[k])};
          std::sort(t, t + 3);
          const double zzz = zz * particles[k].pt / pt;
          sums.e3[beta] += zzz * std::pow(t[0] * t[1] * t[2], beta);
          sums.least[beta] += zzz * std::pow(t[0], beta);
          sums.two[beta] += zzz * std::pow(t[0] * t[1], beta);
        }
      }
  return sums;
}

TEST(Substructure, FollowsTheDefinitions) {
  Random random(1, "test");
  for (const int count : {3, 4, 7, 12}) {
    // Two hard prongs far apart keep the grooming from removing anything.
    std::vector<Particle> particles = {{400, -0.3, 0}, {350, 0.3, 0.02}};
    while (static_cast<int>(particles.size()) < count) {
      const double side = particles.size() % 2 == 0 ? -0.3 : 0.3;
      particles.push_back(
          {random.uniform(5, 40), side + random.uniform(-0.1, 0.1), random.uniform(-0.1, 0.1)});
    }
    const Definitions d = by_definition(particles);
    const auto f = jet_features(particles);
    const double expected[] = {d.e2[0],
                               d.e2[1],
                               d.e2[2],
                               d.e3[1] / std::pow(d.e2[1], 2),
                               d.e3[2] / std::pow(d.e2[2], 2),
                               d.e3[1] / std::pow(d.e2[1], 3),
                               d.e3[2] / std::pow(d.e2[2], 3),
                               d.e3[1] / std::pow(d.e2[1], 3),
                               d.e3[1] / std::pow(d.e2[2], 1.5),
                               d.least[1] / d.e2[1],
                               d.least[2] / d.e2[2],
                               d.two[1] / std::pow(d.e2[1], 2),
                               d.two[2] / std::pow(d.e2[2], 2)};
    for (size_t i = 0; i < 13; ++i)
      EXPECT_NEAR(double{f[i + 1]}, expected[i], 2e-5 * std::abs(expected[i]) + 1e-9)
          << jet_feature_names()[i + 1] << " of " << count;
    EXPECT_EQ(f[15], static_cast<float>(count));
  }
}

TEST(Substructure, GroomsSoftWideRadiationAway) {
  std::vector<Particle> jet = {{500, -0.1, 0}, {450, 0.1, 0}, {3, 0.6, 0.3}};
  const auto groomed = jet_features(jet);
  std::vector<Particle> hard = {{500, -0.1, 0}, {450, 0.1, 0}};
  EXPECT_FLOAT_EQ(groomed[14], jet_features(hard)[14]);
  EXPECT_NEAR(double{groomed[14]}, std::sqrt(2 * 500 * 450 * (std::cosh(0.2) - 1)), 0.01);
  std::vector<Particle> one = {{100, 0, 0}};
  EXPECT_EQ(jet_features(one)[14], 0.0f);
  std::vector<Particle> none;
  EXPECT_EQ(jet_features(none)[15], 0.0f);
}

TEST(Simulation, IsTheSameWhateverTheThreads) {
  const RawTable one = simulate_jets(600, 7, 1), four = simulate_jets(600, 7, 4);
  const RawTable fewer = simulate_jets(100, 7, 2);
  EXPECT_EQ(std::memcmp(one.x.get(), four.x.get(), 600 * 16 * sizeof(float)), 0);
  EXPECT_EQ(one.labels, four.labels);
  EXPECT_EQ(std::memcmp(one.x.get(), fewer.x.get(), 100 * 16 * sizeof(float)), 0);
}

TEST(Simulation, HasThePhysics) {
  const RawTable table = simulate_jets(4000, 3);
  const auto median = [&](int label, size_t feature) {
    std::vector<float> values;
    for (int64_t row = 0; row < table.rows; ++row)
      if (table.labels[static_cast<size_t>(row)] == label)
        values.push_back(table.data()[static_cast<size_t>(row) * 16 + feature]);
    std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2),
                     values.end());
    return double{values[values.size() / 2]};
  };
  constexpr size_t mass = 14, multiplicity = 15, d2 = 7;
  enum { g, q, w, z, t };
  EXPECT_NEAR(median(w, mass), 80.4, 6);
  EXPECT_NEAR(median(z, mass), 91.2, 6);
  EXPECT_NEAR(median(t, mass), 172, 15);
  EXPECT_LT(median(q, mass), median(g, mass));
  EXPECT_GT(median(g, multiplicity), 1.5 * median(q, multiplicity));  // colour factors
  EXPECT_LT(median(w, d2), median(g, d2));                            // two prongs
  for (int64_t i = 0; i < table.rows * 16; ++i) ASSERT_TRUE(std::isfinite(table.data()[i]));
}

}  // namespace
}  // namespace mase::jsc_sim_test
