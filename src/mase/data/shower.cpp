// SPDX-License-Identifier: Apache-2.0
// Angular-ordered (coherent) branching: Marchesini and Webber 1984. Each emission has an angle
// smaller than the last, a momentum share from the Altarelli-Parisi kernels and the strength
// alpha_s(kt); the next angle is drawn with the veto algorithm.
#include "mase/data/shower.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

namespace mase {
namespace {

constexpr double pi = std::numbers::pi;
constexpr double gluon_colour = 3.0;        // C_A
constexpr double quark_colour = 4.0 / 3.0;  // C_F
constexpr double flavours = 5.0;

// GeV, radians.
constexpr double lowest_pt = 800.0;
constexpr double highest_pt = 1200.0;
constexpr double scale_smear = 0.09;  // of all energies of a jet together
constexpr double jet_radius = 0.8;
constexpr double widest_angle = 0.33;  // of the first emission; wider ones leave the jet
constexpr double shower_cut = 0.3;     // no emission with a smaller kt
constexpr double lambda = 0.2;         // of the running coupling
constexpr double hadron_kick = 0.5;    // transverse momentum of hadrons about their parton
constexpr double hadron_scale = 1.5;
constexpr double hadron_growth = 0.15;  // hadrons per unit of log(pt)
constexpr double underlying_mean = 1.5;
constexpr double underlying_pt = 0.9;
constexpr double initial_state_mean = 0.05;
constexpr double cell_size = 0.02;
constexpr double threshold = 0.4;
constexpr double track_share = 0.5;
constexpr double track_smear = 0.015;
constexpr double calorimeter_smear = 0.8;  // divided by the root of the energy
constexpr double calorimeter_constant = 0.1;

constexpr double w_mass = 80.4, w_width = 2.09;
constexpr double z_mass = 91.19, z_width = 2.50;
constexpr double top_mass = 172.5;

struct Parton {
  double pt, rapidity, azimuth;
  double angle;  // of the last emission: the next is smaller
  bool gluon;
  double parted = 0.4;  // the angle at which it left its neighbour: its hadrons stay within
};

double coupling(double kt) {
  const double b0 = (33.0 - 2.0 * flavours) / (12.0 * pi);
  return 1.0 / (b0 * std::log(kt * kt / (lambda * lambda)));
}

int poisson(Random& random, double mean) {
  const double limit = std::exp(-mean);
  int count = -1;
  for (double product = 1.0; product > limit; ++count) product *= 1.0 - random.uniform();
  return count;
}

double breit_wigner(Random& random, double mass, double width) {
  while (true) {
    const double drawn = mass + 0.5 * width * std::tan(pi * (random.uniform() - 0.5));
    if (std::abs(drawn - mass) < 15 * width) return drawn;
  }
}

// Sends two pieces apart: shares z and 1 - z, opening angle `angle`, in a random plane.
void divide(const Parton& parent, double z, double angle, Random& random, Parton& first,
            Parton& second) {
  const double turn = 2 * pi * random.uniform();
  const double along = angle * std::cos(turn), across = angle * std::sin(turn);
  first = second = parent;
  first.pt = parent.pt * z;
  first.rapidity += (1 - z) * along;
  first.azimuth += (1 - z) * across;
  second.pt = parent.pt * (1 - z);
  second.rapidity -= z * along;
  second.azimuth -= z * across;
  first.angle = second.angle = first.parted = second.parted = angle;
}

// One hadron-level particle list per parton that radiates no more.
void hadronise(const Parton& parton, Random& random, std::vector<Particle>& particles) {
  // A gluon pulls two strings, a quark one.
  const double strings = parton.gluon ? gluon_colour / quark_colour : 1.0;
  const int count =
      1 + poisson(random, strings * hadron_growth * std::log1p(parton.pt / hadron_scale));
  double total = 0;
  double shares[64];
  const int used = std::min(count, 64);
  for (int i = 0; i < used; ++i) {
    const double draw = -std::log(1.0 - random.uniform());
    shares[i] = draw * draw;  // a steep spectrum: one hadron leads
    total += shares[i];
  }
  for (int i = 0; i < used; ++i) {
    const double pt = parton.pt * shares[i] / total;
    if (pt < 0.1 * threshold) continue;
    const double kick = used == 1 ? 0.0 : std::min(hadron_kick / pt, parton.parted);
    particles.push_back(
        {pt, parton.rapidity + kick * random.normal(), parton.azimuth + kick * random.normal()});
  }
}

// Radiates from `start` down to `stop` in angle; what is emitted is showered to the end, and the
// parton itself comes back as it then is.
Parton radiate(Parton start, double stop, Random& random, std::vector<Parton>& pending) {
  const double largest_coupling = coupling(shower_cut);
  while (true) {
    const double lowest = shower_cut / (start.pt * start.angle);
    if (lowest >= 0.5) return start;
    const double highest = start.gluon ? 0.5 : 1.0 - lowest;
    const double bound = start.gluon ? 2.4 * gluon_colour + 0.5 * flavours : 2 * quark_colour;
    const double span = std::log(highest / lowest);
    const double rate = largest_coupling / (2 * pi) * bound * span;  // per unit of log(angle^2)
    start.angle *= std::exp(0.5 * std::log(1.0 - random.uniform()) / rate);
    if (start.angle <= stop) return start;
    const double z = lowest * std::exp(span * random.uniform());
    const double kt = std::min(z, 1 - z) * start.pt * start.angle;
    const double draw = random.uniform();
    if (kt < shower_cut) continue;
    const double strength = coupling(kt) / largest_coupling / bound * z;
    Parton soft, hard;
    if (!start.gluon) {
      if (draw >= strength * quark_colour * (1 + (1 - z) * (1 - z)) / z) continue;
      divide(start, z, start.angle, random, soft, hard);
      soft.gluon = true;
    } else {
      const double to_gluons =
          strength * 2 * gluon_colour * ((1 - z) / z + z / (1 - z) + z * (1 - z));
      const double to_quarks = strength * flavours * (z * z + (1 - z) * (1 - z));
      if (draw >= to_gluons + to_quarks) continue;
      divide(start, z, start.angle, random, soft, hard);
      if (draw >= to_gluons) soft.gluon = hard.gluon = false;
    }
    pending.push_back(soft);
    start = hard;
  }
}

void shower(const Parton& start, Random& random, std::vector<Particle>& particles) {
  std::vector<Parton> pending = {start};
  while (!pending.empty()) {
    const Parton next = pending.back();
    pending.pop_back();
    hadronise(radiate(next, 0.0, random, pending), random, particles);
  }
}

// Showering makes partons massive, but what a particle decays to keeps that particle's mass: angles
// about its direction shrink until the invariant mass is right.
void restore_mass(const Parton& parent, double mass, std::span<Particle> products) {
  double energy = 0, rapidity = 0, azimuth = 0;
  for (const Particle& particle : products) {
    energy += particle.pt;
    rapidity += particle.pt * particle.rapidity;
    azimuth += particle.pt * particle.azimuth;
  }
  rapidity /= energy;
  azimuth /= energy;
  double spread = 0;  // sum over pairs z_i z_j t_ij^2 = sum z_i t_i^2 about the mean
  for (const Particle& particle : products)
    spread += particle.pt / energy *
              (std::pow(particle.rapidity - rapidity, 2) + std::pow(particle.azimuth - azimuth, 2));
  if (!(spread > 0)) return;
  const double factor = mass / (energy * std::sqrt(spread));
  for (Particle& particle : products) {
    particle.rapidity = parent.rapidity + factor * (particle.rapidity - rapidity);
    particle.azimuth = parent.azimuth + factor * (particle.azimuth - azimuth);
  }
}

// A longitudinal vector boson: decay angles as sin^2, so momentum shares as z (1 - z).
void decay_boson(const Parton& boson, double mass, Random& random,
                 std::vector<Particle>& particles) {
  double z = 0;
  do {
    z = random.uniform(0.01, 0.99);
  } while (random.uniform() > 4 * z * (1 - z));
  Parton first, second;
  divide(boson, z, mass / (boson.pt * std::sqrt(z * (1 - z))), random, first, second);
  first.gluon = second.gluon = false;
  const size_t start = particles.size();
  shower(first, random, particles);
  shower(second, random, particles);
  restore_mass(boson, mass, std::span(particles).subspan(start));
}

void decay_top(Parton top, Random& random, std::vector<Particle>& particles) {
  std::vector<Parton> pending;
  top.gluon = false;
  top = radiate(top, std::min(top_mass / top.pt, widest_angle), random, pending);
  for (const Parton& parton : pending) shower(parton, random, particles);
  const double mass = breit_wigner(random, w_mass, w_width);
  // In the top's frame the W has a fixed momentum and any direction.
  const double momentum = (top_mass * top_mass - mass * mass) / (2 * top_mass);
  const double energy = (top_mass * top_mass + mass * mass) / (2 * top_mass);
  const double z = std::clamp((energy + momentum * random.uniform(-1, 1)) / top_mass, 0.22, 0.99);
  const double kt2 = std::max(0.0, z * (1 - z) * top_mass * top_mass - (1 - z) * mass * mass);
  Parton w, b;
  divide(top, z, std::sqrt(kt2) / (z * (1 - z) * top.pt), random, w, b);
  b.gluon = false;
  const size_t start = particles.size();
  decay_boson(w, mass, random, particles);
  shower(b, random, particles);
  restore_mass(top, top_mass, std::span(particles).subspan(start));
}

// Cells of the detector: what falls into one is one particle, at its energy-weighted place.
void detect(std::vector<Particle>& particles, Random& random) {
  struct Hit {
    int64_t cell;
    Particle particle;
  };
  double axis_rapidity = 0, axis_azimuth = 0, pt = 0;
  for (const Particle& particle : particles) {
    if (std::hypot(particle.rapidity, particle.azimuth) > 1.5 * jet_radius) continue;
    axis_rapidity += particle.pt * particle.rapidity;
    axis_azimuth += particle.pt * particle.azimuth;
    pt += particle.pt;
  }
  if (pt > 0) {
    axis_rapidity /= pt;
    axis_azimuth /= pt;
  }
  const double scale = std::exp(scale_smear * random.normal());
  std::vector<Hit> hits;
  for (Particle particle : particles) {
    particle.rapidity -= axis_rapidity;
    particle.azimuth -= axis_azimuth;
    const bool track = random.uniform() < track_share;
    const double smear =
        track ? track_smear
              : std::hypot(calorimeter_smear / std::sqrt(particle.pt), calorimeter_constant);
    particle.pt *= scale * (1 + smear * random.normal());
    if (particle.pt < threshold || std::hypot(particle.rapidity, particle.azimuth) > jet_radius)
      continue;
    const auto row = static_cast<int64_t>(std::floor(particle.rapidity / cell_size));
    const auto column = static_cast<int64_t>(std::floor(particle.azimuth / cell_size));
    hits.push_back({(row + 1000) * 2000 + column + 1000, particle});
  }
  std::stable_sort(hits.begin(), hits.end(),
                   [](const Hit& a, const Hit& b) { return a.cell < b.cell; });
  particles.clear();
  for (size_t i = 0; i < hits.size();) {
    Particle merged;
    const int64_t cell = hits[i].cell;
    for (; i < hits.size() && hits[i].cell == cell; ++i) {
      const Particle& particle = hits[i].particle;
      merged.pt += particle.pt;
      merged.rapidity += particle.pt * particle.rapidity;
      merged.azimuth += particle.pt * particle.azimuth;
    }
    merged.rapidity /= merged.pt;
    merged.azimuth /= merged.pt;
    particles.push_back(merged);
  }
}

void add_soft_background(Random& random, std::vector<Particle>& particles) {
  const auto anywhere = [&](double pt) {
    const double distance = 1.2 * jet_radius * std::sqrt(random.uniform());
    const double turn = 2 * pi * random.uniform();
    return Particle{pt, distance * std::cos(turn), distance * std::sin(turn)};
  };
  const int soft = poisson(random, underlying_mean);
  for (int i = 0; i < soft; ++i)
    particles.push_back(anywhere(threshold - underlying_pt * std::log(1.0 - random.uniform())));
  const int hard = poisson(random, initial_state_mean);
  for (int i = 0; i < hard; ++i) {
    const Particle at = anywhere(4.0 * std::pow(60.0, random.uniform()));
    shower({at.pt, at.rapidity, at.azimuth, jet_radius, true}, random, particles);
  }
}

}  // namespace

std::vector<Particle> simulate_jet(JetKind kind, Random& random) {
  std::vector<Particle> particles;
  particles.reserve(256);
  Parton parton{random.uniform(lowest_pt, highest_pt), 0, 0, widest_angle, kind == JetKind::gluon};
  switch (kind) {
    case JetKind::gluon:
    case JetKind::quark:
      shower(parton, random, particles);
      break;
    case JetKind::w:
      decay_boson(parton, breit_wigner(random, w_mass, w_width), random, particles);
      break;
    case JetKind::z:
      decay_boson(parton, breit_wigner(random, z_mass, z_width), random, particles);
      break;
    case JetKind::top:
      decay_top(parton, random, particles);
      break;
  }
  add_soft_background(random, particles);
  detect(particles, random);
  return particles;
}

}  // namespace mase
