// SPDX-License-Identifier: Apache-2.0
#include "mase/data/substructure.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace mase {
namespace {

constexpr double groom_share = 0.1;

struct Momentum {
  double x = 0, y = 0, z = 0, energy = 0;

  Momentum operator+(const Momentum& other) const {
    return {x + other.x, y + other.y, z + other.z, energy + other.energy};
  }
  double pt() const { return std::sqrt(x * x + y * y); }
  double mass() const { return std::sqrt(std::max(0.0, energy * energy - x * x - y * y - z * z)); }
};

Momentum momentum_of(const Particle& particle) {
  return {particle.pt * std::cos(particle.azimuth), particle.pt * std::sin(particle.azimuth),
          particle.pt * std::sinh(particle.rapidity), particle.pt * std::cosh(particle.rapidity)};
}

double squared_distance(double rapidity_a, double azimuth_a, double rapidity_b, double azimuth_b) {
  double turn = std::abs(azimuth_a - azimuth_b);
  if (turn > std::numbers::pi) turn = 2 * std::numbers::pi - turn;
  const double step = rapidity_a - rapidity_b;
  return step * step + turn * turn;
}

// Cambridge/Aachen: join the two nearest objects until one is left. The tree of joins is kept.
class Clustering {
 public:
  explicit Clustering(const std::vector<Particle>& particles) {
    const size_t count = particles.size();
    nodes_.reserve(2 * count);
    for (const Particle& particle : particles)
      nodes_.push_back({momentum_of(particle), particle.rapidity, particle.azimuth, -1, -1});
    std::vector<int> alive(count);
    std::vector<int> nearest(2 * count, -1);
    std::vector<double> gap(2 * count, 0);
    for (size_t i = 0; i < count; ++i) alive[i] = static_cast<int>(i);
    for (const int i : alive) find_nearest(i, alive, nearest, gap);
    while (alive.size() > 1) {
      int a = alive[0];
      for (const int i : alive)
        if (gap[at(i)] < gap[at(a)]) a = i;
      const int b = nearest[at(a)];
      const int joined = join(a, b);
      std::erase_if(alive, [&](int i) { return i == a || i == b; });
      for (const int i : alive)
        if (nearest[at(i)] == a || nearest[at(i)] == b) find_nearest(i, alive, nearest, gap);
      alive.push_back(joined);
      find_nearest(joined, alive, nearest, gap);
      for (const int i : alive) {
        const double distance = between(i, joined);
        if (i != joined && distance < gap[at(i)]) {
          gap[at(i)] = distance;
          nearest[at(i)] = joined;
        }
      }
    }
  }

  // The particles left by mMDT, and their total momentum.
  std::vector<int> groomed(Momentum& total) const {
    int node = static_cast<int>(nodes_.size()) - 1;
    while (nodes_[at(node)].left >= 0) {
      const int left = nodes_[at(node)].left, right = nodes_[at(node)].right;
      const double a = nodes_[at(left)].momentum.pt(), b = nodes_[at(right)].momentum.pt();
      if (std::min(a, b) > groom_share * (a + b)) break;
      node = a > b ? left : right;
    }
    total = nodes_[at(node)].momentum;
    std::vector<int> leaves, open = {node};
    while (!open.empty()) {
      const int next = open.back();
      open.pop_back();
      if (nodes_[at(next)].left < 0) {
        leaves.push_back(next);
      } else {
        open.push_back(nodes_[at(next)].left);
        open.push_back(nodes_[at(next)].right);
      }
    }
    return leaves;
  }

 private:
  struct Node {
    Momentum momentum;
    double rapidity, azimuth;
    int left, right;
  };

  static size_t at(int index) { return static_cast<size_t>(index); }

  double between(int a, int b) const {
    return squared_distance(nodes_[at(a)].rapidity, nodes_[at(a)].azimuth, nodes_[at(b)].rapidity,
                            nodes_[at(b)].azimuth);
  }

  int join(int a, int b) {
    const Momentum sum = nodes_[at(a)].momentum + nodes_[at(b)].momentum;
    const double rapidity = 0.5 * std::log((sum.energy + sum.z) / (sum.energy - sum.z));
    nodes_.push_back({sum, rapidity, std::atan2(sum.y, sum.x), a, b});
    return static_cast<int>(nodes_.size()) - 1;
  }

  void find_nearest(int i, const std::vector<int>& alive, std::vector<int>& nearest,
                    std::vector<double>& gap) const {
    nearest[at(i)] = -1;
    gap[at(i)] = 1e300;
    for (const int j : alive) {
      if (j == i) continue;
      const double distance = between(i, j);
      if (distance < gap[at(i)]) {
        gap[at(i)] = distance;
        nearest[at(i)] = j;
      }
    }
  }

  std::vector<Node> nodes_;
};

// Four lanes of floats, the same on every machine: the sums below are the same to the bit whatever
// the instruction set.
using Lanes = float __attribute__((vector_size(16)));

Lanes lanes_at(const float* from) {
  Lanes lanes;
  __builtin_memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
double sum_of(Lanes lanes) {
  return (double{lanes[0]} + double{lanes[1]}) + (double{lanes[2]} + double{lanes[3]});
}

struct Correlations {
  double e2_0 = 0, e2_1 = 0, e2_2 = 0;
  double e3_1 = 0, e3_2 = 0;        // all three distances
  double least_1 = 0, least_2 = 0;  // the smallest
  double two_1 = 0, two_2 = 0;      // the two smallest
};

Correlations correlations(const std::vector<Particle>& particles, const std::vector<int>& chosen,
                          double pt) {
  const size_t count = chosen.size();
  const size_t stride = (count + 3) / 4 * 4;
  std::vector<float> share(stride, 0.0f), distance(stride * count, 0.0f);
  for (size_t i = 0; i < count; ++i)
    share[i] = static_cast<float>(particles[static_cast<size_t>(chosen[i])].pt / pt);
  Correlations sums;
  for (size_t i = 0; i < count; ++i) {
    const Particle& a = particles[static_cast<size_t>(chosen[i])];
    for (size_t j = 0; j < i; ++j) {
      const Particle& b = particles[static_cast<size_t>(chosen[j])];
      const double square = squared_distance(a.rapidity, a.azimuth, b.rapidity, b.azimuth);
      const double gap = std::sqrt(square), weight = double{share[i]} * double{share[j]};
      distance[i * stride + j] = static_cast<float>(gap);
      sums.e2_0 += weight;
      sums.e2_1 += weight * gap;
      sums.e2_2 += weight * square;
    }
  }
  // Triples k < j < i: row i and row j are contiguous in k. Row j is zero from k = j on, so that
  // surplus lanes add nothing.
  for (size_t i = 2; i < count; ++i) {
    const float* row_i = &distance[i * stride];
    Lanes all1{}, all2{}, least1{}, least2{}, two1{}, two2{};
    for (size_t j = 1; j < i; ++j) {
      const float* row_j = &distance[j * stride];
      const float w = share[i] * share[j], d = row_i[j];
      const Lanes ij = {d, d, d, d}, weight_ij = {w, w, w, w};
      for (size_t k = 0; k < j; k += 4) {
        const Lanes ik = lanes_at(row_i + k), jk = lanes_at(row_j + k);
        const Lanes weight = weight_ij * lanes_at(&share[k]);
        const Lanes near = smaller(ik, jk);
        const Lanes pair = ik * jk;
        const Lanes product = pair * ij;
        const Lanes least = smaller(near, ij);
        const Lanes two = smaller(pair, near * ij);
        all1 += weight * product;
        all2 += weight * (product * product);
        least1 += weight * least;
        least2 += weight * (least * least);
        two1 += weight * two;
        two2 += weight * (two * two);
      }
    }
    sums.e3_1 += sum_of(all1);
    sums.e3_2 += sum_of(all2);
    sums.least_1 += sum_of(least1);
    sums.least_2 += sum_of(least2);
    sums.two_1 += sum_of(two1);
    sums.two_2 += sum_of(two2);
  }
  return sums;
}

double ratio(double above, double below) { return below > 0 ? above / below : 0.0; }

}  // namespace

const std::vector<std::string>& jet_feature_names() {
  static const std::vector<std::string> names = {
      "zlogz",      "c1_b0_mmdt", "c1_b1_mmdt",    "c1_b2_mmdt",    "c2_b1_mmdt", "c2_b2_mmdt",
      "d2_b1_mmdt", "d2_b2_mmdt", "d2_a1_b1_mmdt", "d2_a1_b2_mmdt", "m2_b1_mmdt", "m2_b2_mmdt",
      "n2_b1_mmdt", "n2_b2_mmdt", "mass_mmdt",     "multiplicity"};
  return names;
}

std::array<float, jet_feature_count> jet_features(std::vector<Particle>& particles) {
  if (particles.empty()) return {};
  double pt = 0, zlogz = 0;
  for (const Particle& particle : particles) pt += particle.pt;
  for (const Particle& particle : particles) zlogz += particle.pt / pt * std::log(particle.pt / pt);
  Momentum total;
  const std::vector<int> kept = Clustering(particles).groomed(total);
  double kept_pt = 0;
  for (const int i : kept) kept_pt += particles[static_cast<size_t>(i)].pt;
  const Correlations c = correlations(particles, kept, kept_pt);
  const double square1 = c.e2_1 * c.e2_1, square2 = c.e2_2 * c.e2_2;
  const double d2_b1 = ratio(c.e3_1, square1 * c.e2_1);
  const std::array<double, jet_feature_count> values = {
      zlogz,
      c.e2_0,
      c.e2_1,
      c.e2_2,
      ratio(c.e3_1, square1),
      ratio(c.e3_2, square2),
      d2_b1,
      ratio(c.e3_2, square2 * c.e2_2),
      d2_b1,
      ratio(c.e3_1, c.e2_2 * std::sqrt(c.e2_2)),
      ratio(c.least_1, c.e2_1),
      ratio(c.least_2, c.e2_2),
      ratio(c.two_1, square1),
      ratio(c.two_2, square2),
      kept.size() > 1 ? total.mass() : 0.0,
      static_cast<double>(particles.size()),
  };
  std::array<float, jet_feature_count> features{};
  std::transform(values.begin(), values.end(), features.begin(),
                 [](double value) { return static_cast<float>(value); });
  return features;
}

}  // namespace mase
