// SPDX-License-Identifier: Apache-2.0
#include "mase/train/tables/table_moves.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <tuple>

namespace mase {
namespace {

// A table of so many bits costs nothing in front of a carry chain, and narrower ones share one
// (join_tables.h); a bit more is for the first table of a chain alone.
constexpr int free_bits = 5;
constexpr double own_share = 0.25, wide_share = 0.5;
constexpr double per_adder = 0.3;     // what an addition costs beside its bits
constexpr double least_saving = 0.3;  // what a move counts as, where it saves less by itself

// Entries of one edge in steps, as the layer's tables have them or as they would be.
struct Entries {
  std::vector<double> values;  // by code, what the edge gives
  int bits = 0, frac = 0;

  int value_bits() const {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return std::bit_width(static_cast<uint64_t>(std::llround(std::ldexp(*high - *low, frac))));
  }
};

double cost_of_edge(const Entries& entries) {
  return entries.bits > 0 ? edge_cost(entries.bits, entries.value_bits()) : 0;
}

}  // namespace

double edge_cost(int bits, int value_bits) {
  if (bits <= 0 || value_bits <= 0) return 0;
  if (bits <= free_bits)
    return value_bits * (own_share + (1 - own_share) * bits / free_bits) + per_adder;
  return value_bits * (1 + std::ldexp(wide_share, bits - free_bits - 1)) + per_adder;
}

double table_cost(const TableNetwork& network) {
  double cost = 0;
  for (const TableLayer& layer : network.layers())
    for (int64_t i = 0; i < layer.in; ++i)
      for (int64_t o = 0; o < layer.out; ++o) {
        const size_t e = layer.edge(i, o);
        if (layer.bits[e] == 0) continue;
        Entries entries{{}, layer.bits[e], layer.fracs[e]};
        for (int64_t code = 0; code < layer.codes; ++code)
          entries.values.push_back(static_cast<double>(layer.entry(i, code, o)));
        cost += cost_of_edge(entries);
      }
  return cost;
}

std::vector<TableMove> table_moves(const TableNetwork& network,
                                   const std::vector<std::vector<float>>& curvature) {
  std::vector<TableMove> moves;
  for (size_t l = 0; l < network.layers().size(); ++l) {
    const TableLayer& layer = network.layers()[l];
    const auto codes = static_cast<size_t>(layer.codes);
    const auto pad = static_cast<size_t>(layer.pad);
    std::vector<float> values(codes * pad);
    for (const int i : layer.live) {
      table_lanes::spline(network.coarse(l).basis(), layer.codes, layer.pad, false,
                          layer.coarse.data() + i * TableNetwork::coarse_splines * layer.pad,
                          values.data());
      table_lanes::spline(network.fine(l).basis(), layer.codes, layer.pad, true,
                          layer.fine.data() + i * TableNetwork::fine_splines * layer.pad,
                          values.data());
      const float* const counts = layer.counts.data() + i * layer.codes;
      for (int64_t o = 0; o < layer.out; ++o) {
        const size_t e = layer.edge(i, o);
        if (layer.bits[e] == 0) continue;
        const auto of = [&](int bits, int frac) {
          Entries entries{std::vector<double>(codes, 0.0), bits, frac};
          if (bits == 0) return entries;
          const size_t cell = codes >> bits;
          for (size_t first = 0; first < codes; first += cell) {
            double sum = 0, all = 0;
            for (size_t c = first; c < first + cell; ++c) {
              sum += static_cast<double>(counts[c]) *
                     static_cast<double>(values[c * pad + static_cast<size_t>(o)]);
              all += static_cast<double>(counts[c]);
            }
            const double entry = std::ldexp(std::nearbyint(std::ldexp(sum / all, frac)), -frac);
            std::fill_n(entries.values.begin() + static_cast<std::ptrdiff_t>(first), cell, entry);
          }
          return entries;
        };
        Entries now{{}, layer.bits[e], layer.fracs[e]};
        for (int64_t code = 0; code < layer.codes; ++code)
          now.values.push_back(static_cast<double>(layer.entry(i, code, o)));
        const double cost = cost_of_edge(now);
        const auto consider = [&](TableMove::Kind kind, const Entries& then) {
          double weight = 0, mean = 0, square = 0;
          for (size_t c = 0; c < codes; ++c) {
            const auto h = static_cast<double>(
                curvature[l][(static_cast<size_t>(i) * codes + c) * pad + static_cast<size_t>(o)]);
            const double d = then.values[c] - now.values[c];
            weight += h;
            mean += h * d;
            square += h * d * d;
          }
          mean = weight > 0 ? mean / weight : 0;
          const double less = cost - cost_of_edge(then);
          moves.push_back({l, i, o, kind, std::max(0.0, square - weight * mean * mean),
                           std::max(less, kind == TableMove::Kind::edge ? 0.05 : least_saving),
                           mean});
        };
        consider(TableMove::Kind::edge, of(0, 0));
        if (layer.bits[e] > 1)
          consider(TableMove::Kind::input_bit, of(layer.bits[e] - 1, layer.fracs[e]));
        consider(TableMove::Kind::output_bit, of(layer.bits[e], layer.fracs[e] - 1));
      }
    }
  }
  std::stable_sort(moves.begin(), moves.end(), [](const TableMove& a, const TableMove& b) {
    return a.loss * b.saved < b.loss * a.saved;
  });
  return moves;
}

double apply_moves(TableNetwork& network, const std::vector<TableMove>& moves, double saved) {
  std::set<std::tuple<size_t, int64_t, int64_t>> touched;
  double done = 0;
  for (const TableMove& move : moves) {
    if (done >= saved) break;
    if (!touched.emplace(move.layer, move.in, move.out).second) continue;
    TableLayer& layer = network.layers()[move.layer];
    const size_t e = layer.edge(move.in, move.out);
    switch (move.kind) {
      case TableMove::Kind::edge:
        layer.bits[e] = 0;
        break;
      case TableMove::Kind::input_bit:
        --layer.bits[e];
        break;
      case TableMove::Kind::output_bit:
        --layer.fracs[e];
        break;
    }
    layer.bias[static_cast<size_t>(move.out)] -= static_cast<float>(move.shift);
    done += move.saved;
  }
  network.derive();
  return done;
}

}  // namespace mase
